import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { INLINED } from '../../../.ci/tsdown.config.mjs';
import { SUBPATHS } from '../../../.ci/subpaths.mjs';
import { readImports } from '../../support/project/import-graph.js';
import { PROJECT_ROOT, projectFiles } from '../../support/project/project-files.js';
import { copyInto, packPackage, type Packed } from '../../support/project/scratch-project.js';
import { freshName, testRedisUrl } from '../../support/redis.js';
import { startServer } from '../../support/servers/servers.js';

const exec = promisify(execFile);

let pack: Packed;
let scratch: string;
let project: string;
let packed: readonly string[];

beforeAll(async () => {
  pack = await packPackage();
  ({ scratch, files: packed } = pack);
  project = await pack.project('project', []);
  copyInto(project, 'tests/project/package/fixtures/root');
}, 120_000);

afterAll(() => pack.remove());

const ROOT_ESM = ['index.mjs', 'client.mjs', 'errors.mjs', 'lock-context.mjs'].map((file) => `dist/${file}`);
/** Parts of the ESM build that two of its files share. */
const SHARED = /^dist\/(create-client|errors|lock-context)-[\w-]+\.mjs$/;
/** The command without its first lines, its page, and what both share. */
const CLI = /^dist\/(run|ui|words)-[\w-]+\.mjs$/;
const ofSubpath = (name: string): string[] =>
  ['mjs', 'cjs', 'd.mts', 'd.cts'].map((ending) => `dist/${name}.${ending}`);

/** The file through which a subpath imports a peer. */
const peerFile = (name: string, peer: string): string =>
  `dist/peers/${name}-${peer.replace('@', '').replace('/', '-')}.cjs`;

const shipped = (file: string): string => readFileSync(join(project, 'node_modules/holdfast', file), 'utf8');
const bytesOf = (files: readonly string[]): number => files.reduce((sum, file) => sum + shipped(file).length, 0);
const rootEsm = (): string[] => packed.filter((path) => ROOT_ESM.includes(path) || SHARED.test(path));

test('the package has both builds with their types and the licences, and no unused file', () => {
  const expected = [
    ...ROOT_ESM,
    ...['index.cjs', 'index.d.mts', 'index.d.cts'].map((file) => `dist/${file}`),
    ...['package.json', 'README.md', 'LICENSE', 'THIRD-PARTY-LICENSES'],
    'dist/cli.mjs',
    ...Object.keys(SUBPATHS).flatMap(ofSubpath),
    ...Object.entries(SUBPATHS).flatMap(([name, { imports = {} }]) =>
      Object.keys(imports).map((peer) => peerFile(name, peer)),
    ),
  ];
  expect(expected.filter((path) => !packed.includes(path))).toEqual([]);
  expect(packed.filter((path) => !expected.includes(path) && !SHARED.test(path) && !CLI.test(path))).toEqual([]);
});

test('subpaths do not make the root larger, and each of them is small', () => {
  const names = Object.keys(SUBPATHS);
  expect(bytesOf(rootEsm())).toBeLessThan(532_000);
  expect(bytesOf(['dist/index.cjs'])).toBeLessThan(541_000);
  // The inspector has its page in each of the two files.
  const most = (name: string): number => (name === 'inspector' ? 2 * (55_000 + 61_000) : 60_000);
  const large = names.filter((name) => bytesOf([`dist/${name}.mjs`, `dist/${name}.cjs`]) > most(name));
  expect(large).toEqual([]);
  expect(pack.bytes).toBeLessThan(352_000 + names.length * 12_000);
});

test('the root loads no subpath, no peer besides ioredis, and no further module of Node', () => {
  const loaded = (files: readonly string[]): string[] => {
    const specifiers = files.flatMap((file) => readImports(shipped(file)).map(({ specifier }) => specifier));
    return [...new Set(specifiers)].filter((specifier) => !specifier.startsWith('./')).sort();
  };
  const modules = ['async_hooks', 'crypto', 'diagnostics_channel', 'dns', 'events', 'net', 'os', 'util', 'v8'].map(
    (name) => `node:${name}`,
  );
  expect(loaded(rootEsm())).toEqual(['ioredis', 'mitt', ...modules, 'p-retry']);
  expect(loaded(['dist/index.cjs'])).toEqual(['ioredis', ...modules]);
});

test('the command runs as installed, and names ioredis where it is missing', async () => {
  const folder = await pack.project('command', []);
  const holdfast = join(folder, 'node_modules/.bin/holdfast');
  const { stdout } = await exec(holdfast, ['--help']);
  expect(stdout).toMatch(/^Shows what is locked/);
  rmSync(join(folder, 'node_modules/ioredis'), { recursive: true });
  await expect(exec(holdfast, ['ls'])).rejects.toMatchObject({
    code: 2,
    stderr: 'holdfast needs the package ioredis, which is not installed: npm install ioredis\n',
  });
}, 60_000);

test('the packaged scripts have no comments', () => {
  const comments = projectFiles('lua', '.lua').flatMap(
    (path) => readFileSync(join(PROJECT_ROOT, path), 'utf8').match(/-- .{20,}/g) ?? [],
  );
  expect(comments.length).toBeGreaterThan(100);
  for (const file of packed.filter((path) => path.endsWith('js'))) {
    const text = readFileSync(join(project, 'node_modules/holdfast', file), 'utf8');
    expect(comments.filter((comment) => text.includes(JSON.stringify(comment).slice(1, -1)))).toEqual([]);
  }
});

test.each([
  ['LockTimeoutError', 2_000],
  ['InvalidArgumentError, RedisUnavailableError, MultiUnlockError, NoQuorumError', 12_000],
  ['lockContext', 12_000],
])('a bundler takes only the needed part of %s, without the client', async (names, most) => {
  const entry = join(project, 'alone.mjs');
  writeFileSync(entry, `import { ${names} } from 'holdfast';\nconsole.log([${names}]);\n`);
  const bundled = await build({ entryPoints: [entry], bundle: true, platform: 'node', format: 'esm', write: false });
  expect(bundled.outputFiles[0]!.contents.length).toBeLessThan(most);
  expect(bundled.outputFiles[0]!.text).not.toMatch(/evalsha|ioredis/i);
});

test('the shipped types describe only the public surface', () => {
  for (const file of ['index.d.mts', 'index.d.cts']) {
    const types = readFileSync(join(project, 'node_modules/holdfast/dist', file), 'utf8');
    expect(types).toContain('tryLock(waitTime?: number, leaseTime?: number');
    expect(types).not.toMatch(/@internal|ScriptExecutor|LockRuntime|Tenure|LockProtocol|ClientParts/);
  }
});

test('only the packages that the build names are inlined, with their licences', () => {
  const packagesIn = (file: string) => {
    // The build writes before each file's code where it is from.
    const names = [...shipped(file).matchAll(/^\/\/#region .*node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//gm)];
    return [...new Set(names.map(([, name]) => name))].sort();
  };
  const inlined = [...INLINED].sort();
  expect(packagesIn('dist/index.cjs')).toEqual(inlined);
  const others = packed.filter((path) => /\.[cm]js$/.test(path) && path !== 'dist/index.cjs');
  for (const file of others) {
    const name = file.replace(/^dist\/|\.[cm]js$/g, '');
    expect([file, packagesIn(file)]).toEqual([file, SUBPATHS[name]?.inlined ?? []]);
  }
  for (const name of inlined)
    expect(shipped('THIRD-PARTY-LICENSES')).toMatch(new RegExp(`^${name} \\d.*\\(MIT\\)`, 'm'));
});

test('imported, required and bundled copies without a lua folder exclude each other and re-enter', async () => {
  const alone = join(scratch, 'alone');
  mkdirSync(alone);
  const entryPoints = [join(project, 'cjs.cjs')];
  const bundle = join(alone, 'bundle.cjs');
  await build({ entryPoints, bundle: true, platform: 'node', format: 'cjs', minify: true, outfile: bundle });
  const counter = join(scratch, 'counter');
  writeFileSync(counter, '0');
  const rounds = 60;
  const args = [testRedisUrl(), freshName(), counter, String(rounds)];
  const runs = [join(project, 'esm.mjs'), join(project, 'cjs.cjs'), bundle].map((file) =>
    exec(process.execPath, [file, ...args], { cwd: dirname(file) }),
  );
  const said = (await Promise.all(runs)).map(({ stdout, stderr }) => ({ said: JSON.parse(stdout) as unknown, stderr }));
  expect(readFileSync(counter, 'utf8')).toBe(String(runs.length * rounds));
  expect(said).toEqual(runs.map(() => ({ said: { deepest: 2 }, stderr: '' })));
});

test.each(['esm.mjs', 'cjs.cjs'])('the scripts of %s have the digests by which it calls them', async (file) => {
  const server = await startServer();
  const counter = join(scratch, `counter-${file}`);
  writeFileSync(counter, '0');
  await exec(process.execPath, [file, server.url, freshName(), counter, '30'], { cwd: project });
  const stats = await server.commandStats();
  // Each script is sent once. With another digest, Redis would not know the script at the next call.
  expect(stats.get('eval')).toBeLessThan(10);
  expect(stats.get('evalsha')).toBeGreaterThan(60);
  await server.stop();
});

test('a process that imports and requires the package has two copies that share contexts and holds', async () => {
  const { stdout } = await exec(process.execPath, ['both.mjs', testRedisUrl(), freshName()], { cwd: project });
  expect(JSON.parse(stdout)).toEqual({
    copies: 2,
    warnings: [],
    esmContextInCjs: [2],
    cjsContextInEsm: [2],
    esmHoldCjsRun: ['inside', 'outside', 'inside'],
    cjsHoldEsmRun: ['inside', 'outside', 'inside'],
  });
});

test.each([
  ['with the defaults of TypeScript', { lib: undefined, skipLibCheck: true }],
  ['with lib es2022, all declaration files checked', { lib: ['es2022'], skipLibCheck: false }],
])('the types are correct for import and for require, %s', async (_title, options) => {
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        ...{ target: 'es2022', module: 'nodenext', strict: true, exactOptionalPropertyTypes: true, noEmit: true },
        ...{ types: ['node'], ...options },
      },
      files: ['consumer.mts', 'consumer.cts'],
    }),
  );
  const tsc = join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc');
  const { stdout } = await exec(process.execPath, [tsc, '-p', project]).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(stdout).toBe('');
});

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { INLINED } from '../../../.ci/tsdown.config.mjs';
import { PROJECT_ROOT, projectFiles } from '../../support/project/project-files.js';
import { freshName, testRedisUrl } from '../../support/redis.js';

interface Manifest {
  dependencies?: Record<string, string>;
}

const exec = promisify(execFile);
const npm = (args: string[], cwd: string) => exec('npm', args, { cwd, shell: process.platform === 'win32' });
const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest;

let scratch: string;
let project: string;
let packed: string[];
let packedBytes: number;

/** The folders of packages and all that they need, as they are installed here: nothing is fetched. */
function closure(names: string[], from: string, found = new Map<string, string>()): Map<string, string> {
  for (const name of names) {
    const folders = createRequire(join(from, 'package.json')).resolve.paths(name) ?? [];
    const folder = folders.map((path) => join(path, name)).find((path) => existsSync(join(path, 'package.json')));
    if (!folder) throw new Error(`${name} is not installed`);
    if (found.has(name)) continue;
    found.set(name, folder);
    closure(Object.keys(read(join(folder, 'package.json')).dependencies ?? {}), folder, found);
  }
  return found;
}

beforeAll(async () => {
  scratch = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-pack-')));
  project = join(scratch, 'project');
  cpSync(join(PROJECT_ROOT, 'tests/project/package/fixtures'), project, { recursive: true });
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', scratch];
  const [report] = JSON.parse((await npm(args, PROJECT_ROOT)).stdout) as [
    { filename: string; size: number; files: { path: string }[] },
  ];
  packed = report.files.map(({ path }) => path);
  packedBytes = report.size;

  const dependencies = Object.keys(read(join(PROJECT_ROOT, 'package.json')).dependencies ?? {});
  const installed = closure([...dependencies, 'ioredis', '@types/node'], PROJECT_ROOT);
  const specifiers = [...installed].map(([name, folder]): [string, string] => [name, `file:${folder}`]);
  writeFileSync(
    join(project, 'package.json'),
    JSON.stringify({
      name: 'consumer',
      private: true,
      dependencies: { ...Object.fromEntries(specifiers), holdfast: `file:${join(scratch, report.filename)}` },
    }),
  );
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
  await npm(['install', '--offline', '--install-links', ...quiet], project);
}, 120_000);

afterAll(() => rmSync(scratch, { recursive: true }));

test('issue 20.27: the package holds both builds with their types and the licences, and nothing that nothing reads', () => {
  const expected = [
    ...['index.mjs', 'client.mjs', 'errors.mjs', 'lock-context.mjs'].map((file) => `dist/${file}`),
    ...['index.cjs', 'index.d.mts', 'index.d.cts'].map((file) => `dist/${file}`),
    ...['package.json', 'README.md', 'LICENSE', 'THIRD-PARTY-LICENSES'],
  ];
  expect(expected.filter((path) => !packed.includes(path))).toEqual([]);
  // Parts of the ESM build that two of its files share.
  const shared = /^dist\/(create-client|lock-context)-[\w-]+\.mjs$/;
  expect(packed.filter((path) => !expected.includes(path) && !shared.test(path))).toEqual([]);
  expect(packedBytes).toBeLessThan(250_000);
});

test('issue 20.27: the scripts go along without their comments', () => {
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
])(
  'issue 20.27: of %s a bundler takes no more than it needs, and the client has no part in it',
  async (names, most) => {
    const entry = join(project, 'alone.mjs');
    writeFileSync(entry, `import { ${names} } from 'holdfast';\nconsole.log([${names}]);\n`);
    const bundled = await build({ entryPoints: [entry], bundle: true, platform: 'node', format: 'esm', write: false });
    expect(bundled.outputFiles[0]!.contents.length).toBeLessThan(most);
    expect(bundled.outputFiles[0]!.text).not.toMatch(/evalsha|ioredis/i);
  },
);

test('the types that are shipped tell of what users call, and of nothing inside', () => {
  for (const file of ['index.d.mts', 'index.d.cts']) {
    const types = readFileSync(join(project, 'node_modules/holdfast/dist', file), 'utf8');
    expect(types).toContain('tryLock(waitTime?: number, leaseTime?: number');
    expect(types).not.toMatch(/@internal|ScriptExecutor|LockRuntime|Tenure|LockProtocol|ClientParts/);
  }
});

test('only what the build names is inlined, and its licences go along', () => {
  const shipped = (file: string) => readFileSync(join(project, 'node_modules/holdfast', file), 'utf8');
  const packagesIn = (file: string) => {
    // The build writes before each file's code where it is from.
    const names = [...shipped(file).matchAll(/^\/\/#region .*node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//gm)];
    return [...new Set(names.map(([, name]) => name))].sort();
  };
  const inlined = [...INLINED].sort();
  expect(packagesIn('dist/index.cjs')).toEqual(inlined);
  for (const file of packed.filter((path) => path.endsWith('.mjs'))) expect(packagesIn(file)).toEqual([]);
  for (const name of inlined)
    expect(shipped('THIRD-PARTY-LICENSES')).toMatch(new RegExp(`^${name} \\d.*\\(MIT\\)`, 'm'));
});

test('imported, required and bundled into one file without a lua folder, it excludes the others and re-enters', async () => {
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

test('a process that imports and requires it has two copies that know each other: contexts and holds are shared', async () => {
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
])('its types are right for import and for require, %s', async (_title, options) => {
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

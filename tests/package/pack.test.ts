import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT_ROOT, projectFiles } from '../support/project-files.js';
import { expectNothingLeft, freshName, testRedisUrl } from '../support/redis.js';

interface Manifest {
  dependencies?: Record<string, string>;
  tsdown?: { deps?: { alwaysBundle?: string[] } }[];
}

const exec = promisify(execFile);
const npm = (args: string[], cwd: string) => exec('npm', args, { cwd, shell: process.platform === 'win32' });
const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest;

let scratch: string;
let project: string;
let packed: string[];

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
  cpSync(join(PROJECT_ROOT, 'tests/package/fixtures'), project, { recursive: true });
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', scratch];
  const [report] = JSON.parse((await npm(args, PROJECT_ROOT)).stdout) as [
    { filename: string; files: { path: string }[] },
  ];
  packed = report.files.map(({ path }) => path);

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

afterEach(() => expectNothingLeft());

test('the package holds both builds with their types, every script, the licences and nothing of the sources', () => {
  const expected = [
    ...['index.mjs', 'index.cjs', 'index.d.mts', 'index.d.cts'].map((file) => `dist/${file}`),
    ...['package.json', 'README.md', 'LICENSE', 'THIRD-PARTY-LICENSES'],
    ...projectFiles('lua'),
  ];
  expect(expected.filter((path) => !packed.includes(path))).toEqual([]);
  expect(packed.filter((path) => !expected.includes(path) && !/^dist\/[^/]+\.map$/.test(path))).toEqual([]);
});

test('the types that are shipped tell of what users call, and of nothing inside', () => {
  for (const file of ['index.d.mts', 'index.d.cts']) {
    const types = readFileSync(join(project, 'node_modules/holdfast/dist', file), 'utf8');
    expect(types).toContain('tryLock(waitTime?: number, leaseTime?: number');
    expect(types).not.toMatch(/@internal|ScriptExecutor|LockRuntime|Tenure|LockProtocol|ClientParts/);
  }
});

test('only what the build names is inlined, and its licences go along', () => {
  const { tsdown } = read(join(PROJECT_ROOT, 'package.json'));
  const inlined = tsdown?.flatMap(({ deps }) => deps?.alwaysBundle ?? []) ?? [];
  const shipped = (file: string) => readFileSync(join(project, 'node_modules/holdfast', file), 'utf8');
  const packagesIn = (map: string) => {
    const { sources } = JSON.parse(shipped(map)) as { sources: string[] };
    const names = sources.map((source) => /node_modules\/((?:@[^/]+\/)?[^/]+)\/[^:]*$/.exec(source)?.[1]);
    return [...new Set(names.filter((name) => name !== undefined))].sort();
  };
  expect(packagesIn('dist/index.cjs.map')).toEqual([...inlined].sort());
  expect(packagesIn('dist/index.mjs.map')).toEqual([]);
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

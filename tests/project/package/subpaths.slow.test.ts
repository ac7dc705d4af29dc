import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { cpSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SUBPATHS } from '../../../.ci/subpaths.mjs';
import { PROJECT_ROOT, projectFiles, readProjectFile } from '../../support/project/project-files.js';
import { readImports } from '../../support/project/import-graph.js';
import { packPackage, type Packed } from '../../support/project/scratch-project.js';
import { freshName, testRedisUrl } from '../../support/redis.js';
import { ROWS } from './subpaths.js';

interface Manifest {
  exports: Record<string, unknown>;
  typesVersions: { '*': Record<string, string[]> };
  peerDependencies: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
}

const exec = promisify(execFile);
const manifest = JSON.parse(readProjectFile('package.json')) as Manifest;
const names = Object.keys(SUBPATHS);

let pack: Packed;
beforeAll(async () => {
  pack = await packPackage();
}, 120_000);
afterAll(() => pack.remove());

/** Compiles files of a project and returns the messages of the compiler. */
async function compile(project: string, file: string, compilerOptions: object): Promise<string> {
  const config = join(project, `tsconfig.${file}.json`);
  writeFileSync(
    config,
    JSON.stringify({
      compilerOptions: { target: 'es2022', strict: true, skipLibCheck: true, types: ['node'], ...compilerOptions },
      files: [file],
    }),
  );
  const tsc = join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc');
  const { stdout } = await exec(process.execPath, [tsc, '-p', config]).catch(
    (error: unknown) => error as { stdout: string },
  );
  return stdout;
}

const run = (project: string, file: string) =>
  exec(process.execPath, [file, testRedisUrl(), freshName()], { cwd: project, timeout: 60_000 });

/** The error of the first use of a subpath in a process of its own. `holdfast/testing` needs its peer at the first call. */
async function loaded(project: string, name: string, load: string): Promise<unknown> {
  const use = name === 'testing' ? `await (${load}).startTestClient()` : load;
  const program = `const run = async () => { ${use}; };
    run().then(() => 'loaded', ({ message, code }) => ({ message, code })).then((facts) => console.log(JSON.stringify(facts)));`;
  const { stdout } = await exec(process.execPath, ['-e', program], { cwd: project, timeout: 60_000 });
  return JSON.parse(stdout);
}

describe.each(Object.entries(ROWS))('holdfast/%s, installed from the package', (name, row) => {
  let project: string;
  beforeAll(async () => {
    project = await pack.project(name, row.packages);
    for (const linked of row.linked ?? []) {
      symlinkSync(join(PROJECT_ROOT, 'node_modules', linked), join(project, 'node_modules', linked));
    }
    for (const ending of ['mts', 'cts', 'ts']) {
      cpSync(join(PROJECT_ROOT, `tests/project/package/fixtures/subpaths/${name}.ts`), join(project, `use.${ending}`));
    }
  }, 120_000);

  test.each([
    ['import', 'use.mts', 'use.mjs'],
    ['require', 'use.cts', 'use.cjs'],
  ])('compiles under node16 and runs, by %s', async (_format, source, built) => {
    expect(await compile(project, source, { module: 'node16', ...row.compilerOptions })).toBe('');
    const { stdout, stderr } = await run(project, built);
    expect({ ...(JSON.parse(stdout) as object), stderr }).toEqual({ ...row.prints, stderr: '' });
  });

  test.each([
    ['bundler', { module: 'esnext', moduleResolution: 'bundler' }],
    ['node10', { module: 'commonjs', moduleResolution: 'node10', ignoreDeprecations: '6.0' }],
  ])('has types for the resolution %s', async (_title, options) => {
    expect(await compile(project, 'use.ts', { ...options, ...row.compilerOptions, noEmit: true })).toBe('');
  });

  if (row.needs.length > 0) {
    test.each(row.needs)('says that the package %s has to be installed', async (peer) => {
      const [folder, aside] = [join(project, 'node_modules', peer), join(project, 'aside')];
      renameSync(folder, aside);
      try {
        const text = `holdfast/${name} needs the package ${peer}: npm install (--save-dev )?${peer}`;
        for (const load of [`await import('holdfast/${name}')`, `require('holdfast/${name}')`]) {
          expect(await loaded(project, name, load)).toEqual({
            message: expect.stringMatching(new RegExp(`^${text}$`)),
            code: 'MODULE_NOT_FOUND',
          });
        }
      } finally {
        renameSync(aside, folder);
      }
    });
  }
});

test('every subpath has its source, its exports, its types for node10, its row and its report', () => {
  const sources = projectFiles('src/integrations', 'index.ts').map((path) => path.split('/')[2]);
  expect(sources).toEqual([...names].sort());
  expect(Object.keys(ROWS).sort()).toEqual([...names].sort());
  const exported = Object.keys(manifest.exports).filter((path) => path !== '.' && path !== './package.json');
  expect(exported).toEqual(names.map((name) => `./${name}`));
  for (const name of names) {
    expect(manifest.exports[`./${name}`]).toEqual({
      import: { types: `./dist/${name}.d.mts`, default: `./dist/${name}.mjs` },
      require: { types: `./dist/${name}.d.cts`, default: `./dist/${name}.cjs` },
    });
  }
  expect(manifest.typesVersions['*']).toEqual(
    Object.fromEntries(names.map((name) => [name, [`./dist/${name}.d.cts`]])),
  );
  const reports = projectFiles('.ci/api', '.api.md');
  expect(reports).toEqual(
    ['.ci/api/holdfast.api.md', ...names.map((name) => `.ci/api/holdfast-${name}.api.md`)].sort(),
  );
});

test('every peer besides ioredis is optional, belongs to a subpath, and has its message without it', () => {
  const { ioredis: _, ...others } = manifest.peerDependencies;
  const peers = [...new Set(Object.values(SUBPATHS).flatMap((subpath): readonly string[] => subpath.peers))].sort();
  expect(Object.keys(others).sort()).toEqual(peers);
  expect(manifest.peerDependenciesMeta ?? {}).toEqual(
    Object.fromEntries(peers.map((peer) => [peer, { optional: true }])),
  );
  for (const name of names) {
    const { peers, imports = {} } = SUBPATHS[name]!;
    expect(peers).toEqual(expect.arrayContaining([...ROWS[name]!.needs]));
    expect(ROWS[name]!.needs).toEqual(expect.arrayContaining(Object.keys(imports)));
  }
});

/** The peer that a call loads. */
const LATE = 'redis-memory-server';

test('every value that a subpath imports of a peer comes from the file that names a missing peer', () => {
  for (const [name, { peers, imports = {} }] of Object.entries(SUBPATHS)) {
    const imported = projectFiles(`src/integrations/${name}`, '.ts').flatMap((path) =>
      readImports(readProjectFile(path)),
    );
    const values = imported.filter(
      ({ typeOnly, specifier }) => !typeOnly && peers.includes(specifier) && specifier !== LATE,
    );
    expect([...new Set(values.map(({ specifier }) => specifier))].sort()).toEqual(Object.keys(imports).sort());
    for (const ending of ['mjs', 'cjs']) {
      const built = readProjectFile(`dist/${name}.${ending}`);
      for (const peer of peers.filter((each) => each !== LATE))
        expect(built).not.toMatch(new RegExp(`(from |require\\()['"]${peer}['"]`));
    }
  }
});

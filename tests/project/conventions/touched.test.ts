import { afterEach, describe, expect, test } from '@jest/globals';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { STEPS } from '../../../.ci/suites/steps.mjs';
import { stepsFor, TOUCHED } from '../../../.ci/suites/touched.mjs';
import { PROJECT_ROOT, readProjectFile } from '../../support/project/project-files.js';

/* Which steps a change needs beside the gate. */

const tracked = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: PROJECT_ROOT,
  encoding: 'utf8',
})
  .split('\0')
  .filter((path) => path !== '');

test('every file of the project has a row, and every pattern of a row has a file', () => {
  expect(stepsFor(tracked).unknown).toEqual([]);
  const patterns = TOUCHED.flatMap(({ paths }) => paths);
  const isUsed = (pattern: string): boolean =>
    tracked.some((path) =>
      pattern.includes('*') ? pattern.length < 10 || path.startsWith(pattern.split('*')[0]!) : path.startsWith(pattern),
    );
  expect(patterns.filter((pattern) => !isUsed(pattern))).toEqual([]);
});

test('the steps of the rows exist, and each step is one of the gate or of a row', () => {
  const named = TOUCHED.flatMap(({ steps }) => steps);
  expect(named.filter((name) => STEPS[name] === undefined)).toEqual([]);
  expect(
    Object.keys(STEPS)
      .filter((name) => !named.includes(name))
      .sort(),
  ).toEqual(['check', 'fast', 'slow', 'topologies']);
});

test.each<[string, string[]]>([
  ['docs/cli.md', ['browser']],
  ['src/cli/ls.ts', ['browser']],
  ['src/redis/connections/subscriber.ts', ['setups', 'servers', 'instrumentation', 'plain-transport']],
  ['src/redis/topologies/topology.ts', ['setups', 'servers']],
  ['src/redis/keys.ts', ['setups', 'servers']],
  ['lua/lock/acquire.lua', ['servers', 'jvm']],
  ['src/ownership/flow.ts', ['versions', 'instrumentation', 'runtimes']],
  ['src/waiting/line.ts', ['plain-transport', 'nemesis']],
  ['src/holding/tenure.ts', ['plain-transport', 'nemesis']],
  ['tests/unit/explain.test.ts', []],
  ['CHANGELOG.md', []],
])('a change of %s needs %j', (path, steps) => {
  expect(stepsFor([path])).toEqual({ steps: new Set(steps), unknown: [] });
});

test('a change of several files needs the steps of each, and a path without a row is named', () => {
  const { steps, unknown } = stepsFor(['docs/cli.md', 'lua/lock/acquire.lua', 'src/new/part.ts', 'elsewhere/file']);
  expect(steps).toEqual(new Set(['browser', 'servers', 'jvm']));
  expect(unknown).toEqual(['src/new/part.ts', 'elsewhere/file']);
});

test('CONTRIBUTING shows the table', () => {
  const page = readProjectFile('CONTRIBUTING.md');
  for (const { subject, steps } of TOUCHED.filter((row) => row.steps.length > 0)) {
    const row = page.split('\n').find((line) => line.startsWith(`| ${subject} |`));
    const [, shown = ''] = row?.split('|').slice(1) ?? [];
    expect([subject, [...shown.matchAll(/`([a-z-]+)`/g)].map(([, step]) => step)]).toEqual([subject, steps]);
  }
});

describe('the suite touched', () => {
  const made: string[] = [];
  afterEach(() => {
    for (const folder of made.splice(0)) rmSync(folder, { recursive: true });
  });

  /** A repository with the runner, one commit on main, and then these files. */
  function repository(files: readonly string[]): string {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-touched-'));
    made.push(folder);
    for (const part of ['.ci/suites', 'tests/support/jest/never.mjs'])
      cpSync(join(PROJECT_ROOT, part), join(folder, part), { recursive: true });
    const git = (...args: string[]): unknown =>
      execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@localhost', ...args], { cwd: folder });
    git('init', '-q', '-b', 'main');
    git('add', '-A');
    git('commit', '-qm', 'all');
    git('switch', '-qc', 'next');
    for (const file of files) writeFileSync(join(folder, file), '');
    return folder;
  }

  /** Each call runs one test. */
  const RECORD = `[ -z "$HOLDFAST_TEST_RECORD" ] || echo '{"what":"ended","file":"x","failures":[]}' >> "$HOLDFAST_TEST_RECORD"`;

  const touched = (folder: string, ...args: string[]): { status: number | null; output: string } => {
    writeFileSync(join(folder, 'npm'), `#!/bin/sh\necho "called: $*"\n${RECORD}\n`, { mode: 0o755 });
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(folder, '.ci/suites/run-steps.mjs'), ...args],
      { cwd: folder, encoding: 'utf8', env: { ...process.env, PATH: `${folder}:${process.env.PATH}` } },
    );
    return { status, output: stdout + stderr };
  };

  test('runs the steps that the change needs', () => {
    const { status, output } = touched(repository(['README.md']), 'touched');
    expect(output).toMatch(/Beside the gate: browser\ncalled: run suite -- browser\n/);
    expect(output).toMatch(/: 1 steps, 0 of them failed\n$/);
    expect(status).toBe(0);
  });

  test('takes the commit that the change is against', () => {
    const { status, output } = touched(repository([]), 'touched', 'main');
    expect(output).toMatch(/The change since main touches 1 files. Beside the gate: no step\n/);
    expect(status).toBe(0);
  });

  test('refuses a path without a row, before any step', () => {
    const folder = repository([]);
    cpSync(join(folder, '.ci'), join(folder, 'elsewhere'), { recursive: true });
    const { status, output } = touched(folder, 'touched');
    expect(output).toContain('no row of .ci/suites/touched.mjs covers elsewhere/');
    expect(output).not.toContain('called:');
    expect(status).toBe(2);
  });

  test.each([
    [
      ['all', '--from', 'model'],
      ['model', 'mutants', 'soak'],
    ],
    [
      ['all', '--only', 'jvm,check'],
      ['check', 'jvm'],
    ],
    [
      ['gate', '--from', 'topologies'],
      ['topologies', 'jvm'],
    ],
  ])('beside it, %j runs the steps %j', (args, steps) => {
    const { status, output } = touched(repository([]), ...args);
    expect([...output.matchAll(/^  ([a-z-]+): passed/gm)].map(([, step]) => step)).toEqual(steps);
    expect(status).toBe(0);
  });

  test.each([[['all', '--only', 'chekc']], [['all', '--from', 'nothing']], [['gate', 'browser']], [['some']], [[]]])(
    'beside it, %j is refused',
    (args) => {
      const { status, output } = touched(repository([]), ...args);
      expect(output).not.toContain('called:');
      expect(status).toBe(2);
    },
  );
});

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { STEPS, type Step } from '../../../.ci/suites/steps.mjs';
import { runSteps } from '../../../.ci/suites/runner.mjs';
import { PROJECT_ROOT } from '../../support/project/project-files.js';
import { until } from '../../support/time/until.js';

/* The runner of the steps: limits, and files that run once more. */

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-runner-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Ending {
  readonly files?: Readonly<Record<string, readonly string[]>>;
  readonly unfinished?: string;
  readonly status?: number;
  readonly isComplete?: boolean;
}

/** A command that notes what a run of Jest would note, and exits. The messages of a failed file are its values. */
function likeJest({ files = {}, unfinished, status = 0, isComplete = true }: Ending): string {
  const entries = [
    { what: 'run', seed: '7' },
    ...Object.entries(files).flatMap(([file, messages]) => [
      { what: 'begun', file },
      { what: 'ended', file, failures: messages.map((message) => ({ title: `title of ${message}`, message })) },
    ]),
    ...(unfinished === undefined ? [] : [{ what: 'begun', file: unfinished }]),
    ...(isComplete ? [{ what: 'complete' }] : []),
  ];
  const lines = entries.map((entry) => `'${JSON.stringify(entry)}'`).join(' ');
  return `printf '%s\\n' ${lines} >> "$HOLDFAST_TEST_RECORD"; exit ${status}`;
}

/** Runs one file again: it fails if `always` is in its name. The log has the files and their seeds. */
function again(): string {
  const path = join(folder, 'again.sh');
  const [good, bad] = [likeJest({ files: { x: [] } }), likeJest({ files: { x: ['Error: still'] }, status: 1 })];
  writeFileSync(path, `echo "$1 $HOLDFAST_SEED" >> '${folder}/log'\ncase "$1" in *always*) ${bad} ;; esac\n${good}\n`);
  return `sh ${path}`;
}

const repeated = (): string[] =>
  existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8').trim().split('\n') : [];

async function run(steps: Readonly<Record<string, Step>>): Promise<{ status: number; output: string }> {
  let output = '';
  const status = await runSteps(steps, (text) => (output += `${text}\n`));
  return { status, output };
}

/** One step of tests that ends like this. */
const ending = (how: Ending): Promise<{ status: number; output: string }> =>
  run({ only: { run: likeJest(how), usualS: 60, tests: true, again: again() } });

const ONCE = 'tests/faults/once.test.ts';
const ALWAYS = 'tests/faults/always.test.ts';

test('files that never fail run once', async () => {
  const { status, output } = await ending({ files: { [ONCE]: [] } });
  expect(output).toMatch(/ {2}only: passed \(\d+ s\)\ndone in \d+ s: 1 steps, 0 of them failed\n$/);
  expect([repeated(), status]).toEqual([[], 0]);
});

test('a file that fails once runs again by itself with the same seed, and the summary ends with it', async () => {
  const { status, output } = await ending({
    files: { [ONCE]: ['\n\u001b[31mError: late\u001b[39m\n at x'] },
    status: 1,
  });
  expect(output).toMatch(/ {2}only: passed \(\d+ s\), with flakes\n/);
  expect(output).toContain(`0 of them failed\nFlakes:\n  only: ${ONCE}\n    title of`);
  expect(output).toMatch(/: Error: late\n$/);
  expect([repeated(), status]).toEqual([[`${ONCE} 7`], 0]);
});

test('a file that fails each time fails the run', async () => {
  const { status, output } = await ending({ files: { [ONCE]: ['Error: x'], [ALWAYS]: ['Error: y'] }, status: 1 });
  expect(output).toMatch(new RegExp(`only: FAILED with status 1 \\(\\d+ s\\); ${ALWAYS} failed again`));
  expect(output).toMatch(/1 of them failed\nFlakes:\n {2}only: tests\/faults\/once/);
  expect([repeated(), status]).toEqual([[`${ONCE} 7`, `${ALWAYS} 7`], 1]);
});

const six = Object.fromEntries([1, 2, 3, 4, 5, 6].map((at) => [`tests/faults/${at}.test.ts`, ['Error: x']]));

test.each<[string, Ending, RegExp]>([
  ['six files that fail', { files: six, status: 1 }, /more than 5 files failed/],
  ['an interop file', { files: { 'tests/interop/a.test.ts': ['x'] }, status: 1 }, /a\.test\.ts is never repeated/],
  ['a property', { files: { 'tests/verification/a.test.ts': ['x'] }, status: 1 }, /a\.test\.ts is never repeated/],
  ['ownership', { files: { 'tests/unit/ownership/a.test.ts': ['x'] }, status: 1 }, /a\.test\.ts is never repeated/],
  [
    'two holders',
    { files: { [ONCE]: ['Error: Never a flake: 2 holders at once'] }, status: 1 },
    /: 2 holders at once$/m,
  ],
  [
    'a call that never settles',
    { files: { [ONCE]: ['Exceeded timeout of 30000 ms'] }, status: 1 },
    /is never repeated: Exc/,
  ],
  ['a run of Jest that did not end', { files: { [ONCE]: ['x'] }, status: 1, isComplete: false }, /did not end/],
  ['a file that did not end', { files: { [ONCE]: ['x'] }, status: 1, unfinished: ALWAYS }, /did not end/],
  ['a failure outside of the tests', { files: { [ONCE]: [] }, status: 1 }, /no test failed/],
  ['another status than that of Jest', { files: { [ONCE]: ['x'] }, status: 2 }, /FAILED with status 2/],
  ['failures beside the status 0', { files: { [ALWAYS]: ['x'] } }, /FAILED with status 0/],
  ['a step that ran no test', {}, /FAILED: it ran no test/],
])('nothing is repeated, and the run fails: %s', async (_, how, words) => {
  const { status, output } = await ending(how);
  expect(output).toMatch(words);
  expect(output).toContain('1 of them failed\n');
  expect([repeated(), status]).toEqual([[], 1]);
});

test('five files may fail once', async () => {
  const five = Object.fromEntries(Object.entries(six).slice(0, 5));
  expect((await ending({ files: five, status: 1 })).status).toBe(0);
  expect(repeated()).toHaveLength(5);
});

test('a runner that dies by a signal, and a step that prints nothing and does nothing, fail; the next step runs', async () => {
  const { status, output } = await run({
    dies: {
      run: `${likeJest({ files: { [ONCE]: ['x'] } }).replace(/exit 0$/, '')} kill -9 $$`,
      usualS: 60,
      tests: true,
      again: again(),
    },
    silent: { run: 'exit 0', usualS: 60, tests: true, again: again() },
    next: { run: 'exit 0', usualS: 60 },
  });
  expect(output).toMatch(/ {2}dies: FAILED with SIGKILL .*\n {2}silent: FAILED: it ran no test .*\n {2}next: passed/);
  expect([repeated(), status]).toEqual([[], 1]);
});

describe('with the real Jest', () => {
  /** A step that runs a fixture. */
  function fixture(name: string, usualS: number): Step {
    const config = {
      rootDir: PROJECT_ROOT,
      roots: ['<rootDir>/tests/support/fixtures/steps'],
      testRegex: `${name}\\.cjs$`,
      transform: {},
      globalSetup: '<rootDir>/tests/support/jest/global-setup.mjs',
      globalTeardown: '<rootDir>/tests/support/jest/global-teardown.mjs',
      reporters: ['<rootDir>/tests/support/jest/record.mjs'],
    };
    const path = join(folder, 'config.json');
    writeFileSync(path, JSON.stringify(config));
    const jest = `'${process.execPath}' '${join(PROJECT_ROOT, 'node_modules/jest/bin/jest.js')}' --config '${path}'`;
    return {
      run: `exec ${jest}`,
      again: `${jest} --runTestsByPath`,
      usualS,
      tests: true,
      env: { HOLDFAST_MARK: join(folder, 'mark') },
    };
  }

  test('a file that fails once is a flake', async () => {
    const { status, output } = await run({ flaky: fixture('once', 20) });
    expect(output).toMatch(/flaky: passed \(\d+ s\), with flakes\n/);
    expect(output).toContain(
      '  flaky: tests/support/fixtures/steps/once.cjs\n    passes the second time: Error: not yet',
    );
    expect(status).toBe(0);
  });

  test('a test that never ends is named at the limit, its server ends, and the next step runs', async () => {
    const { status, output } = await run({ late: fixture('endless', 3), next: { run: 'exit 0', usualS: 60 } });
    expect(output).toContain(
      '  late: FAILED: it did not end within 9 s; begun and not ended: tests/support/fixtures/steps/endless.cjs\n',
    );
    expect(output).toContain('  next: passed');
    expect(status).toBe(1);
    const server = Number(readFileSync(join(folder, 'mark'), 'utf8'));
    await until(() => !isAlive(server), 'the server has ended');
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('every step has a usual time, and every step of tests that may be repeated says how', () => {
  for (const [name, { usualS, tests, again: command }] of Object.entries(STEPS)) {
    expect([name, usualS > 0]).toEqual([name, true]);
    expect([name, command === undefined || tests === true]).toEqual([name, true]);
  }
  expect(Object.keys(STEPS).filter((name) => STEPS[name]!.tests && STEPS[name]!.again === undefined)).toEqual([
    'jvm',
    'soak',
  ]);
});

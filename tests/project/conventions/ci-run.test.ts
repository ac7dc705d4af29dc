import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../support/project/project-files.js';
import { until } from '../../support/time/until.js';

/* `.ci/run` with an npm that only records its calls: the executed steps, the output and the exit status. */

let bin: string;
let calls: string;
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'holdfast-ci-'));
  calls = join(bin, 'calls');
});
afterEach(() => rmSync(bin, { recursive: true }));

const called = (): string[] => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []);

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function program(name: string, text: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(bin, name), 0o755);
}

const ENDED = '{"what":"ended","file":"x","failures":[]}';

/** Runs it; each call runs one test, and `npm` is the part of a shell script that decides about one call. */
async function ciRun(npm: string, whileItRuns?: (pid: number) => Promise<void>, path = process.env.PATH ?? '') {
  const record = ['{"what":"run","seed":"1"}', '{"what":"begun","file":"x"}', ENDED, '{"what":"complete"}'];
  const note = `[ -z "$HOLDFAST_TEST_RECORD" ] || printf '%s\\n' ${record.map((line) => `'${line}'`).join(' ')} >> "$HOLDFAST_TEST_RECORD"`;
  program('npm', `echo "$*" >> '${calls}'\n${note}\n${npm}`);
  if (path !== '') program('redis-server', 'exit 0');
  const child = spawn('bash', [join(PROJECT_ROOT, '.ci/run')], {
    env: { ...process.env, PATH: `${bin}:${path}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  await whileItRuns?.(child.pid!);
  const status = await ended;
  return { status, output, lastLine: output.trim().split('\n').at(-1)! };
}

const STEPS = [
  'run check',
  'test',
  'run suite -- slow',
  'run suite -- topologies tests/contracts/lock.test.ts',
  'run suite -- interop wire',
];

test('the run executes every step in order and passes', async () => {
  const { status, lastLine } = await ciRun('exit 0');
  expect(called()).toEqual(['ci --no-audit --no-fund', ...STEPS]);
  expect(lastLine).toMatch(/^done in \d+ s: 5 steps, 0 of them failed$/);
  expect(status).toBe(0);
});

test.each(STEPS)('the run fails after all steps if "npm %s" fails', async (step) => {
  const { status, lastLine } = await ciRun(`[ "$*" != '${step}' ]`);
  expect(called().slice(1)).toEqual(STEPS);
  expect(lastLine).toMatch(/: 5 steps, 1 of them failed$/);
  expect(status).toBe(1);
});

test('a machine without a JDK skips only that step, and the summary says so', async () => {
  const without = await ciRun(`case "$*" in *interop*) exit 3 ;; esac`);
  expect(without.output).toContain('  jvm: not run: this machine has no JDK or no Maven\n');
  expect(without.lastLine).toMatch(/: 5 steps, 0 of them failed$/);
  expect(without.status).toBe(0);
  const other = await ciRun(`case "$*" in *topologies*) exit 3 ;; esac`);
  expect(other.output).toContain('  topologies: FAILED with status 3');
  expect(other.status).toBe(1);
});

test('a step whose runner dies by a signal has failed', async () => {
  const { status, output } = await ciRun(`case "$*" in *slow*) kill -9 $PPID ;; esac`);
  expect(output).toContain('  slow: FAILED with SIGKILL');
  expect(output).toContain('  jvm: passed');
  expect(status).toBe(1);
});

test('as root the run installs a Redis that the machine lacks', async () => {
  const { PATH = '' } = process.env;
  for (const name of ['bash', 'dirname', 'node', 'sh', 'ps']) {
    const folder = PATH.split(':').find((each) => existsSync(join(each, name)))!;
    symlinkSync(join(folder, name), join(bin, name));
  }
  program('id', 'echo 0');
  program('apt-get', `echo "apt-get $*" >> '${calls}'`);
  const { status } = await ciRun('exit 0', undefined, '');
  const packages = called().filter((call) => call.startsWith('apt-get install'));
  expect(packages).toEqual([expect.stringContaining(' redis-server')]);
  expect(status).toBe(0);
});

test('a failed installation fails the run before its steps', async () => {
  const { status } = await ciRun('exit 7');
  expect(called()).toEqual(['ci --no-audit --no-fund']);
  expect(status).toBe(7);
});

test('a run that is ended from outside ends its step, and names the steps that did not run', async () => {
  let processOfStep = 0;
  const { status, output } = await ciRun(
    `case "$*" in *slow*) echo "$$" > '${calls}.new'; mv '${calls}.new' '${calls}.pid'; while :; do sleep 0.05; done ;; esac`,
    async (pid) => {
      await until(() => existsSync(`${calls}.pid`), 'the third step runs');
      processOfStep = Number(readFileSync(`${calls}.pid`, 'utf8'));
      process.kill(pid, 'SIGTERM');
    },
  );
  await until(() => !isAlive(processOfStep), 'the process of the step has ended');
  expect(output).toContain('  fast: passed');
  expect(output).toContain('  slow: FAILED with SIGKILL');
  expect(output.match(/FAILED: it did not get its turn/g)).toHaveLength(2);
  expect(status).toBe(143);
});

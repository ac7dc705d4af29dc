import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../support/project/project-files.js';
import { until } from '../../support/time/until.js';

/* `.ci/run` with an npm that only records its calls: the executed steps and the output. */

let bin: string;
let calls: string;
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'holdfast-ci-'));
  calls = join(bin, 'calls');
});
afterEach(() => rmSync(bin, { recursive: true }));

const called = (): string[] => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []);

/** Runs it; `npm` is the part of a shell script that decides about one call. */
async function ciRun(npm: string, whileItRuns?: (pid: number) => Promise<void>) {
  const program = (name: string, text: string): void => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  program('npm', `echo "$*" >> '${calls}'\n${npm}`);
  program('redis-server', 'exit 0');
  const child = spawn('bash', [join(PROJECT_ROOT, '.ci/run')], {
    env: { ...process.env, PATH: `${bin}:${process.env.PATH ?? ''}` },
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
  'run test:slow',
  'run test:servers -- tests/topologies/',
  'run test:topologies -- tests/contracts/lock.test.ts',
  'run test:servers -- tests/contracts/lock.test.ts tests/lua/lock.test.ts',
  'run test:interop -- wire',
  'run test:node-versions',
  'run test:instrumentation',
  'run test:runtimes',
];

test('the run executes every step in order and passes', async () => {
  const { status, lastLine } = await ciRun('exit 0');
  expect(called()).toEqual(['ci --no-audit --no-fund', ...STEPS]);
  expect(lastLine).toMatch(/^done in \d+ s: 10 steps, 0 of them failed$/);
  expect(status).toBe(0);
});

test.each(STEPS)('the run fails after all steps if "npm %s" fails', async (step) => {
  const { status, lastLine } = await ciRun(`[ "$*" != '${step}' ]`);
  expect(called().slice(1)).toEqual(STEPS);
  expect(lastLine).toMatch(/: 10 steps, 1 of them failed$/);
  expect(status).toBe(1);
});

test('a machine without a JDK skips only the JVM step, and the summary says so', async () => {
  const without = await ciRun(`case "$*" in *interop*) exit 3 ;; esac`);
  expect(without.output).toContain('  jvm: not run: this machine has no JDK or no Maven\n');
  expect(without.status).toBe(0);
  const other = await ciRun(`case "$*" in *runtimes*) exit 3 ;; esac`);
  expect(other.output).toContain('  runtimes: FAILED with status 3');
  expect(other.status).toBe(1);
});

test('a failed installation fails the run, and each step counts as failed', async () => {
  const { status, output, lastLine } = await ciRun('exit 7');
  expect(called()).toEqual(['ci --no-audit --no-fund']);
  expect(output.match(/FAILED: it did not get its turn/g)).toHaveLength(10);
  expect(lastLine).toMatch(/: 10 steps, 10 of them failed$/);
  expect(status).toBe(1);
});

test('a run that is ended from outside names the steps that did not run', async () => {
  const { status, output } = await ciRun(
    `case "$*" in *slow*) while [ -e "$0" ]; do sleep 0.05; done ;; esac`,
    async (pid) => {
      await until(() => called().includes('run test:slow'), 'the third step runs');
      process.kill(pid, 'SIGTERM');
      // Bash waits for the command that it runs.
      rmSync(join(bin, 'npm'));
    },
  );
  expect(output).toContain('  fast: passed');
  expect(output.match(/FAILED: it did not get its turn/g)).toHaveLength(8);
  expect(status).toBe(1);
});

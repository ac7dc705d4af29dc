import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
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

function program(name: string, text: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(bin, name), 0o755);
}

/** Runs it; `npm` is the part of a shell script that decides about one call. */
async function ciRun(npm: string, whileItRuns?: (pid: number) => Promise<void>, path = process.env.PATH ?? '') {
  program('npm', `echo "$*" >> '${calls}'\n${npm}`);
  if (path !== '') for (const present of ['redis-server', 'chromium']) program(present, 'exit 0');
  const child = spawn('bash', [join(PROJECT_ROOT, '.ci/run')], {
    env: { ...process.env, HOLDFAST_CHROMIUM: '', PATH: `${bin}:${path}` },
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
  'run suite -- browser',
  'run suite -- servers tests/topologies/',
  'run suite -- topologies tests/contracts/lock.test.ts',
  'run suite -- servers tests/contracts/lock.test.ts tests/lua/lock.test.ts',
  'run suite -- interop wire',
  'run suite -- node-versions',
  'run suite -- instrumentation',
  'run suite -- runtimes',
];

test('the run executes every step in order and passes', async () => {
  const { status, lastLine } = await ciRun('exit 0');
  expect(called()).toEqual(['ci --no-audit --no-fund', ...STEPS]);
  expect(lastLine).toMatch(/^done in \d+ s: 11 steps, 0 of them failed$/);
  expect(status).toBe(0);
});

test.each(STEPS)('the run fails after all steps if "npm %s" fails', async (step) => {
  const { status, lastLine } = await ciRun(`[ "$*" != '${step}' ]`);
  expect(called().slice(1)).toEqual(STEPS);
  expect(lastLine).toMatch(/: 11 steps, 1 of them failed$/);
  expect(status).toBe(1);
});

test('a machine without a JDK or a browser skips only that step, and the summary says so', async () => {
  const without = await ciRun(`case "$*" in *interop*) exit 3 ;; esac`);
  expect(without.output).toContain('  jvm: not run: this machine has no JDK or no Maven\n');
  expect(without.output).toContain('  browser: passed');
  expect(without.status).toBe(0);
  const noBrowser = await ciRun(`case "$*" in *browser*) exit 3 ;; esac`);
  expect(noBrowser.output).toContain('  browser: not run: no browser can be installed\n');
  expect(noBrowser.status).toBe(0);
  const other = await ciRun(`case "$*" in *runtimes*) exit 3 ;; esac`);
  expect(other.output).toContain('  runtimes: FAILED with status 3');
  expect(other.status).toBe(1);
});

test('as root the run installs a Redis and a browser that the machine lacks, and a browser that is not to be had is not run', async () => {
  const { PATH = '' } = process.env;
  for (const name of ['bash', 'dirname']) {
    const folder = PATH.split(':').find((each) => existsSync(join(each, name)))!;
    symlinkSync(join(folder, name), join(bin, name));
  }
  program('id', 'echo 0');
  program('apt-get', `echo "apt-get $*" >> '${calls}'\ncase "$*" in *chromium*) exit 100 ;; esac`);
  const { status, output } = await ciRun(`case "$*" in *browser*) exit 3 ;; esac`, undefined, '');
  const packages = called().filter((call) => call.startsWith('apt-get install'));
  expect(packages).toEqual([expect.stringContaining(' redis-server'), expect.stringContaining(' chromium ')]);
  expect(output).toContain('  browser: not run: no browser can be installed\n');
  expect(status).toBe(0);
});

test('a failed installation fails the run, and each step counts as failed', async () => {
  const { status, output, lastLine } = await ciRun('exit 7');
  expect(called()).toEqual(['ci --no-audit --no-fund']);
  expect(output.match(/FAILED: it did not get its turn/g)).toHaveLength(11);
  expect(lastLine).toMatch(/: 11 steps, 11 of them failed$/);
  expect(status).toBe(1);
});

test('a run that is ended from outside names the steps that did not run', async () => {
  const { status, output } = await ciRun(
    `case "$*" in *slow*) while [ -e "$0" ]; do sleep 0.05; done ;; esac`,
    async (pid) => {
      await until(() => called().includes('run suite -- slow'), 'the third step runs');
      process.kill(pid, 'SIGTERM');
      // Bash waits for the command that it runs.
      rmSync(join(bin, 'npm'));
    },
  );
  expect(output).toContain('  fast: passed');
  expect(output.match(/FAILED: it did not get its turn/g)).toHaveLength(9);
  expect(status).toBe(1);
});

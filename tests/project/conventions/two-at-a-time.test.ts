import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runTwoAtATime } from '../../../.ci/suites/two-at-a-time.mjs';

/* How the independent commands of a suite run. */

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-two-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A command that runs this shell script. */
function command(name: string, script: string): string {
  const path = join(folder, `${name}.sh`);
  writeFileSync(path, script);
  return `sh ${path}`;
}

const mark = (name: string): string => join(folder, name);
const waitsFor = (name: string): string => `while [ ! -e ${mark(name)} ]; do sleep 0.02; done`;

async function run(...commands: string[]): Promise<{ status: number; begun: number; printed: string[] }> {
  const printed: string[] = [];
  const status = await runTwoAtATime(commands, process.env, (text) => printed.push(text));
  const begun = printed.filter((text) => text.endsWith(' ...')).length;
  return { status, begun, printed: printed.filter((text) => !text.endsWith(' ...')) };
}

test('two commands run beside one another, and the output of each is in one piece', async () => {
  const { status, begun, printed } = await run(
    command('a', `echo a1; touch ${mark('a')}; ${waitsFor('b')}; echo a2 >&2`),
    command('b', `echo b1; ${waitsFor('a')}; touch ${mark('b')}; echo b2`),
    command('c', 'true'),
  );
  expect([status, begun]).toEqual([0, 3]);
  const [c, ...others] = [...printed].sort((x, y) => x.length - y.length);
  expect(c).toMatch(/^sh \S+c\.sh \(\d+ s\)$/);
  expect(others.sort()).toEqual([
    expect.stringMatching(/^a1\na2\nsh \S+a\.sh \(\d+ s\)$/),
    expect.stringMatching(/^b1\nb2\nsh \S+b\.sh \(\d+ s\)$/),
  ]);
});

test('none begins after one has failed, and the status is that of the first one', async () => {
  const { status, begun, printed } = await run(
    command('bad', `echo broken; touch ${mark('bad')}; exit 3`),
    command('slow', `${waitsFor('bad')}; sleep 0.3; exit 4`),
    command('later', `touch ${mark('later')}`),
  );
  expect([status, begun]).toEqual([3, 2]);
  expect(printed).toEqual([
    expect.stringMatching(/^broken\nsh \S+bad\.sh \(\d+ s, FAILED with status 3\)$/),
    expect.stringMatching(/slow\.sh \(\d+ s, FAILED with status 4\)$/),
  ]);
  expect(existsSync(mark('later'))).toBe(false);
});

test('a command that a signal ends has failed, and one that is not there rejects', async () => {
  expect((await run(command('killed', 'kill -9 $$'))).status).toBe(1);
  await expect(run(join(folder, 'nothing'))).rejects.toThrow('ENOENT');
});

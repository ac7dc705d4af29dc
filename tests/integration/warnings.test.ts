import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runFixture } from '../support/processes/fixture-process.js';
import { closeClients, holdElsewhere, inFlow, openClient } from '../support/clients/lock-clients.js';
import { expectNothingLeft, freshName, testRedisUrl, withoutLeakCheck } from '../support/redis.js';

interface Warned {
  code: string;
  message: string;
  after: number;
}

interface Report {
  warnings: Warned[];
  outcomes: boolean[];
}

const waits = {
  inLine: freshName(),
  inTurn: freshName('two\nlines \x1b[2J'),
  handedOn: freshName(),
  elsewhere: freshName(),
  overSeveral: freshName(),
  otherCopy: freshName(),
  byWriter: freshName(),
  byKind: freshName(),
  byGroup: freshName(),
  otherGroup: freshName(),
  away: freshName(),
};
const holds = {
  leaked: freshName('two\nlines \x1b[2J'),
  leakedPart: freshName(),
  leakedLater: freshName(),
  leakedSignal: freshName(),
  released: freshName(),
  lost: freshName(),
  kept: freshName(),
};
const shown = (name: string): string => name.replace('\n', '\\n').replace('\x1b', '\\u{1b}');
let longWait: Promise<Report>;
let leakedHold: Promise<Report>;

/** One name, and one value of a group, are held by another process. */
async function behindStrangers(): Promise<Report> {
  const stranger = await openClient();
  await Promise.all([
    holdElsewhere(stranger.getLock(waits.away)),
    inFlow(() => stranger.getMultiLock(waits.otherGroup, ['b']).acquire()),
  ]);
  return runFixture('long-wait.mjs', [testRedisUrl(), ...Object.values(waits)]);
}

test('a process that sets up none of its many semaphores writes a limited number of warnings', async () => {
  const warnings = await runFixture<string[]>('many-semaphores.mjs', [testRedisUrl()]);
  expect(warnings).toHaveLength(100);
  expect(new Set(warnings).size).toBe(100);
  expect(warnings.filter((message) => message.endsWith('this process writes no more)'))).toEqual([warnings.at(-1)]);
});

// In a separate block, so that it ends before the connection of the file.
describe('warnings', () => {
  // Each takes seconds of doing nothing.
  beforeAll(() => {
    longWait = behindStrangers();
    leakedHold = runFixture('leaked-hold.mjs', [testRedisUrl(), ...Object.values(holds)], ['--expose-gc']);
  });
  afterAll(async () => {
    await closeClients();
    await expectNothingLeft();
  });
  withoutLeakCheck('two processes hold and wait for locks from before the first test to after the last');

  test('R24: a wait of 5 s behind a hold of the same process warns once per name, with both call sites', async () => {
    const { warnings, outcomes } = await longWait;
    expect(outcomes).toEqual(Array.from({ length: 12 }, () => false));
    expect(new Set(warnings.map(({ code }) => code))).toEqual(new Set(['HOLDFAST_LONG_WAIT']));
    const { inLine, inTurn, handedOn, byWriter, elsewhere, otherCopy, byKind, byGroup, overSeveral } = waits;
    const own = [inLine, inTurn, handedOn, byWriter];
    const ofOthers = [elsewhere, otherCopy, byKind, byGroup, `${overSeveral}:1`];
    for (const name of [...own, ...ofOthers]) {
      const about = warnings.filter(({ message }) => message.includes(`"${shown(name)}"`));
      expect(about.map(({ message }) => message)).toEqual([
        expect.stringMatching(/at .*long-wait\.mjs:\d+, held in this process.* since .*long-wait\.mjs:\d+/),
      ]);
      expect(about[0]?.message.includes('held in this process by another client')).toBe(ofOthers.includes(name));
      expect(about[0]?.after).toBeGreaterThan(4_900);
    }
    expect(warnings).toHaveLength(own.length + ofOthers.length);
  });

  test('R24: an unreachable hold warns once and stays held until close(), and its signal works', async () => {
    const result = await leakedHold;
    expect(result).toMatchObject({ stillHeld: true, left: 0, forgotten: true, heard: true });
    const { leaked, leakedPart, leakedLater, leakedSignal } = holds;
    const ofTwo = [leakedPart, leakedLater, leakedSignal].flatMap((name) => [name, `${name}:2`]);
    for (const name of [leaked, ...ofTwo]) {
      const about = result.warnings.filter(({ message }) => message.includes(`"${shown(name)}"`));
      expect(about.map(({ code }) => code)).toEqual(['HOLDFAST_HOLD_LEAKED']);
      const [, since] = about[0]!.message.split(`"${shown(name)}" taken at `);
      expect(since).toMatch(/^.*leaked-hold\.mjs:\d+/);
    }
    expect(result.warnings).toHaveLength(7);
  });
});

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runFixture } from '../support/fixture-process.js';
import { expectNothingLeft, freshName, testRedisUrl } from '../support/redis.js';

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
  inTurn: freshName(),
  handedOn: freshName(),
  elsewhere: freshName(),
  overSeveral: freshName(),
};
const holds = {
  leaked: freshName(),
  leakedPart: freshName(),
  leakedLater: freshName(),
  leakedSignal: freshName(),
  released: freshName(),
  lost: freshName(),
  kept: freshName(),
};
let longWait: Promise<Report>;
let leakedHold: Promise<Report>;

// In a block of its own, so that its end comes before that of the file's connection.
describe('warnings', () => {
  // Each takes seconds of doing nothing.
  beforeAll(() => {
    longWait = runFixture('long-wait.mjs', [testRedisUrl(), ...Object.values(waits)]);
    leakedHold = runFixture('leaked-hold.mjs', [testRedisUrl(), ...Object.values(holds)], ['--expose-gc']);
  });
  afterAll(() => expectNothingLeft());

  test('R24: a wait of 5 s behind a hold of the same client warns once per name, with both places', async () => {
    const { warnings, outcomes } = await longWait;
    expect(outcomes).toEqual(Array.from({ length: 6 }, () => false));
    expect(new Set(warnings.map(({ code }) => code))).toEqual(new Set(['HOLDFAST_LONG_WAIT']));
    for (const name of [waits.inLine, waits.inTurn, waits.handedOn, `${waits.overSeveral}:1`]) {
      const about = warnings.filter(({ message }) => message.includes(`"${name}"`));
      expect(about).toHaveLength(1);
      expect(about[0]?.message).toMatch(/at .*long-wait\.mjs:\d+, held in this process since .*long-wait\.mjs:\d+/);
      expect(about[0]?.after).toBeGreaterThan(4_900);
    }
    expect(warnings).toHaveLength(4);
  });

  test('R24: a hold that nothing refers to any more warns, once, and goes on being held until close(); its signal works', async () => {
    const result = await leakedHold;
    expect(result).toMatchObject({ stillHeld: true, left: 0, forgotten: true, heard: true });
    const { leaked, leakedPart, leakedLater, leakedSignal } = holds;
    const ofTwo = [leakedPart, leakedLater, leakedSignal].flatMap((name) => [name, `${name}:2`]);
    for (const name of [leaked, ...ofTwo]) {
      const about = result.warnings.filter(({ message }) => message.includes(`"${name}"`));
      expect(about.map(({ code }) => code)).toEqual(['HOLDFAST_HOLD_LEAKED']);
      expect(about[0]?.message).toMatch(new RegExp(`"${name}" taken at .*leaked-hold\\.mjs:\\d+`));
    }
    expect(result.warnings).toHaveLength(7);
  });
});

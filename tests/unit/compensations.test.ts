import { expect, test } from '@jest/globals';
import { LeaseClock } from '../../src/clock.js';
import { Compensations } from '../../src/core/compensations.js';
import { RedisUnavailableError } from '../../src/errors.js';
import { FakeClock } from '../support/fake-clock.js';

const away = { done: Promise.resolve({ error: new RedisUnavailableError('away', 'none') }) };
const LEASE_MS = 20_000;

async function sentAt(notBefore: number): Promise<{ times: number[]; compensations: Compensations; clock: FakeClock }> {
  const clock = new FakeClock();
  const start = clock.monotonic();
  const compensations = new Compensations(new LeaseClock(clock));
  const times: number[] = [];
  const send = (): typeof away => {
    times.push(clock.monotonic() - start);
    return away;
  };
  void compensations.add({ send, notBefore: start + notBefore, until: start + LEASE_MS });
  await clock.advance(2 * LEASE_MS);
  return { times, compensations, clock };
}

test('R1: what is not answered is repeated with pauses from 100 ms to 5 s until the last lease has ended, and no longer', async () => {
  const { times, compensations, clock } = await sentAt(-1);
  expect(times.map((at, i) => at - (times[i - 1] ?? 0))).toEqual([
    0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000,
  ]);
  expect(times.at(-1)).toBeGreaterThanOrEqual(LEASE_MS);
  expect(compensations.size).toBe(0);
  expect(clock.timers).toBe(0);
});

test('R4: nothing is sent that an attempt which may still run could overtake', async () => {
  const { times } = await sentAt(300);
  expect(times[0]).toBeGreaterThan(300);
});

import { expect, test } from '@jest/globals';
import { LeaseClock } from '../../src/clock.js';
import { Compensations } from '../../src/holding/compensations.js';
import { RedisUnavailableError, RefusedError } from '../../src/errors.js';
import { FakeClock } from '../support/time/fake-clock.js';

const away = { done: Promise.resolve({ error: new RedisUnavailableError('away', 'none') }) };
const LEASE_MS = 20_000;

interface Begun {
  readonly times: number[];
  readonly compensations: Compensations;
  readonly clock: FakeClock;
}

/** One that is never answered; `notBefore` counts from now. */
function begin(notBefore: number, answerMs = 0): Begun {
  const clock = new FakeClock();
  const start = clock.monotonic();
  const compensations = new Compensations(new LeaseClock(clock));
  const times: number[] = [];
  const send = (): typeof away => {
    times.push(clock.monotonic() - start);
    return answerMs === 0
      ? away
      : { done: new Promise((resolve) => clock.setTimer(answerMs, () => resolve(away.done))) };
  };
  void compensations.add({ send, notBefore: start + notBefore, until: start + LEASE_MS });
  return { times, compensations, clock };
}

test('R1: an unanswered release is repeated with pauses from 100 ms to 5 s until the last lease has ended', async () => {
  const { times, compensations, clock } = begin(-1);
  await clock.advance(2 * LEASE_MS);
  expect(times.map((at, i) => at - (times[i - 1] ?? 0))).toEqual([
    0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000,
  ]);
  expect(times.at(-1)).toBeGreaterThanOrEqual(LEASE_MS);
  expect(compensations.size).toBe(0);
  expect(clock.timers).toBe(0);
});

test('R4: no release is sent that a pending attempt could overtake', async () => {
  const { times, clock } = begin(300);
  await clock.advance(2 * LEASE_MS);
  expect(times[0]).toBeGreaterThan(300);
});

test('R32: during close() the release is sent at once, and again after short pauses until the end', async () => {
  const { times, compensations, clock } = begin(-1);
  await clock.advance(7_000);
  const before = times.length;
  compensations.hurry();
  await clock.advance(250);
  expect(times.slice(before)).toEqual([7_000, 7_100, 7_200]);
  compensations.close();
  await clock.advance(LEASE_MS);
  expect(times).toHaveLength(before + 3);
  expect([compensations.size, clock.timers]).toEqual([0, 0]);
});

test('during close() a refused release ends, and an unanswered one does not', async () => {
  const clock = new FakeClock();
  const compensations = new Compensations(new LeaseClock(clock));
  let sent = 0;
  const refused = { done: Promise.resolve({ error: new RefusedError('no', undefined) }) };
  void compensations.add({ send: () => ((sent += 1), refused), notBefore: 0, until: clock.monotonic() + LEASE_MS });
  await clock.advance(1_000);
  const before = sent;
  expect(before).toBeGreaterThan(2);
  compensations.hurry();
  await clock.advance(LEASE_MS / 2);
  expect([sent, compensations.size, clock.timers]).toEqual([before + 1, 0, 0]);
});

test('R4, R32: also during close() no release overtakes a pending attempt', async () => {
  const { times, compensations, clock } = begin(300);
  compensations.hurry();
  await clock.advance(LEASE_MS);
  expect(times[0]).toBeGreaterThan(300);
});

test('R32: close() can wait until all releases are done', async () => {
  const { compensations, clock } = begin(-1, 50);
  let done = false;
  void compensations.whenDone().then(() => (done = true));
  await clock.advance(LEASE_MS / 2);
  expect(done).toBe(false);
  await clock.advance(LEASE_MS);
  expect(done).toBe(true);
});

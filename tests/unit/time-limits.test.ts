import { expect, test } from '@jest/globals';
import { LeaseClock } from '../../src/clock.js';
import { TimeLimits, type LimitedCall } from '../../src/waiting/limits/time-limits.js';
import { FakeClock } from '../support/time/fake-clock.js';
import { Random } from '../support/random.js';

interface Calls {
  readonly clock: FakeClock;
  readonly leaseClock: LeaseClock;
  readonly limits: TimeLimits;
  /** The calls whose time was up, each with the time since the start. */
  readonly over: string[];
  add(name: string, afterMs: number, timeIsUp?: () => void): LimitedCall;
}

function someCalls(): Calls {
  const clock = new FakeClock();
  const leaseClock = new LeaseClock(clock);
  const limits = new TimeLimits(leaseClock);
  const start = clock.monotonic();
  const over: string[] = [];
  const add: Calls['add'] = (name, afterMs, timeIsUp) => {
    const told = (): void => void over.push(`${name} ${clock.monotonic() - start}`);
    const call = { until: leaseClock.now() + afterMs, place: 0, timeIsUp: () => (told(), timeIsUp?.()) };
    limits.add(call);
    return call;
  };
  return { clock, leaseClock, limits, over, add };
}

test('each call is told at its own time, in whichever order the calls came, with one timer', async () => {
  const { clock, over, add } = someCalls();
  add('b', 200);
  add('d', 400);
  add('a', 100);
  add('c', 300);
  add('c too', 300);
  expect(clock.timers).toBe(1);
  await clock.advance(1_000);
  expect(over).toEqual(['a 100', 'b 200', 'c 300', 'c too 300', 'd 400']);
  expect(clock.timers).toBe(0);
});

test('a call that has left is not told, and the last one stops the timer', async () => {
  const { clock, limits, over, add } = someCalls();
  const calls = ['a', 'b', 'c', 'd'].map((name, n) => add(name, 100 + n));
  const late = add('late', 200);
  limits.delete(calls[1]!);
  limits.delete(calls[1]!);
  limits.delete(calls[0]!);
  await clock.advance(150);
  expect(over).toEqual(['c 102', 'd 103']);
  limits.delete(late);
  expect(clock.timers).toBe(0);
});

test('calls that come and leave in any order are told in the order of their limits', async () => {
  const random = new Random('time limits');
  for (let round = 0; round < 30; round += 1) {
    const { clock, limits, over, add } = someCalls();
    const calls = Array.from({ length: 100 }, () => {
      const afterMs = 1 + random.below(1_000);
      return { call: add('', afterMs), afterMs };
    });
    const stayed = new Set(calls);
    for (let left = 0; left < 60; left += 1) {
      const leaver = random.pick(calls);
      limits.delete(leaver.call);
      stayed.delete(leaver);
    }
    await clock.advance(1_001);
    const times = [...stayed].map(({ afterMs }) => afterMs);
    expect(over).toEqual(times.sort((one, other) => one - other).map((ms) => ` ${ms}`));
    expect(clock.timers).toBe(0);
  }
});

test('a call that another one takes with it is not told any more', async () => {
  const { clock, limits, over, add } = someCalls();
  add('a', 100, () => limits.delete(b));
  const b = add('b', 100);
  add('c', 100, () => void add('d', 0));
  await clock.advance(100);
  expect(over).toEqual(['a 100', 'c 100', 'd 100']);
  expect(clock.timers).toBe(0);
});

test('a jump of the clock delays no call that comes after it', async () => {
  const { clock, leaseClock, over, add } = someCalls();
  add('before', 10_000);
  clock.jumpWall(5_000);
  leaseClock.now();
  add('after', 6_000);
  await clock.advance(5_000);
  expect(over).toEqual(['before 5000']);
  await clock.advance(1_000);
  expect(over).toEqual(['before 5000', 'after 6000']);
});

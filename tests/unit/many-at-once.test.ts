import { expect, test } from '@jest/globals';
import { LeaseClock, type LeaseClockMs } from '../../src/clock.js';
import { Compensations } from '../../src/holding/compensations.js';
import { Lanes } from '../../src/synchronizers/lanes.js';
import { LightSet } from '../../src/light-set.js';
import { TimeLimits, type LimitedCall } from '../../src/waiting/limits/time-limits.js';
import { abortedBy, onAbort } from '../../src/waiting/limits/wait-limit.js';
import type { LockAbortedError } from '../../src/errors.js';
import { FakeClock } from '../support/time/fake-clock.js';

const FEW = 10_000;
const TIMES = 8;

function cpuMs(work: (count: number) => void, count: number): number {
  const before = process.cpuUsage();
  work(count);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/**
 * How much more time eight times the work takes: about 8 where each element costs the same, 64 where all others count. Other
 * work on the machine only adds time, so the least of several ratios is nearest to the code's own.
 */
function growth(work: (count: number) => void): number {
  work(FEW); // compiled
  const ratio = (): number => {
    const few = Math.min(...[1, 2, 3].map(() => cpuMs(work, FEW)));
    return cpuMs(work, FEW * TIMES) / Math.max(few, 1);
  };
  return Math.min(...[1, 2, 3, 4].map(ratio));
}

const LINEAR_AT_MOST = 3 * TIMES;

test('the cost of a lane does not depend on the number of taken lanes', () => {
  const clock = new LeaseClock(new FakeClock());
  const takeAndFree = (count: number): void => {
    const lanes = new Lanes(clock, new Compensations(clock));
    const taken = Array.from({ length: count }, () => lanes.take('requests'));
    for (const lane of taken) lanes.free(lane);
    expect(lanes.size).toBe(0);
  };
  expect(growth(takeAndFree)).toBeLessThan(LINEAR_AT_MOST);
});

test('a number is taken once at a time, and never more numbers than concurrent lanes exist', () => {
  const clock = new LeaseClock(new FakeClock());
  const lanes = new Lanes(clock, new Compensations(clock));
  const [a, b, c] = [lanes.take('key'), lanes.take('key'), lanes.take('key')];
  expect([a, b, c].map(({ number }) => number)).toEqual([0, 1, 2]);
  lanes.free(b);
  lanes.free(b); // freed once
  const [d, e] = [lanes.take('key'), lanes.take('key')];
  expect([d, e].map(({ number }) => number)).toEqual([1, 3]);
  expect(lanes.take('another').number).toBe(0);
  expect(lanes.size).toBe(5);
});

test('the cost of leaving a line does not depend on the number of earlier leavers', () => {
  const leave = (count: number): void => {
    const line = new LightSet<object>();
    const waiters = Array.from({ length: count }, () => ({}));
    for (const waiter of waiters) line.add(waiter);
    for (const waiter of waiters) {
      if (line.first !== waiter) throw new Error('not the first');
      line.delete(waiter);
    }
  };
  expect(growth(leave)).toBeLessThan(LINEAR_AT_MOST);
});

test('calls for one lock that a signal aborts share one error, as they share its reason', () => {
  const controller = new AbortController();
  const seen = new Map<string, Set<LockAbortedError>>([
    ['a', new Set()],
    ['b', new Set()],
  ]);
  for (const [name, errors] of seen) {
    for (let call = 0; call < 1_000; call += 1) {
      onAbort(controller.signal, () => errors.add(abortedBy(controller.signal, name)));
    }
  }
  controller.abort('enough');
  for (const [name, errors] of seen) {
    expect([...errors]).toEqual([expect.objectContaining({ lockName: name, cause: 'enough' })]);
  }
  const other = AbortSignal.abort('enough');
  expect(seen.get('a')!.has(abortedBy(other, 'a'))).toBe(false);
});

/** A call that counts how often the time of any call is read. */
class CountedCall implements LimitedCall {
  static reads = 0;
  place = -1;
  constructor(private readonly endsAt: number) {}
  get until(): LeaseClockMs {
    CountedCall.reads += 1;
    return this.endsAt;
  }
  timeIsUp(): void {}
}

test.each<[string, (n: number, count: number) => number, (calls: LimitedCall[]) => LimitedCall[]]>([
  ['in the order of their limits', (n) => n, (calls) => calls],
  ['in the opposite order', (n) => n, (calls) => calls.reverse()],
  ['with limits in no order', (n, count) => (n * 7_919) % count, (calls) => calls],
  ['with the same limit', () => 0, (calls) => calls],
])(
  'a time limit is compared with few of the others, however many there are: calls that leave %s',
  (_, spread, order) => {
    const readsOfACall = (count: number): number => {
      const limits = new TimeLimits(new LeaseClock(new FakeClock()));
      const calls = Array.from({ length: count }, (__, n) => new CountedCall(100_000 + spread(n, count)));
      CountedCall.reads = 0;
      for (const call of calls) limits.add(call);
      for (const call of order(calls)) limits.delete(call);
      return CountedCall.reads / count;
    };
    // A heap compares each call with two others on each of its levels, on the way up and on the way down.
    expect(readsOfACall(FEW)).toBeLessThan(8 * Math.log2(FEW));
    expect(readsOfACall(FEW * TIMES)).toBeLessThan(8 * Math.log2(FEW * TIMES));
  },
);

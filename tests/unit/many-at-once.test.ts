import { expect, test } from '@jest/globals';
import { LeaseClock } from '../../src/clock.js';
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

/** How much more time eight times the work takes: about 8 where each element costs the same, 64 where all others count. */
function growth(work: (count: number) => void): number {
  work(FEW); // compiled
  const few = Math.min(...[1, 2, 3].map(() => cpuMs(work, FEW)));
  const many = Math.min(...[1, 2].map(() => cpuMs(work, FEW * TIMES)));
  return many / Math.max(few, 1);
}

const LINEAR_AT_MOST = 3 * TIMES;

test('issue 20.19: the cost of a lane does not depend on the number of taken lanes', () => {
  const clock = new LeaseClock(new FakeClock());
  const takeAndFree = (count: number): void => {
    const lanes = new Lanes(clock, new Compensations(clock));
    const taken = Array.from({ length: count }, () => lanes.take('requests'));
    for (const lane of taken) lanes.free(lane);
    expect(lanes.size).toBe(0);
  };
  expect(growth(takeAndFree)).toBeLessThan(LINEAR_AT_MOST);
});

test('issue 20.19: a number is taken once at a time, and never more numbers than concurrent lanes exist', () => {
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

test('issue 20.19: the cost of leaving a line does not depend on the number of earlier leavers', () => {
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

test('issue 20.19: calls for one lock that a signal aborts share one error, as they share its reason', () => {
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

/** Calls whose time limits have the order of the calls, or none. */
function limitedCalls(count: number, spread: (n: number) => number): { limits: TimeLimits; calls: LimitedCall[] } {
  const limits = new TimeLimits(new LeaseClock(new FakeClock()));
  const calls = Array.from({ length: count }, (_, n) => ({
    until: 100_000 + spread(n),
    place: -1,
    timeIsUp: () => {},
  }));
  for (const call of calls) limits.add(call);
  return { limits, calls };
}

test.each<[string, (n: number, count: number) => number, (calls: LimitedCall[]) => LimitedCall[]]>([
  ['in the order of their limits', (n) => n, (calls) => calls],
  ['in the opposite order', (n) => n, (calls) => calls.reverse()],
  ['with limits in no order', (n, count) => (n * 7_919) % count, (calls) => calls],
  ['with the same limit', () => 0, (calls) => calls],
])(
  'issue 20.19: the cost of a time limit does not depend on the number of limits: calls that leave %s',
  (_, spread, order) => {
    const leave = (count: number): void => {
      const { limits, calls } = limitedCalls(count, (n) => spread(n, count));
      for (const call of order(calls)) limits.delete(call);
    };
    expect(growth(leave)).toBeLessThan(LINEAR_AT_MOST);
  },
);

import { expect, test } from '@jest/globals';
import { LeaseClock, type Clock } from '../../src/clock.js';

/** Two clocks of which the process may lose time between a look at the one and a look at the other. */
class Clocks implements Clock {
  time = 1_000;
  ahead = 1_700_000_000_000;
  /** ms that pass after the next look at the monotonic clock, or at the wall clock. */
  lostAfterLook = 0;
  lostAfterWall = 0;

  monotonic(): number {
    const now = this.time;
    this.time += this.lostAfterLook;
    this.lostAfterLook = 0;
    return now;
  }

  wall(): number {
    const now = this.ahead + this.time;
    this.time += this.lostAfterWall;
    this.lostAfterWall = 0;
    return now;
  }

  setTimer(): never {
    throw new Error('no timers here');
  }
}

test('R37: a process that stops between its reads of the two clocks sees no jump', () => {
  const clocks = new Clocks();
  const lease = new LeaseClock(clocks);
  clocks.lostAfterLook = 200;
  expect(lease.now()).toBe(1_200);
  expect(lease.jumped).toBe(0);
});

test('R37: a process that stops while its lease clock is created sees no jump', () => {
  const clocks = new Clocks();
  clocks.lostAfterLook = 200;
  const lease = new LeaseClock(clocks);
  expect(lease.now()).toBe(1_200);
  expect(lease.jumped).toBe(0);
  clocks.ahead += 100;
  lease.now();
  expect(lease.jumped).toBe(100);
});

test('R37: a process that stops after the last read while its lease clock is created sees no jump', () => {
  const clocks = new Clocks();
  clocks.lostAfterWall = 200;
  const lease = new LeaseClock(clocks);
  expect(lease.now()).toBe(1_200);
  expect(lease.jumped).toBe(0);
});

test('R37: a wall clock that is set forward, or a machine that sleeps, moves the lease clock once', () => {
  const clocks = new Clocks();
  const lease = new LeaseClock(clocks);
  clocks.ahead += 3_600_000;
  expect(lease.now()).toBe(3_601_000);
  clocks.time += 10;
  expect(lease.now()).toBe(3_601_010);
  expect(lease.jumped).toBe(3_600_000);
  clocks.ahead -= 3_600_000;
  clocks.time += 10;
  expect(lease.now()).toBe(3_601_020);
});

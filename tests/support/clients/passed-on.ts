import { expect } from '@jest/globals';
import type { Hold } from '../../../src/holding/hold.js';
import { elapsed } from '../time/elapsed.js';

/** Releases the lock: a waiter of another client acquires it within the given ms, and releases it in turn. */
export async function expectPassedOn(hold: Hold, waiting: Promise<Hold>, withinMs: number): Promise<void> {
  const released = performance.now();
  await hold.release();
  const second = await waiting;
  expect(elapsed(released)).toBeLessThan(withinMs);
  await second.release();
}

import { expect } from '@jest/globals';
import type { Hold } from '../../../src/holding/hold.js';
import { elapsed } from '../time/elapsed.js';

/** Gives the lock back: who waits for it elsewhere is inside within so many ms, and gives it back in turn. */
export async function expectPassedOn(hold: Hold, waiting: Promise<Hold>, withinMs: number): Promise<void> {
  const released = performance.now();
  await hold.release();
  const second = await waiting;
  expect(elapsed(released)).toBeLessThan(withinMs);
  await second.release();
}

import { afterAll } from '@jest/globals';
import { HeldUp } from './held-up.js';

const heldUp = new HeldUp();
afterAll(() => heldUp.stop());

/**
 * What a limit in ms is compared with: from one `performance.now()` to another, less the time in which this process was
 * held up. A lower bound never slips, and is compared with the clock.
 */
export function elapsed(from: number, until?: number): number {
  return heldUp.elapsed(from, until);
}

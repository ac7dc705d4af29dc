import { afterAll } from '@jest/globals';
import { HeldUp } from './held-up.js';

const heldUp = new HeldUp();
afterAll(() => heldUp.stop());

/**
 * The time in ms for a comparison with an upper limit: from one `performance.now()` to another, less the time in which
 * this process was held up. Compare a lower bound with the clock instead.
 */
export function elapsed(from: number, until?: number): number {
  return heldUp.elapsed(from, until);
}

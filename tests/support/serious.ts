import { expect } from '@jest/globals';
import { NEVER } from './jest/never.mjs';

/*
 * Checks whose failure is never excused by a second run (.ci/suites/repeat.mjs): two holders, too many permits, leftovers.
 */

/** The error of such a check. The gate finds it by the words at its beginning. */
export const neverAFlake = (what: string): Error => new Error(`${NEVER} ${what}`);

/** Fails if more holders, or permits, are there at once than may be. */
export function expectAtMost(holders: number, most = 1): void {
  if (holders > most) throw neverAFlake(`${holders} holders at once, and at most ${most} may be`);
}

/** Fails if a section was entered while another one was open: their number, or what is known of each. */
export function expectNoOverlap(overlaps: number | readonly unknown[]): void {
  const count = typeof overlaps === 'number' ? overlaps : overlaps.length;
  if (count > 0) throw neverAFlake(`${count} sections overlapped: ${JSON.stringify(overlaps)}`);
  expect(count).toBe(0);
}

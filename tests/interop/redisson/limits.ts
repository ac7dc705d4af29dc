import { expect } from '@jest/globals';
import { median } from '../../../bench/statistics.js';

/** Time from a release to the grant of the waiter: the median of many, because two busy cores may delay one. */
const WAKE_MS = 200;

/** A waiter without a message sleeps until a lease or its wait time ends: in these tests for 20 s or more. */
export const NOT_WOKEN_MS = 10_000;

/** @param took  ms from a release until the waiter was inside, of many */
export function expectWoken(took: readonly number[]): void {
  expect(median(took)).toBeLessThan(WAKE_MS);
  expect(Math.max(...took)).toBeLessThan(NOT_WOKEN_MS);
}

import { expect } from '@jest/globals';
import { median } from '../../../bench/statistics.js';

/** Of a release until whoever waited is inside: the median of many, since two busy cores may take longer for one. */
const WAKE_MS = 200;

/** Whoever is not woken sleeps until a lease or its own wait ends: in these tests after 20 s or more. */
export const NOT_WOKEN_MS = 10_000;

/** @param took  ms from a release until the waiter was inside, of many */
export function expectWoken(took: readonly number[]): void {
  expect(median(took)).toBeLessThan(WAKE_MS);
  expect(Math.max(...took)).toBeLessThan(NOT_WOKEN_MS);
}

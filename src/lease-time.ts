import { InvalidArgumentError } from './errors.js';
import { MIN_LEASE_MS, MIN_RENEWED_LEASE_MS } from './timing.js';

const MAX_MS = Number.MAX_SAFE_INTEGER;

/**
 * Checks a lease in milliseconds.
 *
 * @param alternative - a value that is allowed instead, as the end of the error message
 */
export function checkLease(value: unknown, alternative = ''): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < MIN_LEASE_MS || value > MAX_MS) {
    throw new InvalidArgumentError(
      'leaseTime',
      `an integer of at least ${MIN_LEASE_MS} (ms) and at most 2^53 - 1${alternative}`,
      value,
    );
  }
  return value;
}

/** Checks the longest time, in milliseconds, for which the watchdog renews a hold. */
export function checkMaxHoldTime(value: unknown): number | undefined {
  if (value === undefined || value === Infinity) return value;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < MIN_RENEWED_LEASE_MS || value > MAX_MS) {
    const expectation = `an integer of at least ${MIN_RENEWED_LEASE_MS} (ms) and at most 2^53 - 1, or Infinity`;
    throw new InvalidArgumentError('maxHoldTime', expectation, value);
  }
  return value;
}

/** The time, in ms, until a key expires, or until the lease of a permit ends. */
export type TimeLeft = number | 'no expiry' | 'missing';

/** The number that the public calls return for it, as Redis does: -1 without an expiry, -2 without a key. */
export const timeLeftNumber = (left: TimeLeft): number => (left === 'missing' ? -2 : left === 'no expiry' ? -1 : left);

/** Rounding errors of sums of fractional milliseconds are smaller than this. */
const ROUNDING_MS = 1e-6;

/**
 * The time between two moments in whole milliseconds, as Redis takes it: rounded up, but never beyond a whole lease.
 */
export const wholeMs = (from: number, until: number): number => Math.ceil(until - from - ROUNDING_MS);

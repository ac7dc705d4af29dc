import { InvalidArgumentError } from './errors.js';

/** The client ends a hold at least 5 ms before its lease ends in Redis, so a shorter lease could never be used. */
const MIN_MS = 10;
const MAX_MS = Number.MAX_SAFE_INTEGER;

/**
 * Checks a lease in milliseconds.
 *
 * @param alternative - a value that is allowed instead, as the end of the error message
 */
export function checkLease(value: unknown, alternative = ''): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < MIN_MS || value > MAX_MS) {
    throw new InvalidArgumentError(
      'leaseTime',
      `an integer of at least ${MIN_MS} (ms) and at most 2^53 - 1${alternative}`,
      value,
    );
  }
  return value;
}

/** Rounding errors of sums of fractional milliseconds are smaller than this. */
const ROUNDING_MS = 1e-6;

/**
 * The time between two moments in whole milliseconds, as Redis takes it: rounded up, but never beyond a whole lease.
 */
export const wholeMs = (from: number, until: number): number => Math.ceil(until - from - ROUNDING_MS);

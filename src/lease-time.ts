import { InvalidArgumentError } from './errors.js';

/** A hold ends, for us, at least 5 ms before its lease does in Redis: a shorter lease could never be used. */
const LEAST_MS = 10;
const MOST_MS = Number.MAX_SAFE_INTEGER;

/** @param alternative  what may be given instead of a lease */
export function checkLease(value: unknown, alternative = ''): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < LEAST_MS || value > MOST_MS) {
    throw new InvalidArgumentError(
      'leaseTime',
      `an integer of at least ${LEAST_MS} (ms) and at most 2^53 - 1${alternative}`,
      value,
    );
  }
  return value;
}

/** Sums of fractions of a ms are off by less. */
const ROUNDING_MS = 1e-6;

/** ms from one moment to another as Redis takes them: no fewer, and of a whole lease that begins now none more. */
export const wholeMs = (from: number, until: number): number => Math.ceil(until - from - ROUNDING_MS);

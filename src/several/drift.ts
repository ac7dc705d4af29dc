import { InvalidArgumentError } from '../errors.js';
import { MIN_DRIFT_MS } from '../timing.js';

/** Assumed drift between the clocks of independent servers within a lease: `factor` times the lease, plus `leastMs`. */
export const DRIFT = { factor: 0.01, leastMs: MIN_DRIFT_MS };

export function checkDriftFactor(value: unknown): number {
  if (value === undefined) return DRIFT.factor;
  if (typeof value === 'number' && value >= 0 && value < 1) return value;
  throw new InvalidArgumentError('driftFactor', 'a number of at least 0 and less than 1', value);
}

import { InvalidArgumentError } from '../errors.js';
import { checkPermits } from '../locks/arguments.js';

/** Each permit has an id of its own to be sent and stored. */
const MAX_PERMITS = 10_000;

/** How many permits one call takes. */
export function checkTaken(permits: unknown): number {
  const count = checkPermits(permits, undefined);
  if (count > MAX_PERMITS) throw new InvalidArgumentError('permits', `at most ${MAX_PERMITS}`, count);
  return count;
}

/** Permit ids as they are stored. */
export function checkIds(given: unknown): string[] {
  const ids: unknown[] = Array.isArray(given) ? given : [given];
  if (ids.length === 0 || !ids.every((id) => typeof id === 'string' && id !== '')) {
    throw new InvalidArgumentError('ids', 'a permit id, or a list of some', given);
  }
  return [...new Set((ids as string[]).map((id) => id.toLowerCase()))];
}

/** Redis has ids as bytes: what cannot be written so is unknown without asking. */
export const canBeIds = (ids: readonly string[]): boolean => ids.every((id) => /^[0-9a-f]{32}$/.test(id));

import type { Difference } from './scenario.js';

/*
 * Every difference that the comparison lets pass, with its reason. Beside these: a JVM's release keeps an unlock latch
 * for a moment (3.52 until it expires), our semaphores and latches keep lanes, our fair waiters a set of who is alive.
 * Those keys (redisson_unlock_latch, holdfast_requests, holdfast_alive) mean nothing to the other kind and are left out.
 */

/** ms left: Redisson's, ours. */
export const ownLease = (key: string, theirs: number, ours: number): Difference => ({
  why: 'ownLease',
  ttl: { [key]: [theirs, ours] },
});
export const neverShorter = (key: string, theirs: number, ours: number): Difference => ({
  why: 'neverShorter',
  ttl: { [key]: [theirs, ours] },
});
export const watchdogLease = (key: string, theirs: number, ours: number): Difference => ({
  why: 'watchdogLease',
  ttl: { [key]: [theirs, ours] },
});
export const addsUp = (key: string, theirs: number, ours: number): Difference => ({
  why: 'addsUp',
  ttl: { [key]: [theirs, ours] },
});
export const ownCode: Difference = {
  why: 'ownCode',
  result: ['ERR_LOCK_NOT_OWNER', 'ERR_LOCK_NON_REENTRANT'],
};
export const lost: Difference = {
  why: 'lost',
  result: ['ERR_LOCK_NOT_OWNER', 'ERR_LOCK_LOST'],
};
export const endsItself = (...message: string[]): Difference => ({
  why: 'endsItself',
  published: [[], message],
  orNone: true,
});
export const refusedUpgrade = (theirs: unknown): Difference => ({
  why: 'noUpgrade',
  result: [theirs, 'ERR_LOCK_UPGRADE'],
});
export const notPublished = (...theirs: string[]): Difference => ({
  why: 'notOwner',
  published: [theirs, []],
});
export const downgradeWakes = (...ours: string[]): Difference => ({
  why: 'downgradeWakes',
  published: [[], ours],
});
export const forcedKeys = (...keys: string[]): Difference => ({
  why: 'forcedKeys',
  onlyTheirs: keys,
});
export const noPermits = (...theirs: string[]): Difference => ({
  why: 'noPermits',
  published: [theirs, []],
});
export const oneHalf: Difference = {
  why: 'oneHalf',
  result: [true, false],
};
export const ownTokenLease = (key: string, theirs: number, ours: number): Difference => ({
  why: 'tokenLease',
  ttl: { [key]: [theirs, ours] },
});
export const deleteWakes = (channel: string): Difference => ({
  why: 'deleteWakes',
  published: [[`${channel} 1`], [`${channel} 0`]],
});
/** ms left with us; with Redisson it has no expiry any more. */
export const expiryStays = (key: string, ours: number): Difference => ({
  why: 'expiryStays',
  ttl: { [key]: [-1, ours] },
});
export const fairLost = (ours: string): Difference => ({
  why: 'freeNotOwner',
  result: [undefined, ours],
});
/** Ours is later by so many ms, for each owner. */
export const ownWait = (key: string, laterMs: Readonly<Record<string, number>>): Difference => ({
  why: 'ownWait',
  scores: { [key]: laterMs },
});
export const leavesQueue = (...keys: string[]): Difference => ({
  why: 'leavesQueue',
  onlyTheirs: keys,
});
export const tellsNobody = (...theirs: string[]): Difference => ({
  why: 'tellsNobody',
  published: [theirs, []],
});
export const allOrNone: Difference = {
  why: 'allOrNone',
  result: [2, true],
};
export const freePublished = (theirs: readonly string[], ours: readonly string[]): Difference => ({
  why: 'freePublished',
  published: [theirs, ours],
});

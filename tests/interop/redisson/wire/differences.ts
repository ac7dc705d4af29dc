import type { Difference } from './scenario.js';

/*
 * Every difference that the comparison allows, with its reason. In addition, a release of Redisson keeps an unlock
 * latch for a moment (3.52 until it expires), semaphores and latches of Holdfast keep lanes, its fair waiters keep a set
 * of live waiters, and its other waiters the roll of a lock. The other side ignores those keys (redisson_unlock_latch,
 * holdfast_requests, holdfast_alive, holdfast_waiters), so they are left out.
 */

/** Remaining ms: Redisson, Holdfast. */
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
export const handedOver = (...theirs: string[]): Difference => ({
  why: 'handedOver',
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
/** Remaining ms in Holdfast. In Redisson the key no longer has an expiry. */
export const expiryStays = (key: string, ours: number): Difference => ({
  why: 'expiryStays',
  ttl: { [key]: [-1, ours] },
});
export const fairLost = (ours: string): Difference => ({
  why: 'freeNotOwner',
  result: [undefined, ours],
});
/** Number of ms by which the time of Holdfast is later, for each owner. */
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

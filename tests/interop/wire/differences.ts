import type { Difference } from './scenario.js';

/*
 * Every difference that the comparison lets pass, with its reason. Beside these: a JVM's release keeps an unlock latch
 * for a moment (3.52 until it expires), our semaphores and latches keep lanes, our fair waiters a set of who is alive.
 * Those keys (redisson_unlock_latch, holdfast_requests, holdfast_alive) mean nothing to the other kind and are left out.
 */

const OWN_LEASE = 'the lease belongs to the hold: a partial release sets the time to live to what the others have left';
const NEVER_SHORTER = 'a nested acquire never shortens the lease of the holds around it';

/** ms left: Redisson's, ours. */
export const ownLease = (key: string, theirs: number, ours: number): Difference => ({
  why: OWN_LEASE,
  ttl: { [key]: [theirs, ours] },
});
export const neverShorter = (key: string, theirs: number, ours: number): Difference => ({
  why: NEVER_SHORTER,
  ttl: { [key]: [theirs, ours] },
});
export const watchdogLease = (key: string, theirs: number, ours: number): Difference => ({
  why: "a hold without a lease has the watchdog's, not the last one that was given to the lock object",
  ttl: { [key]: [theirs, ours] },
});
export const addsUp = (key: string, theirs: number, ours: number): Difference => ({
  why: 'a nested write hold of Redisson adds its lease to what is left; ours last as long as the longest',
  ttl: { [key]: [theirs, ours] },
});
export const ownCode: Difference = {
  why: 'a second acquisition by the owner of a non-reentrant lock has a code of its own',
  result: ['ERR_LOCK_NOT_OWNER', 'ERR_LOCK_NON_REENTRANT'],
};
export const lost: Difference = {
  why: 'a hold that was lost is told apart from one that never was',
  result: ['ERR_LOCK_NOT_OWNER', 'ERR_LOCK_LOST'],
};
export const endsItself = (...message: string[]): Difference => ({
  why: 'a hold whose last deadline passes is given back at once, a little before its lease ends by itself',
  published: [[], message],
  orNone: true,
});
export const refusedUpgrade = (theirs: unknown): Difference => ({
  why: 'a read hold cannot become a write hold: refused at once',
  result: [theirs, 'ERR_LOCK_UPGRADE'],
});
export const notPublished = (...theirs: string[]): Difference => ({
  why: 'an unlock by a stranger is refused before anything is sent',
  published: [theirs, []],
});
export const downgradeWakes = (...ours: string[]): Difference => ({
  why: 'a downgrade wakes the readers that wait (hazard 24)',
  published: [[], ours],
});
export const forcedKeys = (...keys: string[]): Difference => ({
  why: 'a force unlock removes the keys of the read holds, too',
  onlyTheirs: keys,
});
export const noPermits = (...theirs: string[]): Difference => ({
  why: 'a message without permits wakes nobody, and a negative one makes a JVM fail (hazard 30)',
  published: [theirs, []],
});
export const oneHalf: Difference = {
  why: 'isLocked() asks about its own half in every form; the asynchronous one of Redisson about both',
  result: [true, false],
};
export const ownTokenLease = (key: string, theirs: number, ours: number): Difference => ({
  why: 'lockAndGetToken(lease) has the lease that it was given; Redisson forgets it',
  ttl: { [key]: [theirs, ours] },
});
export const deleteWakes = (channel: string): Difference => ({
  why: 'the delete of a latch wakes whoever awaits it, with the message of a count that reached zero (hazard 28)',
  published: [[`${channel} 1`], [`${channel} 0`]],
});
/** ms left with us; with Redisson it has no expiry any more. */
export const expiryStays = (key: string, ours: number): Difference => ({
  why: 'an expiry of a semaphore stays when its permits are drained or changed; Redisson writes the key anew',
  ttl: { [key]: [-1, ours] },
});
export const fairLost = (ours: string): Difference => ({
  why: 'unlocking a fair lock that is not held rejects; with Redisson it succeeds when the lock is free (hazard 37)',
  result: [undefined, ours],
});
/** Ours is later by so many ms, for each owner. */
export const ownWait = (key: string, laterMs: Readonly<Record<string, number>>): Difference => ({
  why: 'a waiter of ours queues with fairLockWaitTimeout whatever its own limit is; it leaves when that is over',
  scores: { [key]: laterMs },
});
export const leavesQueue = (...keys: string[]): Difference => ({
  why: 'an interrupted or failed call leaves no place in the queue behind (hazard 34)',
  onlyTheirs: keys,
});
export const tellsNobody = (...theirs: string[]): Difference => ({
  why: 'the one that the message is for has left the queue',
  published: [theirs, []],
});
export const allOrNone: Difference = {
  why: 'permits are given back together or not at all: there is nothing to count',
  result: [2, true],
};
export const freePublished = (theirs: readonly string[], ours: readonly string[]): Difference => ({
  why: 'every message of a permit-expirable semaphore says how many permits are free; some of Redisson say how many came',
  published: [theirs, ours],
});

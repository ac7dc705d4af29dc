import { fencedLockAcquire, fencedLockAcquireNested, fencedLockHandOff, lockRelease } from './generated.js';
import {
  freedPayload,
  isGrant,
  replyFencedAcquire,
  replyFencedHandOff,
  replyFencedHeld,
  replyFreed,
} from './replies.js';
import { bind, rollIn } from './script.js';

/** How a fenced lock draws its tokens. See `tokens` in `FencedLockOptions`. */
export type TokenSource = 'counter' | 'clock';

export const acquire = bind(fencedLockAcquire, { reply: replyFencedAcquire, isGrant });

export const acquireNested = bind(fencedLockAcquireNested, { reply: replyFencedHeld });

/** A release with the reply of a hand-off that freed the lock. */
const releaseInstead = bind(lockRelease, {
  reply: replyFreed,
  publishedPayload: freedPayload,
  rollOf: ([, , , waiters, own, most]) => rollIn(waiters, own, most),
});

export const handOff = bind(fencedLockHandOff, {
  reply: replyFencedHandOff,
  isGrant,
  publishedPayload: freedPayload,
  rollOf: ([, , , , , , waiters, own, most]) => rollIn(waiters, own, most),
  // The script cannot generate a token, so the client frees the lock instead.
  ifSplit: ([lock], [from, to, , publish, channel, ours, waiters, own, most, station, since]) => ({
    operation: releaseInstead,
    keys: [lock],
    args: [publish, channel, ours, waiters, own, most, station, since, from, to],
  }),
});

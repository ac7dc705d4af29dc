import { fencedLockAcquire, fencedLockAcquireNested, fencedLockHandOff, lockRelease } from './generated.js';
import {
  freedPayload,
  isGrant,
  replyFencedAcquire,
  replyFencedHandOff,
  replyFencedHeld,
  replyFreed,
} from './replies.js';
import { bind } from './script.js';

/** How a fenced lock draws its tokens. See `tokens` in `FencedLockOptions`. */
export type TokenSource = 'counter' | 'clock';

export const acquire = bind(fencedLockAcquire, { reply: replyFencedAcquire, isGrant });

export const acquireNested = bind(fencedLockAcquireNested, { reply: replyFencedHeld });

/** A release with the reply of a hand-off that freed the lock. */
const releaseInstead = bind(lockRelease, { reply: replyFreed, publishedPayload: freedPayload });

export const handOff = bind(fencedLockHandOff, {
  reply: replyFencedHandOff,
  isGrant,
  publishedPayload: freedPayload,
  // The script cannot generate a token, so the client frees the lock instead.
  ifSplit: ([lock], [from, to, , publish, channel]) => ({
    operation: releaseInstead,
    keys: [lock],
    args: [publish, channel, from, to],
  }),
});

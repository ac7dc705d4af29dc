import {
  lockAcquire,
  lockAcquireNested,
  lockHandOff,
  lockLeave,
  lockRelease,
  lockReleasePartial,
  lockRenew,
  lockWake,
} from './generated.js';
import {
  freedPayload,
  isGrant,
  replyAcquire,
  replyDone,
  replyHandOff,
  replyHeld,
  replyRelease,
  replyRenewals,
  replyWake,
} from './replies.js';
import { bind, rollIn } from './script.js';

export const acquire = bind(lockAcquire, { reply: replyAcquire, isGrant });

export const acquireNested = bind(lockAcquireNested, { reply: replyHeld });

export const releasePartial = bind(lockReleasePartial, { reply: replyHeld });

export const release = bind(lockRelease, {
  reply: replyRelease,
  publishedPayload: freedPayload,
  rollOf: ([, , , waiters, own, most]) => rollIn(waiters, own, most),
});

export const handOff = bind(lockHandOff, {
  reply: replyHandOff,
  isGrant,
  publishedPayload: freedPayload,
  rollOf: ([, , , , , , waiters, own, most]) => rollIn(waiters, own, most),
});

/** Wakes parked clients after a release that could not. */
export const wake = bind(lockWake, { reply: replyWake });

/** Takes a client off the roll. `false`: Redis refuses the roll. */
export const leave = bind(lockLeave, { reply: replyDone });

/** One reply for each lock. */
export const renew = bind(lockRenew, {
  reply: replyRenewals,
  // A migrating slot keeps the keys on two nodes: the caller continues with one key at a time. With a single key Redis
  // replies TRYAGAIN for another reason, which passes.
  ifSplit: (keys) => (keys.length > 1 ? 'fail' : 'retry'),
});

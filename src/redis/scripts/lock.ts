import {
  lockAcquire,
  lockAcquireNested,
  lockHandOff,
  lockRelease,
  lockReleasePartial,
  lockRenew,
} from './generated.js';
import {
  freedPayload,
  isGrant,
  replyAcquire,
  replyHandOff,
  replyHeld,
  replyRelease,
  replyRenewals,
} from './replies.js';
import { bind } from './script.js';

export const acquire = bind(lockAcquire, { reply: replyAcquire, isGrant });

export const acquireNested = bind(lockAcquireNested, { reply: replyHeld });

export const releasePartial = bind(lockReleasePartial, { reply: replyHeld });

export const release = bind(lockRelease, { reply: replyRelease, publishedPayload: freedPayload });

export const handOff = bind(lockHandOff, { reply: replyHandOff, isGrant, publishedPayload: freedPayload });

/** One reply for each lock. */
export const renew = bind(lockRenew, {
  reply: replyRenewals,
  // A migrating slot keeps the keys on two nodes: the caller continues with one key at a time. With a single key Redis
  // replies TRYAGAIN for another reason, which passes.
  ifSplit: (keys) => (keys.length > 1 ? 'fail' : 'retry'),
});

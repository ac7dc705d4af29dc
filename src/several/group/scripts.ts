import {
  groupLockAcquire,
  groupLockAcquireNested,
  groupLockRelease,
  groupLockReleasePartial,
  groupLockRenew,
  groupLockState,
} from '../../redis/scripts/generated.js';
import {
  freedPayload,
  isGrant,
  replyAcquire,
  replyGroupRelease,
  replyHeld,
  replyRenewals,
} from '../../redis/scripts/replies.js';
import type { TimeLeft } from '../../lease-time.js';
import { bind, replyInt, replyTimeLeft } from '../../redis/scripts/script.js';

export interface GroupState {
  /** Until the last of the values is free; `missing`: all values are free. */
  readonly left: TimeLeft;
  readonly holdCount: number;
  readonly owners: readonly string[];
}

export const acquire = bind(groupLockAcquire, { reply: replyAcquire, isGrant });

export const acquireNested = bind(groupLockAcquireNested, { reply: replyHeld });

export const releasePartial = bind(groupLockReleasePartial, {
  reply: replyHeld,
  publishedPayload: (reply) => (reply.kind === 'held' ? '0' : undefined),
});

export const release = bind(groupLockRelease, { reply: replyGroupRelease, publishedPayload: freedPayload });

/** One reply for each hold. `lost`: its owner lost one of the values. */
export const renew = bind(groupLockRenew, { reply: replyRenewals });

export const state = bind(groupLockState, {
  reply(raw) {
    const [left, holdCount, ...owners] = raw as [unknown, unknown, ...string[]];
    return { left: replyTimeLeft(left), holdCount: replyInt(holdCount), owners };
  },
});

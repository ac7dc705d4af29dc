import acquireSource from '../../../lua/lock/acquire.lua';
import acquireNestedSource from '../../../lua/lock/acquire-nested.lua';
import handOffSource from '../../../lua/lock/hand-off.lua';
import releaseSource from '../../../lua/lock/release.lua';
import releasePartialSource from '../../../lua/lock/release-partial.lua';
import renewSource from '../../../lua/lock/renew.lua';
import {
  freedPayload,
  isGrant,
  replyAcquire,
  replyHandOff,
  replyHeld,
  replyRelease,
  replyRenewals,
  type AcquireReply,
  type HandOffReply,
  type HeldReply,
  type ReleaseReply,
  type RenewalReply,
} from './replies.js';
import { defineScript } from './script.js';

export const acquire = defineScript<[lock: string], [owner: string, leaseMs: number], AcquireReply>({
  file: 'lock/acquire',
  source: acquireSource,
  notAfter: 'last',
  reply: replyAcquire,
  isGrant,
});

export const acquireNested = defineScript<
  [lock: string],
  [owner: string, holdCount: number, leaseMs: number],
  HeldReply
>({
  file: 'lock/acquire-nested',
  source: acquireNestedSource,
  notAfter: 'last',
  reply: replyHeld,
});

export const releasePartial = defineScript<
  [lock: string],
  [owner: string, holdCount: number, leaseMs: number],
  HeldReply
>({
  file: 'lock/release-partial',
  source: releasePartialSource,
  notAfter: 'last',
  reply: replyHeld,
});

export const release = defineScript<
  [lock: string],
  [publish: string, channel: string, ...owners: string[]],
  ReleaseReply
>({
  file: 'lock/release',
  source: releaseSource,
  reply: replyRelease,
  publishedPayload: freedPayload,
});

export const handOff = defineScript<
  [lock: string],
  [from: string, to: string, leaseMs: number, publish: string, channel: string, ours: number],
  HandOffReply
>({
  file: 'lock/hand-off',
  source: handOffSource,
  notAfter: 'last',
  reply: replyHandOff,
  isGrant,
  publishedPayload: freedPayload,
});

/** One reply for each lock. */
export const renew = defineScript<string[], (string | number)[], RenewalReply[]>({
  file: 'lock/renew',
  source: renewSource,
  notAfter: 'first',
  reply: replyRenewals,
  // A migrating slot keeps the keys on two nodes: the caller continues with one key at a time. With a single key Redis
  // replies TRYAGAIN for another reason, which passes.
  ifSplit: (keys) => (keys.length > 1 ? 'fail' : 'retry'),
});

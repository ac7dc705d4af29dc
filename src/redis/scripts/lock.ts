import acquireSource from '../../../lua/lock/acquire.lua';
import acquireNestedSource from '../../../lua/lock/acquire-nested.lua';
import handOffSource from '../../../lua/lock/hand-off.lua';
import releaseSource from '../../../lua/lock/release.lua';
import releasePartialSource from '../../../lua/lock/release-partial.lua';
import renewSource from '../../../lua/lock/renew.lua';
import {
  isGrant,
  replyAcquire,
  replyHandOff,
  replyHeld,
  replyRelease,
  type AcquireReply,
  type HandOffReply,
  type HeldReply,
  type ReleaseReply,
} from './replies.js';
import { defineScript, replyInts } from './script.js';

export const acquire = defineScript<[lock: string], [owner: string, leaseMs: number], AcquireReply>({
  file: 'lock/acquire',
  source: acquireSource,
  notAfter: 'last',
  reply: replyAcquire,
  confirmed: isGrant,
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
  publishedPayload: (reply) => (reply === 'freed' ? '0' : undefined),
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
  confirmed: (reply) => reply === 'handed',
  publishedPayload: (reply) => (reply === 'published' ? '0' : undefined),
});

/** For each lock: the time, in ms, until its lease ends, or 0 if the owner no longer holds it. */
export const renew = defineScript<string[], (string | number)[], number[]>({
  file: 'lock/renew',
  source: renewSource,
  notAfter: 'first',
  reply: replyInts,
  // The caller continues with one key at a time. A single key is on one node, so its TRYAGAIN has another cause.
  ifSplit: (keys) => (keys.length > 1 ? 'fail' : 'retry'),
});

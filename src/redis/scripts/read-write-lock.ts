import acquireReadSource from '../../../lua/read-write-lock/acquire-read.lua';
import acquireWriteSource from '../../../lua/read-write-lock/acquire-write.lua';
import handOffSource from '../../../lua/read-write-lock/hand-off.lua';
import nestReadSource from '../../../lua/read-write-lock/nest-read.lua';
import nestWriteSource from '../../../lua/read-write-lock/nest-write.lua';
import othersWaitSource from '../../../lua/read-write-lock/others-wait.lua';
import releasePartialSource from '../../../lua/read-write-lock/release-partial.lua';
import releaseSource from '../../../lua/read-write-lock/release.lua';
import renewSource from '../../../lua/read-write-lock/renew.lua';
import renewKeySource from '../../../lua/read-write-lock/renew-key.lua';
import {
  isGrant,
  replyAcquire,
  replyHandOff,
  replyHeld,
  replyOthers,
  replyRelease,
  replyRenewal,
  replyRenewals,
  type AcquireReply,
  type HandOffReply,
  type HeldReply,
  type OthersReply,
  type ReleaseReply,
  type RenewalReply,
} from './replies.js';
import { defineScript } from './script.js';

export const acquireRead = defineScript<[lock: string], [base: string, owner: string, leaseMs: number], AcquireReply>({
  file: 'read-write-lock/acquire-read',
  source: acquireReadSource,
  notAfter: 'last',
  reply: replyAcquire,
  isGrant,
});

export const acquireWrite = defineScript<[lock: string], [writer: string, leaseMs: number], AcquireReply>({
  file: 'read-write-lock/acquire-write',
  source: acquireWriteSource,
  notAfter: 'last',
  reply: replyAcquire,
  isGrant,
});

export const nestRead = defineScript<
  [lock: string],
  [base: string, owner: string, holdCount: number, leaseMs: number],
  HeldReply
>({
  file: 'read-write-lock/nest-read',
  source: nestReadSource,
  notAfter: 'last',
  reply: replyHeld,
});

export const nestWrite = defineScript<[lock: string], [writer: string, holdCount: number, leaseMs: number], HeldReply>({
  file: 'read-write-lock/nest-write',
  source: nestWriteSource,
  notAfter: 'last',
  reply: replyHeld,
});

export const releasePartial = defineScript<
  [lock: string],
  [base: string, owner: string, writes: number, leaseMs: number, publish: string, channel: string, ...lefts: number[]],
  HeldReply
>({
  file: 'read-write-lock/release-partial',
  source: releasePartialSource,
  notAfter: 'first',
  reply: replyHeld,
});

export const release = defineScript<
  [lock: string],
  [base: string, publish: string, channel: string, ...owners: string[]],
  ReleaseReply
>({
  file: 'read-write-lock/release',
  source: releaseSource,
  reply: replyRelease,
});

/** Hands the write lock to the next writer. */
export const handOff = defineScript<
  [lock: string],
  [base: string, from: string, to: string, leaseMs: number, publish: string, channel: string, ours: number],
  HandOffReply
>({
  file: 'read-write-lock/hand-off',
  source: handOffSource,
  notAfter: 'last',
  reply: replyHandOff,
  isGrant,
});

/** Changes nothing. */
export const othersWait = defineScript<[lock: string], [publish: string, channel: string, ours: number], OthersReply>({
  file: 'read-write-lock/others-wait',
  source: othersWaitSource,
  reply: replyOthers,
});

/** One reply for each lock. */
export const renew = defineScript<string[], (string | number)[], RenewalReply[]>({
  file: 'read-write-lock/renew',
  source: renewSource,
  notAfter: 'first',
  reply: replyRenewals,
  // The caller continues with one key at a time, even for a single lock: its read holds have keys of their own.
  ifSplit: () => 'fail',
});

/** `lost`: the key does not exist, or its owner no longer holds the lock. */
export const renewKey = defineScript<[key: string], [owner: string, leaseMs: number], RenewalReply>({
  file: 'read-write-lock/renew-key',
  source: renewKeySource,
  notAfter: 'last',
  reply: replyRenewal,
});

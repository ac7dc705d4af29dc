import acquireSource from '../../../lua/fair-lock/acquire.lua';
import handOffSource from '../../../lua/fair-lock/hand-off.lua';
import refreshSource from '../../../lua/fair-lock/refresh.lua';
import releaseSource from '../../../lua/fair-lock/release.lua';
import releaseHashSource from '../../../lua/lock/release.lua';
import { release as releaseHash } from './lock.js';
import {
  freedPayload,
  isGrant,
  replyAcquire,
  replyFreed,
  replyHandOff,
  replyRelease,
  type AcquireReply,
  type HandOffReply,
  type ReleaseReply,
} from './replies.js';
import { defineScript, replyInts } from './script.js';

type FairKeys = [lock: string, queue: string, timeouts: string, alive: string];

export interface RefreshReply {
  /**
   * Time, in ms, until the holder's lease ends; `undefined` if it is unknown, or if none of the waiters is the head of
   * the queue.
   */
  readonly lookInMs: number | undefined;
  /** The waiters that must try now, as indexes into the owners of the request. */
  readonly toTry: readonly number[];
}

export const acquire = defineScript<
  FairKeys,
  [owner: string, leaseMs: number, waitMs: number, waiterTimeoutMs: number, publish: string, channel: string],
  AcquireReply
>({
  file: 'fair-lock/acquire',
  source: acquireSource,
  notAfter: 'last',
  reply: replyAcquire,
  isGrant,
});

export const release = defineScript<
  FairKeys,
  [publish: string, channel: string, waitMs: number, ...owners: string[]],
  ReleaseReply
>({
  file: 'fair-lock/release',
  source: releaseSource,
  reply: replyRelease,
  // The queue may be at the other node, or may not exist. The head of the queue tries again with its next refresh.
  ifSplit: ([lock], [publish, channel, , ...owners]) => ({
    operation: releaseHash,
    keys: [lock],
    args: [publish, channel, ...owners],
  }),
});

/** A release with the reply of a hand-over that freed the lock. */
const releaseInstead = defineScript<
  [lock: string],
  [publish: string, channel: string, ...owners: string[]],
  HandOffReply
>({
  file: 'lock/release',
  source: releaseHashSource,
  reply: replyFreed,
  publishedPayload: freedPayload,
});

/** `freed`: the next owner was not the head of the queue. */
export const handOff = defineScript<
  FairKeys,
  [from: string, to: string, leaseMs: number, waitMs: number, publish: string, channel: string],
  HandOffReply
>({
  file: 'fair-lock/hand-off',
  source: handOffSource,
  notAfter: 'last',
  reply: replyHandOff,
  isGrant,
  // The queue may be at the other node. The head of the queue tries again with its next refresh.
  ifSplit: ([lock], [from, , , , publish, channel]) => ({
    operation: releaseInstead,
    keys: [lock],
    args: [publish, channel, from],
  }),
});

export const refresh = defineScript<
  FairKeys,
  [waitMs: number, waiterTimeoutMs: number, publish: string, channel: string, ...owners: string[]],
  RefreshReply
>({
  file: 'fair-lock/refresh',
  source: refreshSource,
  notAfter: 'first',
  reply(raw) {
    const [lookInMs = -1, ...numbers] = replyInts(raw);
    return { lookInMs: lookInMs < 0 ? undefined : lookInMs, toTry: numbers.map((number) => number - 1) };
  },
});

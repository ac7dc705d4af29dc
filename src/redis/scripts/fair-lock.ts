import { fairLockAcquire, fairLockHandOff, fairLockRefresh, fairLockRelease, lockRelease } from './generated.js';
import { release as releaseHash } from './lock.js';
import { freedPayload, isGrant, replyAcquire, replyFreed, replyHandOff, replyRelease } from './replies.js';
import { bind, replyInts } from './script.js';

export interface RefreshReply {
  /**
   * Time, in ms, until the holder's lease ends; `undefined` if it is unknown, or if none of the waiters is the head of
   * the queue.
   */
  readonly lookInMs: number | undefined;
  /** The waiters that must try now, as indexes into the owners of the request. */
  readonly toTry: readonly number[];
}

export const acquire = bind(fairLockAcquire, { reply: replyAcquire, isGrant });

export const release = bind(fairLockRelease, {
  reply: replyRelease,
  // The queue may be at the other node, or may not exist. The head of the queue tries again with its next refresh.
  ifSplit: ([lock], [publish, channel, , ...owners]) => ({
    operation: releaseHash,
    keys: [lock],
    args: [publish, channel, ...NO_ROLL, ...owners],
  }),
});

/** The arguments of the plain release for a roll that it leaves alone: a fair lock wakes the head of its queue only. */
const NO_ROLL = [-1, '', '', 0, '', 0] as const;

/** A release with the reply of a hand-over that freed the lock. */
const releaseInstead = bind(lockRelease, { reply: replyFreed, publishedPayload: freedPayload });

/** `freed`: the next owner was not the head of the queue. */
export const handOff = bind(fairLockHandOff, {
  reply: replyHandOff,
  isGrant,
  // The queue may be at the other node. The head of the queue tries again with its next refresh.
  ifSplit: ([lock], [from, , , , publish, channel]) => ({
    operation: releaseInstead,
    keys: [lock],
    args: [publish, channel, ...NO_ROLL, from],
  }),
});

export const refresh = bind(fairLockRefresh, {
  reply(raw): RefreshReply {
    const [lookInMs = -1, ...numbers] = replyInts(raw);
    return { lookInMs: lookInMs < 0 ? undefined : lookInMs, toTry: numbers.map((number) => number - 1) };
  },
});

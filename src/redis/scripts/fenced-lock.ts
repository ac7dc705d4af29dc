import acquireSource from '../../../lua/fenced-lock/acquire.lua';
import acquireNestedSource from '../../../lua/fenced-lock/acquire-nested.lua';
import handOffSource from '../../../lua/fenced-lock/hand-off.lua';
import releaseSource from '../../../lua/lock/release.lua';
import {
  freedPayload,
  isGrant,
  replyFencedAcquire,
  replyFencedHandOff,
  replyFencedHeld,
  replyFreed,
  type AcquireReply,
  type HandOffReply,
  type HeldReply,
} from './replies.js';
import { defineScript } from './script.js';

/** How a fenced lock draws its tokens. See `tokens` in `FencedLockOptions`. */
export type TokenSource = 'counter' | 'clock';

export const acquire = defineScript<
  [lock: string, token: string],
  [owner: string, leaseMs: number, tokens: TokenSource],
  AcquireReply
>({
  file: 'fenced-lock/acquire',
  source: acquireSource,
  notAfter: 'last',
  reply: replyFencedAcquire,
  isGrant,
});

export const acquireNested = defineScript<
  [lock: string, token: string],
  [owner: string, holdCount: number, leaseMs: number, tokens: TokenSource, known: string],
  HeldReply
>({
  file: 'fenced-lock/acquire-nested',
  source: acquireNestedSource,
  notAfter: 'last',
  reply: replyFencedHeld,
});

/** A release with the reply of a hand-off that freed the lock. */
const releaseInstead = defineScript<
  [lock: string],
  [publish: string, channel: string, ...owners: string[]],
  HandOffReply
>({
  file: 'lock/release',
  source: releaseSource,
  reply: replyFreed,
  publishedPayload: freedPayload,
});

export const handOff = defineScript<
  [lock: string, token: string],
  [from: string, to: string, leaseMs: number, publish: string, channel: string, ours: number, tokens: TokenSource],
  HandOffReply
>({
  file: 'fenced-lock/hand-off',
  source: handOffSource,
  notAfter: 'last',
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

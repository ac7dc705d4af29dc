import countDownSource from '../../../lua/latch/count-down.lua';
import deleteSource from '../../../lua/latch/delete.lua';
import trySetSource from '../../../lua/latch/try-set.lua';
import { replyDone, replyLatch, type AcquireReply } from './replies.js';
import { defineRead, defineScript, replyInt } from './script.js';

type LatchKeys = [latch: string, requests: string];
type OpenedKeys = [...LatchKeys, opened: string];

/** Replies with the remaining count. */
export const countDown = defineScript<
  OpenedKeys,
  [publish: string, channel: string, lane: number, sequence: number],
  number
>({
  file: 'latch/count-down',
  source: countDownSource,
  notAfter: 'last',
  reply: replyInt,
  publishedPayload: (left) => (left === 0 ? '0' : undefined),
});

export const trySet = defineScript<
  LatchKeys,
  [count: number, publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'latch/try-set',
  source: trySetSource,
  notAfter: 'last',
  reply: replyDone,
});

export const remove = defineScript<
  OpenedKeys,
  [publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'latch/delete',
  source: deleteSource,
  notAfter: 'last',
  reply: replyDone,
  publishedPayload: (opened) => (opened ? '0' : undefined),
});

/**
 * The reply for a closed latch tells when the latch was last opened. A waiter thereby notices that the latch was opened
 * and closed again between two reads.
 */
export const look = defineRead<[], AcquireReply, [latch: string, opened: string]>('mget', replyLatch);

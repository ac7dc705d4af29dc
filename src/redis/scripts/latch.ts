import { latchCountDown, latchDelete, latchTrySet } from './generated.js';
import { replyDone, replyLatch, type AcquireReply } from './replies.js';
import { defineRead, bind, replyInt } from './script.js';

/** Replies with the remaining count. */
export const countDown = bind(latchCountDown, {
  reply: replyInt,
  publishedPayload: (left) => (left === 0 ? '0' : undefined),
});

export const trySet = bind(latchTrySet, { reply: replyDone });

export const remove = bind(latchDelete, {
  reply: replyDone,
  publishedPayload: (opened) => (opened ? '0' : undefined),
});

/**
 * The reply for a closed latch tells when the latch was last opened. A waiter thereby notices that the latch was opened
 * and closed again between two reads.
 */
export const look = defineRead<[], AcquireReply, [latch: string, opened: string]>('mget', replyLatch);

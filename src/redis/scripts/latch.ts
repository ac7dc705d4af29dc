import countDownSource from '../../../lua/latch/count-down.lua';
import deleteSource from '../../../lua/latch/delete.lua';
import trySetSource from '../../../lua/latch/try-set.lua';
import { defineRead, defineScript, replyInt } from './script.js';
import type { AcquireReply } from './replies.js';

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
  keys: 3,
  args: 4,
  notAfter: true,
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
  keys: 2,
  args: 5,
  notAfter: true,
  reply: (raw) => replyInt(raw) === 1,
});

export const remove = defineScript<
  OpenedKeys,
  [publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'latch/delete',
  source: deleteSource,
  keys: 3,
  args: 4,
  notAfter: true,
  reply: (raw) => replyInt(raw) === 1,
  publishedPayload: (opened) => (opened ? '0' : undefined),
});

/**
 * `undefined`: the latch is open. A negative number: it is closed. The number tells when the latch was last opened: -n
 * is n µs of the server clock, and -1 is unknown. A waiter thereby notices that the latch was opened and closed again
 * between two reads.
 */
export const look = defineRead<[], AcquireReply, [latch: string, opened: string]>(
  'mget',
  0,
  (raw) => {
    const [count, openedAt] = raw as readonly unknown[];
    if (count === null || replyInt(count) <= 0) return undefined;
    return openedAt === null ? -1 : -replyInt(openedAt);
  },
  2,
);

import countDownSource from '../../../lua/latch/count-down.lua';
import deleteSource from '../../../lua/latch/delete.lua';
import trySetSource from '../../../lua/latch/try-set.lua';
import { defineRead, defineScript, replyInt } from './script.js';
import type { AcquireReply } from './replies.js';

type LatchKeys = [latch: string, requests: string];
type OpenedKeys = [...LatchKeys, opened: string];

/** The count that is left. */
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
  wakeUp: (left) => (left === 0 ? '0' : undefined),
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
  wakeUp: (opened) => (opened ? '0' : undefined),
});

/**
 * Undefined: open. Below 0: closed, and nobody can say until when. The number says when the latch was last opened,
 * which is how a waiter learns of an opening between two looks: -n is n µs of the server's clock, -1 is not known.
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

import countDownSource from '../../../lua/latch/count-down.lua';
import deleteSource from '../../../lua/latch/delete.lua';
import trySetSource from '../../../lua/latch/try-set.lua';
import { defineRead, defineScript, replyInt } from '../script.js';
import type { AcquireReply } from './lock.js';

type LatchKeys = [latch: string, requests: string];

/** The count that is left. */
export const countDown = defineScript<
  LatchKeys,
  [publish: string, channel: string, lane: number, sequence: number],
  number
>({
  file: 'latch/count-down',
  source: countDownSource,
  keys: 2,
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
  LatchKeys,
  [publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'latch/delete',
  source: deleteSource,
  keys: 2,
  args: 4,
  notAfter: true,
  reply: (raw) => replyInt(raw) === 1,
  wakeUp: (opened) => (opened ? '0' : undefined),
});

/** Open, or -1: nobody can say when it will be. */
export const look = defineRead<[], AcquireReply>('get', 0, (raw) =>
  raw === null || replyInt(raw) <= 0 ? undefined : -1,
);

import acquireSource from '../../../lua/semaphore/acquire.lua';
import addSource from '../../../lua/semaphore/add.lua';
import cancelSource from '../../../lua/semaphore/cancel.lua';
import drainSource from '../../../lua/semaphore/drain.lua';
import releaseSource from '../../../lua/semaphore/release.lua';
import trySetSource from '../../../lua/semaphore/try-set.lua';
import { defineScript, replyInt } from './script.js';
import type { AcquireReply } from './replies.js';

/** -1: too few permits are free, and it is unknown when more will be. */
export const acquire = defineScript<
  [semaphore: string, requests: string],
  [permits: number, lane: number, sequence: number],
  AcquireReply
>({
  file: 'semaphore/acquire',
  source: acquireSource,
  keys: 2,
  args: 3,
  notAfter: true,
  reply(raw) {
    const free = replyInt(raw);
    return free >= 0 ? { free, freeIn: -1 } : -1;
  },
  confirmed: (reply) => typeof reply === 'object',
});

type ReleaseReply = 'none' | 'released' | 'unheard';
const RELEASED: Readonly<Record<number, ReleaseReply>> = { 1: 'released', 2: 'unheard' };

/** `unheard`: the permits were released, but no other client is subscribed. */
export const release = defineScript<
  [semaphore: string, requests: string],
  [permits: number, create: number, publish: string, channel: string, lane: number, sequence: number],
  ReleaseReply
>({
  file: 'semaphore/release',
  source: releaseSource,
  keys: 2,
  args: 6,
  notAfter: false,
  reply: (raw) => RELEASED[replyInt(raw)] ?? 'none',
  publishedPayload: (reply) => (reply === 'none' ? undefined : '1'),
});

export const drain = defineScript<[semaphore: string, requests: string], [lane: number, sequence: number], number>({
  file: 'semaphore/drain',
  source: drainSource,
  keys: 2,
  args: 2,
  notAfter: true,
  reply: replyInt,
});

export const add = defineScript<
  [semaphore: string, requests: string],
  [permits: number, publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'semaphore/add',
  source: addSource,
  keys: 2,
  args: 5,
  notAfter: true,
  reply: (raw) => replyInt(raw) === 1,
  publishedPayload: (done) => (done ? '1' : undefined),
});

export const trySet = defineScript<
  [semaphore: string, requests: string],
  [permits: number, ttlMs: number, publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'semaphore/try-set',
  source: trySetSource,
  keys: 2,
  args: 6,
  notAfter: true,
  reply: (raw) => replyInt(raw) === 1,
  publishedPayload: (done) => (done ? '1' : undefined),
});

/** `true` if the request had taken permits. The script released them. */
export const cancel = defineScript<
  [semaphore: string, requests: string],
  [permits: number, publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'semaphore/cancel',
  source: cancelSource,
  keys: 2,
  args: 5,
  notAfter: false,
  reply: (raw) => replyInt(raw) === 1,
  publishedPayload: (done) => (done ? '1' : undefined),
});

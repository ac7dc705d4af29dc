import acquireSource from '../../../lua/semaphore/acquire.lua';
import addSource from '../../../lua/semaphore/add.lua';
import cancelSource from '../../../lua/semaphore/cancel.lua';
import drainSource from '../../../lua/semaphore/drain.lua';
import releaseSource from '../../../lua/semaphore/release.lua';
import trySetSource from '../../../lua/semaphore/try-set.lua';
import { isGrant, replyDone, replyPermits, type AcquireReply } from './replies.js';
import { defineScript, replyInt } from './script.js';

export const acquire = defineScript<
  [semaphore: string, requests: string],
  [permits: number, lane: number, sequence: number],
  AcquireReply
>({
  file: 'semaphore/acquire',
  source: acquireSource,
  notAfter: 'last',
  reply: replyPermits,
  isGrant,
});

export type ReleaseReply = 'none' | 'released' | 'noOtherSubscriber';
const RELEASED: Readonly<Record<number, ReleaseReply>> = { 1: 'released', 2: 'noOtherSubscriber' };

/** `noOtherSubscriber`: the permits were released, but no other client is subscribed. */
export const release = defineScript<
  [semaphore: string, requests: string],
  [permits: number, create: number, publish: string, channel: string, lane: number, sequence: number],
  ReleaseReply
>({
  file: 'semaphore/release',
  source: releaseSource,
  reply: (raw) => RELEASED[replyInt(raw)] ?? 'none',
  publishedPayload: (reply) => (reply === 'none' ? undefined : '1'),
});

export const drain = defineScript<[semaphore: string, requests: string], [lane: number, sequence: number], number>({
  file: 'semaphore/drain',
  source: drainSource,
  notAfter: 'last',
  reply: replyInt,
});

export const add = defineScript<
  [semaphore: string, requests: string],
  [permits: number, publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'semaphore/add',
  source: addSource,
  notAfter: 'last',
  reply: replyDone,
  publishedPayload: (done) => (done ? '1' : undefined),
});

export const trySet = defineScript<
  [semaphore: string, requests: string],
  [permits: number, ttlMs: number, publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'semaphore/try-set',
  source: trySetSource,
  notAfter: 'last',
  reply: replyDone,
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
  reply: replyDone,
  publishedPayload: (done) => (done ? '1' : undefined),
});

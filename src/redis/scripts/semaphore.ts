import acquireSource from '../../../lua/semaphore/acquire.lua';
import addSource from '../../../lua/semaphore/add.lua';
import cancelSource from '../../../lua/semaphore/cancel.lua';
import deleteSource from '../../../lua/semaphore/delete.lua';
import drainSource from '../../../lua/semaphore/drain.lua';
import expireSource from '../../../lua/semaphore/expire.lua';
import releaseSource from '../../../lua/semaphore/release.lua';
import trySetSource from '../../../lua/semaphore/try-set.lua';
import { isGrant, replyDone, replyPermits, type AcquireReply } from './replies.js';
import { defineScript, replyInt } from './script.js';

export const acquire = defineScript<
  [semaphore: string, requests: string],
  [permits: number, declared: number, publish: string, channel: string, lane: number, sequence: number],
  AcquireReply
>({
  file: 'semaphore/acquire',
  source: acquireSource,
  notAfter: 'last',
  reply: replyPermits,
  isGrant,
});

/**
 * `none`: the semaphore does not exist, and was not created. `noOtherSubscriber`: the permits were released, but no other
 * client is subscribed. `created`: the semaphore did not exist.
 */
export type ReleaseReply = 'none' | 'released' | 'noOtherSubscriber' | 'created';
const RELEASED: Readonly<Record<number, ReleaseReply>> = { 1: 'released', 2: 'noOtherSubscriber', 3: 'created' };

export const release = defineScript<
  [semaphore: string, requests: string],
  [permits: number, missing: number, publish: string, channel: string, lane: number, sequence: number],
  ReleaseReply
>({
  file: 'semaphore/release',
  source: releaseSource,
  reply: (raw) => RELEASED[replyInt(raw)] ?? 'none',
  publishedPayload: (reply) => (reply === 'none' ? undefined : '1'),
});

export const drain = defineScript<
  [semaphore: string, requests: string],
  [declared: number, lane: number, sequence: number],
  number
>({
  file: 'semaphore/drain',
  source: drainSource,
  notAfter: 'last',
  reply: replyInt,
});

export const add = defineScript<
  [semaphore: string, requests: string],
  [permits: number, declared: number, publish: string, channel: string, lane: number, sequence: number],
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

export const remove = defineScript<
  [semaphore: string, requests: string],
  [publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'semaphore/delete',
  source: deleteSource,
  notAfter: 'last',
  reply: replyDone,
  publishedPayload: (deleted) => (deleted ? '1' : undefined),
});

/** `false`: the semaphore does not exist. */
export const expire = defineScript<
  [semaphore: string, requests: string],
  [ttlMs: number, lane: number, sequence: number],
  boolean
>({
  file: 'semaphore/expire',
  source: expireSource,
  notAfter: 'last',
  reply: replyDone,
});

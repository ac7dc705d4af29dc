import {
  semaphoreAcquire,
  semaphoreAdd,
  semaphoreCancel,
  semaphoreDelete,
  semaphoreDrain,
  semaphoreExpire,
  semaphoreRelease,
  semaphoreTrySet,
} from './generated.js';
import { isGrant, replyDone, replyPermits } from './replies.js';
import { bind, replyInt } from './script.js';

export const acquire = bind(semaphoreAcquire, { reply: replyPermits, isGrant });

/**
 * `none`: the semaphore does not exist, and was not created. `noOtherSubscriber`: the permits were released, but no other
 * client is subscribed. `created`: the semaphore did not exist.
 */
export type ReleaseReply = 'none' | 'released' | 'noOtherSubscriber' | 'created';
const RELEASED: Readonly<Record<number, ReleaseReply>> = { 1: 'released', 2: 'noOtherSubscriber', 3: 'created' };

export const release = bind(semaphoreRelease, {
  reply: (raw) => RELEASED[replyInt(raw)] ?? 'none',
  publishedPayload: (reply) => (reply === 'none' ? undefined : '1'),
});

export const drain = bind(semaphoreDrain, { reply: replyInt });

export const add = bind(semaphoreAdd, {
  reply: replyDone,
  publishedPayload: (done) => (done ? '1' : undefined),
});

export const trySet = bind(semaphoreTrySet, {
  reply: replyDone,
  publishedPayload: (done) => (done ? '1' : undefined),
});

/** `true` if the request had taken permits. The script released them. */
export const cancel = bind(semaphoreCancel, {
  reply: replyDone,
  publishedPayload: (done) => (done ? '1' : undefined),
});

export const remove = bind(semaphoreDelete, {
  reply: replyDone,
  publishedPayload: (deleted) => (deleted ? '1' : undefined),
});

/** `false`: the semaphore does not exist. */
export const expire = bind(semaphoreExpire, { reply: replyDone });

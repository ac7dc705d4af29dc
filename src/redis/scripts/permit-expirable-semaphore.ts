import {
  permitExpirableSemaphoreAcquire,
  permitExpirableSemaphoreAdd,
  permitExpirableSemaphoreCount,
  permitExpirableSemaphoreDelete,
  permitExpirableSemaphoreExpire,
  permitExpirableSemaphoreHandOff,
  permitExpirableSemaphoreLease,
  permitExpirableSemaphoreRelease,
  permitExpirableSemaphoreSet,
  permitExpirableSemaphoreTrySet,
  permitExpirableSemaphoreUpdateLease,
} from './generated.js';
import { isGrant, replyDone, replyExpirablePermits } from './replies.js';
import { bind, replyInt, replyInts, replyTimeLeft } from './script.js';

export const acquire = bind(permitExpirableSemaphoreAcquire, { reply: replyExpirablePermits, isGrant });

/** `mixed`: some of the permits are not taken, and no permit was released. `unknown`: none of the permits is taken. */
export type ReleaseReply = 'released' | 'mixed' | 'unknown';
const RELEASED: Readonly<Record<number, ReleaseReply>> = { 1: 'released', 2: 'mixed' };

export const release = bind(permitExpirableSemaphoreRelease, {
  reply: (raw) => RELEASED[replyInt(raw)] ?? 'unknown',
  publishedPayload: (reply) => (reply === 'released' ? '1' : undefined),
});

/**
 * `handed`: the permits were released, and the next waiter has new ones. `released`: other clients wait, so the permits
 * were only released. `mixed` and `unknown`: as in {@link ReleaseReply}, and nothing has changed.
 */
export type HandOffReply = 'handed' | ReleaseReply;
const HANDED_OFF: Readonly<Record<number, HandOffReply>> = { 1: 'handed', 2: 'released', 3: 'mixed' };

/** One reply for each exchange of the request. */
export const handOff = bind(permitExpirableSemaphoreHandOff, {
  reply: (raw): readonly HandOffReply[] => replyInts(raw).map((n) => HANDED_OFF[n] ?? 'unknown'),
  isGrant: (replies) => replies.includes('handed'),
  publishedPayload: (replies) => (replies.includes('released') ? '1' : undefined),
});

export interface PermitCount {
  readonly exists: boolean;
  readonly free: number;
  readonly taken: number;
}

export const count = bind(permitExpirableSemaphoreCount, {
  reply(raw) {
    const [exists = 0, free = 0, taken = 0] = replyInts(raw);
    return { exists: exists === 1, free, taken };
  },
});

const changed = { reply: replyDone, publishedPayload: (done: boolean) => (done ? '1' : undefined) };

export const set = bind(permitExpirableSemaphoreSet, { ...changed });

export const trySet = bind(permitExpirableSemaphoreTrySet, { ...changed });

export const add = bind(permitExpirableSemaphoreAdd, { ...changed });

/** `false`: the permit is no longer taken. */
export const updateLease = bind(permitExpirableSemaphoreUpdateLease, { reply: replyDone });

/** `missing`: the permit is no longer taken. */
export const lease = bind(permitExpirableSemaphoreLease, { reply: replyTimeLeft });

export const remove = bind(permitExpirableSemaphoreDelete, { ...changed });

/** `false`: the semaphore does not exist. */
export const expire = bind(permitExpirableSemaphoreExpire, { reply: replyDone });

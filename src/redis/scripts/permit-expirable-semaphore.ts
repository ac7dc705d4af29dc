import acquireSource from '../../../lua/permit-expirable-semaphore/acquire.lua';
import countSource from '../../../lua/permit-expirable-semaphore/count.lua';
import deleteSource from '../../../lua/permit-expirable-semaphore/delete.lua';
import expireSource from '../../../lua/permit-expirable-semaphore/expire.lua';
import handOffSource from '../../../lua/permit-expirable-semaphore/hand-off.lua';
import leaseSource from '../../../lua/permit-expirable-semaphore/lease.lua';
import releaseSource from '../../../lua/permit-expirable-semaphore/release.lua';
import setSource from '../../../lua/permit-expirable-semaphore/set.lua';
import updateLeaseSource from '../../../lua/permit-expirable-semaphore/update-lease.lua';
import { isGrant, replyDone, replyExpirablePermits, type AcquireReply } from './replies.js';
import type { TimeLeft } from '../../lease-time.js';
import { defineScript, replyInt, replyInts, replyTimeLeft } from './script.js';

type Keys = [semaphore: string, taken: string];

export const acquire = defineScript<Keys, readonly (string | number)[], AcquireReply>({
  file: 'permit-expirable-semaphore/acquire',
  source: acquireSource,
  notAfter: 'first',
  reply: replyExpirablePermits,
  isGrant,
});

/** `mixed`: some of the permits are not taken, and no permit was released. `unknown`: none of the permits is taken. */
export type ReleaseReply = 'released' | 'mixed' | 'unknown';
const RELEASED: Readonly<Record<number, ReleaseReply>> = { 1: 'released', 2: 'mixed' };

export const release = defineScript<Keys, readonly (string | number)[], ReleaseReply>({
  file: 'permit-expirable-semaphore/release',
  source: releaseSource,
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
export const handOff = defineScript<Keys, readonly (string | number)[], readonly HandOffReply[]>({
  file: 'permit-expirable-semaphore/hand-off',
  source: handOffSource,
  reply: (raw) => replyInts(raw).map((n) => HANDED_OFF[n] ?? 'unknown'),
  isGrant: (replies) => replies.includes('handed'),
  publishedPayload: (replies) => (replies.includes('released') ? '1' : undefined),
});

export interface PermitCount {
  readonly exists: boolean;
  readonly free: number;
  readonly taken: number;
}

export const count = defineScript<Keys, [publish: string, channel: string], PermitCount>({
  file: 'permit-expirable-semaphore/count',
  source: countSource,
  reply(raw) {
    const [exists = 0, free = 0, taken = 0] = replyInts(raw);
    return { exists: exists === 1, free, taken };
  },
});

export const set = defineScript<
  [...Keys, requests: string],
  [permits: number, publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'permit-expirable-semaphore/set',
  source: setSource,
  notAfter: 'last',
  reply: replyDone,
  publishedPayload: (done) => (done ? '1' : undefined),
});

/** `false`: the permit is no longer taken. */
export const updateLease = defineScript<Keys, [id: string, leaseMs: number, publish: string, channel: string], boolean>(
  {
    file: 'permit-expirable-semaphore/update-lease',
    source: updateLeaseSource,
    notAfter: 'last',
    reply: replyDone,
  },
);

/** `missing`: the permit is no longer taken. */
export const lease = defineScript<Keys, [id: string, publish: string, channel: string], TimeLeft>({
  file: 'permit-expirable-semaphore/lease',
  source: leaseSource,
  reply: replyTimeLeft,
});

export const remove = defineScript<
  [...Keys, requests: string],
  [publish: string, channel: string, lane: number, sequence: number],
  boolean
>({
  file: 'permit-expirable-semaphore/delete',
  source: deleteSource,
  notAfter: 'last',
  reply: replyDone,
  publishedPayload: (deleted) => (deleted ? '1' : undefined),
});

/** `false`: the semaphore does not exist. */
export const expire = defineScript<
  [...Keys, requests: string],
  [ttlMs: number, lane: number, sequence: number],
  boolean
>({
  file: 'permit-expirable-semaphore/expire',
  source: expireSource,
  notAfter: 'last',
  reply: replyDone,
});

import { jointLocks } from './joint-locks.js';
import type { Deviations } from './reasons.js';
import { lock } from './lock.js';
import { otherLocks } from './other-locks.js';
import { permits } from './permits.js';
import { surroundings } from './surroundings.js';

/** For each recording: where we do something else than Redisson on purpose, and why. */
export const DEVIATIONS: Deviations = { ...lock, ...otherLocks, ...jointLocks, ...permits, ...surroundings };

const CHANCE =
  'a leased lock is given back just before its lease ends, or has ended by then: which messages come is chance; see R27';

/** Scenarios that cannot be replayed, and why. */
export const NOT_REPLAYED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'multi-lock': { 'wait-for-member-with-lock': CHANCE, 'lease-in-seconds': CHANCE },
  'spin-lock': { waiter: 'whether a poll falls before or after the state was read is chance; see tests/integration' },
  'fair-lock': {
    interrupted: 'nobody who is interrupted stays in the queue, so that every step from then on is another',
    'free-unlock-with-queue':
      'it is about an unlock by nobody that wakes a waiter: it is refused before anything is sent',
    async: 'it is about a give-up that takes too much off those behind, and the order that comes of it (hazard 20)',
    delete: 'it is about expire(), clearExpire() and delete() of a lock, which there are none of here',
    'stale-sweep': 'so short a fairLockWaitTimeout is refused, and nobody who is interrupted stays in the queue',
  },
  replica: {
    'no-synced-slaves':
      'it is about five rounds of Redisson in 28 s; here one is enough, and told: see R35 in tests/topologies',
  },
  'fenced-lock': { async: 'it deletes the counter half-way, which no call of ours does' },
};

/**
 * Kinds whose scripts are replayed one for one as well. Those of the others are told what the client knows of its holds,
 * and keep lanes of requests, so that no script of Redisson stands for one of them: the client replays these kinds, and
 * each of their scripts has a test of its own in tests/lua.
 */
export const BY_SCRIPT: readonly string[] = ['lock'];

import { jointLocks } from './joint-locks.js';
import type { Deviations } from './forms.js';
import { lock } from './lock.js';
import { otherLocks } from './other-locks.js';
import { permits } from './permits.js';
import { surroundings } from './surroundings.js';

/** For each recording: where we do something else than Redisson on purpose, and why. */
export const DEVIATIONS: Deviations = { ...lock, ...otherLocks, ...jointLocks, ...permits, ...surroundings };

/** Scenarios that cannot be replayed, and why. */
export const NOT_REPLAYED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'fair-lock': {
    'stale-sweep': 'it is about a fairLockWaitTimeout of 800 ms, which is refused here: too short to live',
  },
  replica: {
    'no-synced-slaves':
      'Redisson makes about five rounds in 28 s; Holdfast reports after one: see R35 in tests/topologies',
  },
};

/**
 * Kinds whose scripts are also replayed one by one. The scripts of the other kinds get the client's knowledge of its
 * holds and keep lanes of requests, so they have no counterpart among the scripts of Redisson. The client replays these
 * kinds, and each of their scripts has its own test in tests/lua.
 */
export const BY_SCRIPT: readonly string[] = ['lock'];

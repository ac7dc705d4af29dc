import type { Deviation } from './comparison.js';

const OWN_CODE = 'a second acquisition by the owner has a code of its own';
const LOST = 'a hold that was lost is told apart from one that never was';
const OWN_LEASE =
  'the lease belongs to the hold: a nested acquire never shortens it, a release leaves what the others have';

const NO_PERMITS = 'a message without permits wakes nobody, and a negative one makes a JVM fail (hazard 30)';

const again = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: OWN_CODE,
  code: 'ERR_LOCK_NON_REENTRANT',
});
const lost = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: LOST,
  code: 'ERR_LOCK_LOST',
});
const ownLease = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: OWN_LEASE,
  ownLease: true,
});

/** For each recording: where we do something else than Redisson on purpose, and why. */
export const FAMILY_DEVIATIONS: Readonly<Record<string, readonly Deviation[]>> = {
  'non-reentrant-lock': [
    again('owner-again', 2, 3, 4, 5, 6),
    lost('busy-and-waiter', 10),
    again('renewal', 2),
    again('mixed-with-plain', 2),
    ownLease('mixed-with-plain', 5, 6),
  ],
  semaphore: [
    { scenario: 'absent', steps: [7, 9], why: NO_PERMITS, published: [] },
    { scenario: 'arguments', steps: [1, 6, 11], why: NO_PERMITS, published: [] },
  ],
  'count-down-latch': [],
  'fenced-lock': [
    {
      scenario: 'leases',
      steps: [1, 2],
      why: 'lockAndGetToken(lease) has the lease that it was given; Redisson forgets it',
      leaseEnd: { lk: { after: 1, ms: 5_000 } },
    },
    ownLease('plain-methods', 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
    {
      scenario: 'no-expiry',
      steps: [3],
      why: 'a busy lock without expiry is not mistaken for a token of -1 (hazard 39)',
      result: null,
    },
  ],
};

/** Scenarios that cannot be replayed, and why. */
export const NOT_REPLAYED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'fenced-lock': { async: 'it deletes the counter half-way, which no call of ours does' },
};

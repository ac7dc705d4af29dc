import type { Deviation } from './comparison.js';

const OWN_CODE = 'a second acquisition by the owner has a code of its own';
const LOST = 'a hold that was lost is told apart from one that never was';
const OWN_LEASE =
  'the lease belongs to the hold: a nested acquire never shortens it, a release leaves what the others have';

const NO_PERMITS = 'a message without permits wakes nobody, and a negative one makes a JVM fail (hazard 30)';

const NOT_OURS = 'an unlock by a stranger is refused before anything is sent';
const ONE_IS_LOCKED = 'isLocked() asks about its own half in every form; the asynchronous one of Redisson about both';
const LEFT_WRITE = [{ channel: 'redisson_rwlock:{lk}', payload: '1' }];

const upgrade = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'a read hold cannot become a write hold: refused, where Redisson waits or says busy',
  code: 'ERR_LOCK_UPGRADE',
});
const forced = (scenario: string, name: string, owners: readonly string[], ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'a force unlock removes the keys of the read holds, too',
  state: Object.fromEntries(owners.map((owner) => [`{${name}}:${owner}:rwlock_timeout:1`, undefined])),
});
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

const ALL_OR_NONE = 'permits are given back together or not at all: there is nothing to count';
const freePublished = (scenario: string, payload: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'every message says how many permits are free; some of Redisson say how many came',
  published: [{ channel: 'redisson_sc:{sem}', payload }],
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
  'spin-lock': [
    ownLease('lease', 10, 11, 19),
    lost('busy', 10),
    ownLease('lease-memory', 4, 5, 6),
    ownLease('async', 5),
  ],
  'read-write-lock': [
    { scenario: 'read', steps: [23], why: ONE_IS_LOCKED, result: false },
    { scenario: 'read', steps: [25], why: NOT_OURS, published: [] },
    { scenario: 'write', steps: [14], why: ONE_IS_LOCKED, result: false },
    ownLease('write', 15, 16, 17, 18, 19, 20),
    { scenario: 'write', steps: [22], why: NOT_OURS, published: [] },
    upgrade('busy', 4),
    ownLease('downgrade', 12),
    {
      scenario: 'downgrade',
      steps: [12],
      why: 'a downgrade wakes the readers that wait (hazard 24)',
      published: LEFT_WRITE,
    },
    upgrade('downgrade', 14),
    {
      scenario: 'own-mode',
      steps: [5],
      why: 'a downgrade wakes the readers that wait (hazard 24)',
      published: LEFT_WRITE,
    },
    upgrade('own-mode', 7),
    ownLease('write-outlives-read', 4, 6, 7),
    forced('force', 'lk', ['<A>:<t1>', '<B>:<t1>'], 6, 7, 8, 9, 10, 11),
    lost('force', 7, 11),
    { scenario: 'force', steps: [7, 11], why: NOT_OURS, published: [] },
    ownLease('renewal-read', 6, 8),
    forced('renewal-dropped', 'lk', ['<A>:<t1>'], 3, 4, 5, 6),
    ownLease('async', 2, 3, 4, 5, 6, 7),
    forced('async', 'lk', ['<A>:701'], 8, 9, 10, 11, 12),
  ],
  semaphore: [
    { scenario: 'absent', steps: [7, 9], why: NO_PERMITS, published: [] },
    { scenario: 'arguments', steps: [1, 6, 11], why: NO_PERMITS, published: [] },
  ],
  'permit-expirable-semaphore': [
    freePublished('several', '2', 7),
    freePublished('several', '4', 9),
    freePublished('several', '5', 11),
    freePublished('async-rest', '3', 10),
    freePublished('administration', '3', 10),
    freePublished('administration', '2', 11, 12, 19),
    freePublished('ttl-lost', '3', 4),
    freePublished('async', '6', 14),
    { scenario: 'several', steps: [9, 11], why: ALL_OR_NONE, result: true },
    { scenario: 'several', steps: [10], why: ALL_OR_NONE, result: false },
    { scenario: 'async-rest', steps: [9], why: ALL_OR_NONE, result: true },
    { scenario: 'async-rest', steps: [12], why: ALL_OR_NONE, result: false },
    {
      scenario: 'async-rest',
      steps: [4],
      why: 'both forms say in the same way that there were not enough',
      result: [],
    },
    {
      scenario: 'ttl-lost',
      steps: [4],
      why: 'addPermits() leaves the expiry, so that what is taken does not vanish before what is free (hazard 42)',
      state: { sem: { pttl: 614 } },
    },
    {
      scenario: 'ttl-lost',
      steps: [5, 6, 7],
      why: 'the semaphore has expired with what was taken of it',
      state: { sem: undefined },
      result: 0,
    },
    { scenario: 'ttl-lost', steps: [7], why: 'the same', result: false },
    { scenario: 'arguments', steps: [4], why: 'no permits are granted at once, in every form', doesNotWait: true },
    { scenario: 'arguments', steps: [12], why: NO_PERMITS, published: [] },
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
  'spin-lock': { waiter: 'whether a poll falls before or after the state was read is chance; see tests/integration' },
  'fenced-lock': { async: 'it deletes the counter half-way, which no call of ours does' },
};

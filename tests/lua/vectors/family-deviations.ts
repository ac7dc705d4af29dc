import type { Deviation } from './comparison.js';

const OWN_CODE = 'a second acquisition by the owner has a code of its own';
const LOST = 'a hold that was lost is told apart from one that never was';
const OWN_LEASE =
  'the lease belongs to the hold: a nested acquire never shortens it, a release leaves what the others have';

const NO_PERMITS = 'a message without permits wakes nobody, and a negative one makes a JVM fail (hazard 30)';

const NOT_OURS = 'an unlock by a stranger is refused before anything is sent';
const ONE_IS_LOCKED = 'isLocked() asks about its own half in every form; the asynchronous one of Redisson about both';
const LEFT_WRITE = [{ channel: 'redisson_rwlock:{lk}', payload: '1' }];

const WE_CAN = 'Redisson supports no such call here';
const PARTLY = 'a stranger’s release changes nothing (hazard 46)';
const GIVEN_BACK = 'what its owner let expire is given back, by the owner or by the next one';
const NOT_FREED = 'nothing came free: nothing is published';
/** A value that one thread has, in the hash of its group. */
const value = (field: string, owner: string, end: number): Record<string, string> => ({
  [field]: owner,
  [`${field}:${owner}:expire_time`]: `<T+${end}>`,
  [`${field}:${owner}:lock_count`]: '1',
});
const [V1, V2] = ['OdjxgHrO+8OZHkSYKdaZ7g', 'B1pmxHlkmfILXSZFOsChHA'];
const A1 = '<A>:<t1>';
const AT_ONCE =
  'all are asked at once, and what was granted is given back; a leased hold is given back when it is lost';
const EVERY_MEMBER = 'an unlock tries every member';
const FREE = (name: string): { channel: string; payload: string } => ({
  channel: `redisson_lock__channel:{${name}}`,
  payload: '0',
});

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

const later = (scenario: string, scoresLater: Readonly<Record<string, number>>, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'a waiter queues with fairLockWaitTimeout, and with it for every place in front, not with the wait of its call',
  scoresLater,
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
    {
      scenario: 'arguments',
      steps: [7],
      in: 'client',
      why: 'what is no id was never given out: unknown',
      result: false,
    },
    { scenario: 'arguments', steps: [12], why: NO_PERMITS, published: [] },
  ],
  'count-down-latch': [],
  'group-multi-lock': [
    { scenario: 'lease', steps: [5], why: WE_CAN, result: 1 },
    { scenario: 'lease', steps: [6], why: WE_CAN, result: 9_743 },
    { scenario: 'lease', steps: [8], why: NOT_FREED, published: [] },
    { scenario: 'lease', steps: [10], why: NOT_OURS, published: [] },
    {
      scenario: 'partial-release',
      steps: [2],
      why: PARTLY,
      published: [],
      state: { grp: { type: 'hash', value: { ...value(V1, A1, 10_000), ...value(V2, A1, 10_000) } } },
    },
    {
      scenario: 'partial-release',
      steps: [3],
      why: PARTLY,
      result: undefined,
      published: [{ channel: 'redisson_lock__channel:{grp}', payload: '0' }],
      state: { grp: undefined },
    },
    { scenario: 'partial-release', steps: [7], why: 'no error where nothing is held (hazard 46)', result: false },
    { scenario: 'partial-release', steps: [7], why: 'nothing came free: nothing is published', published: [] },
    { scenario: 'partial-release', steps: [8], why: LOST, unlocksFirst: true },
    { scenario: 'partial-release', steps: [9], why: 'true if any was held, not only for exactly one', result: true },
    {
      scenario: 'expiry',
      steps: [3, 4, 5],
      why: GIVEN_BACK,
      state: { grp: { type: 'hash', value: value(V2, A1, 9_038) } },
    },
    {
      scenario: 'expiry',
      steps: [3],
      why: GIVEN_BACK,
      published: [{ channel: 'redisson_lock__channel:{grp}', payload: '0' }],
    },
    { scenario: 'expiry', steps: [5], why: 'the first value counts, too (hazard 46)', result: false },
    {
      scenario: 'expiry',
      steps: [6, 7],
      why: GIVEN_BACK,
      state: { grp: { type: 'hash', value: { ...value(V2, A1, 9_038), ...value(V1, '<B>:<t1>', 5_399) } } },
    },
    lost('expiry', 7),
    { scenario: 'expiry', steps: [8], why: GIVEN_BACK, state: { grp: { type: 'hash', value: value(V2, A1, 9_038) } } },
    { scenario: 'expiry', steps: [9], why: GIVEN_BACK, state: { grp: undefined } },
  ],
  'multi-lock': [
    { ...ownLease('lease', 1, 2, 3, 4), why: AT_ONCE },
    { scenario: 'lease', steps: [3], why: WE_CAN, result: true },
    { scenario: 'lease', steps: [4], why: WE_CAN, result: 1 },
    {
      scenario: 'failing-member',
      steps: [2],
      why: AT_ONCE,
      published: [FREE('l1'), FREE('l3')],
    },
    {
      scenario: 'failing-member',
      steps: [3, 4],
      why: AT_ONCE,
      published: [FREE('l1'), FREE('l3'), FREE('l1')],
    },
    lost('lost-member', 4),
    {
      scenario: 'lost-member',
      steps: [4],
      why: EVERY_MEMBER,
      state: { l3: undefined },
      published: [FREE('l1'), FREE('l3')],
    },
    { scenario: 'lost-member', steps: [5], why: EVERY_MEMBER, result: false, published: [] },
  ],
  'red-lock': [
    { ...ownLease('minority-busy', 2, 3), why: 'a busy server is not waited for when the others are a majority' },
    { scenario: 'minority-busy', steps: [3], why: 'a majority holds it', result: true },
    {
      scenario: 'unlock-not-held',
      steps: [1],
      why: 'an unlock of what is not held is told',
      code: 'ERR_LOCK_NOT_OWNER',
    },
  ],
  'fair-lock': [
    ownLease('basic', 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 17),
    {
      scenario: 'unlock-free',
      steps: [1],
      why: 'an unlock by nobody is refused, also while the lock is free (hazard 37)',
      code: 'ERR_LOCK_NOT_OWNER',
    },
    lost('unlock-free', 4),
    later('trylock-waiters', { '<B>:<t2>': 292_000, '<A>:<t3>': 583_000 }, 2, 3, 4),
    later('trylock-waiters', { '<A>:<t3>': 291_000 }, 5, 6, 7),
    later('give-up-first', { '<B>:<t2>': 299_300, '<A>:<t3>': 589_800, '<B>:<t4>': 879_800 }, 2, 3, 4),
    later('give-up-first', { '<A>:<t3>': 290_500, '<B>:<t4>': 580_500 }, 5),
    later('give-up-first', { '<B>:<t4>': 290_000 }, 6, 7),
    later('give-up-last', { '<B>:<t2>': 291_000, '<A>:<t3>': 581_500, '<B>:<t4>': 880_800 }, 2, 3, 4, 5),
    later('give-up-last', { '<A>:<t3>': 290_500 }, 6, 7),
    lost('force-with-waiters', 8),
    {
      scenario: 'head-without-score',
      steps: [3],
      why: 'whoever leaves the queue of a free lock tells the head',
      published: [{ channel: 'redisson_lock__channel:{lk}:x:1', payload: '0' }],
    },
    {
      scenario: 'head-without-score',
      steps: [4],
      why: NOT_OURS,
      code: 'ERR_LOCK_NOT_OWNER',
      published: [],
    },
  ],
  'non-reentrant-fair-lock': [
    again('owner-again', 2, 3, 4),
    {
      scenario: 'owner-again',
      steps: [6],
      why: 'an unlock by nobody is refused, also while the lock is free (hazard 37)',
      code: 'ERR_LOCK_NOT_OWNER',
    },
    later('queue', { '<A>:<t3>': 299_600, '<B>:<t4>': 594_600 }, 3, 4),
    later('queue', { '<B>:<t4>': 295_000 }, 5, 6, 7),
  ],
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
  'fenced-lock': { async: 'it deletes the counter half-way, which no call of ours does' },
};

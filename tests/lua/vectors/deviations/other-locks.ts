import type { Deviation } from '../comparison.js';
import { again, lost, NOT_OURS, ownLease, type Deviations } from './reasons.js';

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

const later = (scenario: string, scoresLater: Readonly<Record<string, number>>, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'a waiter queues with fairLockWaitTimeout, and with it for every place in front, not with the wait of its call',
  scoresLater,
});

export const otherLocks: Deviations = {
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

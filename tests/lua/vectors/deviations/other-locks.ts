import type { Deviation } from '../comparison.js';
import { again, lost, ownLease, type Deviations } from './forms.js';

const QUEUE = 'redisson_lock_queue:{lk}';
const TIMEOUTS = 'redisson_lock_timeout:{lk}';
/** The waiters of `lk`, each with its time in the set of timeouts. */
const queued = (...waiters: readonly (readonly [owner: string, at: number])[]): NonNullable<Deviation['state']> => ({
  [QUEUE]: waiters.length === 0 ? undefined : { type: 'list', value: waiters.map(([owner]) => owner) },
  [TIMEOUTS]:
    waiters.length === 0 ? undefined : { type: 'zset', value: waiters.map(([owner, at]) => [owner, `<T+${at}>`]) },
});
const held = (owner: string): NonNullable<Deviation['state']> => ({
  lk: { type: 'hash', value: { [owner]: '1' }, pttl: 1 },
});
const toHead = (owner: string): NonNullable<Deviation['published']> => [
  { channel: `redisson_lock__channel:{lk}:${owner}`, payload: '0' },
];

const LEFT_WRITE = [{ channel: 'redisson_rwlock:{lk}', payload: '1' }];

const upgrade = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'noUpgrade',
  code: 'ERR_LOCK_UPGRADE',
});

const forced = (scenario: string, name: string, owners: readonly string[], ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'forcedKeys',
  state: Object.fromEntries(owners.map((owner) => [`{${name}}:${owner}:rwlock_timeout:1`, undefined])),
});

const later = (scenario: string, scoresLater: Readonly<Record<string, number>>, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'ownWait',
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
    { scenario: 'waiter', steps: [4], why: 'pollsByChance', anyState: true },
    ownLease('async', 5),
  ],
  'read-write-lock': [
    { scenario: 'read', steps: [23], why: 'oneHalf', result: false },
    { scenario: 'read', steps: [25], why: 'notOwner', published: [] },
    { scenario: 'write', steps: [14], why: 'oneHalf', result: false },
    ownLease('write', 15, 16, 17, 18, 19, 20),
    { scenario: 'write', steps: [22], why: 'notOwner', published: [] },
    upgrade('busy', 4),
    ownLease('downgrade', 12),
    {
      scenario: 'downgrade',
      steps: [12],
      why: 'downgradeWakes',
      published: LEFT_WRITE,
    },
    upgrade('downgrade', 14),
    {
      scenario: 'own-mode',
      steps: [5],
      why: 'downgradeWakes',
      published: LEFT_WRITE,
    },
    upgrade('own-mode', 7),
    ownLease('write-outlives-read', 4, 6, 7),
    forced('force', 'lk', ['<A>:<t1>', '<B>:<t1>'], 6, 7, 8, 9, 10, 11),
    lost('force', 7, 11),
    { scenario: 'force', steps: [7, 11], why: 'notOwner', published: [] },
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
      why: 'freeNotOwner',
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
    later('interrupted', { '<A>:<t3>': 291_000, '<B>:<t4>': 581_500 }, 2, 3, 4),
    {
      scenario: 'interrupted',
      steps: [5],
      why: 'leavesQueue',
      state: queued(['<A>:<t3>', 329_999], ['<B>:<t4>', 629_999]),
    },
    { scenario: 'interrupted', steps: [6], why: 'leavesQueue', state: queued(['<B>:<t4>', 329_999]) },
    {
      scenario: 'interrupted',
      steps: [7],
      why: 'leavesQueue',
      published: toHead('<B>:<t4>'),
      completed: [{ step: 4, result: true }],
    },
    {
      scenario: 'interrupted',
      steps: [7, 8, 9],
      why: 'leavesQueue',
      state: { ...held('<B>:<t4>'), ...queued() },
      leaseEnd: { lk: { after: 7, ms: 20_000 } },
    },
    { scenario: 'interrupted', steps: [9], why: 'leavesQueue', result: [] },
    later('async', { '<B>:701': 59_500, '<B>:702': 110_500, '<A>:703': 110_500 }, 2, 3, 4),
    { ...later('async', { '<B>:702': 110_500, '<A>:703': 110_500 }, 5), why: ['ownWait', 'exactGiveUp'] },
    {
      scenario: 'async',
      steps: [6],
      why: 'exactGiveUp',
      published: toHead('<B>:702'),
      completed: [{ step: 3, result: true }],
    },
    {
      scenario: 'async',
      steps: [6, 7],
      why: 'exactGiveUp',
      state: { ...held('<B>:702'), ...queued(['<A>:703', 90_001]) },
      leaseEnd: { lk: { after: 6, ms: 9_000 } },
    },
    {
      scenario: 'async',
      steps: [8],
      why: 'exactGiveUp',
      result: undefined,
      published: toHead('<A>:703'),
      completed: [{ step: 4, result: '<void>' }],
    },
    { scenario: 'async', steps: [8, 9], why: 'exactGiveUp', leaseEnd: { lk: { after: 8, ms: 9_000 } } },
    {
      scenario: 'free-unlock-with-queue',
      steps: [4],
      why: 'freeNotOwner',
      code: 'ERR_LOCK_NOT_OWNER',
      published: [],
    },
    {
      scenario: 'free-unlock-with-queue',
      steps: [4, 5, 6],
      why: 'looksAgain',
      completed: [{ step: 2, result: '<void>' }],
      ownLease: true,
    },
    lost('free-unlock-with-queue', 6),
    later('delete', { '<B>:<t2>': 298_500 }, 2, 3, 4),
    {
      scenario: 'delete',
      steps: [6],
      why: 'looksAgain',
      result: true,
      state: held('<B>:<t2>'),
      ownLease: true,
    },
    {
      scenario: 'head-without-score',
      steps: [3],
      why: 'tellsHead',
      published: [{ channel: 'redisson_lock__channel:{lk}:x:1', payload: '0' }],
    },
    {
      scenario: 'head-without-score',
      steps: [4],
      why: 'notOwner',
      code: 'ERR_LOCK_NOT_OWNER',
      published: [],
    },
  ],
  'non-reentrant-fair-lock': [
    again('owner-again', 2, 3, 4),
    {
      scenario: 'owner-again',
      steps: [6],
      why: 'freeNotOwner',
      code: 'ERR_LOCK_NOT_OWNER',
    },
    later('queue', { '<A>:<t3>': 299_600, '<B>:<t4>': 594_600 }, 3, 4),
    later('queue', { '<B>:<t4>': 295_000 }, 5, 6, 7),
    { scenario: 'queue', steps: [8], why: 'handedOver', published: [] },
  ],
  'fenced-lock': [
    {
      scenario: 'leases',
      steps: [1, 2],
      why: 'tokenLease',
      leaseEnd: { lk: { after: 1, ms: 5_000 } },
    },
    ownLease('plain-methods', 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
    {
      scenario: 'no-expiry',
      steps: [3],
      why: 'noToken',
      result: null,
    },
    ownLease('async', 2, 3, 4, 5),
    { scenario: 'async', steps: [8, 10], why: 'staysInside', unlocksFirst: true },
  ],
};

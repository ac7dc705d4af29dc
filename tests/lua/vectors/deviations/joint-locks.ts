import { FREE, lost, ownLease, type Deviations } from './forms.js';

/** A value that one thread has, in the hash of its group. */
const value = (field: string, owner: string, end: number): Record<string, string> => ({
  [field]: owner,
  [`${field}:${owner}:expire_time`]: `<T+${end}>`,
  [`${field}:${owner}:lock_count`]: '1',
});
const [V1, V2] = ['OdjxgHrO+8OZHkSYKdaZ7g', 'B1pmxHlkmfILXSZFOsChHA'];
/** One of three whose lease ends: its holder releases it just before, or it has expired by then. */
const firstIsBusy = {
  why: ['atOnce', 'endsItself'],
  published: [FREE('l2'), FREE('l3'), FREE('l1')],
  orPublished: [FREE('l2'), FREE('l3')],
} as const;
const A1 = '<A>:<t1>';

export const jointLocks: Deviations = {
  'group-multi-lock': [
    { scenario: 'lease', steps: [5], why: 'supported', result: 1 },
    { scenario: 'lease', steps: [6], why: 'supported', result: 9_743 },
    { scenario: 'lease', steps: [8], why: 'notFreed', published: [] },
    { scenario: 'lease', steps: [10], why: 'notOwner', published: [] },
    {
      scenario: 'partial-release',
      steps: [2],
      why: 'groupAllOrNone',
      published: [],
      state: { grp: { type: 'hash', value: { ...value(V1, A1, 10_000), ...value(V2, A1, 10_000) } } },
    },
    {
      scenario: 'partial-release',
      steps: [3],
      why: 'groupAllOrNone',
      result: undefined,
      published: [{ channel: 'redisson_lock__channel:{grp}', payload: '0' }],
      state: { grp: undefined },
    },
    { scenario: 'partial-release', steps: [7], why: 'groupForce', result: false },
    { scenario: 'partial-release', steps: [7], why: 'notFreed', published: [] },
    { scenario: 'partial-release', steps: [8], why: 'lost', unlocksFirst: true },
    { scenario: 'partial-release', steps: [9], why: 'groupForce', result: true },
    {
      scenario: 'expiry',
      steps: [3, 4, 5],
      why: 'groupExpired',
      state: { grp: { type: 'hash', value: value(V2, A1, 9_038) } },
    },
    {
      scenario: 'expiry',
      steps: [3],
      why: 'groupExpired',
      published: [{ channel: 'redisson_lock__channel:{grp}', payload: '0' }],
    },
    { scenario: 'expiry', steps: [5], why: 'groupFirst', result: false },
    {
      scenario: 'expiry',
      steps: [6, 7],
      why: 'groupExpired',
      state: { grp: { type: 'hash', value: { ...value(V2, A1, 9_038), ...value(V1, '<B>:<t1>', 5_399) } } },
    },
    lost('expiry', 7),
    {
      scenario: 'expiry',
      steps: [8],
      why: 'groupExpired',
      state: { grp: { type: 'hash', value: value(V2, A1, 9_038) } },
    },
    { scenario: 'expiry', steps: [9], why: 'groupExpired', state: { grp: undefined } },
  ],
  'multi-lock': [
    { ...ownLease('lease', 1, 2, 3, 4), why: 'atOnce' },
    { scenario: 'lease', steps: [3], why: 'supported', result: true },
    { scenario: 'lease', steps: [4], why: 'supported', result: 1 },
    {
      scenario: 'failing-member',
      steps: [2],
      why: 'atOnce',
      published: [FREE('l1'), FREE('l3')],
    },
    {
      scenario: 'failing-member',
      steps: [3, 4],
      why: 'atOnce',
      published: [FREE('l1'), FREE('l3'), FREE('l1')],
    },
    { scenario: 'wait-for-member-with-lock', steps: [2, 5], ...firstIsBusy },
    { scenario: 'wait-for-member-with-lock', steps: [4], why: 'staysInside', unlocksFirst: true },
    { scenario: 'lease-in-seconds', steps: [2], ...firstIsBusy },
    {
      scenario: 'lease-in-seconds',
      steps: [2],
      why: 'leaseOnce',
      leaseEnd: Object.fromEntries(['l1', 'l2', 'l3'].map((name) => [name, { after: 2, ms: 2_969 + 2_000 }])),
    },
    lost('lost-member', 4),
    {
      scenario: 'lost-member',
      steps: [4],
      why: 'everyMember',
      state: { l3: undefined },
      published: [FREE('l1'), FREE('l3')],
    },
    { scenario: 'lost-member', steps: [5], why: 'everyMember', result: false, published: [] },
  ],
  'red-lock': [
    { ...ownLease('minority-busy', 2, 3), why: 'busyServer' },
    { scenario: 'minority-busy', steps: [3], why: 'majority', result: true },
    {
      scenario: 'unlock-not-held',
      steps: [1],
      why: 'strangersUnlock',
      code: 'ERR_LOCK_NOT_OWNER',
    },
  ],
};

import { type Deviations } from './forms.js';

const BAD_NAMES = ['a{b', 'a}b', '{}x'];

/** Recordings with servers, connections and proxies that do not depend on the kind of lock. */
export const surroundings: Deviations = {
  client: [],
  cluster: [
    {
      scenario: 'bad-names',
      steps: [1, 2, 3, 4, 5, 6, 7],
      why: 'refusedName',
      code: 'ERR_LOCK_INVALID_ARGUMENT',
      state: Object.fromEntries(BAD_NAMES.map((name) => [name, undefined])),
    },
  ],
  'lost-reply': [
    { scenario: 'acquire', steps: [3], why: 'atMostOnce', result: undefined },
    { scenario: 'release', steps: [4], why: 'atMostOnce', result: undefined },
    {
      scenario: 'release',
      steps: [4, 5, 6, 7],
      why: 'noLatch',
      state: { 'redisson_unlock_latch:{lk}:<id1>': undefined },
    },
    { scenario: 'trylock-first', steps: [3], why: 'atMostOnce', result: true },
    {
      scenario: 'trylock-first',
      steps: [3, 4, 5],
      why: 'wholeLeaseAgain',
      ownLease: true,
    },
    { scenario: 'force', steps: [3], why: 'atMostOnce', result: true },
    { scenario: 'expirable', steps: [4], why: 'atMostOnce', result: true },
    { scenario: 'expirable', steps: [6], why: 'atMostOnce', result: '<id2>' },
    { scenario: 'latch', steps: [3], why: 'atMostOnce', result: true },
    { scenario: 'latch', steps: [5], why: 'atMostOnce', result: undefined },
  ],
  replica: [
    {
      scenario: 'family',
      steps: [24],
      why: 'expiryTold',
      published: [{ channel: 'redisson_sc:{ps}', payload: '1' }],
    },
    {
      scenario: 'lock-reply-lost',
      steps: [3, 4, 5],
      why: 'atMostOnce',
      state: { lk: { type: 'hash', value: { '<A>:<t1>': '1' } } },
      leaseEnd: { lk: { after: 3, ms: 30_000 } },
    },
    { scenario: 'lock-reply-lost', steps: [5], why: 'atMostOnce', result: 1 },
    {
      scenario: 'other-replies-lost',
      steps: [3, 4, 5, 6, 7],
      why: 'atMostOnce',
      state: { sem: { value: '4' } },
    },
    { scenario: 'other-replies-lost', steps: [4], why: 'atMostOnce', result: 4 },
    {
      scenario: 'other-replies-lost',
      steps: [8, 9, 10, 11, 12, 13, 14],
      why: 'atMostOnce',
      state: { sem: { value: '4' }, ps: { value: '4' } },
    },
    { scenario: 'other-replies-lost', steps: [10], why: 'atMostOnce', result: 5 },
    { scenario: 'other-replies-lost', steps: [12], why: 'atMostOnce', result: undefined },
    {
      scenario: 'other-replies-lost',
      steps: [12, 13, 14],
      why: 'atMostOnce',
      leaseEnd: { nr: { after: 12, ms: 9_000 } },
    },
  ],
};

import { type Deviations } from './reasons.js';

const AT_MOST_ONCE = 'a request whose reply was lost is repeated, runs once and is answered as it would have been';
const NO_LATCH = 'a release that runs twice is told apart by the hold count: there is no latch';
const REFUSED_NAME =
  'a name that cannot have key and channel in one slot is refused before anything is sent (hazard 40)';

const BAD_NAMES = ['a{b', 'a}b', '{}x'];

/** What was recorded with servers, connections and proxies that the kinds have nothing to do with. */
export const surroundings: Deviations = {
  client: [],
  cluster: [
    {
      scenario: 'bad-names',
      steps: [1, 2, 3, 4, 5, 6, 7],
      why: REFUSED_NAME,
      code: 'ERR_LOCK_INVALID_ARGUMENT',
      state: Object.fromEntries(BAD_NAMES.map((name) => [name, undefined])),
    },
  ],
  'lost-reply': [
    { scenario: 'acquire', steps: [3], why: AT_MOST_ONCE, result: undefined },
    { scenario: 'release', steps: [4], why: AT_MOST_ONCE, result: undefined },
    {
      scenario: 'release',
      steps: [4, 5, 6, 7],
      why: NO_LATCH,
      state: { 'redisson_unlock_latch:{lk}:<id1>': undefined },
    },
    { scenario: 'trylock-first', steps: [3], why: AT_MOST_ONCE, result: true },
    {
      scenario: 'trylock-first',
      steps: [3, 4, 5],
      why: 'the repeat of an acquire gives it its whole lease again',
      ownLease: true,
    },
    { scenario: 'force', steps: [3], why: AT_MOST_ONCE, result: true },
    { scenario: 'expirable', steps: [4], why: AT_MOST_ONCE, result: true },
    { scenario: 'expirable', steps: [6], why: AT_MOST_ONCE, result: '<id2>' },
    { scenario: 'latch', steps: [3], why: AT_MOST_ONCE, result: true },
    { scenario: 'latch', steps: [5], why: AT_MOST_ONCE, result: undefined },
  ],
  replica: [
    {
      scenario: 'family',
      steps: [24],
      why: 'whoever waits has learned when the lease would end: of an earlier end it is told',
      published: [{ channel: 'redisson_sc:{ps}', payload: '1' }],
    },
    {
      scenario: 'lock-reply-lost',
      steps: [3, 4, 5],
      why: `${AT_MOST_ONCE} (hazard 1)`,
      state: { lk: { type: 'hash', value: { '<A>:<t1>': '1' } } },
      leaseEnd: { lk: { after: 3, ms: 30_000 } },
    },
    { scenario: 'lock-reply-lost', steps: [5], why: `${AT_MOST_ONCE} (hazard 1)`, result: 1 },
    {
      scenario: 'other-replies-lost',
      steps: [3, 4, 5, 6, 7],
      why: `${AT_MOST_ONCE} (hazard 10)`,
      state: { sem: { value: '4' } },
    },
    { scenario: 'other-replies-lost', steps: [4], why: `${AT_MOST_ONCE} (hazard 10)`, result: 4 },
    {
      scenario: 'other-replies-lost',
      steps: [8, 9, 10, 11, 12, 13, 14],
      why: `${AT_MOST_ONCE} (hazard 10)`,
      state: { sem: { value: '4' }, ps: { value: '4' } },
    },
    { scenario: 'other-replies-lost', steps: [10], why: `${AT_MOST_ONCE} (hazard 10)`, result: 5 },
    { scenario: 'other-replies-lost', steps: [12], why: `${AT_MOST_ONCE} (hazard 13)`, result: undefined },
    {
      scenario: 'other-replies-lost',
      steps: [12, 13, 14],
      why: AT_MOST_ONCE,
      leaseEnd: { nr: { after: 12, ms: 9_000 } },
    },
  ],
};

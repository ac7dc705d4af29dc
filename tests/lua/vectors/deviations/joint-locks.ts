import { FREE, lost, LOST, NOT_FREED, NOT_OURS, ownLease, WE_CAN, type Deviations } from './reasons.js';

const PARTLY = 'a stranger’s release changes nothing (hazard 46)';
const GIVEN_BACK = 'what its owner let expire is given back, by the owner or by the next one';
const AT_ONCE =
  'all are asked at once, and what was granted is given back; a leased hold is given back when it is lost';
const EVERY_MEMBER = 'an unlock tries every member';
/** A value that one thread has, in the hash of its group. */
const value = (field: string, owner: string, end: number): Record<string, string> => ({
  [field]: owner,
  [`${field}:${owner}:expire_time`]: `<T+${end}>`,
  [`${field}:${owner}:lock_count`]: '1',
});
const [V1, V2] = ['OdjxgHrO+8OZHkSYKdaZ7g', 'B1pmxHlkmfILXSZFOsChHA'];
const A1 = '<A>:<t1>';

export const jointLocks: Deviations = {
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
};

import type { Deviation } from '../comparison.js';
import { type Deviations } from './forms.js';

const freePublished = (scenario: string, payload: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'freePublished',
  published: [{ channel: 'redisson_sc:{sem}', payload }],
});

export const permits: Deviations = {
  semaphore: [
    { scenario: 'absent', steps: [7, 9], why: 'noPermits', published: [] },
    { scenario: 'arguments', steps: [1, 6, 11], why: 'noPermits', published: [] },
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
    { scenario: 'several', steps: [9, 11], why: 'allOrNone', result: true },
    { scenario: 'several', steps: [10], why: 'allOrNone', result: false },
    { scenario: 'async-rest', steps: [9], why: 'allOrNone', result: true },
    { scenario: 'async-rest', steps: [12], why: 'allOrNone', result: false },
    {
      scenario: 'async-rest',
      steps: [4],
      why: 'emptyList',
      result: [],
    },
    {
      scenario: 'ttl-lost',
      steps: [4],
      why: 'expiryStays',
      state: { sem: { pttl: 614 } },
    },
    {
      scenario: 'ttl-lost',
      steps: [5, 6, 7],
      why: 'expiredWhole',
      state: { sem: undefined },
      result: 0,
    },
    { scenario: 'ttl-lost', steps: [7], why: 'expiredWhole', result: false },
    { scenario: 'arguments', steps: [4], why: 'noneAtOnce', doesNotWait: true },
    {
      scenario: 'arguments',
      steps: [7],
      in: 'client',
      why: 'unknownId',
      result: false,
    },
    { scenario: 'arguments', steps: [12], why: 'noPermits', published: [] },
  ],
  'count-down-latch': [],
};

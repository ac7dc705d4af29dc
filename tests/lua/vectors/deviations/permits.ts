import type { Deviation } from '../comparison.js';
import { NO_PERMITS, type Deviations } from './reasons.js';

const ALL_OR_NONE = 'permits are given back together or not at all: there is nothing to count';
const freePublished = (scenario: string, payload: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'every message says how many permits are free; some of Redisson say how many came',
  published: [{ channel: 'redisson_sc:{sem}', payload }],
});

export const permits: Deviations = {
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
};

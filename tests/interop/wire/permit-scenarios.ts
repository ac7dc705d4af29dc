import { ms } from '../jvm.js';
import { deleteWakes, expiryStays, noPermits } from './differences.js';
import { step, type Scenario } from './scenario.js';

const permits = (count: number): string => `redisson_sc:{sem} ${count}`;

export const SEMAPHORE_SCENARIOS: readonly Scenario[] = [
  {
    name: 'semaphore: every call',
    steps: [
      step('A.1', 'semaphore:sem', 'availablePermits'),
      step('A.1', 'semaphore:sem', 'tryAcquire'),
      step('A.1', 'semaphore:sem', 'releaseIfExists', [1]),
      step('A.1', 'semaphore:sem', 'drainPermits'),
      step('A.1', 'semaphore:sem', 'trySetPermits', [5]),
      step('B.1', 'semaphore:sem', 'trySetPermits', [7]),
      step('B.1', 'semaphore:sem', 'availablePermits'),
      step('B.1', 'semaphore:sem', 'acquire'),
      step('B.1', 'semaphore:sem', 'acquire', [2]),
      step('B.1', 'semaphore:sem', 'tryAcquire', [3]),
      step('B.1', 'semaphore:sem', 'tryAcquire', [2]),
      step('A.1', 'semaphore:sem', 'tryAcquire', ms(0)),
      step('A.1', 'semaphore:sem', 'tryAcquire', ms(120)),
      step('A.1', 'semaphore:sem', 'tryAcquire', [2, ...ms(120)]),
      step('A.1', 'semaphore:sem', 'tryAcquire', ['PT0.12S']),
      step('A.1', 'semaphore:sem', 'release'),
      step('A.1', 'semaphore:sem', 'release', [3]),
      step('A.1', 'semaphore:sem', 'releaseIfExists', [2]),
      step('A.1', 'semaphore:sem', 'addPermits', [2]),
      step('A.1', 'semaphore:sem', 'addPermits', [-3]),
      step('A.1', 'semaphore:sem', 'drainPermits'),
      step('A.1', 'semaphore:sem', 'addPermits', [-1], { differs: [noPermits(permits(-1))] }),
      step('A.1', 'semaphore:sem', 'availablePermits'),
      step('A.1', 'semaphore:sem', 'acquire', [0]),
      step('A.1', 'semaphore:sem', 'release', [0]),
      step('A.1', 'semaphore:sem', 'acquire', [-1]),
      step('A.1', 'semaphore:sem', 'release', [-1]),
    ],
  },
  {
    name: 'semaphore: waiters',
    steps: [
      step('A.1', 'semaphore:sem', 'trySetPermits', [1]),
      step('A.1', 'semaphore:sem', 'acquire'),
      step('B.1', 'semaphore:sem', 'acquire', [2], { waits: true }),
      step('A.1', 'semaphore:sem', 'release'),
      step('A.1', 'semaphore:sem', 'release', [], { wakes: ['B.1'] }),
      step('B.1', 'semaphore:sem', 'tryAcquire', [1, ...ms(5_000)], { waits: true }),
      step('A.2', 'semaphore:sem', 'acquire', [], { waits: true }),
      step('A.1', 'semaphore:sem', 'addPermits', [2], { wakes: ['B.1', 'A.2'] }),
      step('B.1', 'semaphore:sem', 'acquire', [], { waits: true }),
      step('B.1', 'semaphore:sem', 'interrupt', [], { wakes: ['B.1'] }),
      step('A.1', 'semaphore:sem', 'release'),
    ],
  },
  {
    name: 'semaphore: a waiter before there are permits; permits that expire as a whole',
    steps: [
      step('B.1', 'semaphore:sem', 'acquire', [], { waits: true }),
      step('A.1', 'semaphore:sem', 'trySetPermits', [1, 'PT9S'], { wakes: ['B.1'] }),
      step('A.1', 'semaphore:sem', 'release'),
      step('A.1', 'semaphore:sem', 'drainPermits', [], { differs: [expiryStays('sem', 9_000)] }),
      step('A.1', 'semaphore:sem', 'addPermits', [3], { differs: [expiryStays('sem', 9_000)] }),
    ],
  },
  {
    name: 'semaphore: asynchronous calls',
    steps: [
      step('A.1', 'semaphore:sem', 'trySetPermitsAsync', [3]),
      step('A.1', 'semaphore:sem', 'acquireAsync'),
      step('A.1', 'semaphore:sem', 'acquireAsync', [1]),
      step('A.1', 'semaphore:sem', 'tryAcquireAsync', [2]),
      step('A.1', 'semaphore:sem', 'tryAcquireAsync', [1, ...ms(100)]),
      step('A.1', 'semaphore:sem', 'availablePermitsAsync'),
      step('A.1', 'semaphore:sem', 'releaseAsync'),
      step('A.1', 'semaphore:sem', 'releaseAsync', [2]),
      step('A.1', 'semaphore:sem', 'addPermitsAsync', [1]),
      step('A.1', 'semaphore:sem', 'drainPermitsAsync'),
    ],
  },
];

export const LATCH_SCENARIOS: readonly Scenario[] = ['cdl', 'ord:{42}:c'].map((name) => {
  const latch = `latch:${name}`;
  return {
    name: `${latch}: every call`,
    steps: [
      step('A.1', latch, 'getCount'),
      step('A.1', latch, 'await'),
      step('A.1', latch, 'countDown'),
      step('A.1', latch, 'delete'),
      step('A.1', latch, 'trySetCount', [2]),
      step('B.1', latch, 'trySetCount', [9]),
      step('B.1', latch, 'getCount'),
      step('B.1', latch, 'await', ms(120)),
      step('B.1', latch, 'await', [], { waits: true }),
      step('B.2', latch, 'await', ms(9_000), { waits: true }),
      step('A.2', latch, 'await', [], { waits: true }),
      step('A.1', latch, 'countDown'),
      step('B.3', latch, 'countDown', [], { wakes: ['B.1', 'B.2', 'A.2'] }),
      step('B.3', latch, 'countDown'),
      step('A.1', latch, 'trySetCount', [1]),
      step('A.1', latch, 'delete', [], { differs: [deleteWakes(`redisson_countdownlatch__channel__{${name}}`)] }),
      step('A.1', latch, 'trySetCountAsync', [1]),
      step('A.1', latch, 'getCountAsync'),
      step('A.1', latch, 'countDownAsync'),
      step('A.1', latch, 'awaitAsync'),
    ],
  };
});

import { ms, type JvmObject } from '../jvm.js';
import { step, WATCHED, type Difference, type Scenario } from './scenario.js';

const lock = (name: string): JvmObject => ({ kind: 'lock', name });
const members = [lock('l1'), lock('l2'), { kind: 'write', name: 'l3' }];
const multi: JvmObject = { kind: 'multi', members };
const red: JvmObject = { kind: 'red', members };
const group = (...values: string[]): JvmObject => ({ kind: 'group', name: 'grp', values });
const told = (name: string): string => `redisson_lock__channel:{${name}} 0`;
const toldWrite = 'redisson_rwlock:{l3} 1';

const hereToo = (ours: unknown): Difference => ({
  why: 'supported',
  result: ['UnsupportedOperationException', ours],
});
const askedAtOnce = (theirs: readonly string[], ours: readonly string[]): Difference => ({
  why: 'atOnce',
  published: [theirs, ours],
});

const keptByWatchdog: Difference = {
  why: 'keptByWatchdog',
  ownTimes: ['l1'],
};
const leftAlone: Difference = {
  why: 'groupRest',
  published: [[told('grp')], []],
  ownTimes: ['grp'],
};

export const MULTI_SCENARIOS: readonly Scenario[] = [
  {
    name: 'multi-lock: one life',
    steps: [
      step('A.1', multi, 'lock'),
      step('A.1', multi, 'isHeldByCurrentThread'),
      step('A.1', multi, 'isLocked', [], { differs: [hereToo(true)] }),
      step('A.1', multi, 'getHoldCount', [], { differs: [hereToo(1)] }),
      step('A.1', multi, 'forceUnlock', [], {
        differs: [
          {
            ...hereToo(true),
            published: [[], [told('l1'), told('l2'), toldWrite]],
            onlyTheirs: ['l1', 'l2', 'l3'],
          },
        ],
      }),
    ],
  },
  {
    name: 'multi-lock: leases and nesting',
    steps: [
      step('A.1', multi, 'tryLock', []),
      step('A.1', multi, 'unlock'),
      step('A.1', multi, 'lock', ms(9_000)),
      step('B.1', multi, 'tryLock', []),
      step('B.1', multi, 'isHeldByCurrentThread'),
      step('A.1', multi, 'unlock'),
      step('A.1', multi, 'tryLock', [500, ...ms(8_000)]),
      step('A.1', multi, 'unlock'),
      step('A.1', multi, 'lockInterruptibly'),
      step('A.1', multi, 'unlock'),
    ],
  },
  {
    name: 'multi-lock: a member is busy, and becomes free',
    steps: [
      step('B.2', lock('l2'), 'lock', ms(60_000)),
      step('A.1', multi, 'tryLock', [], { differs: [askedAtOnce([told('l1')], [told('l1'), toldWrite])] }),
      step('A.1', multi, 'lock', ms(9_000), {
        waits: true,
        differs: [askedAtOnce([], [told('l1'), toldWrite]), keptByWatchdog],
      }),
      step('B.2', lock('l2'), 'unlock', [], { wakes: ['A.1'] }),
      step('A.1', multi, 'unlock'),
    ],
  },
  {
    name: 'RedLock: a majority is enough',
    steps: [
      step('A.1', red, 'lock', ms(9_000)),
      step('A.1', red, 'isHeldByCurrentThread'),
      step('A.1', red, 'unlock'),
      step('B.2', lock('l2'), 'lock', ms(60_000)),
      step('A.1', red, 'tryLock', [600, ...ms(9_000)]),
      step('A.1', red, 'unlock'),
      step('B.2', lock('l2'), 'unlock'),
    ],
  },
];

export const GROUP_SCENARIOS: readonly Scenario[] = [
  {
    name: 'group multi-lock: one life',
    steps: [
      step('A.1', group('a', 'b'), 'isLocked'),
      step('A.1', group('a', 'b'), 'isHeldByCurrentThread'),
      step('A.1', group('a', 'b'), 'lock'),
      step('A.1', group('a', 'b'), 'isLocked'),
      step('A.1', group('a', 'b'), 'isHeldByCurrentThread'),
      step('B.1', group('b', 'c'), 'tryLock'),
      step('B.1', group('b', 'c'), 'tryLock', ms(120)),
      step('B.1', group('c', 'd'), 'tryLock', [100, ...ms(20_000)]),
      step('A.1', group('a', 'b'), 'lock'),
      step('A.1', group('a', 'b'), 'unlock', [], { differs: [leftAlone] }),
      step('A.1', group('a', 'b'), 'unlock'),
      step('A.1', group('a', 'b'), 'unlock'),
      step('B.1', group('c', 'd'), 'unlock'),
    ],
  },
  {
    name: 'group multi-lock: a waiter, and force',
    steps: [
      step('A.1', group('a', 'ü', 'order:42'), 'lock', ms(WATCHED)),
      step('B.1', group('order:42'), 'lock', ms(WATCHED), { waits: true }),
      step('A.1', group('a', 'ü', 'order:42'), 'unlock', [], { wakes: ['B.1'] }),
      step('A.2', group('order:42'), 'forceUnlock'),
    ],
  },
];

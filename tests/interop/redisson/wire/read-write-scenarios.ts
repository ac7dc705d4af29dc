import { ms } from '../jvm.js';
import {
  addsUp,
  downgradeWakes,
  forcedKeys,
  lost,
  notPublished,
  oneHalf,
  ownLease,
  refusedUpgrade,
} from './differences.js';
import { step, WATCHED, type Scenario } from './scenario.js';

const readers = 'redisson_rwlock:{lk} 0';
const writer = 'redisson_rwlock:{lk} 1';
const readHold = (actor: string, n = 1): string => `{lk}:<${actor}>:rwlock_timeout:${n}`;

export const READ_WRITE_SCENARIOS: readonly Scenario[] = [
  {
    name: 'read: one life',
    steps: [
      ...['isLocked', 'getHoldCount', 'remainTimeToLive', 'isHeldByCurrentThread'].map((read) =>
        step('A.1', 'read:lk', read),
      ),
      step('A.1', 'read:lk', 'unlock', [], { differs: [notPublished(readers)] }),
      step('A.1', 'read:lk', 'lock'),
      step('B.1', 'read:lk', 'lock', ms(10_000)),
      step('A.2', 'read:lk', 'tryLock', [0, ...ms(50_000)]),
      step('A.1', 'read:lk', 'lock', ms(20_000)),
      ...['isLocked', 'getHoldCount', 'remainTimeToLive', 'isHeldByCurrentThread'].map((read) =>
        step('A.1', 'read:lk', read),
      ),
      step('B.1', 'write:lk', 'isLocked'),
      step('B.2', 'write:lk', 'tryLock'),
      step('B.2', 'write:lk', 'tryLock', ms(120)),
      step('A.1', 'write:lk', 'tryLock', [], { differs: [refusedUpgrade(false)] }),
      step('B.3', 'read:lk', 'unlock'),
      step('A.2', 'read:lk', 'unlock'),
      step('A.1', 'read:lk', 'unlock'),
      step('A.1', 'read:lk', 'unlock'),
      step('B.1', 'read:lk', 'unlock'),
      step('B.1', 'read:lk', 'unlock', [], { differs: [notPublished(readers)] }),
    ],
  },
  {
    name: 'write: one life',
    steps: [
      step('A.1', 'write:lk', 'unlock', [], { differs: [notPublished(writer)] }),
      step('A.1', 'write:lk', 'lock'),
      ...['isLocked', 'getHoldCount', 'remainTimeToLive', 'isHeldByCurrentThread'].map((read) =>
        step('A.1', 'write:lk', read),
      ),
      step('B.1', 'read:lk', 'isLocked'),
      step('B.1', 'write:lk', 'tryLock'),
      step('B.1', 'read:lk', 'tryLock', ms(120)),
      step('B.1', 'read:lk', 'isLockedAsync', [], { differs: [oneHalf] }),
      step('A.1', 'write:lk', 'lock', ms(10_000), { differs: [addsUp('lk', WATCHED + 10_000, WATCHED)] }),
      step('A.1', 'write:lk', 'unlock', [], { differs: [ownLease('lk', 10_000, WATCHED)] }),
      step('B.1', 'write:lk', 'unlock', [], { differs: [ownLease('lk', 10_000, WATCHED)] }),
      step('A.1', 'write:lk', 'unlock'),
    ],
  },
  {
    name: 'a writer leaves: every reader enters',
    steps: [
      step('A.1', 'write:lk', 'lock'),
      step('B.1', 'read:lk', 'lock', [], { waits: true }),
      step('B.2', 'read:lk', 'tryLock', [5_000, ...ms(6_000)], { waits: true }),
      step('A.2', 'read:lk', 'lockInterruptibly', [], { waits: true }),
      step('A.1', 'write:lk', 'unlock', [], { wakes: ['B.1', 'B.2', 'A.2'] }),
      step('B.3', 'write:lk', 'lock', ms(8_000), { waits: true }),
      step('B.1', 'read:lk', 'unlock'),
      step('A.2', 'read:lk', 'unlock'),
      step('B.2', 'read:lk', 'unlock', [], { wakes: ['B.3'] }),
      step('B.3', 'write:lk', 'unlock'),
    ],
  },
  {
    name: 'downgrade',
    steps: [
      step('A.1', 'write:lk', 'lock'),
      step('A.1', 'read:lk', 'lock'),
      step('B.1', 'read:lk', 'tryLock'),
      step('A.1', 'write:lk', 'getHoldCount'),
      step('A.1', 'read:lk', 'getHoldCount'),
      step('A.1', 'write:lk', 'unlock', [], { differs: [downgradeWakes(writer)] }),
      step('B.1', 'read:lk', 'tryLock'),
      step('A.1', 'read:lk', 'unlock'),
      step('B.1', 'read:lk', 'unlock'),
    ],
  },
  {
    name: 'force',
    steps: [
      step('A.1', 'read:lk', 'lock'),
      step('B.1', 'write:lk', 'forceUnlock'),
      step('B.1', 'read:lk', 'forceUnlock', [], { differs: [forcedKeys(readHold('A.1'))] }),
      step('A.1', 'read:lk', 'isHeldByCurrentThread', [], { differs: [forcedKeys(readHold('A.1'))] }),
      step('B.1', 'write:lk', 'lock', [], { differs: [forcedKeys(readHold('A.1'))] }),
      step('B.2', 'read:lk', 'forceUnlock', [], { differs: [forcedKeys(readHold('A.1'))] }),
      step('B.2', 'write:lk', 'forceUnlock', [], { differs: [forcedKeys(readHold('A.1'))] }),
      step('B.1', 'write:lk', 'unlock', [], {
        differs: [lost, notPublished(writer), forcedKeys(readHold('A.1'))],
      }),
    ],
  },
  {
    name: 'asynchronous calls',
    steps: [
      step('A.1', 'read:lk', 'lockAsync'),
      step('A.1', 'read:lk', 'isLockedAsync'),
      step('A.1', 'read:lk', 'getHoldCountAsync'),
      step('A.1', 'read:lk', 'remainTimeToLiveAsync'),
      step('B.1', 'read:lk', 'tryLockAsync', [100, ...ms(9_000)]),
      step('B.1', 'read:lk', 'unlockAsync'),
      step('A.1', 'read:lk', 'unlockAsync'),
      step('A.1', 'write:lk', 'lockAsync', ms(9_000)),
      step('A.1', 'write:lk', 'isLockedAsync'),
      step('B.1', 'write:lk', 'tryLockAsync', ms(100)),
      step('A.1', 'write:lk', 'unlockAsync'),
      step('A.1', 'write:lk', 'tryLockAsync', []),
      step('A.1', 'write:lk', 'unlockAsync'),
    ],
  },
];

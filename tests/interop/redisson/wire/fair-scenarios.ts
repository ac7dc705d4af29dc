import { ms } from '../jvm.js';
import { handedOver, ownLease, ownWait } from './differences.js';
import { step, type Scenario } from './scenario.js';

const timeouts = 'redisson_lock_timeout:{lk}';

/** The queue, its scores and the woken waiters. The common part of all locks is in lock-scenarios.ts. */
export const FAIR_SCENARIOS: readonly Scenario[] = [
  {
    name: 'fair: three waiters of two clients enter in their order',
    steps: [
      step('A.1', 'fair:lk', 'lock', ms(30_000)),
      step('B.1', 'fair:lk', 'lock', [], { waits: true }),
      step('A.2', 'fair:lk', 'lock', ms(20_000), { waits: true }),
      step('A.3', 'fair:lk', 'tryLock'),
      step('A.1', 'fair:lk', 'lock', ms(30_000)),
      step('A.1', 'fair:lk', 'unlock', [], { differs: [ownLease('lk', 30_000, 30_000)] }),
      step('A.1', 'fair:lk', 'unlock', [], { wakes: ['B.1'] }),
      step('A.3', 'fair:lk', 'tryLock'),
      step('B.1', 'fair:lk', 'unlock', [], { wakes: ['A.2'] }),
      step('A.2', 'fair:lk', 'unlock'),
    ],
  },
  {
    name: 'fair: a waiter with a limit gives up',
    steps: [
      step('A.1', 'fair:lk', 'lock', ms(30_000)),
      step('B.1', 'fair:lk', 'tryLock', ms(700), { waits: true, differs: [ownWait(timeouts, { '<B.1>': 299_300 })] }),
      step('A.2', 'fair:lk', 'lock', [], {
        waits: true,
        differs: [ownWait(timeouts, { '<B.1>': 299_300, '<A.2>': 299_300 })],
      }),
      step('', '', 'pass', [500], { wakes: ['B.1'] }),
      step('A.1', 'fair:lk', 'unlock', [], {
        wakes: ['A.2'],
        differs: [handedOver('redisson_lock__channel:{lk}:<A.2> 0')],
      }),
      step('A.2', 'fair:lk', 'unlock'),
    ],
  },
  {
    name: 'fair: force with a queue',
    steps: [
      step('A.1', 'fair:lk', 'lock', ms(30_000)),
      step('B.1', 'fair:lk', 'lock', [], { waits: true }),
      step('A.2', 'fair:lk', 'lock', [], { waits: true }),
      step('A.3', 'fair:lk', 'forceUnlock', [], { wakes: ['B.1'] }),
      step('B.1', 'fair:lk', 'unlock', [], { wakes: ['A.2'] }),
      step('A.2', 'fair:lk', 'unlock'),
    ],
  },
];

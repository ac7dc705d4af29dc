import { ms } from '../jvm.js';
import {
  endsItself,
  fairLost,
  leavesQueue,
  lost,
  neverShorter,
  ownCode,
  ownLease,
  ownTokenLease,
  ownWait,
  tellsNobody,
  watchdogLease,
} from './differences.js';
import { pass, step, WATCHED, type Difference, type Scenario, type Step } from './scenario.js';

/** The differences between a kind of lock and the reentrant lock. */
interface Kind {
  readonly kind: string;
  readonly reentrant: boolean;
  /** The message of an unlock, and of one that wakes the given actor. */
  readonly publishes: boolean;
  /** Only the head of the queue gets a message. */
  readonly queues?: boolean;
  readonly in?: readonly string[];
}

const NEWEST = ['4.7.0'];
const KINDS: readonly Kind[] = [
  { kind: 'lock', reentrant: true, publishes: true },
  { kind: 'spin', reentrant: true, publishes: false },
  { kind: 'spin-constant', reentrant: true, publishes: false },
  { kind: 'non-reentrant', reentrant: false, publishes: true, in: NEWEST },
  { kind: 'fenced', reentrant: true, publishes: true },
  { kind: 'fair', reentrant: true, publishes: true, queues: true },
  { kind: 'non-reentrant-fair', reentrant: false, publishes: true, queues: true, in: NEWEST },
];

/** Every call of `RLock`, on a name without and on one with a hash tag. */
export function lockScenarios(): Scenario[] {
  return [...KINDS.flatMap((kind) => [...scenariosOf(kind, 'lk'), ...scenariosOf(kind, 'ord:{42}:l')]), ...FENCED];
}

function scenariosOf({ kind, reentrant, publishes, queues, in: versions }: Kind, name: string): Scenario[] {
  const lk = `${kind}:${name}`;
  const told = name.includes('{') ? name : `{${name}}`;
  const queue = `redisson_lock_queue:${told}`;
  const timeouts = `redisson_lock_timeout:${told}`;
  const toHead = `redisson_lock__channel:${told}:<B.1> 0`;
  const notHeld = queues ? [fairLost('ERR_LOCK_NOT_OWNER')] : [];
  const left = { differs: queues ? [leavesQueue(queue, timeouts)] : [] };
  const gone = queues ? [fairLost('ERR_LOCK_LOST')] : [lost];
  const again = (differs: Difference[]): { differs: Difference[] } => ({ differs: reentrant ? differs : [ownCode] });
  const own = (theirs: number, ours: number): Difference[] => (reentrant ? [ownLease(name, theirs, ours)] : []);
  const reads = (actor: string, more = ''): Step[] => [
    step(actor, lk, `isLocked${more}`),
    step(actor, lk, `getHoldCount${more}`),
    step(actor, lk, `remainTimeToLive${more}`),
    ...(more === '' ? [step(actor, lk, 'isHeldByCurrentThread')] : []),
  ];
  const scenarios: Scenario[] = [
    {
      name: 'one life',
      steps: [
        ...reads('A.1'),
        step('A.1', lk, 'unlock', [], { differs: notHeld }),
        step('A.1', lk, 'lock'),
        ...reads('A.1'),
        ...reads('A.2'),
        step('A.2', lk, 'isHeldByThread', ['$thread A.1']),
        step('A.2', lk, 'isHeldByThreadAsync', ['$thread A.1']),
        step('A.1', lk, 'isHeldByThread', ['$thread A.2']),
        ...reads('B.1'),
        step('B.1', lk, 'tryLock'),
        step('B.1', lk, 'tryLock', ms(120)),
        step('A.2', lk, 'tryLock', [120, ...ms(5_000)]),
        step('B.1', lk, 'unlock'),
        step('A.2', lk, 'unlock'),
        step('A.1', lk, 'lock', [], again([])),
        ...reads('A.1'),
        ...(reentrant ? [step('A.1', lk, 'unlock', [], { differs: own(WATCHED, WATCHED) })] : []),
        step('A.1', lk, 'unlock'),
        step('A.1', lk, 'unlock', [], { differs: notHeld }),
        ...reads('B.1'),
      ],
    },
    {
      name: 'leases',
      steps: [
        step('A.1', lk, 'lock', ms(20_000)),
        step('A.1', lk, 'tryLock', [1_000, ...ms(40_000)], again([])),
        step('A.1', lk, 'lock', ms(60_000), again([])),
        ...(reentrant
          ? [
              step('A.1', lk, 'unlock', [], { differs: own(60_000, 40_000) }),
              step('A.1', lk, 'unlock', [], { differs: own(60_000, 20_000) }),
              step('A.1', lk, 'tryLock', [], { differs: [watchdogLease(name, 60_000, WATCHED)] }),
              step('A.1', lk, 'tryLock', ms(500), { differs: [watchdogLease(name, 60_000, WATCHED)] }),
              step('A.1', lk, 'unlock', [], { differs: [watchdogLease(name, 60_000, WATCHED)] }),
              step('A.1', lk, 'unlock', [], { differs: own(60_000, 20_000) }),
            ]
          : [step('A.1', lk, 'tryLock', ms(500), again([]))]),
        step('A.1', lk, 'unlock'),
        step('A.1', lk, 'tryLock', [0, ...ms(7_000)]),
        step('A.1', lk, 'lock', ms(2_000), again([neverShorter(name, 2_000, 7_000)])),
        ...(reentrant ? [step('A.1', lk, 'unlock', [], { differs: own(2_000, 7_000) })] : []),
        step('A.1', lk, 'unlock'),
        step('A.1', lk, 'lockInterruptibly'),
        step('A.1', lk, 'unlock'),
        step('A.1', lk, 'lockInterruptibly', ms(9_000)),
        step('A.1', lk, 'unlock'),
      ],
    },
    {
      name: 'a waiter without limit',
      steps: [
        step('A.1', lk, 'lock'),
        step('B.1', lk, 'lock', [], { waits: true }),
        step('A.1', lk, 'unlock', [], { wakes: ['B.1'] }),
        step('B.1', lk, 'unlock'),
      ],
    },
    {
      name: 'a waiter with a limit and a lease',
      steps: [
        step('A.1', lk, 'lock', ms(9_000)),
        step('B.1', lk, 'tryLock', [5_000, ...ms(8_000)], {
          waits: true,
          ...(queues && { differs: [ownWait(timeouts, { '<B.1>': 295_000 })] }),
        }),
        step('A.1', lk, 'unlock', [], { wakes: ['B.1'] }),
        step('B.1', lk, 'isHeldByCurrentThread'),
        step('B.1', lk, 'unlock'),
      ],
    },
    {
      name: 'a holder that dies',
      steps: [
        step('A.1', lk, 'lock', ms(700)),
        step('B.1', lk, 'lock', ms(5_000), { waits: true }),
        pass(700, {
          wakes: ['B.1'],
          ...(publishes && { differs: [endsItself(queues ? toHead : `redisson_lock__channel:${told} 0`)] }),
        }),
        step('A.1', lk, 'unlock', [], { differs: [lost] }),
        step('B.1', lk, 'unlock'),
      ],
    },
    {
      name: 'an interrupt',
      steps: [
        step('A.1', lk, 'lock'),
        step('B.1', lk, 'lockInterruptibly', [], { waits: true }),
        step('B.1', lk, 'interrupt', [], { wakes: ['B.1'], ...left }),
        step('B.1', lk, 'isHeldByCurrentThread', [], left),
        step('A.1', lk, 'unlock', [], queues ? { differs: [...left.differs, tellsNobody(toHead)] } : {}),
      ],
    },
    {
      name: 'force',
      steps: [
        step('B.1', lk, 'forceUnlock'),
        step('A.1', lk, 'lock'),
        step('B.2', lk, 'lock', [], { waits: true }),
        step('B.1', lk, 'forceUnlock', [], { wakes: ['B.2'] }),
        step('A.1', lk, 'isHeldByCurrentThread'),
        step('A.1', lk, 'unlock', [], { differs: [lost] }),
        step('A.1', lk, 'unlock'),
        step('B.2', lk, 'unlock'),
      ],
    },
    {
      name: 'asynchronous calls',
      steps: [
        step('A.1', lk, 'lockAsync'),
        ...reads('A.1', 'Async'),
        step('A.1', lk, 'tryLockAsync', [], reentrant ? {} : again([])),
        ...(reentrant ? [step('A.1', lk, 'unlockAsync', [], { differs: own(WATCHED, WATCHED) })] : []),
        step('A.1', lk, 'unlockAsync'),
        step('A.1', lk, 'unlockAsync', [], { differs: notHeld }),
        step('A.1', lk, 'lockAsync', ms(9_000)),
        step('B.1', lk, 'tryLockAsync', ms(120)),
        step('B.1', lk, 'tryLockAsync', [120, ...ms(5_000)]),
        step('B.1', lk, 'forceUnlockAsync'),
        step('B.1', lk, 'forceUnlockAsync'),
        step('A.1', lk, 'unlock', [], { differs: gone }),
        step('A.1', lk, 'tryLockAsync', [100, ...ms(6_000)]),
        step('A.1', lk, 'unlock'),
      ],
    },
  ];
  return scenarios.map((each) => ({ ...each, name: `${lk}: ${each.name}`, ...(versions && { in: versions }) }));
}

const FENCED: readonly Scenario[] = [
  {
    name: 'fenced: tokens',
    steps: [
      step('A.1', 'fenced:lk', 'getToken'),
      step('A.1', 'fenced:lk', 'lockAndGetToken'),
      step('A.1', 'fenced:lk', 'lockAndGetToken'),
      step('B.1', 'fenced:lk', 'getToken'),
      step('B.1', 'fenced:lk', 'tryLockAndGetToken', ms(120)),
      step('B.1', 'fenced:lk', 'tryLockAndGetToken', [120, ...ms(3_000)]),
      step('A.1', 'fenced:lk', 'unlock', [], { differs: [ownLease('lk', WATCHED, WATCHED)] }),
      step('A.1', 'fenced:lk', 'unlock'),
      step('B.1', 'fenced:lk', 'tryLockAndGetToken', [120, ...ms(3_000)]),
      step('A.1', 'fenced:lk', 'lockAndGetToken', [], { waits: true }),
      step('B.1', 'fenced:lk', 'unlock', [], { wakes: ['A.1'] }),
      step('A.1', 'fenced:lk', 'unlock'),
      step('A.1', 'fenced:lk', 'lockAndGetToken', ms(5_000), { differs: [ownTokenLease('lk', WATCHED, 5_000)] }),
      step('B.1', 'fenced:lk', 'forceUnlock'),
      step('B.1', 'fenced:lk', 'tryLockAndGetToken', ms(100)),
      step('B.1', 'fenced:lk', 'getTokenAsync'),
      step('B.1', 'fenced:lk', 'unlock'),
      step('B.1', 'fenced:lk', 'lockAndGetTokenAsync'),
      step('B.1', 'fenced:lk', 'unlock'),
      step('B.1', 'fenced:lk', 'tryLockAndGetTokenAsync', [100, ...ms(4_000)]),
      step('B.1', 'fenced:lk', 'unlock'),
    ],
  },
];

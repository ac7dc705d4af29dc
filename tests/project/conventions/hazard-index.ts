/**
 * The hazards of locks with this wire protocol, by the numbers of section 18 of the wire document, and the evidence
 * against each: a test file and part of a title in it, or a sentence of the guide.
 */
export interface Hazard {
  readonly number: number;
  readonly title: string;
  readonly answers: readonly (readonly [file: string, part: string])[];
}

const LOST_REPLIES = 'tests/faults/lost-replies.test.ts';
const UNKNOWN = 'tests/faults/unknown-outcomes.test.ts';
const LATE = 'tests/faults/late-delivery.test.ts';
const OWN = 'tests/faults/redisson-hazards.test.ts';
const SUBSCRIPTIONS = 'tests/faults/subscriptions.test.ts';
const REPLICAS = 'tests/topologies/replicas.test.ts';
const LEASES = 'tests/contracts/lock/leases.ts';
const RENEWAL = 'tests/integration/renewal.test.ts';
const LOCKS_ENABLE = 'tests/integration/enabling-locks.ts';
const PERMITS_ENABLE = 'tests/integration/enabling-permits.ts';
const WAITING = 'tests/integration/waiting.test.ts';
const PERMITS = 'tests/contracts/permit-contract.ts';
const SEMAPHORE = 'tests/integration/semaphore.test.ts';
const EXPIRABLE = 'tests/integration/permit-expirable-semaphore.test.ts';
const EXPIRABLE_SCRIPTS = 'tests/lua/permit-expirable-semaphore.test.ts';
const FAIR = 'tests/integration/fair-lock.slow.test.ts';
const FAIR_SCRIPTS = 'tests/lua/fair-lock.test.ts';
const READ_WRITE = 'tests/integration/read-write-lock.test.ts';
const MULTI = 'tests/integration/multi-lock.test.ts';
const CLUSTER = 'tests/topologies/cluster.test.ts';

const hazard = (number: number, title: string, ...answers: Hazard['answers']): Hazard => ({ number, title, answers });

export const HAZARDS: readonly Hazard[] = [
  hazard(1, 'an acquire that ran twice counts twice', [LOST_REPLIES, 'it takes effect once and says so']),
  hazard(2, 'a key whose holder is unknown', [
    UNKNOWN,
    'R1: acquire: the outcome is unknown, the client releases the lock, and the owner id is never used again',
  ]),
  hazard(3, 'a time-out that looks like busy', [
    MULTI,
    'because a server hangs rejects within its deadline and holds nothing on the other server',
  ]),
  hazard(
    4,
    'a release that ran twice',
    [LOST_REPLIES, 'it takes effect once and says so'],
    [LATE, 'R4: of a release does not release a new hold of the same flow'],
  ),
  hazard(5, 'an unlock that its caller repeats', [
    UNKNOWN,
    'R5: unlock(): a second call waits until the hold has been released',
  ]),
  hazard(6, 'a copy of a release that comes late', [
    LATE,
    'R4: of a partial release does not change the count after another nested acquire',
  ]),
  hazard(7, 'a repeated release of a missing read-write lock succeeds', [OWN, 'hazard 7:']),
  hazard(8, 'renewal stops because a release was not confirmed by replicas', [REPLICAS, 'R35: with a hanging replica']),
  hazard(9, 'a WAIT without its write', [REPLICAS, 'hazard 9:']),
  hazard(
    10,
    'permits that are taken twice by one request',
    [SEMAPHORE, 'every request counts once'],
    [PERMITS, 'every request counts once'],
  ),
  hazard(
    11,
    'a released permit is reported as unknown to its own request',
    [EXPIRABLE_SCRIPTS, '(hazard 11)'],
    [EXPIRABLE, 'a change of the semaphore or of a lease counts once'],
  ),
  hazard(12, 'a count-down that counts twice', [SEMAPHORE, 'a set, a count-down and a delete each count once']),
  hazard(13, 'an owner refused because of its own success', [OWN, 'hazard 13:']),
  hazard(
    14,
    'the lease of one hold given to another',
    [LEASES, 'contexts that share a handle do not influence each other'],
    [LEASES, 'after a hold of one hour ends, the next hold without a lease starts at the watchdog timeout'],
  ),
  hazard(
    15,
    'a nested hold with a lease takes the renewal of the outer one with it',
    [LEASES, 'a hold of 200 ms inside one of 30 s leaves 30 s, and its end ends nothing else'],
    ['tests/contracts/lock/holds.ts', 'extends a hold without a lease, and the following renewals do not shorten it'],
  ),
  hazard(16, 'a read hold takes the renewal of a write hold with it', [
    READ_WRITE,
    'R15: each half releases its own holds, in any order',
  ]),
  hazard(
    17,
    'a renewal that shortens',
    ['tests/lua/lock.test.ts', 'a longer lease is not changed, and is returned'],
    ['tests/lua/read-write-lock.test.ts', 'a longer lease is not changed, and is returned'],
  ),
  hazard(18, 'holds that are lost stand before those to renew', [
    RENEWAL,
    'R12: a lost lock that another flow of the process acquires is renewed for three periods',
  ]),
  hazard(
    19,
    'one part that fails delays the renewal of the others',
    [RENEWAL, 'R12: a failed batch of renewals does not delay the others'],
    [CLUSTER, 'R12: while one shard hangs'],
  ),
  hazard(20, 'a waiter that leaves the queue delays the waiters behind it by too much', [FAIR_SCRIPTS, '(hazard 20)']),
  hazard(21, 'a wake-up that goes to a leaving waiter', [
    'tests/faults/waking.test.ts',
    'R17: the next waiter acquires the lock soon after the release, at whatever point the head leaves',
  ]),
  hazard(
    22,
    'a message without a subscriber',
    [SUBSCRIPTIONS, 'R18: a release while the subscriber connection is down'],
    [OWN, 'hazard 22:'],
  ),
  hazard(
    23,
    'locks that come free without a message',
    [LOCKS_ENABLE, '(hazard 23)'],
    [WAITING, 'R21: the end of a lease without a release'],
    [
      'tests/integration/spin-lock.test.ts',
      'a waiter acquires the lock soon after a release without a message, also of a plain lock',
    ],
  ),
  hazard(24, 'a downgrade that wakes no reader', [LOCKS_ENABLE, '(hazard 24)'], [READ_WRITE, 'R21: a downgrade wakes']),
  hazard(25, 'a release wakes one of each process', [WAITING, 'costs one command and a try of each']),
  hazard(26, 'several permits wake one waiter', [PERMITS_ENABLE, '(hazard 26)'], [PERMITS, '(hazard 26)']),
  hazard(27, 'a zero between the look and the waiting', [
    SEMAPHORE,
    'waiters notice a zero even if a new count is set before they can read it:',
  ]),
  hazard(
    28,
    'a latch that is used again at once',
    [PERMITS_ENABLE, '(hazard 28)'],
    [SEMAPHORE, 'waiters notice a zero even if a new count is set before they can read it:'],
  ),
  hazard(
    29,
    'messages of two kinds on one key',
    ['docs/java.md', 'Sharded and other messages do not reach each other'],
    ['tests/interop/redisson/settings.test.ts', 'a cluster with sharded channels'],
  ),
  hazard(30, 'a message of fewer permits than none', [EXPIRABLE_SCRIPTS, '(hazard 30)']),
  hazard(31, 'a subscription that outlives its waiter', [
    SUBSCRIPTIONS,
    'R19: a wait that is aborted before the reply to its SUBSCRIBE leaves no subscription',
  ]),
  hazard(32, 'a dead head blocks a queue', [
    FAIR,
    'blocks the next waiter for at most fairWaiterTimeout and one second',
  ]),
  hazard(33, 'waiters behind a sleeping head poll', [
    FAIR,
    'costs the waiters behind it only the one command per second of each client',
  ]),
  hazard(34, 'a place in the queue that outlives its call', [
    FAIR,
    'R26: a waiter that leaves has no place in the queue one second later',
  ]),
  hazard(
    35,
    'a head that never becomes stale',
    [FAIR_SCRIPTS, '(hazard 35)'],
    [FAIR, 'a waiter whose place was deleted queues again'],
  ),
  hazard(36, 'queues by the clocks of clients', [FAIR, 'R26, R30: a live waiter of this client is not evicted']),
  hazard(37, 'the loss of a fair lock goes unnoticed', [OWN, 'hazard 37:']),
  hazard(
    38,
    'a reader whose hold has expired and still counts',
    [READ_WRITE, 'R16: the hold of a killed reader ends with its own lease while another reader renews'],
    ['tests/lua/read-write-lock.test.ts', 'an expired read hold has no key'],
  ),
  hazard(
    39,
    'a lock without expiry is mistaken for a free one',
    ['tests/lua/fenced-lock.test.ts', 'a lock without expiry replies the number -1 and no token'],
    [FAIR_SCRIPTS, 'a lock without expiry replies -1, and the timeout is one wait'],
  ),
  hazard(40, 'names with key and channel in two slots', [CLUSTER, 'R8: keys and channel of a lock are in one slot']),
  hazard(
    41,
    'permits whose leases expire without a message',
    [PERMITS_ENABLE, '(hazard 41)'],
    [EXPIRABLE, '(hazard 41)'],
    [EXPIRABLE_SCRIPTS, '(hazard 41)'],
  ),
  hazard(
    42,
    'permits that vanish with half of a semaphore',
    [EXPIRABLE, 'hazard 42:'],
    [EXPIRABLE_SCRIPTS, '(hazard 42)'],
  ),
  hazard(
    43,
    'permits of the dead',
    ['docs/choosing.md', '**stays taken**'],
    [EXPIRABLE, 'R16: after kill -9 of a process its permit is free at the end of the lease, and not before'],
  ),
  hazard(44, 'a lease converted with every round', [OWN, 'hazards 44 and 45:'], [MULTI, 'is exact for every member']),
  hazard(45, 'a lease that reaches half of a read lock', [OWN, 'hazards 44 and 45:']),
  hazard(46, 'groups by the clock of a client, released in part', [
    'tests/integration/group-multi-lock.test.ts',
    'hazard 46',
  ]),
  hazard(
    47,
    'one replica that confirms, another that takes over',
    [
      'tests/topologies/sentinel-flows.test.ts',
      'R3: flows exclude each other during planned and unplanned failovers of Sentinel, and learn of their losses',
    ],
    [REPLICAS, 'nothing is granted if more acknowledgements are required than replicas exist'],
    ['docs/topologies.md', 'always, if `n` is the number of all replicas'],
  ),
];

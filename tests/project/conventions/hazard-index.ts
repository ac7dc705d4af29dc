/**
 * The hazards of locks with this wire protocol, by the numbers of section 18 of the wire document, and the evidence
 * against each: a test file and part of a title in it, or a sentence of the guide.
 */
export interface Hazard {
  readonly number: number;
  readonly title: string;
  readonly answers: readonly (readonly [file: string, part: string])[];
}

const LOST_REPLIES = 'tests/faults/lost-replies.slow.test.ts';
const UNKNOWN = 'tests/faults/unknown-outcomes.slow.test.ts';
const LATE = 'tests/faults/late-delivery.slow.test.ts';
const OWN = 'tests/faults/redisson-hazards.test.ts';
const SUBSCRIPTIONS = 'tests/faults/subscriptions.slow.test.ts';
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
  hazard(1, 'an acquire that runs twice counts twice', [LOST_REPLIES, 'it takes effect once and says so']),
  hazard(2, 'a lock is held after a lost reply, and no owner knows of it', [
    UNKNOWN,
    'R1: acquire: the outcome is unknown, the client releases the lock, and the owner id is never used again',
  ]),
  hazard(3, 'a time-out looks like a busy lock', [
    MULTI,
    'because a server hangs rejects within its deadline and holds nothing on the other server',
  ]),
  hazard(
    4,
    'a release that runs twice counts twice',
    [LOST_REPLIES, 'it takes effect once and says so'],
    [LATE, 'R4: of a release does not release a new hold of the same flow'],
  ),
  hazard(5, 'an unlock that the caller repeats after an error counts twice', [
    UNKNOWN,
    'R5: unlock(): a second call waits until the hold has been released',
  ]),
  hazard(6, 'a late copy of a release ends a later hold', [
    LATE,
    'R4: of a partial release does not change the count after another nested acquire',
  ]),
  hazard(7, 'a repeated release of a free read-write lock succeeds', [OWN, 'hazard 7:']),
  hazard(8, 'a release that replicas did not confirm ends the renewal of other holds', [
    REPLICAS,
    'R35: with a hanging replica',
  ]),
  hazard(9, 'a WAIT is repeated without its write', [REPLICAS, 'hazard 9:']),
  hazard(
    10,
    'one request takes its permits twice',
    [SEMAPHORE, 'every request counts once'],
    [PERMITS, 'every request counts once'],
  ),
  hazard(
    11,
    'a repeated release reports its own permit as unknown',
    [EXPIRABLE_SCRIPTS, '(hazard 11)'],
    [EXPIRABLE, 'a change of the semaphore or of a lease counts once'],
  ),
  hazard(12, 'a count-down that runs twice counts twice', [
    SEMAPHORE,
    'a set, a count-down and a delete each count once',
  ]),
  hazard(13, 'a repeated acquire of a non-reentrant lock is refused because of its own success', [OWN, 'hazard 13:']),
  hazard(
    14,
    'the lease of one hold applies to another owner',
    [LEASES, 'contexts that share a handle do not influence each other'],
    [LEASES, 'after a hold of one hour ends, the next hold without a lease starts at the watchdog timeout'],
  ),
  hazard(
    15,
    'the release of a nested hold with a lease ends the renewal of the outer hold',
    [LEASES, 'a hold of 200 ms inside one of 30 s leaves 30 s, and its end ends nothing else'],
    ['tests/contracts/lock/holds.ts', 'extends a hold without a lease, and the following renewals do not shorten it'],
  ),
  hazard(16, 'the release of a read hold ends the renewal of a write hold', [
    READ_WRITE,
    'R15: each half releases its own holds, in any order',
  ]),
  hazard(
    17,
    'a renewal shortens a lease',
    ['tests/lua/lock.test.ts', 'a longer lease is not changed, and is returned'],
    ['tests/lua/read-write-lock.test.ts', 'a longer lease is not changed, and is returned'],
  ),
  hazard(18, 'lost holds delay the renewal of others', [
    RENEWAL,
    'R12: a lost lock that another flow of the process acquires is renewed for three periods',
  ]),
  hazard(
    19,
    'a failed batch delays the renewal of others',
    [RENEWAL, 'R12: a failed batch of renewals does not delay the others'],
    [CLUSTER, 'R12: while one shard hangs'],
  ),
  hazard(20, 'a waiter that leaves the queue makes the waiters behind it stale', [FAIR_SCRIPTS, '(hazard 20)']),
  hazard(21, 'a wake-up reaches a waiter that leaves', [
    'tests/faults/waking.test.ts',
    'R17: the next waiter acquires the lock soon after the release, at whatever point the head leaves',
  ]),
  hazard(
    22,
    'a message is lost while the subscriber connection is down',
    [SUBSCRIPTIONS, 'R18: a release while the subscriber connection is down'],
    [OWN, 'hazard 22:'],
  ),
  hazard(
    23,
    'a lock becomes free without a message',
    [LOCKS_ENABLE, '(hazard 23)'],
    [WAITING, 'R21: the end of a lease without a release'],
    [
      'tests/integration/spin-lock.test.ts',
      'a waiter acquires the lock soon after a release without a message, also of a plain lock',
    ],
  ),
  hazard(24, 'a downgrade wakes no reader', [LOCKS_ENABLE, '(hazard 24)'], [READ_WRITE, 'R21: a downgrade wakes']),
  hazard(25, 'a release wakes one waiter of each process', [WAITING, 'costs one command and a try of each']),
  hazard(
    26,
    'a release of several permits wakes one waiter',
    [PERMITS_ENABLE, '(hazard 26)'],
    [PERMITS, '(hazard 26)'],
  ),
  hazard(27, 'a latch opens between the check and the start of the wait', [
    SEMAPHORE,
    'waiters notice a zero even if a new count is set before they can read it:',
  ]),
  hazard(
    28,
    'a latch is closed again before its waiters notice that it was open',
    [PERMITS_ENABLE, '(hazard 28)'],
    [SEMAPHORE, 'waiters notice a zero even if a new count is set before they can read it:'],
  ),
  hazard(
    29,
    'clients of sharded and of classic pub/sub use one lock',
    ['docs/java.md', 'Sharded and other messages do not reach each other'],
    ['tests/interop/redisson/settings.test.ts', 'a cluster with sharded channels'],
  ),
  hazard(30, 'a message has a negative number of permits', [EXPIRABLE_SCRIPTS, '(hazard 30)']),
  hazard(31, 'a subscription outlives its waiter', [
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
  hazard(34, 'a place in the queue outlives its call', [
    FAIR,
    'R26: a waiter that leaves has no place in the queue one second later',
  ]),
  hazard(
    35,
    'a place in the queue without a time never becomes stale',
    [FAIR_SCRIPTS, '(hazard 35)'],
    [FAIR, 'a waiter whose place was deleted queues again'],
  ),
  hazard(36, 'the clocks of clients decide which waiter is stale', [
    FAIR,
    'R26, R30: a live waiter of this client is not evicted',
  ]),
  hazard(37, 'the loss of a fair lock goes unnoticed', [OWN, 'hazard 37:']),
  hazard(
    38,
    'an expired read hold still counts',
    [READ_WRITE, 'R16: the hold of a killed reader ends with its own lease while another reader renews'],
    ['tests/lua/read-write-lock.test.ts', 'an expired read hold has no key'],
  ),
  hazard(
    39,
    'a lock without an expiry looks like a free one',
    ['tests/lua/fenced-lock.test.ts', 'a lock without expiry replies the number -1 and no token'],
    [FAIR_SCRIPTS, 'a lock without expiry replies -1, and the timeout is one wait'],
  ),
  hazard(40, 'the key and the channel of a name are in two slots', [
    CLUSTER,
    'R8: keys and channel of a lock are in one slot',
  ]),
  hazard(
    41,
    'the lease of a permit ends without a message',
    [PERMITS_ENABLE, '(hazard 41)'],
    [EXPIRABLE, '(hazard 41)'],
    [EXPIRABLE_SCRIPTS, '(hazard 41)'],
  ),
  hazard(
    42,
    'one key of a semaphore expires, and its taken permits vanish',
    [EXPIRABLE, 'hazard 42:'],
    [EXPIRABLE_SCRIPTS, '(hazard 42)'],
  ),
  hazard(
    43,
    'the permits of a dead process stay taken',
    ['docs/choosing.md', '**stays taken**'],
    [EXPIRABLE, 'R16: after kill -9 of a process its permit is free at the end of the lease, and not before'],
  ),
  hazard(
    44,
    'the lease of a multi-lock is converted again in every round',
    [OWN, 'hazards 44 and 45:'],
    [MULTI, 'is exact for every member'],
  ),
  hazard(45, 'the lease of a multi-lock does not reach the read holds of a member', [OWN, 'hazards 44 and 45:']),
  hazard(46, 'the clock of a client decides about the values of a group, and a failed release changes some of them', [
    'tests/integration/group-multi-lock.test.ts',
    'hazard 46',
  ]),
  hazard(
    47,
    'one replica confirms the lock, and another one takes over',
    [
      'tests/topologies/sentinel-flows.test.ts',
      'R3: flows exclude each other during planned and unplanned failovers of Sentinel, and learn of their losses',
    ],
    [REPLICAS, 'nothing is granted if more acknowledgements are required than replicas exist'],
    ['docs/topologies.md', 'always, if `n` is the number of all replicas'],
  ),
];

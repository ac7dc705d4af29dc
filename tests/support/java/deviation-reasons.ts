/**
 * Every intended difference between Holdfast and Redisson, with its reason: the one table for the recordings and the
 * worked examples (tests/lua) and for the comparison with a live JVM (tests/interop/redisson/wire). They say where it
 * shows.
 */
export const REASONS = {
  // Leases
  ownLease: 'the lease belongs to the hold: a partial release sets the TTL to what the others have left',
  neverShorter: 'a nested acquire never shortens the lease of the holds around it',
  renewalNeverShorter: 'a renewal never shortens a lease',
  addsUp: 'a nested write hold of Redisson adds its lease to what is left; ours last as long as the longest',
  watchdogLease: "a hold without a lease has the watchdog's, not the last one that was given to the lock object",
  tokenLease: 'lockAndGetToken(lease) has the lease that it was given; Redisson forgets it',
  wholeLeaseAgain: 'the repeat of an acquire gives it its whole lease again',
  endsItself: 'a hold whose last deadline passes is given back at once, a little before its lease ends by itself',
  deadThread: 'a dead thread does not keep the watchdog from the hold that lives',
  keptByWatchdog:
    'what a multi-lock has while it waits for the rest is renewed; with Redisson it has twice a time drawn at random',
  readMembers: 'the lease of a multi-lock is that of the keys of its read holds, too (hazard 45)',
  leaseOnce: 'the lease is the one that was asked for, however many rounds it took (hazard 44)',

  // Owners and holds
  lost: 'a hold that was lost is told apart from one that never was',
  staysInside: 'inside a lost hold nothing is acquired until it is given back',
  notOwner: 'an unlock by a stranger is refused before anything is sent',
  freeNotOwner: 'an unlock by nobody is refused, also while the lock is free (hazard 37)',
  ownCode: 'a second acquisition by the owner of a non-reentrant lock has a code of its own',
  noUpgrade: 'a read hold cannot become a write hold: refused at once, where Redisson waits or says busy',
  oneHalf: 'isLocked() asks about its own half in every form; the asynchronous one of Redisson about both',
  forcedKeys: 'a force unlock removes the keys of the read holds, too',
  noToken: 'a busy lock without expiry is not mistaken for a token of -1 (hazard 39)',
  releasedAsTaken:
    'a fair hold that is released through a plain handle is released as a fair one: the head of the queue is told',
  forceFree: 'a force unlock of a free fair lock changes nothing: stale places stay until the next call comes',
  forceType: 'a force unlock of a key that is no hash is refused; Redisson deletes it',
  pollsByChance: 'whether a poll falls before or after a look at the server is chance',

  // Messages
  downgradeWakes: 'a downgrade wakes the readers that wait (hazard 24)',
  notFreed: 'nothing came free: nothing is published',
  noPermits: 'a message without permits wakes nobody, and a negative one makes a JVM fail (hazard 30)',
  freePublished:
    'every message of a permit-expirable semaphore says how many permits are free; some of Redisson say how many came',
  expiryTold: 'whoever waits has learned when the lease would end: of an earlier end it is told',
  deleteWakes:
    'the delete of a latch wakes whoever awaits it, with the message of a count that reached zero (hazard 28)',

  // The fair queue
  ownWait:
    'a waiter queues with fairLockWaitTimeout, and with it for every place in front, not with the wait of its call',
  leavesQueue: 'an interrupted or failed call leaves no place in the queue behind (hazard 34)',
  exactGiveUp: 'who gives up takes off those behind exactly what it had added (hazard 20)',
  tellsNobody: 'the one that the message is for has left the queue',
  tellsHead: 'whoever leaves the queue of a free lock tells the head',
  looksAgain: 'the head of the queue learns within a second that the lock is free, whoever has told nobody',

  // Several locks
  supported: 'Redisson has no such call on several locks',
  atOnce: 'all members are asked at once, and what was granted is given back; Redisson asks one after the other',
  everyMember: 'an unlock tries every member',
  busyServer: 'a busy server is not waited for when the others are a majority',
  majority: 'a majority holds it',
  strangersUnlock: 'an unlock of what is not held is told',
  groupAllOrNone: 'a release of what is not held changes nothing of the rest (hazard 46)',
  groupRest: 'a release of some of the holds of a group lets nobody in: no message, and the rest keeps its own lease',
  groupExpired: 'what its owner let expire is given back, by the owner or by the next one',
  groupForce: 'a force unlock of a group says whether any value was held, and of none it is no error (hazard 46)',
  groupFirst: 'the first value counts, too (hazard 46)',

  // Permits and latches
  reapedAtOnce: 'all permits whose lease is over come back at once; an acquire of Redisson reaps as many as it wants',
  servesAll: 'a release of several permits serves as many waiters as there are permits (hazard 26)',
  zeroCount: 'a latch is closed with a count of at least 1; Redisson stores 0 and less, and takes it for open',
  allOrNone: 'permits are given back together or not at all: there is nothing to count',
  expiryStays: 'an expiry of a semaphore stays when its permits are drained or changed (hazard 42)',
  expiredWhole: 'the semaphore has expired with what was taken of it',
  noneAtOnce: 'no permits are granted at once, in every form',
  emptyList: 'both forms say in the same way that there were not enough',
  unknownId: 'what is no id was never given out: unknown',

  // Requests
  atMostOnce: 'a request whose reply was lost is repeated, runs once and is answered as it would have been',
  noLatch: 'a release that runs twice is told apart by the owner and the hold count: there is no latch',
  refusedName: 'a name that cannot have key and channel in one slot is refused before anything is sent (hazard 40)',
} as const;

export type Reason = keyof typeof REASONS;

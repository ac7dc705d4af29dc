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
  addsUp:
    'a nested write hold of Redisson adds its lease to the remaining one; those of Holdfast last as long as the longest',
  watchdogLease: "a hold without a lease has the watchdog's, not the last one that was given to the lock object",
  tokenLease: 'lockAndGetToken(lease) has the lease that it was given; Redisson forgets it',
  wholeLeaseAgain: 'the repeat of an acquire gives it its whole lease again',
  endsItself: 'a hold whose last deadline passes is released at once, shortly before its lease ends on its own',
  deadThread: 'a dead thread does not keep the watchdog from the hold that lives',
  keptByWatchdog:
    'what a multi-lock has while it waits for the rest is renewed; with Redisson it has twice a time drawn at random',
  readMembers: 'the lease of a multi-lock is that of the keys of its read holds, too (hazard 45)',
  leaseOnce: 'the lease is the requested one after any number of rounds (hazard 44)',

  // Owners and holds
  lost: 'a lost hold is distinguished from one that never existed',
  staysInside: 'inside a lost hold nothing is acquired until its release',
  notOwner: 'an unlock by a stranger is refused before anything is sent',
  freeNotOwner: 'an unlock without a hold is refused, also while the lock is free (hazard 37)',
  ownCode: 'a second acquisition by the owner of a non-reentrant lock has a code of its own',
  noUpgrade: 'a read hold cannot become a write hold: refused at once, where Redisson waits or says busy',
  oneHalf: 'isLocked() reads its own half in every form; the asynchronous one of Redisson reads both',
  forcedKeys: 'a force unlock removes the keys of the read holds, too',
  noToken: 'a busy lock without expiry is not mistaken for a token of -1 (hazard 39)',
  releasedAsTaken:
    'a fair hold that is released through a plain handle is released as a fair one: the head of the queue is woken',
  forceFree: 'a force unlock of a free fair lock changes nothing: stale places stay until the next call comes',
  forceType: 'a force unlock of a key that is no hash is refused; Redisson deletes it',
  pollsByChance: 'whether a poll falls before or after a look at the server is chance',

  // Messages
  downgradeWakes: 'a downgrade wakes the readers that wait (hazard 24)',
  notFreed: 'nothing came free: nothing is published',
  noPermits: 'a message without permits wakes no waiter, and a negative one makes Redisson fail (hazard 30)',
  freePublished:
    'every message of a permit-expirable semaphore says how many permits are free; some of Redisson say how many came',
  expiryTold: 'a waiter knows the end of the lease, and an earlier end is published',
  deleteWakes: 'the delete of a latch wakes its waiters with the message of a count that reached zero (hazard 28)',

  // The fair queue
  ownWait:
    'a waiter queues with fairLockWaitTimeout, and with it for every place in front, not with the wait of its call',
  leavesQueue: 'an interrupted or failed call leaves no place in the queue behind (hazard 34)',
  exactGiveUp: 'a waiter that gives up subtracts exactly what it had added from the waiters behind it (hazard 20)',
  tellsNobody: 'the one that the message is for has left the queue',
  tellsHead: 'a waiter that leaves the queue of a free lock wakes the head',
  handedOver: 'a release hands a fair lock over to the next waiter of its client, without a message',
  looksAgain: 'the head of the queue learns within one second that the lock is free, also without a message',

  // Several locks
  supported: 'Redisson has no such call on several locks',
  atOnce: 'all members are tried at the same time, and grants are released; Redisson tries one after the other',
  everyMember: 'an unlock tries every member',
  busyServer: 'a busy server is not waited for when the others are a majority',
  majority: 'a majority holds it',
  strangersUnlock: 'an unlock of a free lock is reported',
  groupAllOrNone: 'the release of a value that is not held changes no other value (hazard 46)',
  groupRest: 'a release of some holds of a group frees no value: no message, and the others keep their own lease',
  groupExpired: 'an expired value is removed by its owner or by the next one',
  groupForce: 'a force unlock of a group says whether any value was held, and of none it is no error (hazard 46)',
  groupFirst: 'the first value counts, too (hazard 46)',

  // Permits and latches
  reapedAtOnce: 'all expired permits are freed at once; an acquire of Redisson frees as many as it wants',
  servesAll: 'a release of several permits serves as many waiters as there are permits (hazard 26)',
  zeroCount: 'a latch is closed with a count of at least 1; Redisson stores 0 and less, and takes it for open',
  allOrNone: 'permits are released all or none: there is nothing to count',
  expiryStays: 'an expiry of a semaphore stays when its permits are drained or changed (hazard 42)',
  expiredWhole: 'the semaphore has expired with its taken permits',
  noneAtOnce: 'no permits are granted at once, in every form',
  emptyList: 'both forms say in the same way that there were not enough',
  unknownId: 'an invalid id was never issued: unknown',

  // Requests
  atMostOnce: 'a request whose reply was lost is repeated, runs once and is answered as it would have been',
  noLatch: 'a repeated release is recognized by the owner and the hold count: there is no latch',
  refusedName: 'a name that cannot have key and channel in one slot is refused before anything is sent (hazard 40)',
} as const;

export type Reason = keyof typeof REASONS;

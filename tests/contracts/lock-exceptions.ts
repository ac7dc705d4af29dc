import type { Exceptions } from './contract-test.js';

/* What of the lock contract does not apply to a kind of lock, and why. Titles are those of groups and tests there. */

const NESTED = 'it takes the lock again inside a hold, which this kind refuses (tests/integration/fenced-lock.test.ts)';
const NO_CHANNEL =
  'it waits for a subscription or a message, and this kind has neither (tests/integration/spin-lock.test.ts)';
const SHARED =
  'it lets a holder keep another out, and readers share (tests/integration/read-write-lock.test.ts, enabling.slow.test.ts)';
const BY_DEL = 'it takes a hold away by deleting the key of the lock, and a read hold has a key of its own besides';

const table = (rows: readonly (readonly [title: string, why: string])[]): Exceptions => Object.fromEntries(rows);

const NON_REENTRANT = table([
  ['that fires after the lock was got does nothing', NESTED],
  ['that fires while a branch waits for its turn ends that wait, and the others go on', NESTED],
  ['that fires while a nested acquire is under way leaves the outer hold as it was', NESTED],
  ['R7: nested in a hold of 2^53 - 1 ms, holds come and go', NESTED],
  ['inside a hold isHeldByCurrentContext() and getHoldCount() are what Redis says, not what was once true', NESTED],
  ['currentHold() is the innermost hold around the caller, at once', NESTED],
  ['on the call owns the hold, whoever calls, and no flow enters it', NESTED],
  ['on the handle is that of every call on it; one on the call goes before', NESTED],
  ['is taken by every acquiring call', NESTED],
  ['of each hold taken and given back, with the count that its owner has', NESTED],
  ['once of each hold that is lost', NESTED],
  ['outside of every hold', NESTED],
  ['R20: by nested calls, in two clients with eight flows each', NESTED],
  ['in two processes that contend with this one, nested', NESTED],
  ['R25: never ends a hold of withLock, of acquire or of another flow', NESTED],
  ['gives back the innermost hold of lock or tryLock, past those that are not its own', NESTED],
  ['frees a lock of another client, whatever its hold count, wakes a waiter, and its holder learns of it', NESTED],
  ['of the own client tells every hold at once', NESTED],
  ['names lock and owner; nested ones share the owner, and no two outermost ones ever do', NESTED],
  ['never shortens', NESTED],
  ['run()', NESTED],
  ['three of 10 s, two given back: 9 to 10 s are left', NESTED],
  ['one of 200 ms inside one of 30 s leaves 30 s, and its end ends nothing', NESTED],
  ['in whatever order they are given back, what the others have left stays', NESTED],
  [
    'a nested release after the outer lease has ended frees the lock, wakes a waiter and reports the outer one lost',
    NESTED,
  ],
  ['contexts that share a handle do not influence each other', NESTED],
  ['an extend that meets a partial release of unknown outcome leaves no deadline later than the key', NESTED],
  ['a renewal answered while a partial release is unanswered moves no deadline past the key', NESTED],
  ['inside a hold', NESTED],
  ['knows an owner by its id, wherever it is', NESTED],
  ['nested in one another they share the owner and count', NESTED],
]);

export const LOCK_EXCEPTIONS = {
  'non-reentrant lock': NON_REENTRANT,
  'non-reentrant fair lock': NON_REENTRANT,
  'spin lock': table([
    ['once of each call that waits, however often it tries', NO_CHANNEL],
    ['after the key was deleted and somebody published', NO_CHANNEL],
  ]),
  'read lock': table([
    ['that fires while %s waits ends the wait at once and leaves nothing', SHARED],
    ['that fires for all who wait leaves no subscription and no timer of theirs', SHARED],
    ['of one waiter ends nobody else’s wait', SHARED],
    ['that fires while a branch waits for its turn ends that wait, and the others go on', SHARED],
    ['R7: is taken for 2^53 - 1 ms, by another only when it is given back', SHARED],
    ['a busy lock', SHARED],
    ['R16: kill -9 of a holder: the lock is free within one watchdog timeout, and not before its lease ends', SHARED],
    ['a stopped process is told of its loss when it goes on, before any call of its holder succeeds', SHARED],
    ['inside a hold isHeldByCurrentContext() and getHoldCount() are what Redis says, not what was once true', BY_DEL],
    ['currentHold() is a hold that was lost, until it is given back', BY_DEL],
    ['a waiter that leaves takes no wake-up with it', SHARED],
    ['on the call owns the hold, whoever calls, and no flow enters it', SHARED],
    ['on the handle is that of every call on it; one on the call goes before', SHARED],
    ['one acquisition of a lock at a time: a second one is refused and takes nothing', SHARED],
    ['once of each call that waits, however often it tries', SHARED],
    ['R20: by %s, in two clients with eight flows each', SHARED],
    ['in two processes that contend with this one, nested', SHARED],
    ['R25: of a hold that was %s says so once, and frees nothing newer', BY_DEL],
    ['of a lost hold lets its flow take the lock anew; before, nothing is acquired inside of it', BY_DEL],
    ['frees a lock of another client, whatever its hold count, wakes a waiter, and its holder learns of it', SHARED],
    ['wakes a waiter of the own client', SHARED],
    ['of a hold that is lost or over says so, and lengthens nothing', BY_DEL],
    ['of a lost hold rejects, every time with the same promise', BY_DEL],
    ['of a hold that was lost rejects when the block ends', BY_DEL],
    ['of null, which tryAcquire() gives for a busy lock, does nothing', SHARED],
    [
      'a nested release after the outer lease has ended frees the lock, wakes a waiter and reports the outer one lost',
      SHARED,
    ],
    ['contexts that share a handle do not influence each other', SHARED],
    ['every form re-enters at once, also while others wait, and counts one hold', SHARED],
    ['a parent may be given back before its child: the child keeps the lock, the parent is a stranger', SHARED],
    ['branches take the lock one after the other, and neither waits for the hold around them', SHARED],
    ['a branch waits for its turn within its own time, and no longer', SHARED],
    ['R21: a waiter is inside within 200 ms', SHARED],
    ['the caller, and what it starts beside, stay outside', SHARED],
    ['a body that fails while the hold was lost: its error comes out, the loss goes to the events', BY_DEL],
    ['a body that is done when the hold was lost: LockLostError with its result', BY_DEL],
  ]),
};

import type { Exceptions } from './contract-test.js';

/*
 * The parts of the lock contract that do not apply to a kind of lock, with the reason. Each title is that of a group or
 * test.
 */

const NESTED =
  'it acquires the lock again inside a hold, which this kind refuses (tests/integration/fenced-lock.test.ts)';
const NO_CHANNEL =
  'it waits for a subscription or a message, and this kind has neither (tests/integration/spin-lock.test.ts)';
const SHARED =
  'it expects a holder to exclude another, and readers share (tests/integration/read-write-lock.test.ts, enabling.slow.test.ts)';
const BY_DEL = 'it ends a hold by deleting the key of the lock, and a read hold has another key of its own';

const table = (rows: readonly (readonly [title: string, why: string])[]): Exceptions => Object.fromEntries(rows);

const NON_REENTRANT = table([
  ['that aborts after the lock was acquired does nothing', NESTED],
  ['that aborts while a branch waits for its turn ends that wait, and the others continue', NESTED],
  ['that aborts a pending nested acquire leaves the outer hold unchanged', NESTED],
  ['R7: allows nested holds inside a hold of 2^53 - 1 ms', NESTED],
  ['inside a hold isHeldByCurrentContext() and getHoldCount() return the current state in Redis', NESTED],
  ['currentHold() returns the innermost hold around the caller without a command', NESTED],
  ['on the call owns the hold, from any flow, and no flow enters it', NESTED],
  ['on the handle applies to its calls, and one on the call has precedence', NESTED],
  ['is accepted by every acquiring call', NESTED],
  ['each acquired and released hold, with the hold count of its owner', NESTED],
  ['each lost hold once', NESTED],
  ['outside of every hold', NESTED],
  ['R20: by nested calls, in two clients with eight flows each', NESTED],
  ['in two processes that contend with this one, nested', NESTED],
  ['R25: never ends a hold of withLock, of acquire or of another flow', NESTED],
  ['releases the innermost hold of lock or tryLock, and skips other holds', NESTED],
  ['frees a lock of another client with any hold count, wakes a waiter, and its holder learns of the loss', NESTED],
  ['of the own client reports the loss to every hold at once', NESTED],
  ['names its lock and owner: nested holds share the owner, outermost holds never do', NESTED],
  ['never shortens', NESTED],
  ['run()', NESTED],
  ['after two of three holds of 10 s are released, 9 to 10 s are left', NESTED],
  ['a hold of 200 ms inside one of 30 s leaves 30 s, and its end ends nothing else', NESTED],
  ['a release in any order keeps the remaining leases of the other holds', NESTED],
  [
    'a nested release after the outer lease has ended frees the lock, wakes a waiter and reports the outer loss',
    NESTED,
  ],
  ['contexts that share a handle do not influence each other', NESTED],
  ['an extend during a partial release of unknown outcome sets no deadline after the expiry of the key', NESTED],
  ['a renewal during an unanswered partial release moves no deadline past the expiry of the key', NESTED],
  ['inside a hold', NESTED],
  ['finds an owner of any client by its id', NESTED],
  ['shares the owner, and counts holds, when nested', NESTED],
]);

export const LOCK_EXCEPTIONS = {
  'non-reentrant lock': NON_REENTRANT,
  'non-reentrant fair lock': NON_REENTRANT,
  'spin lock': table([
    ['each waiting call once, regardless of the number of tries', NO_CHANNEL],
    ['after the key was deleted and a message was published', NO_CHANNEL],
  ]),
  'read lock': table([
    ['that aborts while %s waits ends the wait at once and leaves nothing behind', SHARED],
    ['that aborts all waiters leaves no subscription and no timer behind', SHARED],
    ['of one waiter ends no other wait', SHARED],
    ['that aborts while a branch waits for its turn ends that wait, and the others continue', SHARED],
    ['R7: is acquired for 2^53 - 1 ms, and by another caller only after its release', SHARED],
    ['a busy lock', SHARED],
    [
      'R16: after kill -9 of a holder the lock is free within one watchdog timeout, and not before its lease ends',
      SHARED,
    ],
    ['a stopped process reports its loss when it continues, before any call of its holder succeeds', SHARED],
    ['inside a hold isHeldByCurrentContext() and getHoldCount() return the current state in Redis', BY_DEL],
    ['currentHold() returns a lost hold until its release', BY_DEL],
    ['a waiter that leaves consumes no wake-up', SHARED],
    ['on the call owns the hold, from any flow, and no flow enters it', SHARED],
    ['on the handle applies to its calls, and one on the call has precedence', SHARED],
    ['allows one pending acquisition of a lock: a second one is refused and acquires nothing', SHARED],
    ['each waiting call once, regardless of the number of tries', SHARED],
    ['R20: by %s, in two clients with eight flows each', SHARED],
    ['in two processes that contend with this one, nested', SHARED],
    ['R25: of a hold that was %s reports the loss once and releases no newer hold', BY_DEL],
    ['of a lost hold lets its flow acquire the lock again; before, calls inside the hold reject', BY_DEL],
    ['frees a lock of another client with any hold count, wakes a waiter, and its holder learns of the loss', SHARED],
    ['wakes a waiter of the own client', SHARED],
    ['of a lost or released hold rejects and extends nothing', BY_DEL],
    ['of a lost hold rejects, every time with the same promise', BY_DEL],
    ['of a lost hold rejects at the end of the block', BY_DEL],
    ['of null, the result of tryAcquire() for a busy lock, does nothing', SHARED],
    [
      'a nested release after the outer lease has ended frees the lock, wakes a waiter and reports the outer loss',
      SHARED,
    ],
    ['contexts that share a handle do not influence each other', SHARED],
    ['every form re-enters at once, also while others wait, and counts one hold', SHARED],
    ['a parent may be released before its child: the child keeps the lock, and the parent flow is a stranger', SHARED],
    ['branches acquire the lock one after the other, and do not wait for the hold around them', SHARED],
    ['a branch waits for its turn no longer than its wait time', SHARED],
    ['R21: a waiter acquires the lock within 200 ms', SHARED],
    ['keeps the caller, and the code that it starts beside, outside of the hold', SHARED],
    ['rejects with the error of a body that fails in a lost hold, and reports the loss as an event', BY_DEL],
    ['rejects with LockLostError and the result if the hold was lost before the body ended', BY_DEL],
    ['reports a loss that only the reply of the release shows as events', BY_DEL],
  ]),
};

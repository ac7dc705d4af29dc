import { within } from '../clock.js';
import { answeredTooLate } from '../holding/hold-record.js';
import type { LockContext } from '../ownership/lock-context.js';
import { MultiHold } from './joint-hold.js';
import { SingleHold } from '../holding/single-hold.js';
import { LockAbortedError, LockLostError, LockTimeoutError } from '../errors.js';
import { isMisuse, JointLock, longestDeadline } from './joint-lock.js';
import type { LockCall, LockSettle } from '../locks/lock-call.js';
import { checkMembers, contextOf, orderedMembers } from './members.js';

/**
 * Several locks as one: Redisson's `RedissonMultiLock`. They may have different names, kinds and clients; all are held
 * or none.
 *
 * - First all are asked at once. If some are busy, nothing is kept, and they are waited for one after the other, in an
 *   order that does not depend on how they were given: two multi-locks of the same names never wait for each other.
 *   Members at several servers are ordered by the address in the configuration; name servers alike in all processes.
 * - Group multi-locks of one group are locked together, as one lock of all their values: the order cannot help there.
 * - The context is that of its options, or the one that all members name. Members that name different ones are refused.
 * - The lease is the same for all members and counts from when the last one was granted; until then they are renewed.
 * - A hold that loses a member is lost. `unlock()` tries every member, and what failed is told by one error:
 *   `LockLostError`, whose `cause` is a `MultiUnlockError`, if a member had been lost, else `MultiUnlockError`.
 * - A call inside a hold re-enters each member that is held, also one that was locked by itself. Holding some of the
 *   members and asking for all of them is to wait while holding: the order cannot help there.
 *
 * @redisson `RedissonClient#getMultiLock(RLock...)`. Differs: the order, the lease, every member is unlocked, and the
 * same lock twice counts once.
 */
export class MultiLock extends JointLock {
  /** @internal */
  constructor(locks: readonly unknown[], context: LockContext | undefined) {
    const given = checkMembers(locks);
    const members = orderedMembers(given, 'together');
    super(members, members.length, contextOf(given, context));
  }

  /** @internal */
  protected override takeMembers(call: LockCall, settle: LockSettle): void {
    this.#acquireMembers(call).then(settle.granted, settle.failed);
  }

  async #acquireMembers(call: LockCall): Promise<MultiHold> {
    const { clock } = this.members[0].inner.runtime;
    const { waitTime } = call;
    const now = clock.now();
    const until = waitTime > 0 ? now + waitTime : -Infinity;
    const settleBy = Math.max(now, until) + longestDeadline(this.members);
    // Without a limit of its own what is asked for at once takes one command deadline.
    const atOnceBy = settleBy === Infinity ? now + longestDeadline(this.members) : settleBy;
    if (this.members.length > 1 && !this.members.some((member) => member.isKnownBusy(call.context))) {
      const hold = await this.#atOnce(call, until, atOnceBy);
      if (hold !== undefined) return hold;
    }
    if (this.members.length > 1 && clock.now() >= until) throw new LockTimeoutError(this.name, waitTime);
    for (let lateMs = 0; ;) {
      const hold = await this.#inOrder(call, until, settleBy);
      if (hold instanceof MultiHold) return hold;
      lateMs += hold;
      // For a whole command deadline it is a lease too short for the way to Redis.
      const limit = until === Infinity ? lateMs >= longestDeadline(this.members) : clock.now() >= until;
      if (hold > 0 && limit) throw answeredTooLate();
    }
  }

  /** One round trip, if all are free. Undefined: some are busy, or were over before the last came; nothing is held. */
  async #atOnce(call: LockCall, until: number, settleBy: number): Promise<MultiHold | undefined> {
    const owner = this.owners();
    const results = await Promise.allSettled(
      this.members.map((member) => this.takeMember(member, { ...call, waitTime: 0, owner: owner(member) })),
    );
    const taken = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const all = taken.length === this.members.length;
    if (all && taken.every((hold) => hold.validFor() > 0)) return this.hold(taken, call);
    await giveBack(taken, settleBy);
    if (all && this.members[0].inner.runtime.clock.now() >= until) throw answeredTooLate();
    const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    const failure = errors.find(isMisuse) ?? errors.find((error) => !(error instanceof LockTimeoutError));
    if (failure !== undefined) throw this.#named(failure, call);
    return undefined;
  }

  /**
   * A number: there is none, as one was lost while we waited for another (0), or as the lease was over when it had begun
   * everywhere, so many ms later.
   */
  async #inOrder(call: LockCall, until: number, settleBy: number): Promise<MultiHold | number> {
    const { clock } = this.members[0].inner.runtime;
    const owner = this.owners();
    const taken: SingleHold[] = [];
    // Whoever waits for further members keeps what it has by the watchdog; the lease begins when all are there.
    const leaseTime = this.members.length === 1 ? call.leaseTime : undefined;
    const isOver = (hold: SingleHold): boolean => hold.validFor() === 0;
    let begunAt = Infinity;
    const lateMs = (): number => Math.max(0, clock.now() - begunAt);
    try {
      for (const member of this.members) {
        const waitTime = until === -Infinity ? call.waitTime : Math.ceil(until - clock.now());
        if (taken.length > 0 && waitTime <= 0) throw new LockTimeoutError(this.name, call.waitTime);
        taken.push(await this.takeMember(member, { ...call, waitTime, leaseTime, owner: owner(member) }));
      }
      if (taken.some(isOver)) {
        await giveBack(taken, settleBy);
        return 0;
      }
      const { signal } = call;
      if (signal?.aborted === true) throw new LockAbortedError(this.name, signal.reason);
      if (call.leaseTime !== leaseTime) {
        const lease = call.leaseTime as number;
        begunAt = clock.now();
        await Promise.all(
          taken.map((hold) => SingleHold.tenureOf(hold).lease.begin(SingleHold.recordOf(hold), lease, settleBy)),
        );
        if (taken.some(isOver)) {
          const late = lateMs();
          await giveBack(taken, settleBy);
          return late;
        }
      }
      return this.hold(taken, call);
    } catch (error) {
      const late = error instanceof LockLostError && error.reason === 'expired' ? lateMs() : 0;
      await giveBack(taken, settleBy);
      if (error instanceof LockLostError && wasTakenHere(taken, error)) return late;
      throw this.#named(error, call);
    }
  }

  #named(error: unknown, { waitTime, signal }: LockCall): unknown {
    if (error instanceof LockTimeoutError) return new LockTimeoutError(this.name, waitTime);
    if (error instanceof LockAbortedError) return new LockAbortedError(this.name, signal?.reason);
    return error;
  }
}

/** Inside no hold of the caller's, who has nothing to lose yet. */
const wasTakenHere = (taken: readonly SingleHold[], lost: LockLostError): boolean =>
  taken.some((hold) => {
    const { loss, parent } = SingleHold.recordOf(hold);
    return loss === lost && parent === undefined;
  });

/**
 * All at once. What is not given back at `settleBy` (lease clock ms), or cannot be, goes on being given back in the
 * background. Where an attempt to take one may still run, and take it anew for a moment, that is waited for: the call is
 * about to say that it has nothing.
 */
export async function giveBack(holds: readonly SingleHold[], settleBy: number): Promise<void> {
  const [first] = holds;
  if (first === undefined) return;
  const { clock } = SingleHold.tenureOf(first).services;
  await within(clock.clock, settleBy - clock.now(), Promise.allSettled(holds.map((hold) => hold.release())));
  await Promise.all(holds.map((hold) => SingleHold.tenureOf(hold).whenNoStray()));
}

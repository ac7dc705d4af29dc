import { onAbort, pause, waitLimitOf, waitTimeLeft, type WaitLimit } from '../waiting/limits/wait-limit.js';
import { within, type Timer } from '../clock.js';
import { answeredTooLate } from '../holding/hold-record.js';
import type { LockContext } from '../ownership/lock-context.js';
import { MultiHold } from './joint-hold.js';
import { SingleHold } from '../holding/single-hold.js';
import type { Tenure } from '../holding/tenure.js';
import {
  LockAbortedError,
  LockLostError,
  LockTimeoutError,
  NotReplicatedError,
  RedisUnavailableError,
} from '../errors.js';
import { pauseAfter } from '../back-off.js';
import { OTHER_ORDER_MS, OUTAGE_PAUSES } from '../timing.js';
import { JointLock, longestDeadline } from './joint-lock.js';
import { isMisuse } from './member-errors.js';
import { settleAs, type LockCall, type LockSettle } from '../locks/lock-call.js';
import { SingleLock, type MemberCall } from '../locks/single-lock.js';
import {
  byIdentity,
  checkMembers,
  contextOf,
  namesakesAmong,
  orderedMembers,
  whenIdentified,
  wouldHaveToWait,
  type Member,
  type Members,
} from './members.js';

/** Why a call with a time limit tries again: Redis did not reply, or too few replicas confirmed a member. */
type Outage = RedisUnavailableError | NotReplicatedError;
const isOutage = (error: unknown): error is Outage =>
  error instanceof RedisUnavailableError || error instanceof NotReplicatedError;

/**
 * `isAgreed`: whether every process takes the members in this order, as far as their servers tell now. `isAway`: whether
 * the client has no connection to one of them.
 */
interface MemberOrder {
  readonly members: Members;
  readonly isAgreed: () => boolean;
  readonly isAway: () => boolean;
}

/**
 * Several locks as one: Redisson's `RedissonMultiLock`. The members may have different names, kinds and clients. A
 * call acquires all members or none.
 *
 * - A call first tries all members at the same time. If some are busy, the call releases the others and waits for one
 *   member after the other. The order of the members is the same in all processes, so two multi-locks over the same
 *   names do not deadlock. Members of one name at several servers are in the order of the run ids of the servers. Where
 *   the run ids are not known, or have changed, such a call waits 1 to 2 s for a member while it holds another one of
 *   that name. Then it releases all members and begins again.
 * - Group locks of one group are locked together, as one lock of all their values.
 * - The context is the one in the options of the multi-lock, or the one that all members name. Members with a different
 *   context are refused.
 * - The lease is the same for all members. It starts when the last member is granted. Until then the watchdog renews
 *   the members that were granted before.
 * - The hold is lost when one member is lost.
 * - `unlock()` releases every member, even if the release of another member fails. It then rejects with one error: with
 *   `LockLostError` if a member had been lost, and otherwise with `MultiUnlockError`. If releases failed, the `cause`
 *   of the `LockLostError` is a `MultiUnlockError`.
 * - A call inside a hold re-enters each member that the hold has, also a member that was locked on its own. Do not
 *   acquire a multi-lock while you hold only some of its members: the order of the members does not prevent a deadlock
 *   then.
 *
 * @redisson `RedissonClient#getMultiLock(RLock...)`. Differs: the order, the start of the lease, the release of every
 * member, and a lock that is given twice counts once.
 */
export class MultiLock extends JointLock {
  readonly #namesakes: readonly Member[];
  readonly #fixedOrder: MemberOrder;

  /** @internal */
  constructor(locks: readonly unknown[], context: LockContext | undefined) {
    const given = checkMembers(locks);
    const members = orderedMembers(given, 'together');
    super(members, 'multi', members.length, contextOf(given, context));
    this.#namesakes = namesakesAmong(members);
    this.#fixedOrder = { members, isAgreed: () => true, isAway: () => false };
  }

  /** @internal */
  protected override takeMembers(call: LockCall, settle: LockSettle): void {
    settleAs(this.#acquireMembers(call), settle);
  }

  async #acquireMembers(call: LockCall): Promise<MultiHold> {
    const { clock } = this.members[0].runtime;
    for (const { runtime } of this.#namesakes) void runtime.server.look();
    const now = clock.now();
    const limit = waitLimitOf(clock, call.waitTime, call.signal);
    const settleBy = now + waitTimeLeft(limit, now) + longestDeadline(this.members);
    // Without a wait time, limit the round that tries all members at once to one command deadline.
    const atOnceBy = settleBy === Infinity ? now + longestDeadline(this.members) : settleBy;
    let unavailable: Outage | undefined;
    // Only Redis says that a lock is busy, so a call that does not wait asks in any case.
    const isOneTry = limit.kind === 'one try';
    if (
      this.members.length > 1 &&
      (isOneTry || !this.members.some((member) => wouldHaveToWait(member, call.context)))
    ) {
      const hold = await this.#atOnce(call, limit, atOnceBy);
      if (hold instanceof MultiHold) return hold;
      unavailable = hold;
    }
    const isOver = (): boolean => waitTimeLeft(limit, clock.now()) <= 0;
    if (this.members.length > 1 && isOver()) {
      // A lock that is given twice is busy for ever.
      if (unavailable === undefined && this.#namesakes.length > 0) await this.#order(limit, call.signal);
      throw unavailable ?? new LockTimeoutError(this.name, call.waitTime);
    }
    let first: Member | undefined;
    for (let lateMs = 0, outages = 0; ;) {
      const hold = await this.#inOrder(call, limit, settleBy, first);
      if (hold instanceof MultiHold) return hold;
      if (hold instanceof SingleLock) {
        first = hold;
        continue;
      }
      if (isOutage(hold)) {
        const leftMs = waitTimeLeft(limit, clock.now());
        if (limit.kind !== 'limited' || leftMs <= 0) throw hold;
        await pause(clock, Math.min(pauseAfter(OUTAGE_PAUSES, (outages += 1)), leftMs), call.signal);
        continue;
      }
      lateMs += hold;
      // Leases that ended before their replies for a whole command deadline are too short for the way to Redis.
      const gaveUp = limit.kind === 'unlimited' ? lateMs >= longestDeadline(this.members) : isOver();
      if (hold > 0 && gaveUp) throw answeredTooLate();
    }
  }

  /**
   * Tries all members at the same time: one round trip if all are free. Returns `undefined`, and holds nothing, if some
   * members are busy or a lease ended before the last grant arrived. Returns the error, and holds nothing, if Redis did not
   * reply to a call with a time limit: such a call waits through an outage.
   */
  async #atOnce(call: LockCall, limit: WaitLimit, settleBy: number): Promise<MultiHold | Outage | undefined> {
    const owner = this.owners();
    const results = await Promise.allSettled(
      this.members.map((member) => this.takeMember(member, { ...call, waitTime: 0, owner: owner(member) })),
    );
    const taken = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const all = taken.length === this.members.length;
    if (all && taken.every((hold) => hold.validFor() > 0)) return this.hold(taken, call);
    await releaseHolds(taken, settleBy);
    if (all && waitTimeLeft(limit, this.members[0].runtime.clock.now()) <= 0) throw answeredTooLate();
    const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    const failure = errors.find(isMisuse) ?? errors.find((error) => !(error instanceof LockTimeoutError));
    if (limit.kind === 'limited' && isOutage(failure)) return failure;
    if (failure !== undefined) throw this.#named(failure, call);
    return undefined;
  }

  /**
   * Waits for one member after the other. Returns a number if the call holds nothing in the end: 0 if a member was
   * lost while the call waited for another one, or the time, in ms, after which all leases had begun and one had
   * already ended. Returns the error if Redis did not reply. Returns a member that stayed busy if processes may use
   * different orders. `first`: such a member of the round before.
   */
  async #inOrder(
    call: LockCall,
    limit: WaitLimit,
    settleBy: number,
    first: Member | undefined,
  ): Promise<MultiHold | Outage | Member | number> {
    const { clock } = this.members[0].runtime;
    // Without an `await`, so that the requests of the call keep their places among those of other calls.
    const order = this.#namesakes.length === 0 ? this.#fixedOrder : await this.#order(limit, call.signal);
    const owner = this.owners();
    const taken: SingleHold[] = [];
    // The watchdog renews the granted members while the call waits for others. The lease begins with the last grant.
    const leaseTime = this.members.length === 1 || call.renewed ? call.leaseTime : undefined;
    const renewed = leaseTime === undefined || call.renewed;
    const isOver = (hold: SingleHold): boolean => hold.validFor() === 0;
    let begunAt = Infinity;
    const lateMs = (): number => Math.max(0, clock.now() - begunAt);
    try {
      for (const member of beginning(order, first)) {
        const waitTime = limit.kind === 'one try' ? call.waitTime : Math.ceil(waitTimeLeft(limit, clock.now()));
        if (taken.length > 0 && waitTime <= 0) throw new LockTimeoutError(this.name, call.waitTime);
        const memberCall = { ...call, waitTime, leaseTime, renewed, owner: owner(member) };
        const isLater = taken.some((hold) => SingleHold.tenureOf(hold).protocol.key === member.protocol.key);
        const hold = await (isLater ? this.#takeLater(member, memberCall, order) : this.takeMember(member, memberCall));
        if (hold === undefined) {
          await releaseHolds(taken, settleBy);
          return member;
        }
        taken.push(hold);
      }
      if (taken.some(isOver)) {
        await releaseHolds(taken, settleBy);
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
          await releaseHolds(taken, settleBy);
          return late;
        }
      }
      return this.hold(taken, call);
    } catch (error) {
      const late = error instanceof LockLostError && error.reason === 'expired' ? lateMs() : 0;
      await releaseHolds(taken, settleBy);
      if (error instanceof LockLostError && wasTakenHere(taken, error)) return late;
      if (isOutage(error)) return error;
      throw this.#named(error, call);
    }
  }

  /**
   * The members in the order in which the call takes them.
   *
   * @throws {InvalidArgumentError} Two servers of one name are one server.
   */
  async #order(limit: WaitLimit, signal: AbortSignal | undefined): Promise<MemberOrder> {
    const members = this.#namesakes;
    await whenIdentified(members, { signal, ms: waitTimeLeft(limit, this.members[0].runtime.clock.now()) });
    const known = members.map(({ runtime }) => runtime.server.known);
    return {
      members: orderedMembers(this.members, 'together', byIdentity),
      isAgreed: () => members.every(({ runtime }, at) => known[at] !== undefined && runtime.server.known === known[at]),
      isAway: () => members.some(({ runtime }) => runtime.server.isAway),
    };
  }

  /**
   * Waits for a member while the call holds another one of its name. Returns `undefined` if processes may use different
   * orders: they could wait for each other.
   */
  async #takeLater(member: Member, call: MemberCall, order: MemberOrder): Promise<SingleHold | undefined> {
    const { signal } = call;
    const { clock } = member.runtime;
    const over = new AbortController();
    const unwatch = signal && onAbort(signal, () => over.abort(signal.reason));
    if (signal?.aborted === true) over.abort(signal.reason);
    const { least, most } = OTHER_ORDER_MS;
    const check = (): Timer =>
      clock.setTimer(clock.now() + least + Math.random() * (most - least), () => {
        // A call sleeps through an outage. Without one of the servers, no call could get all members.
        if (order.isAgreed() || order.isAway()) timer = check();
        else over.abort();
      });
    let timer = check();
    try {
      return await this.takeMember(member, { ...call, signal: over.signal });
    } catch (error) {
      if (error instanceof LockAbortedError && signal?.aborted !== true) return undefined;
      throw error;
    } finally {
      timer.cancel();
      unwatch?.();
    }
  }

  #named(error: unknown, { waitTime, signal }: LockCall): unknown {
    if (error instanceof LockTimeoutError) return new LockTimeoutError(this.name, waitTime);
    if (error instanceof LockAbortedError) return new LockAbortedError(this.name, signal?.reason);
    return error;
  }
}

/**
 * The members in their order. Where processes may use different orders, the call begins with the one that was busy when
 * it held others of that name: if it took those again, the owner of the busy one could wait for them for ever.
 */
function beginning({ members, isAgreed }: MemberOrder, busy: Member | undefined): readonly Member[] {
  if (busy === undefined || isAgreed()) return members;
  const at = members.findIndex(({ protocol }) => protocol.key === busy.protocol.key);
  return [...members.slice(0, at), busy, ...members.slice(at).filter((member) => member !== busy)];
}

/**
 * Whether the call itself took the lost member. Otherwise it re-entered a hold of the caller, and the caller has lost
 * it.
 */
const wasTakenHere = (taken: readonly SingleHold[], lost: LockLostError): boolean =>
  taken.some((hold) => {
    const { loss, parent } = SingleHold.recordOf(hold);
    return loss === lost && parent === undefined;
  });

/**
 * Releases holds at the same time. A release that has failed, or is pending at `settleBy` (ms on the lease clock),
 * continues in the background. If an unanswered attempt may still run and acquire a lock again, waits until it no
 * longer can: the call is about to report that it holds nothing.
 */
export async function releaseHolds(holds: readonly SingleHold[], settleBy: number): Promise<void> {
  const [first] = holds;
  if (first === undefined) return;
  const { clock } = SingleHold.tenureOf(first).services;
  await within(clock.clock, settleBy - clock.now(), Promise.allSettled(holds.map((hold) => hold.release())));
  await Promise.all(holds.map((hold) => whenNoDoubt(SingleHold.tenureOf(hold))));
}

/** Resolves when no attempt of the tenure's first acquire can still run. */
async function whenNoDoubt(tenure: Tenure): Promise<void> {
  const { clock } = tenure.services;
  while (tenure.acquireIsDoubtful) await pause(clock, tenure.doubtUntil - clock.clock.monotonic() + 1);
}

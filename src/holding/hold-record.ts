import { setMaxListeners } from 'node:events';
import { afterChange } from '../after-change.js';
import type { LeaseClockMs } from '../clock.js';
import { RedisUnavailableError, type ClientClosedError, type LockLostError } from '../errors.js';
import type { CallSite } from '../ownership/call-site.js';
import type { Side, LockProtocol } from '../protocols/lock-protocol.js';
import type { LightSet } from '../light-set.js';
import { runOutside } from '../ownership/flow.js';
import { MARGIN_MS } from '../timing.js';

/** Time, in ms, by which the client ends a hold before its lease ends in Redis. */
const marginMs = (leaseMs: number): number => Math.max(MARGIN_MS.least, Math.min(leaseMs / 100, MARGIN_MS.most));

const marginOf = (leaseMs: number, drift: HoldTerms['drift']): number =>
  drift === undefined ? marginMs(leaseMs) : Math.max(marginMs(leaseMs), drift(leaseMs));

/** When the client ends a lease that a request sent at `sentAt` has set. */
export const deadlineOf = (sentAt: LeaseClockMs, leaseMs: number, drift?: HoldTerms['drift']): LeaseClockMs =>
  sentAt + leaseMs - marginOf(leaseMs, drift);

/** The terms of one acquisition. */
export interface HoldTerms {
  readonly leaseMs: number;
  /** The watchdog renews the hold. `false`: the caller gave a lease that is not renewed. */
  readonly watched: boolean;
  /** Longest time, in ms after the grant, for which the watchdog renews the hold. Absent: without limit. */
  readonly maxHoldMs?: number | undefined;
  readonly byUnlock: boolean;
  readonly site: CallSite | undefined;
  /** Monotonic time, in ms, of the call. */
  readonly askedAt: number;
  /** The owner id of the first request. The members of a multi-lock share it. Absent: a new one. */
  readonly owner?: string | undefined;
  /** The hold is a member of a hold of several locks. Then no section follows it, and it follows none, without a request. */
  readonly isMember: boolean;
  /**
   * Time, in ms, by which the client ends a hold before its lease ends at the server, for servers whose clocks drift.
   */
  readonly drift?: ((leaseMs: number) => number) | undefined;
}

/** The loss of a hold, and the signal that aborts with it. */
export class LossSignal {
  loss: LockLostError | ClientClosedError | undefined;
  /** Absent until the first use of the signal: most holds are released before. */
  #controller: AbortController | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      // One hold may have many requests. Node.js would warn of a leak from the eleventh listener on.
      setMaxListeners(0, this.#controller.signal);
    }
    if (this.loss !== undefined) this.#controller.abort(this.loss);
    return this.#controller.signal;
  }

  protected abort(): void {
    const controller = this.#controller;
    if (controller !== undefined) afterChange(() => runOutside(() => controller.abort(this.loss)));
  }
}

/**
 * The state of one hold. The tenure keeps the record, and the caller's {@link Hold} refers to it. So the garbage
 * collector can free a {@link Hold} that the caller has dropped, and the client warns of the leak.
 *
 * `open` -> `closed`, or `open` -> `lost` -> `closed`. The last hold of a tenure is `releasing` until Redis replies.
 */
export class HoldRecord extends LossSignal {
  state: 'open' | 'lost' | 'releasing' | 'closed' = 'open';
  leaseMs: number;
  /** The watchdog renews the hold. `false`: the caller gave a lease that is not renewed. */
  watched: boolean;
  /** Until when the watchdog renews the hold. */
  renewedUntil: LeaseClockMs;
  /** `lock()` or `tryLock()` opened the hold, so `unlock()` releases it. */
  readonly byUnlock: boolean;
  readonly site: CallSite | undefined;
  /** When the lease of this hold ends in Redis, by the last confirmation. */
  leaseEnd: LeaseClockMs;
  /** The longest lease that the hold has requested, in ms. Clocks that drift have moved furthest apart at its end. */
  longestLeaseMs: number;
  /**
   * Number of branches directly inside this hold that have or acquire the lock, or `exclusive`: one branch has it alone.
   * The others wait in `branches`.
   */
  occupied: number | 'exclusive' = 0;
  branches: LightSet<(unavailable?: RedisUnavailableError) => void> | undefined;
  /** The pending or settled release. */
  released: Promise<void> | undefined;
  /**
   * When a hold ends that its caller has released with `after`. Until then Redis keeps the hold, no caller is inside,
   * and no renewal extends it. Absent for every other hold.
   */
  leftUntil: LeaseClockMs | undefined;
  /** The release of unknown outcome that continues in the background. A later `unlock()` waits for it. */
  compensation: Promise<void> | undefined;
  /** Removes the released hold from the registry that keeps it, if one does. */
  forget: (() => void) | undefined;
  /** The caller's {@link Hold}, until the client watches it for a leak. From then on only its users keep it alive. */
  hold: object | undefined;
  /** The hold of several locks that this hold is a member of. It checks all its members when this hold is lost. */
  jointHold: { check(): void } | undefined;
  /** Fencing token of the acquire of a fenced lock. */
  token: bigint | undefined;

  constructor(
    readonly parent: HoldRecord | undefined,
    terms: HoldTerms,
    sentAt: LeaseClockMs,
    readonly openedAt: LeaseClockMs,
    /** The kind of lock that the call requested. Nested holds of one tenure may be of different kinds. */
    readonly protocol: LockProtocol,
  ) {
    super();
    this.leaseMs = terms.leaseMs;
    this.watched = terms.watched;
    this.renewedUntil = sentAt + (terms.maxHoldMs ?? Infinity);
    this.byUnlock = terms.byUnlock;
    this.site = terms.site;
    this.drift = terms.drift;
    this.leaseEnd = sentAt + terms.leaseMs;
    this.longestLeaseMs = terms.leaseMs;
  }

  /** Whether the watchdog still extends the lease: it has not confirmed the last lease yet. */
  get isRenewed(): boolean {
    return this.watched && this.leaseEnd < this.renewedUntil;
  }

  /** Limits the renewal of a hold that has begun. */
  renewUntil(until: LeaseClockMs): void {
    this.renewedUntil = until;
    this.leaseEnd = Math.min(this.leaseEnd, until);
  }

  get side(): Side {
    return this.protocol.side;
  }

  /** When this hold expires. Other holds of the tenure may last longer. */
  get deadline(): LeaseClockMs {
    return this.leaseEnd - marginOf(this.longestLeaseMs, this.drift);
  }

  /**
   * Time, in ms, by which the clocks of independent servers may drift apart within a lease. Counts if above the margin.
   */
  readonly drift: ((leaseMs: number) => number) | undefined;

  /** The last event of this hold that the client has emitted. */
  told: 'nothing' | 'acquired' | 'ended' = 'nothing';

  /** Whether no caller gets the hold: its call was aborted before Redis replied. */
  get isUnclaimed(): boolean {
    return this.told === 'nothing';
  }

  /** Whether the caller has released the hold, or its release is pending. */
  get isClosed(): boolean {
    return this.state === 'closed' || this.state === 'releasing';
  }

  /** Whether the flow is still inside. A flow stays inside a lost hold, and until a pending release has settled. */
  get aroundItsFlow(): boolean {
    return this.state !== 'closed' || this.compensation !== undefined;
  }

  /** Whether an `unlock()` in the flow of this hold releases it. */
  get unlockable(): boolean {
    return this.byUnlock && !this.isClosed;
  }

  /** Whether an `unlock()` that finds no hold to release waits for the background release of this one. */
  get awaitable(): boolean {
    return this.byUnlock && this.compensation !== undefined;
  }

  /** Whether this hold, or a hold around it, already holds the kind and the values that `protocol` asks for. */
  holds(protocol: LockProtocol): boolean {
    const { family, lockedValues } = protocol;
    // All holds of one tree are of one family.
    if (family !== this.protocol.family) return false;
    if (lockedValues === undefined) return true;
    if (!this.isClosed && this.protocol.lockedValues?.covers(lockedValues) === true) return true;
    return this.parent?.holds(protocol) === true;
  }

  /** The release found the hold lost. The signal aborts. */
  lostAtRelease(loss: LockLostError): void {
    this.loss ??= loss;
    this.tellLost();
  }

  /**
   * The caller has released the hold, and Redis ends it `afterMs` after `now`. The lease does not grow until
   * Redis confirms.
   */
  leaveFor(afterMs: number, now: LeaseClockMs): void {
    this.watched = false;
    this.leftUntil = now + afterMs;
    this.leaseEnd = Math.min(this.leaseEnd, this.leftUntil);
  }

  lose(error: LockLostError | ClientClosedError): void {
    this.state = 'lost';
    this.loss = error;
  }

  /** Aborts the signal, and wakes the joint hold and the branches that wait inside. */
  tellLost(): void {
    this.abort();
    this.jointHold?.check();
    this.#wakeBranches();
  }

  throwIfLost(): void {
    if (this.loss !== undefined) throw this.loss;
  }

  close(): void {
    if (this.state !== 'releasing') this.state = 'closed';
    this.#wakeBranches();
    // A nested hold that outlives this hold keeps this hold's place: the branches beside this hold keep waiting.
    if (this.occupied === 0) this.parent?.leave();
  }

  /** A branch directly inside this hold has ended, and the next branch may try. */
  leave(): void {
    const { occupied } = this;
    this.occupied = occupied === 'exclusive' ? 0 : occupied - 1;
    if (occupied === 'exclusive') for (const around of this.#aroundConcurrent()) around.#shareAgain();
    if (this.isClosed) {
      if (this.occupied === 0) this.parent?.leave();
      return;
    }
    this.#admitNext();
  }

  /** Whether a branch of this protocol has to wait for another branch. Concurrent branches share the lock. */
  keepsOut({ concurrent }: LockProtocol): boolean {
    return concurrent ? this.#isExclusive : this.occupied !== 0;
  }

  /** Takes a place inside this hold for a branch. `false`: the branch has to wait. */
  enter(protocol: LockProtocol): boolean {
    const { occupied } = this;
    if (occupied === 'exclusive' || this.keepsOut(protocol)) return false;
    this.occupied = protocol.concurrent ? occupied + 1 : 'exclusive';
    if (!protocol.concurrent) for (const around of this.#aroundConcurrent()) around.occupied = 'exclusive';
    return true;
  }

  /** Whether another branch beside this hold, or beside a concurrent hold around it, shares the lock. */
  get besideConcurrent(): boolean {
    return [...this.#aroundConcurrent()].some(({ occupied }) => occupied !== 'exclusive' && occupied > 1);
  }

  /**
   * The holds in which an exclusive branch inside this hold needs all places. The list goes outwards from a concurrent
   * hold, and ends at the first exclusive hold.
   */
  *#aroundConcurrent(): Iterable<HoldRecord> {
    if (!this.protocol.concurrent || this.parent === undefined) return;
    yield this.parent;
    yield* this.parent.#aroundConcurrent();
  }

  #shareAgain(): void {
    this.occupied = 1;
    this.#admitNext();
  }

  #admitNext(): void {
    // The first branch nearly always gets exclusive use, so the loop over all branches is rare.
    this.branches?.first?.();
    if (this.#isExclusive) return;
    for (const wake of [...(this.branches ?? [])]) {
      wake();
      if (this.#isExclusive) return;
    }
  }

  get #isExclusive(): boolean {
    return this.occupied === 'exclusive';
  }

  /** Redis was unavailable to the branch that the other branches wait for. They fail with its error. */
  redisUnavailable(error: RedisUnavailableError): void {
    for (const wake of [...(this.branches ?? [])]) wake(error);
  }

  #wakeBranches(): void {
    for (const wake of [...(this.branches ?? [])]) wake();
  }
}

/** Calls `forget` when the release has settled, and a failed one when its release in the background has ended. */
export function forgetWhenReleased(hold: HoldRecord, released: Promise<void>, forget: () => void): void {
  released.then(forget, () => (hold.compensation ?? Promise.resolve()).then(forget));
}

/** Until when a grant counts, for an acquire that was sent at `sentAt`. */
export const grantDeadline = (sentAt: LeaseClockMs, leaseMs: number): LeaseClockMs => deadlineOf(sentAt, leaseMs);

export const answeredTooLate = (): RedisUnavailableError =>
  new RedisUnavailableError('Redis replied after the requested lease had ended; use a longer leaseTime', 'none');

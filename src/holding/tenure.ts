/*
 * A tenure is one owner in Redis: the hash field that an outermost hold created, with all holds nested in it. Its
 * requests take turns (request-turns.ts) and set its lease (lease.ts). The tenure ends when the lock is released or
 * lost, or when its state is unknown. Only a local hand-over uses the owner id again, and only if no request of the owner
 * can still run. So a late request cannot change a later tenure.
 */
import type { JumpedMs, LeaseClockMs, MonotonicMs } from '../clock.js';
import { ClientClosedError, LockLostError, type LockError, type LossReason } from '../errors.js';
import { forgetWhenReleased, HoldRecord, type HoldTerms } from './hold-record.js';
import type { BackgroundRelease } from './left-holds.js';
import { countOpen, hasCaller, isByClock, releaseAfterLoss, releaseInBackground, releaseLeft } from './left-holds.js';
import { Lease, type LeasedTenure } from './lease.js';
import { sendRelease, type LockProtocol, type SentRelease } from '../protocols/lock-protocol.js';
import { ReleasesInTurn, type ReleasingTenure } from './release-in-turn.js';
import { failedEnd, isRefused, whenFreed, type FailedEnd, type TenureEnd } from './tenure-end.js';
import { lossOf, loseHolds, tellLoss, tellReleased } from './tenure-events.js';
import type { Confirmation, ServicesOf, TenureHost } from './tenure-host.js';
import { RequestTurns, type TurnsTenure } from './request-turns.js';

/** The parts of a client that its tenures share. */
export type TenureServices = ServicesOf<Tenure>;

export class Tenure implements LeasedTenure, TurnsTenure, ReleasingTenure {
  /** The holds that Redis has, outermost first: open ones, and those that were left to end (`leftUntil`). */
  holds: HoldRecord[] = [];
  /**
   * `held` -> `releasing` -> `over`, with `kept` after `held` if the lock is kept, or -> `over` when the lock is lost. The
   * tenure is still `held` while the releases of its holds wait for their turn.
   */
  state: 'held' | 'kept' | 'releasing' | 'over' = 'held';
  loss: LockLostError | undefined;
  readonly lease: Lease;
  /** The newest fencing token of all holds of the tenure, open or not. */
  token: bigint | undefined;
  /** Absent: no section may follow this tenure under the same owner. */
  confirmation?: Confirmation | undefined;
  #abandoned: ClientClosedError | undefined;
  #turns: RequestTurns | undefined;
  #releases: ReleasesInTurn | undefined;
  /** Holds that have ended for their callers, but whose release is unknown. The next reply of Redis reports them. */
  #unreported: HoldRecord[] | undefined;
  /** The request that releases the last hold or hands the lock over. */
  lastRequest: Pick<SentRelease, 'isWritten' | 'whenFlushed'> | undefined;
  /** The release of the last hold has been written, and no caller waits for its reply. */
  isLeaving = false;
  /** The release that continues in the background. */
  #compensation: Promise<void> | undefined;

  constructor(
    readonly services: TenureServices,
    private readonly host: TenureHost<Tenure>,
    readonly protocol: LockProtocol,
    readonly owner: string,
    /** Until when an unanswered attempt of the first acquire may still run. */
    readonly doubtUntil: MonotonicMs,
    jumpedAtSending: JumpedMs,
    /** Another owner of this client passed the lock on to this one. */
    readonly handedOff = false,
  ) {
    this.lease = new Lease(services, this, jumpedAtSending);
  }

  /** No caller has a hold, and the release of the last one is pending. */
  get isReleasing(): boolean {
    return this.state === 'releasing' || (this.state === 'held' && countOpen(this.holds) === 0);
  }

  /** Created for the first request that others may wait for: most tenures send only an acquire and a release. */
  get turns(): RequestTurns {
    return (this.#turns ??= new RequestTurns(this.services, this));
  }

  /** The owner has sent nothing but the request that granted the tenure, and no attempt of that can still run. */
  get hasOnlyAcquired(): boolean {
    if (this.#turns !== undefined || this.#releases !== undefined || this.lease.hasRenewed) return false;
    return !this.acquireIsDoubtful;
  }

  /** A call that wants the lock has to wait for a caller of this tenure. */
  get isInUse(): boolean {
    return !this.isLeaving && this.state !== 'kept';
  }

  get busy(): boolean {
    return this.#turns?.busy === true;
  }

  /** An attempt of a nested acquire or partial release may still run. */
  get isDoubtful(): boolean {
    return this.#turns?.isDoubtful === true;
  }

  /** Opens a hold: the first one, or one nested in `parent`. Its acquire was sent at `sentAt`. */
  open(terms: HoldTerms, sentAt: LeaseClockMs, now: LeaseClockMs, parent?: HoldRecord, protocol = this.protocol) {
    const hold = new HoldRecord(parent, terms, sentAt, now, protocol);
    // Nearly every tenure has one hold. An array literal has room for exactly one; `push()` makes V8 reserve more.
    if (this.holds.length === 0) {
      this.holds = [hold];
      this.lease.renewedAt = now;
    } else {
      if (!this.lease.watched) this.lease.renewedAt = now;
      this.holds.push(hold);
    }
    this.lease.recordLease(terms.leaseMs, this.services.clock.monotonicAt(now));
    this.services.watchdog.add(this);
    return hold;
  }

  /** Releases one hold; Redis keeps it for `afterMs`. Rejects if the hold was lost, or if the outcome is unknown. */
  release(hold: HoldRecord, afterMs = 0): Promise<void> {
    if (hold.released !== undefined) return hold.released;
    hold.released =
      afterMs === 0 && this.#hasNothingElse(hold) && this.lease.check() === 'valid'
        ? this.#releaseAtOnce(hold)
        : (this.#releases ??= new ReleasesInTurn(this)).release(hold, afterMs);
    if (hold.forget !== undefined) forgetWhenReleased(hold, hold.released, hold.forget);
    return hold.released;
  }

  /** Whether the hold is the only one, and no request of the tenure is pending. */
  #hasNothingElse(hold: HoldRecord): boolean {
    return !this.busy && this.holds.length === 1 && hold.state === 'open';
  }

  #releaseAtOnce(hold: HoldRecord): Promise<void> {
    const { deadline } = hold;
    this.holds.pop();
    const released = this.releaseOrHandOver(hold, deadline);
    hold.close();
    return released;
  }

  deadlineMoved(): void {
    this.services.watchdog.deadlineMoved(this);
  }

  /** A lost hold is reported at once. A failed release is reported when Redis is known to have released the hold. */
  reportFailedRelease(hold: HoldRecord, error: unknown): never {
    const leftToItsLease = this.#abandoned !== undefined && this.state === 'over';
    if (error instanceof LockLostError) this.#lostAtRelease(hold, error);
    else if (!leftToItsLease) {
      (this.#unreported ??= []).push(hold);
      if (this.state === 'over' && this.#compensation === undefined) this.reportReleased();
    }
    throw error;
  }

  #lostAtRelease(hold: HoldRecord, loss: LockLostError): void {
    hold.lostAtRelease(loss);
    tellLoss(this, hold, loss);
  }

  /** Redis has released `hold`, if given, and all holds whose release had failed before. */
  reportReleased(hold?: HoldRecord, holdCount = 0): void {
    const unreported = this.#unreported;
    this.#unreported = undefined;
    if (unreported !== undefined) for (const each of unreported) tellReleased(this, each, holdCount);
    if (hold !== undefined) tellReleased(this, hold, holdCount);
  }

  /**
   * A release has failed. If no hold is open, the tenure ends, and the client releases the lock in the background.
   * Returns the error for the caller.
   */
  settleFailedRelease(error: LockError, hold: HoldRecord, deadline: LeaseClockMs): LockError {
    if (countOpen(this.holds) > 0 || this.state !== 'held') return error;
    this.services.watchdog.remove(this);
    return this.#settleEnd(failedEnd(error), hold, deadline) ?? error;
  }

  /**
   * The last open hold has reached its deadline: the open holds are lost. The tenure itself is lost as well, unless the
   * release of another hold is pending: that release frees the lock.
   */
  loseExpired(cause?: unknown): void {
    const reason = this.lease.lossAtDeadline;
    if ((this.#releases?.pending ?? 0) === 0) return void this.lose(reason, cause);
    loseHolds(this, lossOf(this, reason, cause));
  }

  /** Hands over or frees a lock that no hold uses: Redis granted it to a call that had already ended. */
  releaseUnclaimed(leaseMs: number): void {
    this.lease.recordLease(leaseMs);
    void this.releaseWithoutCaller(this.services.clock.now() + leaseMs);
  }

  /**
   * Ends the tenure: hands the lock over if there is a successor, or else keeps or releases it.
   *
   * `hold`: the hold that its caller released last. Absent: no caller has one. `deadline`: until then, the owner had the
   * lock for certain. `leaseEnd`: when the lease ends in Redis. The deadline is only a margin earlier, so it may stand in.
   */
  releaseOrHandOver(hold: HoldRecord | undefined, deadline: LeaseClockMs, leaseEnd = deadline): Promise<void> {
    this.state = 'releasing';
    if (hold !== undefined) hold.state = 'releasing';
    const successor = (hold?.protocol ?? this.protocol).handsOff ? this.host.successorFor(leaseEnd) : undefined;
    if (successor === undefined && hold !== undefined && this.host.keepIfAllowed(this)) return this.#keep(hold);
    if (successor === undefined) return this.#sendRelease([this.owner], hold, deadline);
    const handed = this.host.handOff(this, successor, () => this.reportReleased(hold), hold === undefined);
    this.services.watchdog.remove(this);
    return handed.then((end) => {
      if (isRefused(end)) return this.#sendRelease([this.owner, ...end.alsoOwners], hold, deadline);
      const error = this.#settleEnd(end, hold, deadline);
      if (error !== undefined) throw error;
      return undefined;
    });
  }

  /** No request follows the release of the last hold for now. The caller gets no error of a later release. */
  #keep(hold: HoldRecord): Promise<void> {
    this.state = 'kept';
    hold.state = 'closed';
    this.services.watchdog.remove(this);
    this.reportReleased(hold);
    return Promise.resolve();
  }

  #sendRelease(owners: readonly string[], hold: HoldRecord | undefined, deadline: LeaseClockMs): Promise<void> {
    // Send the request first. The client does the rest of its work while Redis runs the release.
    const request = (this.lastRequest = sendRelease(this.protocol, owners, hold?.protocol));
    this.services.watchdog.remove(this);
    return whenFreed(request, (end) => this.#settleEnd(end, hold, deadline));
  }

  /** Returns the error that the release rejects with, if any. */
  #settleEnd(end: TenureEnd, hold: HoldRecord | undefined, deadline: LeaseClockMs): LockError | undefined {
    this.state = 'over';
    if (hold !== undefined) hold.state = 'closed';
    if (end.kind === 'failed') return this.#continueInBackground(end, hold);
    if (this.acquireIsDoubtful) void this.#compensate();
    // An earlier attempt of this release removed the field, unless the lease had ended before.
    const removedByEarlierAttempt =
      end.kind === 'gone' && end.doubt !== undefined && this.services.clock.now() < deadline;
    if (end.kind === 'gone' && !removedByEarlierAttempt) {
      this.loss = lossOf(this, 'gone');
      this.host.tenureEnded(this, 'lost');
      if (hold !== undefined) this.#lostAtRelease(hold, this.loss);
      this.reportReleased();
      return this.loss;
    }
    this.host.tenureEnded(this, end.kind === 'handed' || end.kind === 'handed late' ? 'handed' : 'freed');
    // A hand-over has reported the release of its hold, because the successor's grant follows it.
    this.reportReleased(end.kind === 'handed' ? undefined : hold);
    return undefined;
  }

  #continueInBackground(end: FailedEnd, hold: HoldRecord | undefined): LockError {
    const released = (this.#compensation = this.#compensate(end));
    if (hold !== undefined) {
      hold.compensation = released;
      void released.then(() => (hold.compensation = undefined));
      (this.#unreported ??= []).push(hold);
    }
    void released.then(() => {
      this.#compensation = undefined;
      this.reportReleased();
    });
    this.host.tenureEnded(this, 'unknown');
    return end.error;
  }

  /** The lock is lost, or its state is unknown. Ends every open hold once and aborts its signal. */
  lose(reason: LossReason, cause?: unknown): LockLostError {
    if (this.loss !== undefined) return this.loss;
    const loss = (this.loss = lossOf(this, reason, cause));
    this.state = 'over';
    const release = releaseAfterLoss(this, reason, this.#turns?.doubtUntil);
    // Redis has also lost the holds that it kept, unless only the leases of the open holds have ended.
    if (!isByClock(reason)) this.holds = this.holds.filter(hasCaller);
    this.services.watchdog.remove(this);
    this.host.tenureEnded(this, 'lost');
    loseHolds(this, loss);
    this.reportReleased();
    if (release !== undefined) void this.#compensate(release);
    return loss;
  }

  leave(): void {
    this.state = 'over';
    this.services.watchdog.remove(this);
    this.host.tenureEnded(this, 'left');
    void releaseLeft(this, [this.owner]);
  }

  /** This client forced the release. `isUnanswered`: it may not have run, so the client releases once more. */
  force(isUnanswered: boolean): void {
    if (this.state !== 'held' && this.state !== 'kept') return;
    this.lose('forced');
    if (isUnanswered) void this.#compensate();
  }

  /** The client is closed, and the signals of the holds abort. `willBeReleased`: `releaseWithoutCaller()` follows. */
  abandon(error: ClientClosedError, willBeReleased = false): void {
    this.state = willBeReleased ? 'releasing' : 'over';
    this.#abandoned = error;
    this.services.watchdog.remove(this);
    // The client emits `released` for these holds when Redis has replied.
    if (willBeReleased) this.#unreported = [...(this.#unreported ?? []), ...this.holds];
    loseHolds(this, error);
  }

  /** Releases the lock, and lets no caller wait for it. A failed release continues in the background. */
  async releaseWithoutCaller(leaseEnd = Infinity): Promise<void> {
    // Holds that were left to end stay in Redis until then: only the release in the background knows of their end.
    if (this.holds.length > 0) this.#settleEnd(failedEnd(new ClientClosedError()), undefined, Infinity);
    else await this.releaseOrHandOver(undefined, Infinity, leaseEnd).catch(() => undefined);
  }

  /**
   * Releases a kept lock. A call of this client that does not wait tries behind the release. For calls that wait, it is a
   * release like every other: other clients come first.
   */
  releaseKept(leaseEnd: LeaseClockMs): Promise<void> {
    const released = this.releaseWithoutCaller(leaseEnd);
    if (this.lastRequest?.isWritten === true) this.services.backgroundReleases.add(this.protocol.key, released);
    return released;
  }

  throwIfLost(): void {
    const error = this.loss ?? this.#abandoned;
    if (error !== undefined) throw error;
  }

  /** Releases the owner, and the other owners that may have its lock, in the background. */
  #compensate(release: BackgroundRelease = {}): Promise<void> {
    const doubtUntil = Math.max(this.doubtUntil, release.doubtUntil ?? 0);
    return releaseInBackground(this, { ...release, doubtUntil });
  }

  /** Whether another attempt of the first acquire may still run, and create the key again. */
  get acquireIsDoubtful(): boolean {
    return this.doubtUntil > 0 && this.doubtUntil >= this.services.clock.clock.monotonic();
  }
}

/*
 * A tenure is one owner in Redis: the hash field that an outermost hold created, with all holds nested in it. Its
 * requests take turns (request-turns.ts) and set its lease (lease.ts). The tenure ends when the count is 0, the
 * lock is lost or its state is unknown. The client never uses its owner id again, so a late request cannot change a
 * later tenure.
 */
import type { JumpedMs, LeaseClockMs, MonotonicMs } from '../clock.js';
import { pause } from '../abort-watch.js';
import { ClientClosedError, LockLostError, type LockError, type LossReason } from '../errors.js';
import { HoldRecord, type HoldTerms } from './hold-record.js';
import { countOpen, hasCaller, isLeft, releaseInBackground, releaseLeft } from './left-holds.js';
import { Lease, type LeasedTenure } from './lease.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { ReleasesInTurn, type ReleasingTenure } from './release-in-turn.js';
import { failedEnd, isRefused, whenFreed, type TenureEnd } from './tenure-end.js';
import { tellLoss, tellReleased } from './tenure-events.js';
import type { ServicesOf, TenureHost } from './tenure-host.js';
import { RequestTurns, type TurnsTenure } from './request-turns.js';

/** The parts of a client that its tenures share. */
export type TenureServices = ServicesOf<Tenure>;

export class Tenure implements LeasedTenure, TurnsTenure, ReleasingTenure {
  /** The holds that Redis has, outermost first: open ones, and those that were left to end (`leftUntil`). */
  holds: HoldRecord[] = [];
  /** `held` -> `releasing` -> `over`, or `held` -> `over` when the lock is lost. */
  state: 'held' | 'releasing' | 'over' = 'held';
  loss: LockLostError | undefined;
  readonly lease: Lease;
  /** The newest fencing token of all holds of the tenure, open or not. */
  token: bigint | undefined;
  #abandoned: ClientClosedError | undefined;
  /** Until when an unanswered attempt of the first acquire may still run. */
  readonly #doubtUntil: MonotonicMs;
  #turns: RequestTurns | undefined;
  #releases: ReleasesInTurn | undefined;
  /** Holds that have ended for their callers, but whose release is unknown. The next reply of Redis reports them. */
  #untold: HoldRecord[] | undefined;
  /** The release that continues in the background. */
  #ends: Promise<void> | undefined;

  constructor(
    readonly services: TenureServices,
    private readonly host: TenureHost<Tenure>,
    readonly protocol: LockProtocol,
    readonly owner: string,
    doubtUntil: MonotonicMs,
    jumpedAtSending: JumpedMs,
    /** Another owner of this client passed the lock on to this one. */
    readonly handedOff = false,
  ) {
    this.#doubtUntil = doubtUntil;
    this.lease = new Lease(services, this, jumpedAtSending);
  }

  /** The last hold was released, and Redis has not answered yet. */
  get ending(): boolean {
    return this.state === 'releasing' || (this.state === 'held' && countOpen(this.holds) === 0);
  }

  /** Created for the first request that others may wait for: most tenures send only an acquire and a release. */
  get turns(): RequestTurns {
    return (this.#turns ??= new RequestTurns(this.services, this));
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
    // A push would make V8 reserve room for 16 more holds, and nearly every tenure has only one.
    if (this.holds.length === 0) this.holds = [hold];
    else this.holds.push(hold);
    this.lease.mayLast(terms.leaseMs, this.services.clock.monotonicAt(now));
    this.services.watchdog.add(this);
    return hold;
  }

  /** Releases one hold; Redis keeps it for `afterMs`. Rejects if the hold was lost, or if the outcome is unknown. */
  release(hold: HoldRecord, afterMs = 0): Promise<void> {
    if (hold.released !== undefined) return hold.released;
    const isLast = afterMs === 0 && this.#isLast(hold);
    hold.released = isLast
      ? this.#releaseLast(hold)
      : (this.#releases ??= new ReleasesInTurn(this)).release(hold, afterMs);
    const { forget } = hold;
    if (forget !== undefined) hold.released.then(forget, () => (hold.givingBack ?? Promise.resolve()).then(forget));
    return hold.released;
  }

  /** Whether the release can be sent at once: it is the only hold, its lease is valid, and no request is pending. */
  #isLast(hold: HoldRecord): boolean {
    return !this.busy && this.holds.length === 1 && hold.state === 'open' && this.lease.check() === 'valid';
  }

  #releaseLast(hold: HoldRecord): Promise<void> {
    const { deadline } = hold;
    this.holds.pop();
    const released = this.end(hold, deadline);
    hold.close();
    return released;
  }

  deadlineMoved(): void {
    this.services.watchdog.deadlineMoved(this);
  }

  /** A lost hold is reported at once. A failed release is reported when Redis is known to have released the hold. */
  failedToLeave(hold: HoldRecord, error: unknown): never {
    if (error instanceof LockLostError) this.#lostAtRelease(hold, error);
    else if (this.#abandoned === undefined || this.state !== 'over') {
      (this.#untold ??= []).push(hold);
      if (this.state === 'over' && this.#ends === undefined) this.tellEnded();
    }
    throw error;
  }

  #lostAtRelease(hold: HoldRecord, loss: LockLostError): void {
    hold.lostAtRelease(loss);
    tellLoss(this, hold, loss);
  }

  /** Redis has released `hold`, if given, and all holds whose release had failed before. */
  tellEnded(hold?: HoldRecord, holdCount = 0): void {
    const untold = this.#untold;
    this.#untold = undefined;
    if (untold !== undefined) for (const each of untold) tellReleased(this, each, holdCount);
    if (hold !== undefined) tellReleased(this, hold, holdCount);
  }

  /** Returns the error of a failed release. Without open holds, the client releases the lock in the background. */
  unreleased(error: LockError, hold: HoldRecord, deadline: LeaseClockMs): LockError {
    if (countOpen(this.holds) > 0 || this.state !== 'held') return error;
    this.services.watchdog.remove(this);
    return this.#ended(failedEnd(error), hold, deadline) ?? error;
  }

  /**
   * The last open hold has reached its deadline. If the release of another hold is pending, the tenure itself is not
   * lost: that release frees the lock.
   */
  expire(cause?: unknown): void {
    if ((this.#releases?.pending ?? 0) === 0) return void this.lose('expired', cause);
    this.#loseHolds(this.#lossBy('expired', cause));
  }

  /** Hands over or frees a lock that no hold uses: Redis granted it to a call that had already ended. */
  endUnclaimed(leaseMs: number): void {
    this.lease.mayLast(leaseMs);
    this.free(this.services.clock.now() + leaseMs);
  }

  end(hold: HoldRecord | undefined, deadline: LeaseClockMs, leaseEnd = deadline): Promise<void> {
    this.state = 'releasing';
    if (hold !== undefined) hold.state = 'releasing';
    const successor = (hold?.protocol ?? this.protocol).handsOff ? this.host.successorFor(leaseEnd) : undefined;
    if (successor !== undefined) {
      const handed = this.host.handOff(this, successor, () => this.tellEnded(hold));
      this.services.watchdog.remove(this);
      return handed.then((end) => {
        if (isRefused(end)) return this.#free([this.owner, ...end.alsoOwners], hold, deadline);
        const error = this.#ended(end, hold, deadline);
        if (error !== undefined) throw error;
        return undefined;
      });
    }
    return this.#free([this.owner], hold, deadline);
  }

  #free(owners: readonly string[], hold: HoldRecord | undefined, deadline: LeaseClockMs): Promise<void> {
    // Send the request first. The client does the rest of its work while Redis runs the release.
    const request = this.protocol.release(owners, hold?.protocol);
    this.services.watchdog.remove(this);
    return whenFreed(request, (end) => this.#ended(end, hold, deadline));
  }

  /** Returns the error that the release rejects with, if any. */
  #ended(end: TenureEnd, hold: HoldRecord | undefined, deadline: LeaseClockMs): LockError | undefined {
    this.state = 'over';
    if (hold !== undefined) hold.state = 'closed';
    if (end.kind === 'failed') {
      const givingBack = this.#compensate([this.owner, ...end.alsoOwners], end.doubtUntil, end.leaseEnd);
      if (hold !== undefined) {
        hold.givingBack = givingBack;
        void givingBack.then(() => (hold.givingBack = undefined));
        (this.#untold ??= []).push(hold);
      }
      this.#ends = givingBack;
      void givingBack.then(() => {
        this.#ends = undefined;
        this.tellEnded();
      });
      this.host.ended(this, 'unknown');
      return end.error;
    }
    if (this.#acquireIsDoubtful()) void this.#compensate([this.owner], 0, 0);
    // A repeat that finds no field: an earlier attempt of this release removed the field, unless the lease has ended.
    if (end.kind === 'gone' && !(end.doubt !== undefined && this.services.clock.now() < deadline)) {
      this.loss = this.#lossBy('gone');
      this.host.ended(this, 'lost');
      if (hold !== undefined) this.#lostAtRelease(hold, this.loss);
      this.tellEnded();
      return this.loss;
    }
    this.host.ended(this, end.kind === 'handed' ? 'handed' : 'freed');
    this.tellEnded(hold);
    return undefined;
  }

  /** The lock is lost, or its state is unknown. Ends every open hold once and aborts its signal. */
  lose(reason: LossReason, cause?: unknown): LockLostError {
    if (this.loss !== undefined) return this.loss;
    const loss = (this.loss = this.#lossBy(reason, cause));
    this.state = 'over';
    // Redis has also lost the holds that it kept, unless only the leases of the open holds have ended.
    if (reason !== 'expired') this.holds = this.holds.filter(hasCaller);
    this.services.watchdog.remove(this);
    this.host.ended(this, 'lost');
    this.#loseHolds(loss);
    this.tellEnded();
    // An unanswered renewal or nested acquire may have set a longer lease than this client knows of. An owner that has
    // lost one part of the lock may still have the other parts.
    if (reason === 'expired' || this.protocol.lockedValues !== undefined)
      void this.#compensate([this.owner], this.#turns?.doubtUntil ?? 0, 0);
    else if (this.#acquireIsDoubtful()) void this.#compensate([this.owner], 0, 0);
    return loss;
  }

  leave(): void {
    this.state = 'over';
    this.services.watchdog.remove(this);
    this.host.ended(this, 'left');
    void releaseLeft(this, [this.owner]);
  }

  /** This client forced the release. `isUnanswered`: it may not have run, so a release in the background follows. */
  force(isUnanswered: boolean): void {
    if (this.state !== 'held') return;
    this.lose('forced');
    if (isUnanswered) void this.#compensate([this.owner], 0, 0);
  }

  /** The client is closed, and the signals of the holds abort. Redis has the lock until its lease ends, or `free()`. */
  abandon(error: ClientClosedError, isFreed = false): void {
    this.state = isFreed ? 'releasing' : 'over';
    this.#abandoned = error;
    this.services.watchdog.remove(this);
    // `close()` frees these holds, and the client emits `released` when Redis has replied.
    if (isFreed) this.#untold = [...(this.#untold ?? []), ...this.holds];
    this.#loseHolds(error);
  }

  /** Releases the lock in the background. A failed release becomes a compensation. */
  free(leaseEnd = Infinity): void {
    if (this.holds.length > 0) this.#ended(failedEnd(new ClientClosedError()), undefined, Infinity);
    else this.end(undefined, Infinity, leaseEnd).catch(() => undefined);
  }

  #lossBy(reason: LossReason, cause?: unknown): LockLostError {
    return new LockLostError(this.protocol.name, this.owner, reason, cause === undefined ? undefined : { cause });
  }

  throwIfLost(): void {
    const error = this.loss ?? this.#abandoned;
    if (error !== undefined) throw error;
  }

  /** Marks all holds as lost before it reports any loss, because a listener of one hold may use another hold. */
  #loseHolds(loss: LockLostError | ClientClosedError): void {
    const lost = this.holds.filter(hasCaller);
    this.holds = this.holds.filter(isLeft);
    for (const hold of lost) hold.lose(loss);
    for (const hold of lost) {
      hold.tellLost();
      if (loss instanceof LockLostError) tellLoss(this, hold, loss);
    }
  }

  #compensate(owners: readonly string[], doubtUntil: MonotonicMs, leaseEnd: MonotonicMs): Promise<void> {
    return releaseInBackground(this, owners, Math.max(this.#doubtUntil, doubtUntil), leaseEnd);
  }

  /** Resolves when no attempt of the first acquire can still run. */
  async whenNoDoubt(): Promise<void> {
    const { clock } = this.services;
    while (this.#acquireIsDoubtful()) await pause(clock, this.#doubtUntil - clock.clock.monotonic() + 1);
  }

  /** Whether another attempt of the first acquire may still run, and create the key again. */
  #acquireIsDoubtful(): boolean {
    return this.#doubtUntil > 0 && this.#doubtUntil >= this.services.clock.clock.monotonic();
  }
}

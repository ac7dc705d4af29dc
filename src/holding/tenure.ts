/*
 * A tenure is one owner in Redis: the hash field that an outermost hold created, with all holds nested in it. Requests
 * take turns (request-turns.ts) and ask for a lease (lease.ts). When the count is 0, the lock is lost or its state in
 * doubt, the tenure is over, and its owner id is never used again: no request under way names an owner that exists.
 */
import { LockLostError, type ClientClosedError, type LockError, type LossReason } from '../errors.js';
import { HoldRecord, type HoldTerms } from './hold-record.js';
import { Lease, type LeasedTenure } from './lease.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { ReleasesInTurn, type ReleasingTenure } from './release-in-turn.js';
import { failedEnd, isRefused, whenFreed, type TenureEnd } from './tenure-end.js';
import { tellLoss, tellReleased } from './tenure-events.js';
import type { ServicesOf, TenureHost } from './tenure-host.js';
import { RequestTurns, type TurnsTenure } from './request-turns.js';

/** What the tenures of one client share. */
export type TenureServices = ServicesOf<Tenure>;

export class Tenure implements LeasedTenure, TurnsTenure, ReleasingTenure {
  /** Open holds, outermost first. */
  holds: HoldRecord[] = [];
  /** `held` -> `releasing` -> `over`; `held` -> `over` when it is lost. */
  state: 'held' | 'releasing' | 'over' = 'held';
  loss: LockLostError | undefined;
  readonly lease: Lease;
  /** The newest fencing token of its holds, open or not. */
  token: bigint | undefined;
  #abandoned: ClientClosedError | undefined;
  /** Attempts of the first acquire that were unanswered at the grant may run until then (monotonic ms). */
  readonly #strayUntil: number;
  #turns: RequestTurns | undefined;
  #releases: ReleasesInTurn | undefined;
  /** Holds that are over for their callers, and not known to be released in Redis: reported with the next answer. */
  #untold: HoldRecord[] | undefined;
  /** The release that goes on in the background. */
  #ends: Promise<void> | undefined;

  constructor(
    readonly services: TenureServices,
    private readonly host: TenureHost<Tenure>,
    readonly protocol: LockProtocol,
    readonly owner: string,
    strayUntil: number,
    jumpedAtSending: number,
  ) {
    this.#strayUntil = strayUntil;
    this.lease = new Lease(services, this, jumpedAtSending);
  }

  /** The last hold has been given back, and Redis has not answered yet. */
  get ending(): boolean {
    return this.state === 'releasing' || (this.state === 'held' && this.holds.length === 0);
  }

  /** Made by the first request that others may have to wait for: most tenures have none but their first and last. */
  get turns(): RequestTurns {
    return (this.#turns ??= new RequestTurns(this.services, this));
  }

  get busy(): boolean {
    return this.#turns?.busy === true;
  }

  /** An attempt of a nested acquire or partial release may still run. */
  get strayIsOpen(): boolean {
    return this.#turns?.strayIsOpen === true;
  }

  /** The first hold; the acquire that it came from was sent at `sentAt` (lease clock ms). */
  open(terms: HoldTerms, sentAt: number, now: number, parent?: HoldRecord, protocol = this.protocol): HoldRecord {
    const hold = new HoldRecord(parent, terms, sentAt, now, protocol);
    // Not pushed: a list that grows makes itself room for sixteen more, and nearly always it is the only one.
    if (this.holds.length === 0) this.holds = [hold];
    else this.holds.push(hold);
    this.lease.mayLast(terms.leaseMs, now - this.services.clock.jumped);
    this.services.watchdog.add(this);
    return hold;
  }

  /** Gives one hold back. Rejects if it was lost, or if nobody can say what became of the release. */
  release(hold: HoldRecord): Promise<void> {
    if (hold.released !== undefined) return hold.released;
    hold.released = this.#isLast(hold) ? this.#releaseLast(hold) : this.#releaseInTurn(hold);
    const { forget } = hold;
    if (forget !== undefined) hold.released.then(forget, () => (hold.givingBack ?? Promise.resolve()).then(forget));
    return hold.released;
  }

  /** Nothing to wait for and nothing in doubt: the short way of an uncontended section. */
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

  #releaseInTurn(hold: HoldRecord): Promise<void> {
    this.#releases ??= new ReleasesInTurn(this);
    return this.#releases.release(hold);
  }

  deadlineMoved(): void {
    this.services.watchdog.deadlineMoved(this);
  }

  /** Told to listeners: at once if it was lost, else when Redis is known to have released it. */
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

  /** Redis has released `hold`, if any, and all whose release had failed. */
  tellEnded(hold?: HoldRecord, holdCount = 0): void {
    const untold = this.#untold;
    this.#untold = undefined;
    if (untold !== undefined) for (const each of untold) tellReleased(this, each, holdCount);
    if (hold !== undefined) tellReleased(this, hold, holdCount);
  }

  /** What a release that failed rejects with. If nobody holds the lock any more it is given back in the background. */
  unreleased(error: LockError, hold: HoldRecord, deadline: number): LockError {
    if (this.holds.length > 0 || this.state !== 'held') return error;
    this.services.watchdog.remove(this);
    return this.#ended(failedEnd(error), hold, deadline) ?? error;
  }

  /**
   * The last of the open holds has reached its deadline. Whoever is giving back a hold of its own at that time has lost
   * nothing: its release frees the lock.
   */
  expire(cause?: unknown): void {
    if ((this.#releases?.pending ?? 0) === 0) return void this.lose('expired', cause);
    this.#loseHolds(this.#lossBy('expired', cause));
  }

  /** Gives the lock on, or back, when nobody holds it: it was granted to somebody who is not there any more. */
  endUnclaimed(leaseMs: number): void {
    this.lease.mayLast(leaseMs);
    this.free(this.services.clock.now() + leaseMs);
  }

  end(hold: HoldRecord | undefined, deadline: number, leaseEnd = deadline): Promise<void> {
    this.state = 'releasing';
    if (hold !== undefined) hold.releasing = true;
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

  #free(owners: readonly string[], hold: HoldRecord | undefined, deadline: number): Promise<void> {
    // Sent first: what is left to do here is done while the server works.
    const request = this.protocol.release(owners, hold?.protocol);
    this.services.watchdog.remove(this);
    return whenFreed(request, (end) => this.#ended(end, hold, deadline));
  }

  /** What the release must reject with, if anything. */
  #ended(end: TenureEnd, hold: HoldRecord | undefined, deadline: number): LockError | undefined {
    this.state = 'over';
    if (hold !== undefined) hold.releasing = false;
    if (end.kind === 'failed') {
      const givingBack = this.#compensate([this.owner, ...end.alsoOwners], end.openUntil, end.until);
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
    if (this.#strayIsDue()) void this.#compensate([this.owner], 0, 0);
    // A repeat that finds the field gone: an earlier attempt of ours removed it, unless the lease had ended by now.
    if (end.kind === 'gone' && !(end.inDoubt && this.services.clock.now() < deadline)) {
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

  /** The lock is not ours any more, or nobody can say that it is. Every open hold is told, once. */
  lose(reason: LossReason, cause?: unknown): LockLostError {
    if (this.loss !== undefined) return this.loss;
    const loss = this.#lossBy(reason, cause);
    this.loss = loss;
    this.state = 'over';
    this.services.watchdog.remove(this);
    this.host.ended(this, 'lost');
    this.#loseHolds(loss);
    this.tellEnded();
    // A renewal or nested acquire whose answer was lost may have set a longer lease than we know of; and who has lost
    // one part still has the others.
    if (reason === 'expired' || this.protocol.parts !== undefined)
      void this.#compensate([this.owner], this.#turns?.strayUntil ?? 0, 0);
    else if (this.#strayIsDue()) void this.#compensate([this.owner], 0, 0);
    return loss;
  }

  /** This client forced the lock open, or may have: then what nobody holds any more is given back all the same. */
  force(inDoubt: boolean): void {
    if (this.state !== 'held') return;
    this.lose('forced');
    if (inDoubt) void this.#compensate([this.owner], 0, 0);
  }

  /** The client is closed: holds are told. What Redis has of them ends with its lease, or with `free()`. */
  abandon(error: ClientClosedError, isFreed = false): void {
    this.state = isFreed ? 'releasing' : 'over';
    this.#abandoned = error;
    this.services.watchdog.remove(this);
    // What close() frees is told as released when it is.
    if (isFreed) this.#untold = [...(this.#untold ?? []), ...this.holds];
    this.#loseHolds(error);
  }

  /** In the background. A release that fails is compensated. */
  free(leaseEnd = Infinity): void {
    this.end(undefined, Infinity, leaseEnd).catch(() => undefined);
  }

  #lossBy(reason: LossReason, cause?: unknown): LockLostError {
    return new LockLostError(this.protocol.name, this.owner, reason, cause === undefined ? undefined : { cause });
  }

  throwIfLost(): void {
    const error = this.loss ?? this.#abandoned;
    if (error !== undefined) throw error;
  }

  /** All are lost before anybody hears of it: who hears of one may call on another. */
  #loseHolds(loss: LockLostError | ClientClosedError): void {
    const lost = this.holds.splice(0);
    for (const hold of lost) hold.lose(loss);
    for (const hold of lost) {
      hold.tellLost();
      if (loss instanceof LockLostError) tellLoss(this, hold, loss);
    }
  }

  #compensate(owners: readonly string[], openUntil: number, until: number): Promise<void> {
    return this.services.compensations.add({
      send: () => this.protocol.release(owners),
      notBefore: Math.max(this.#strayUntil, openUntil),
      until: Math.max(this.lease.lastEnd, until),
    });
  }

  /** Resolves when no attempt of the first acquire may run any more. */
  async whenNoStray(): Promise<void> {
    const { clock } = this.services.clock;
    const over = (resume: () => void) => clock.setTimer(this.#strayUntil - clock.monotonic() + 1, resume);
    while (this.#strayIsDue()) await new Promise<void>(over);
  }

  /** Another attempt of the first acquire may still run, and create the key anew. */
  #strayIsDue(): boolean {
    return this.#strayUntil > 0 && this.#strayUntil >= this.services.clock.clock.monotonic();
  }
}

/*
 * A tenure is one owner in Redis: the hash field that an outermost hold created, with all holds nested in it. Requests
 * take turns (request-turns.ts) and ask for a lease (lease.ts). When the count is 0, the lock is lost or its state in
 * doubt, the tenure is over, and its owner id is never used again: no request under way names an owner that exists.
 */
import {
  LockLostError,
  RedisUnavailableError,
  type ClientClosedError,
  type LockError,
  type LossReason,
} from '../errors.js';
import { HoldRecord, type HoldTerms } from './hold-record.js';
import { Lease } from './lease.js';
import type { LockEntry } from '../waiting/wait-line.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import type { LockRuntime } from '../waiting/lock-runtime.js';
import { failedEnd, isRefused, whenFreed, type TenureEnd } from './tenure-end.js';
import { lossOf, tellLoss, tellReleased } from './tenure-events.js';
import { Turns, unsent } from './request-turns.js';

export class Tenure {
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
  #turns: Turns | undefined;
  #ending: Promise<void> | undefined;
  /** Releases that wait for their turn, or for the answer to a partial one. */
  #leaving = 0;
  /** Holds that are over for their callers, and not known to be released in Redis: told with the next answer. */
  #untold: HoldRecord[] | undefined;
  /** The release that goes on in the background. */
  #ends: Promise<void> | undefined;

  constructor(
    readonly runtime: LockRuntime,
    private readonly entry: LockEntry,
    readonly protocol: LockProtocol,
    readonly owner: string,
    strayUntil: number,
    jumpedAtSending: number,
  ) {
    this.#strayUntil = strayUntil;
    this.lease = new Lease(this, jumpedAtSending);
  }

  /** The last hold has been given back, and Redis has not answered yet. */
  get ending(): boolean {
    return this.state === 'releasing' || (this.state === 'held' && this.holds.length === 0);
  }

  /** Made by the first request that others may have to wait for: most tenures have none but their first and last. */
  get turns(): Turns {
    return (this.#turns ??= new Turns(this));
  }

  get #busy(): boolean {
    return this.#turns?.busy === true;
  }

  /** An attempt of a nested acquire or partial release may still run. */
  get strayIsOpen(): boolean {
    return this.#turns?.strayIsOpen === true;
  }

  /** The first hold; the acquire that it came from was sent at `sentAt` (lease clock ms). */
  open(terms: HoldTerms, sentAt: number, now: number, parent?: HoldRecord, protocol = this.protocol): HoldRecord {
    const { leaseMs, watched, bare, site } = terms;
    const hold = new HoldRecord(this, parent, leaseMs, watched, bare, sentAt, now, site, protocol);
    if (terms.drift !== undefined) hold.drift = terms.drift;
    // Not pushed: a list that grows makes itself room for sixteen more, and nearly always it is the only one.
    if (this.holds.length === 0) this.holds = [hold];
    else this.holds.push(hold);
    this.lease.mayLast(leaseMs, now - this.runtime.clock.jumped);
    this.runtime.watchdog.add(this);
    return hold;
  }

  /** Gives one hold back. Rejects if it was lost, or if nobody can say what became of the release. */
  release(hold: HoldRecord): Promise<void> {
    if (hold.released !== undefined) return hold.released;
    hold.released = this.#isLast(hold) ? this.#releaseLast(hold) : this.#release(hold);
    const { forget } = hold;
    if (forget !== undefined) hold.released.then(forget, () => (hold.givingBack ?? Promise.resolve()).then(forget));
    return hold.released;
  }

  /** Nothing to wait for and nothing in doubt: the short way of an uncontended section. */
  #isLast(hold: HoldRecord): boolean {
    return !this.#busy && this.holds.length === 1 && hold.state === 'open' && this.lease.check() === 'valid';
  }

  #releaseLast(hold: HoldRecord): Promise<void> {
    const { deadline } = hold;
    this.holds.pop();
    const released = this.#end(hold, deadline);
    hold.close();
    return released;
  }

  async #release(hold: HoldRecord): Promise<void> {
    const unconfirmed = this.lease.check() === 'unconfirmed' ? await this.lease.confirm() : undefined;
    if (hold.loss !== undefined) {
      hold.close();
      throw hold.loss;
    }
    const deadline = this.lease.deadline;
    // Closed before anything is sent: what the caller does next without awaiting us is no longer inside.
    this.holds.splice(this.holds.indexOf(hold), 1);
    hold.close();
    this.runtime.watchdog.deadlineMoved(this); // what the others have left may be less
    const giveUp = (error: RedisUnavailableError): never => {
      throw this.#unreleased(error, hold, deadline);
    };
    // Not one command deadline more for the release itself.
    const failed = (error: unknown): never => this.#failedToLeave(hold, error);
    if (unconfirmed instanceof RedisUnavailableError)
      return this.turns
        .take(() => Promise.reject(this.#unreleased(unsent(unconfirmed), hold, deadline)), giveUp)
        .catch(failed);
    if (!this.#busy && this.holds.length === 0) return this.#end(hold, deadline);
    this.#leaving += 1;
    return this.turns
      .take((settleBy) => this.#giveBack(hold, deadline, settleBy), giveUp)
      .catch(failed)
      .finally(() => this.#left());
  }

  /** If the other holds were lost before the last release had settled, what the key has left is nobody's. */
  #left(): Promise<void> | undefined {
    this.#leaving -= 1;
    const heldByNone = (): boolean => this.state === 'held' && this.holds.length + this.#leaving === 0;
    if (!heldByNone()) return undefined;
    const ended = this.turns.take(() => (heldByNone() ? this.#end(undefined, Infinity) : Promise.resolve()));
    return ended.catch((error: unknown) => {
      if (!(error instanceof LockLostError)) throw error;
    });
  }

  /** Told to listeners: at once if it was lost, else when Redis is known to have released it. */
  #failedToLeave(hold: HoldRecord, error: unknown): never {
    if (error instanceof LockLostError) this.#lostAtRelease(hold, error);
    else if (this.#abandoned === undefined || this.state !== 'over') {
      (this.#untold ??= []).push(hold);
      if (this.state === 'over' && this.#ends === undefined) this.tellEnded();
    }
    throw error;
  }

  #lostAtRelease(hold: HoldRecord, loss: LockLostError): void {
    hold.lostAtRelease(loss);
    tellLoss(hold, loss);
  }

  /** Redis has released `hold`, if any, and all whose release had failed. */
  tellEnded(hold?: HoldRecord, holdCount = 0): void {
    const untold = this.#untold;
    this.#untold = undefined;
    if (untold !== undefined) for (const each of untold) tellReleased(each, holdCount);
    if (hold !== undefined) tellReleased(hold, holdCount);
  }

  /** What a release that failed rejects with. If nobody holds the lock any more it is given back in the background. */
  #unreleased(error: LockError, hold: HoldRecord, deadline: number): LockError {
    if (this.holds.length > 0 || this.state !== 'held') return error;
    this.runtime.watchdog.remove(this);
    return this.#ended(failedEnd(error), hold, deadline) ?? error;
  }

  async #giveBack(hold: HoldRecord, deadline: number, settleBy: number): Promise<void> {
    if (this.holds.length > 0) await this.turns.whenNoStray();
    if (this.#ending !== undefined) return this.#ending.then(() => this.tellEnded(hold));
    this.throwIfLost();
    // If nothing is left to the others they are told by this look, before anybody else can be inside, and the lock is
    // freed. After a jump of the clock Redis says what is left.
    while (this.holds.length > 0 && this.lease.check() === 'unconfirmed') {
      const error = await this.lease.confirm();
      this.throwIfLost();
      if (error instanceof RedisUnavailableError) throw this.#unreleased(unsent(error), hold, deadline);
      if (error !== undefined) throw error;
    }
    // Releases that were begun together find nothing left, and end the tenure together.
    if (this.holds.length === 0) return (this.#ending = this.#end(hold, deadline));
    const holdCount = this.holds.length;
    const request = await this.lease.setRemaining(this.runtime.clock.now(), settleBy);
    if (request.error !== undefined) {
      // No undoing: the next request carries an absolute count again.
      return this.turns.failed(request).catch((error: unknown) => {
        throw this.#unreleased(error as LockError, hold, deadline);
      });
    }
    if (request.reply === 'gone') throw this.lose('gone');
    this.tellEnded(hold, holdCount);
  }

  /**
   * The last of the open holds has reached its deadline. Whoever is giving back a hold of its own at that time has lost
   * nothing: its release frees the lock.
   */
  expire(cause?: unknown): void {
    if (this.#leaving === 0) return void this.lose('expired', cause);
    this.#loseHolds(lossOf(this, 'expired', cause));
  }

  /** Gives the lock on, or back, when nobody holds it: it was granted to somebody who is not there any more. */
  endUnclaimed(leaseMs: number): void {
    this.lease.mayLast(leaseMs);
    this.free(this.runtime.clock.now() + leaseMs);
  }

  #end(hold: HoldRecord | undefined, deadline: number, leaseEnd = deadline): Promise<void> {
    this.state = 'releasing';
    if (hold !== undefined) hold.releasing = true;
    const heir = (hold?.protocol ?? this.protocol).handsOff ? this.entry.grants.heirOf(leaseEnd) : undefined;
    if (heir !== undefined) {
      const handed = this.entry.grants.handOff(this, heir, () => this.tellEnded(hold));
      this.runtime.watchdog.remove(this);
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
    this.runtime.watchdog.remove(this);
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
      this.entry.ended(this, 'unknown');
      return end.error;
    }
    if (this.#strayIsDue()) void this.#compensate([this.owner], 0, 0);
    // A repeat that finds the field gone: an earlier attempt of ours removed it, unless the lease had ended by now.
    if (end.kind === 'gone' && !(end.inDoubt && this.runtime.clock.now() < deadline)) {
      this.loss = lossOf(this, 'gone');
      this.entry.ended(this, 'lost');
      if (hold !== undefined) this.#lostAtRelease(hold, this.loss);
      this.tellEnded();
      return this.loss;
    }
    this.entry.ended(this, end.kind === 'handed' ? 'handed' : 'freed');
    this.tellEnded(hold);
    return undefined;
  }

  /** The lock is not ours any more, or nobody can say that it is. Every open hold is told, once. */
  lose(reason: LossReason, cause?: unknown): LockLostError {
    if (this.loss !== undefined) return this.loss;
    const loss = lossOf(this, reason, cause);
    this.loss = loss;
    this.state = 'over';
    this.runtime.watchdog.remove(this);
    this.entry.ended(this, 'lost');
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
    this.runtime.watchdog.remove(this);
    // What close() frees is told as released when it is.
    if (isFreed) this.#untold = [...(this.#untold ?? []), ...this.holds];
    this.#loseHolds(error);
  }

  /** In the background. A release that fails is compensated. */
  free(leaseEnd = Infinity): void {
    this.#end(undefined, Infinity, leaseEnd).catch(() => undefined);
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
      if (loss instanceof LockLostError) tellLoss(hold, loss);
    }
  }

  #compensate(owners: readonly string[], openUntil: number, until: number): Promise<void> {
    return this.runtime.compensations.add({
      send: () => this.protocol.release(owners),
      notBefore: Math.max(this.#strayUntil, openUntil),
      until: Math.max(this.lease.lastEnd, until),
    });
  }

  /** Resolves when no attempt of the first acquire may run any more. */
  async whenNoStray(): Promise<void> {
    const { clock } = this.runtime.clock;
    const over = (resume: () => void) => clock.setTimer(this.#strayUntil - clock.monotonic() + 1, resume);
    while (this.#strayIsDue()) await new Promise<void>(over);
  }

  /** Another attempt of the first acquire may still run, and create the key anew. */
  #strayIsDue(): boolean {
    return this.#strayUntil > 0 && this.#strayUntil >= this.runtime.clock.clock.monotonic();
  }
}

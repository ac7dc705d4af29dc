/*
 * A tenure is one owner in Redis: the hash field that an outermost hold created, with all holds nested in it. Its
 * requests on the key go out one at a time, so the client always knows the hold count and sends it as an absolute
 * number. When the count is 0, the lock is lost or its state in doubt, the tenure is over and its owner id is never
 * used again: a request still under way somewhere then names an owner that no longer exists.
 */
import {
  LockLostError,
  NotOwnerError,
  RedisUnavailableError,
  ClientClosedError,
  type LockError,
  type LossReason,
} from '../errors.js';
import type { RequestAttempts, ScriptRequest } from '../redis/script-executor.js';
import type { HeldReply, ReleaseReply } from '../redis/scripts/lock.js';
import type { CallSite } from './call-site.js';
import { latestEnd } from './compensations.js';
import { grantDeadline, HoldRecord } from './hold-record.js';
import type { LockEntry } from './lock-entry.js';
import type { LockProtocol, RenewalItem } from './lock-protocol.js';
import type { LockRuntime } from './lock-runtime.js';

/** What a hold is asked for with. */
export interface HoldTerms {
  readonly leaseMs: number;
  /** No lease was given: the watchdog renews. */
  readonly watched: boolean;
  readonly bare: boolean;
  readonly site: CallSite | undefined;
  /** The owner to begin with, shared by the members of a multi-lock; absent: a fresh one. */
  readonly owner?: string;
  /** ms that a lease counts less here than at its server. */
  readonly drift?: ((leaseMs: number) => number) | undefined;
}

/** What a renewal has to know again when its answer comes. */
export interface RenewalTicket {
  readonly partials: number;
  readonly confirms: boolean;
  readonly jumped: number;
}

export class Tenure {
  /** Open holds, outermost first. */
  readonly holds: HoldRecord[] = [];
  /** `held` -> `releasing` -> `over`; `held` -> `over` when it is lost. */
  state: 'held' | 'releasing' | 'over' = 'held';
  loss: LockLostError | undefined;
  #abandoned: ClientClosedError | undefined;
  /** Attempts of the first acquire that were unanswered at the grant may run until then (monotonic ms). */
  readonly #strayUntil: number;
  /** A nested acquire or partial release of which an attempt may still run. */
  #stray: RequestAttempts | undefined;
  #turn: Promise<unknown> | undefined;
  /** Why the request that others wait in turn for has failed, if Redis was away for its whole deadline. */
  #away: RedisUnavailableError | undefined;
  #ending: Promise<void> | undefined;
  /** Partial releases begun: a renewal that was under way meanwhile proves no deadline. */
  #partials = 0;
  /** The latest end of any lease that a request of this tenure can have set (monotonic ms). */
  #lastLeaseEnd = 0;
  #confirmedAtJump: number;
  #confirming: Promise<void> | undefined;

  constructor(
    readonly runtime: LockRuntime,
    private readonly entry: LockEntry,
    readonly protocol: LockProtocol,
    readonly owner: string,
    strayUntil: number,
    jumpedAtSending: number,
  ) {
    this.#strayUntil = strayUntil;
    this.#confirmedAtJump = jumpedAtSending;
  }

  /** Lease clock ms at which the last of the open holds stops to count. What nobody holds any more cannot be lost. */
  get deadline(): number {
    if (this.holds.length === 0) return Infinity;
    let latest = -Infinity;
    for (const hold of this.holds) latest = Math.max(latest, hold.deadline);
    return latest;
  }

  /** The deadline, as if the clock had not jumped since Redis confirmed the tenure. */
  get deadlineByAnyClock(): number {
    return this.deadline + this.runtime.clock.jumped - this.#confirmedAtJump;
  }

  /** The last hold has been given back, and Redis has not answered yet. */
  get ending(): boolean {
    return this.state === 'releasing' || (this.state === 'held' && this.holds.length === 0);
  }

  get watched(): boolean {
    for (const hold of this.holds) if (hold.watched) return true;
    return false;
  }

  /** ms for which the lock is surely ours; 0 when it is not, or when nobody can say before a renewal has answered. */
  validFor(): number {
    if (this.check() !== 'valid' || this.state !== 'held') return 0;
    return Math.max(0, this.deadline - this.runtime.clock.now());
  }

  /**
   * Looks at the clock before anything is believed: after a blocked event loop this comes before any timer. Past its
   * deadline the lock is lost, unless only the wall clock jumped: then a renewal has to tell.
   */
  check(): 'valid' | 'unconfirmed' | 'lost' {
    if (this.state !== 'held') return this.loss === undefined ? 'valid' : 'lost';
    const now = this.runtime.clock.now();
    const jump = this.runtime.clock.jumped - this.#confirmedAtJump;
    if (jump <= 0 && now < this.deadline) return 'valid';
    if (now - jump < this.deadline) {
      // A machine that slept or a clock that was set: the server knows which.
      void this.confirm();
      return 'unconfirmed';
    }
    this.lose('expired');
    return 'lost';
  }

  /** The deadline is here, or as good as: lost, unless only the clock jumped. */
  expire(): 'unconfirmed' | 'lost' {
    if (this.check() === 'unconfirmed') return 'unconfirmed';
    this.lose('expired');
    return 'lost';
  }

  /** Settles a doubt that a jump of the clock has raised: Redis confirms the tenure, or it is lost. */
  confirm(): Promise<void> {
    this.#confirming ??= this.#confirm().finally(() => (this.#confirming = undefined));
    return this.#confirming;
  }

  async #confirm(): Promise<void> {
    const { clock } = this.runtime;
    // 1 ms extends nothing: a lease that the caller gave stays what it was.
    const leaseMs = this.watched ? this.runtime.options.lockWatchdogTimeout : 1;
    const ticket = this.renewalTicket(leaseMs);
    const { jumped } = ticket;
    const request = await this.protocol.renewal.renew([this.renewalItem(leaseMs)]).done;
    if (this.state !== 'held') return;
    const left = request.reply?.[0] ?? 0;
    // Unanswered, and by neither clock is the lease over: the doubt remains, the next look asks again.
    if (request.error !== undefined && clock.now() < this.deadline) {
      this.runtime.watchdog.deadlineMoved(this);
      return;
    }
    if (request.error !== undefined || left === 0) {
      this.lose(left === 0 && request.error === undefined ? 'gone' : 'expired', request.error);
      return;
    }
    // That attempt of a partial release may run last, with what was left by the clock that has jumped.
    if (this.#mayShorten(ticket)) {
      if (clock.now() < this.deadline) this.#confirmedAtJump = jumped;
      return;
    }
    const sentAt = request.sentAt + jumped;
    const jump = jumped - this.#confirmedAtJump;
    for (const hold of this.holds) {
      if (hold.watched) hold.leaseEnd = sentAt + Math.min(left, hold.leaseMs);
      else hold.leaseEnd = Math.min(hold.leaseEnd + jump, sentAt + left);
    }
    this.#confirmedAtJump = jumped;
    this.runtime.watchdog.deadlineMoved(this);
  }

  /** The first hold; the acquire that it came from was sent at `sentAt` (lease clock ms). */
  open(terms: HoldTerms, sentAt: number, now: number, parent?: HoldRecord, protocol = this.protocol): HoldRecord {
    const { leaseMs, watched, bare, site } = terms;
    const hold = new HoldRecord(this, parent, leaseMs, watched, bare, sentAt, now, site, protocol);
    if (terms.drift !== undefined) hold.drift = terms.drift;
    this.holds.push(hold);
    this.#mayLast(leaseMs);
    this.runtime.watchdog.add(this);
    return hold;
  }

  /** A hold inside `parent`, or undefined if the parent was given back meanwhile. */
  openNested(parent: HoldRecord, terms: HoldTerms, protocol: LockProtocol): Promise<HoldRecord | undefined> {
    const open = async (): Promise<HoldRecord | undefined> => {
      if (this.check() === 'unconfirmed') await this.confirm();
      await this.#whenNoStray();
      if (parent.loss !== undefined) throw parent.loss;
      if (parent.state !== 'open' || this.state !== 'held' || !parent.holds(protocol)) return undefined;
      const { clock } = this.runtime;
      const jumped = clock.jumped;
      this.#mayLast(terms.leaseMs);
      const held = this.holds.filter(({ half }) => half === protocol.half).length;
      const open = this.holds.map((hold) => hold.protocol);
      const request = await protocol.acquireNested(this.owner, held + 1, terms.leaseMs, open).done;
      if (request.inDoubt) this.#stray = request;
      this.#throwIfLost();
      if (request.error !== undefined) return this.#failed(request, parent);
      if (request.reply === 'gone') throw this.lose('gone');
      if (this.runtime.closed) throw new ClientClosedError(); // not given back either, as below
      const sentAt = request.sentAt + jumped;
      const now = clock.now();
      if (now >= grantDeadline(sentAt, terms.leaseMs)) {
        // Not given back: the next request carries an absolute count, and a release would free the outer hold.
        await request.whenQuiet();
        throw new RedisUnavailableError('the answer came after the lease that was asked for had ended', 'none');
      }
      const hold = this.open(terms, sentAt, now, parent, protocol);
      if (typeof request.reply === 'bigint') hold.token = request.reply;
      this.#emitReentered();
      return hold;
    };
    return this.#inTurn(open, (error) => {
      parent.tellAway(error);
      throw error;
    });
  }

  /**
   * Gives a hold that the watchdog has kept the lease that was asked for, counted from now. With other holds around it
   * the key lasts as long as theirs.
   */
  beginLease(hold: HoldRecord, leaseMs: number): Promise<void> {
    return this.#inTurn(async () => {
      if (this.check() === 'unconfirmed') await this.confirm();
      await this.#whenNoStray();
      if (hold.loss !== undefined) throw hold.loss;
      this.#throwIfLost();
      const { clock } = this.runtime;
      const jumped = clock.jumped;
      const now = clock.now();
      // It may be shorter from the moment on that the request runs.
      hold.watched = false;
      hold.leaseMs = leaseMs;
      hold.longestLeaseMs = leaseMs;
      hold.leaseEnd = now + leaseMs;
      this.#mayLast(leaseMs);
      this.runtime.watchdog.deadlineMoved(this);
      const request = await this.#setRemaining(now);
      if (request.error !== undefined) return this.#failed(request);
      if (request.reply === 'gone') throw this.lose('gone');
      hold.leaseEnd = Math.max(hold.leaseEnd, request.sentAt + jumped + leaseMs);
    });
  }

  /** What the open holds have left, as absolute counts and times. */
  async #setRemaining(now: number): Promise<ScriptRequest<HeldReply>> {
    const remaining = this.holds.map(({ half, protocol, leaseEnd }) => ({
      half,
      protocol,
      leftMs: Math.ceil(leaseEnd - now),
    }));
    const leaseMs = Math.max(...remaining.map(({ leftMs }) => leftMs));
    this.#partials += 1;
    const request = await this.protocol.releasePartial(this.owner, remaining, leaseMs).done;
    this.#partials += 1;
    if (request.inDoubt) this.#stray = request;
    this.#throwIfLost();
    return request;
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
    return this.#turn === undefined && this.holds.length === 1 && hold.state === 'open' && this.check() === 'valid';
  }

  #releaseLast(hold: HoldRecord): Promise<void> {
    const { deadline } = hold;
    this.holds.pop();
    const released = this.#end(hold, deadline);
    hold.close();
    return released;
  }

  async #release(hold: HoldRecord): Promise<void> {
    if (this.check() === 'unconfirmed') await this.confirm();
    if (hold.loss !== undefined) {
      hold.close();
      throw hold.loss;
    }
    const deadline = this.deadline;
    // Closed before anything is sent: what the caller does next without awaiting us is no longer inside.
    this.holds.splice(this.holds.indexOf(hold), 1);
    hold.close();
    this.runtime.watchdog.deadlineMoved(this); // what the others have left may be less
    if (this.#turn === undefined && this.holds.length === 0) return this.#end(hold, deadline);
    return this.#inTurn(
      () => this.#giveBack(hold, deadline),
      (error) => {
        if (this.holds.length > 0 || this.state !== 'held') throw error;
        // Nobody holds it any more: given back in the background at once.
        this.runtime.watchdog.remove(this);
        const end = { kind: 'failed', error, alsoOwners: [], openUntil: 0, until: 0 } as const;
        throw this.#ended(end, hold, deadline) ?? error;
      },
    );
  }

  async #giveBack(hold: HoldRecord, deadline: number): Promise<void> {
    if (this.holds.length > 0) await this.#whenNoStray();
    this.#throwIfLost();
    const { clock } = this.runtime;
    // Releases that were begun together find nothing left, and end the tenure together.
    if (this.holds.length === 0) return (this.#ending ??= this.#end(hold, deadline));
    if (this.deadline <= clock.now()) {
      // Nothing is left to the others: they are told, before anybody else can be inside, and the lock is freed.
      for (const other of this.holds.splice(0)) {
        this.#tellLoss(other, new LockLostError(this.protocol.name, this.owner, 'expired'));
      }
      return (this.#ending ??= this.#end(hold, deadline));
    }
    const now = clock.now();
    const holdCount = this.holds.length;
    const request = await this.#setRemaining(now);
    // No undoing: the next request carries an absolute count again.
    if (request.error !== undefined) return this.#failed(request);
    if (request.reply === 'gone') throw this.lose('gone');
    this.#emitReleased(holdCount);
  }

  /** Gives the lock on, or back, when nobody holds it: it was granted to somebody who is not there any more. */
  endUnclaimed(leaseMs: number): void {
    this.#mayLast(leaseMs);
    const leaseEnd = this.runtime.clock.now() + leaseMs;
    this.#end(undefined, Infinity, leaseEnd).catch(() => undefined); // what could not be released is compensated
  }

  #end(hold: HoldRecord | undefined, deadline: number, leaseEnd = deadline): Promise<void> {
    this.state = 'releasing';
    if (hold !== undefined) hold.releasing = true;
    const heir = this.entry.heirOf(this, leaseEnd);
    if (heir !== undefined) {
      const handed = this.entry.handOff(this, heir);
      this.runtime.watchdog.remove(this);
      return handed.then((end) => {
        const error = this.#ended(end, hold, deadline);
        if (error !== undefined) throw error;
      });
    }
    return new Promise((resolve, reject) => {
      // Sent first: what is left to do here is done while the server works.
      const request = this.protocol.release([this.owner], hold?.protocol);
      this.runtime.watchdog.remove(this);
      request.onDone(() => {
        const error = this.#ended(freeingEnd(request), hold, deadline);
        if (error === undefined) resolve();
        else reject(error);
      });
    });
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
      }
      this.entry.ended(this, 'unknown');
      return end.error;
    }
    if (this.#strayIsDue()) void this.#compensate([this.owner], 0, 0);
    // A repeat that finds the field gone: an earlier attempt of ours removed it, unless the lease had ended by now.
    if (end.kind === 'gone' && !(end.inDoubt && this.runtime.clock.now() < deadline)) {
      this.loss = new LockLostError(this.protocol.name, this.owner, 'gone');
      this.entry.ended(this, 'lost');
      if (hold !== undefined) this.#emitLoss(hold, this.loss);
      return this.loss;
    }
    this.entry.ended(this, end.kind === 'handed' ? 'handed' : 'freed');
    this.#emitReleased(0);
    return undefined;
  }

  /** The lock is not ours any more, or nobody can say that it is. Every open hold is told, once. */
  lose(reason: LossReason, cause?: unknown): LockLostError {
    if (this.loss !== undefined) return this.loss;
    const loss = new LockLostError(this.protocol.name, this.owner, reason, cause === undefined ? undefined : { cause });
    this.#drop(loss);
    // A renewal or nested acquire whose answer was lost may have set a longer lease than we know of; and who has lost
    // one part still has the others.
    if (reason === 'expired' || this.protocol.parts !== undefined)
      void this.#compensate([this.owner], this.#stray?.openUntil ?? 0, 0);
    else if (this.#strayIsDue()) void this.#compensate([this.owner], 0, 0);
    return loss;
  }

  /** This client forced the lock open, or may have: then what nobody holds any more is given back all the same. */
  force(inDoubt: boolean): void {
    if (this.state !== 'held') return;
    this.lose('forced');
    if (inDoubt) void this.#compensate([this.owner], 0, 0);
  }

  /** The client is closed: holds are told; what Redis has of them ends with its lease. */
  abandon(error: ClientClosedError): void {
    this.state = 'over';
    this.#abandoned = error;
    this.runtime.watchdog.remove(this);
    for (const hold of this.holds.splice(0)) hold.lose(error);
  }

  #drop(loss: LockLostError): void {
    this.loss = loss;
    this.state = 'over';
    this.runtime.watchdog.remove(this);
    this.entry.ended(this, 'lost');
    for (const hold of this.holds.splice(0)) this.#tellLoss(hold, loss);
  }

  #tellLoss(hold: HoldRecord, loss: LockLostError): void {
    if (hold.state !== 'open') return;
    hold.lose(loss);
    this.#emitLoss(hold, loss);
  }

  #emitLoss(hold: HoldRecord, loss: LockLostError): void {
    hold.loss ??= loss;
    const { reason, cause } = loss;
    this.runtime.events.emit('leaseLost', { lockName: this.protocol.name, owner: this.owner, reason, cause });
  }

  #emitReentered(): void {
    const { events } = this.runtime;
    if (events.heard('acquired')) {
      const holdCount = this.holds.length;
      events.emit('acquired', { lockName: this.protocol.name, owner: this.owner, holdCount, handedOff: false });
    }
  }

  #emitReleased(holdCount: number): void {
    const { events } = this.runtime;
    if (events.heard('released')) {
      events.emit('released', { lockName: this.protocol.name, owner: this.owner, holdCount });
    }
  }

  #compensate(owners: readonly string[], openUntil: number, until: number): Promise<void> {
    return this.runtime.compensations.add({
      send: () => this.protocol.release(owners),
      notBefore: Math.max(this.#strayUntil, openUntil),
      until: Math.max(this.#lastLeaseEnd, until),
    });
  }

  /** For `only` this hold, or for all that the watchdog renews. */
  renewalItem(leaseMs: number, only?: HoldRecord): RenewalItem {
    const item = { key: this.protocol.key, owner: this.owner, leaseMs };
    if (this.protocol.half === undefined && this.protocol.parts === undefined) return item;
    const renewed = (hold: HoldRecord): boolean => (only === undefined ? hold.watched : hold === only);
    const holds = this.holds.map((hold) => ({ half: hold.half, protocol: hold.protocol, renewed: renewed(hold) }));
    return { ...item, holds };
  }

  /** To be taken right before a renewal of this tenure is sent. */
  renewalTicket(leaseMs: number): RenewalTicket {
    const { clock } = this.runtime;
    this.#mayLast(leaseMs);
    const partialOpen = this.#partials % 2 === 1 || this.#strayIsOpen();
    return { partials: this.#partials, confirms: !partialOpen, jumped: clock.jumped };
  }

  /** What Redis answered: `left` ms from `sentAt` (monotonic), 0 if the owner does not hold the lock. */
  renewed(ticket: RenewalTicket, sentAt: number, left: number, only?: HoldRecord): void {
    // Given back or lost while the renewal was under way: then "gone" is no news.
    if (this.state !== 'held') return;
    if (left === 0) {
      this.lose('gone');
      return;
    }
    // That attempt of a partial release may run last, with the shorter lease.
    if (this.#mayShorten(ticket)) return;
    this.#confirmedAtJump = Math.max(this.#confirmedAtJump, ticket.jumped);
    if (only !== undefined) only.longestLeaseMs = Math.max(only.longestLeaseMs, left);
    for (const hold of only === undefined ? this.holds : [only]) {
      // The key may have longer, for another hold; that is not this one's to count on.
      const leaseMs = only === undefined ? Math.min(left, hold.leaseMs) : left;
      if (only !== undefined || hold.watched) hold.leaseEnd = Math.max(hold.leaseEnd, sentAt + ticket.jumped + leaseMs);
    }
  }

  /** An attempt of a partial release was unanswered at some time while the renewal was under way. */
  #mayShorten(ticket: RenewalTicket): boolean {
    return !ticket.confirms || ticket.partials !== this.#partials;
  }

  /** Raises the lease of a hold that the caller wants longer; never shortens it. */
  extend(hold: HoldRecord, leaseMs: number): Promise<void> {
    return this.#inTurn(async () => {
      if (this.check() === 'unconfirmed') await this.confirm();
      await this.#whenNoStray();
      if (hold.loss !== undefined) throw hold.loss;
      if (hold.state !== 'open') {
        throw new NotOwnerError(this.protocol.name, `extend(): this hold of "${this.protocol.name}" was given back.`);
      }
      const ticket = this.renewalTicket(leaseMs);
      const request = await this.protocol.renewal.renew([this.renewalItem(leaseMs, hold)]).done;
      if (request.inDoubt) this.#stray = request;
      this.#throwIfLost();
      if (request.error !== undefined) return this.#failed(request);
      const left = request.reply?.[0] ?? 0;
      this.renewed(ticket, request.sentAt, Math.min(left, leaseMs), hold);
      this.#throwIfLost();
      this.runtime.watchdog.deadlineMoved(this);
    });
  }

  #throwIfLost(): void {
    const error = this.loss ?? this.#abandoned;
    if (error !== undefined) throw error;
  }

  #mayLast(leaseMs: number): void {
    this.#lastLeaseEnd = Math.max(this.#lastLeaseEnd, latestEnd(this.runtime, leaseMs));
  }

  /** Another attempt of the first acquire may still run, and create the key anew. */
  #strayIsDue(): boolean {
    return this.#strayUntil > 0 && this.#strayUntil >= this.runtime.clock.clock.monotonic();
  }

  #strayIsOpen(): boolean {
    const stray = this.#stray;
    if (stray === undefined) return false;
    if (stray.inDoubt && stray.openUntil >= this.runtime.clock.clock.monotonic()) return true;
    this.#stray = undefined;
    return false;
  }

  async #whenNoStray(): Promise<void> {
    if (this.#strayIsOpen()) await this.#stray?.whenQuiet();
    this.#stray = undefined;
  }

  /** Nobody fails while an attempt may still run. */
  async #failed(
    request: RequestAttempts & { readonly error: LockError | undefined },
    parent?: HoldRecord,
  ): Promise<never> {
    await request.whenQuiet();
    if (request.error instanceof RedisUnavailableError) {
      this.#away = request.error;
      parent?.tellAway(request.error);
    }
    throw request.error as LockError;
  }

  /** One after the other. One command deadline without Redis is enough for all that wait: they do not take one each. */
  #inTurn<T>(
    work: () => Promise<T>,
    giveUp = (error: RedisUnavailableError): T => {
      throw error;
    },
  ): Promise<T> {
    const before = this.#turn;
    const next = (): Promise<T> | T => {
      if (this.#away === undefined) return work();
      this.#throwIfLost();
      return giveUp(unsent(this.#away));
    };
    const run = before === undefined ? work() : before.then(next);
    const turn = run.then(
      () => undefined,
      () => undefined,
    );
    this.#turn = turn;
    void turn.then(() => {
      if (this.#turn !== turn) return;
      this.#turn = undefined;
      this.#away = undefined;
    });
    return run;
  }
}

const unsent = (cause: RedisUnavailableError): RedisUnavailableError =>
  new RedisUnavailableError('Redis did not answer the request that this one had to wait for', 'none', { cause });

function freeingEnd({ error, reply, inDoubt }: ScriptRequest<ReleaseReply>): TenureEnd {
  if (error !== undefined) return { kind: 'failed', error, alsoOwners: [], openUntil: 0, until: 0 };
  if (reply === 'freed') return FREED;
  // What is given back now cannot have been by an earlier attempt.
  return { kind: 'gone', inDoubt: inDoubt && reply !== 'partly' };
}

const FREED = { kind: 'freed' } as const;

/** How the last request of a tenure ended. */
export type TenureEnd =
  | { readonly kind: 'freed' | 'handed' }
  | { readonly kind: 'gone'; readonly inDoubt: boolean }
  | {
      readonly kind: 'failed';
      readonly error: LockError;
      /** A hand-off may have made this owner the holder. */
      readonly alsoOwners: readonly string[];
      /** Monotonic ms until which the request may still run, and the end of the lease that it may set. */
      readonly openUntil: number;
      readonly until: number;
    };

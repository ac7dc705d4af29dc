/*
 * How long a tenure lasts, by what Redis has confirmed. Each hold has a lease of its own, which counts from the sending
 * of the request that asked for it, and ends for us a little before it does in Redis. An error is not a loss: only an
 * answer of Redis, or the deadline, says that the lock is lost; after a jump of the clock only Redis can.
 */
import { NotOwnerError, type LockError, type LockLostError, type LossReason } from '../errors.js';
import type { LeaseClock } from '../clock.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { HeldReply } from '../redis/scripts/replies.js';
import { latestEnd } from './compensations.js';
import type { HoldRecord } from './hold-record.js';
import { wholeMs } from '../lease-time.js';
import type { LockProtocol, RenewalItem } from '../protocols/lock-protocol.js';
import { orByKey } from './split-renewal.js';
import type { RequestTurns } from './request-turns.js';

/** What the leases of one client share. */
export interface LeaseServices {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number; readonly lockWatchdogTimeout: number };
}

/** What a lease reads of its tenure, and reports to it. */
export interface LeasedTenure {
  readonly protocol: LockProtocol;
  readonly owner: string;
  readonly state: 'held' | 'releasing' | 'over';
  readonly loss: LockLostError | undefined;
  readonly holds: readonly HoldRecord[];
  readonly turns: RequestTurns;
  /** An attempt of a nested acquire or partial release may still run. */
  readonly strayIsOpen: boolean;
  throwIfLost(): void;
  lose(reason: LossReason): LockLostError;
  /** The deadline has passed. */
  expire(cause?: unknown): void;
  /** The deadline is another one now: the watchdog has to look at it. */
  deadlineMoved(): void;
}

/** `unconfirmed`: only the wall clock jumped, and Redis has to say whether the lock is still held. */
export type LeaseStatus = 'valid' | 'unconfirmed' | 'lost';

/** What a renewal has to know again when its answer comes. */
export interface RenewalTicket {
  readonly partials: number;
  readonly confirms: boolean;
  readonly jumped: number;
}

export class Lease {
  /** Partial releases begun and ended: a renewal that was under way meanwhile proves no deadline. */
  #partials = 0;
  #lastEnd = 0;
  #confirmedAtJump: number;
  #confirming: Promise<LockError | undefined> | undefined;

  constructor(
    private readonly services: LeaseServices,
    private readonly tenure: LeasedTenure,
    jumpedAtSending: number,
  ) {
    this.#confirmedAtJump = jumpedAtSending;
  }

  /** Lease clock ms at which the last of the open holds stops to count. What nobody holds any more cannot be lost. */
  get deadline(): number {
    const { holds } = this.tenure;
    if (holds.length === 0) return Infinity;
    let latest = -Infinity;
    for (const hold of holds) latest = Math.max(latest, hold.deadline);
    return latest;
  }

  /** The deadline, as if the clock had not jumped since Redis confirmed the tenure. */
  get deadlineByAnyClock(): number {
    return this.deadline + this.services.clock.jumped - this.#confirmedAtJump;
  }

  /** The watchdog renews it. */
  get watched(): boolean {
    for (const hold of this.tenure.holds) if (hold.watched) return true;
    return false;
  }

  /** The latest end of any lease that a request of this tenure can have set (monotonic ms). */
  get lastEnd(): number {
    return this.#lastEnd;
  }

  /** A request that may set such a lease was sent before `now` (monotonic ms), or is about to be sent. */
  mayLast(leaseMs: number, now?: number): void {
    this.#lastEnd = Math.max(this.#lastEnd, latestEnd(this.services, leaseMs, now));
  }

  /** ms for which the lock is surely held; 0 if it is not, or if Redis has to confirm it first. Reports no loss. */
  validFor(now = this.services.clock.now()): number {
    if (this.tenure.state !== 'held' || this.statusAt(now) !== 'valid') return 0;
    return Math.max(0, this.deadline - now);
  }

  /** What the clock says. Changes nothing and reports nothing; {@link check} does. */
  statusAt(now: number): LeaseStatus {
    const { state, loss } = this.tenure;
    if (state !== 'held') return loss === undefined ? 'valid' : 'lost';
    const jump = this.services.clock.jumped - this.#confirmedAtJump;
    if (jump <= 0 && now < this.deadline) return 'valid';
    return now - jump < this.deadline ? 'unconfirmed' : 'lost';
  }

  /**
   * Looks at the clock and reports a loss, before the caller relies on the lock: after a blocked event loop this comes
   * before any timer. If only the clock jumped, a renewal asks Redis.
   */
  check(now = this.services.clock.now()): LeaseStatus {
    const status = this.statusAt(now);
    if (this.tenure.state !== 'held') return status;
    // A machine that slept or a clock that was set: the server knows which.
    if (status === 'unconfirmed') void this.confirm();
    else if (status === 'lost') this.tenure.expire();
    return status;
  }

  /** The deadline is here, or as good as: lost, unless only the clock jumped. */
  expire(): 'unconfirmed' | 'lost' {
    if (this.check() === 'unconfirmed') return 'unconfirmed';
    this.tenure.expire();
    return 'lost';
  }

  /**
   * Settles a doubt that a jump of the clock has raised: Redis confirms the tenure, or it is lost. Resolves with the
   * error for which it could not be settled.
   */
  confirm(): Promise<LockError | undefined> {
    this.#confirming ??= this.#confirm().finally(() => (this.#confirming = undefined));
    return this.#confirming;
  }

  async #confirm(): Promise<LockError | undefined> {
    const { tenure } = this;
    const { clock, options } = this.services;
    // 1 ms extends nothing: a lease that the caller gave stays what it was.
    const leaseMs = this.watched ? options.lockWatchdogTimeout : 1;
    const ticket = this.renewalTicket(leaseMs);
    const { jumped } = ticket;
    const { renewal } = tenure.protocol;
    const item = this.renewalItem(leaseMs);
    const request = await orByKey(renewal, item, await renewal.renew([item]).done);
    if (tenure.state !== 'held') return undefined;
    const left = request.reply?.[0] ?? 0;
    // Unanswered, and by neither clock is the lease over: the doubt remains, the next look asks again.
    if (request.error !== undefined && clock.now() < this.deadline) {
      tenure.deadlineMoved();
      return request.error;
    }
    if (request.error !== undefined || left === 0) {
      if (request.error === undefined) tenure.lose('gone');
      else tenure.expire(request.error);
      return undefined;
    }
    // That attempt of a partial release may run last, with what was left by the clock that has jumped.
    if (this.#mayShorten(ticket)) {
      if (clock.now() < this.deadline) this.#confirmedAtJump = jumped;
      return undefined;
    }
    const sentAt = request.sentAt + jumped;
    const jump = jumped - this.#confirmedAtJump;
    for (const hold of tenure.holds) {
      if (hold.watched) hold.leaseEnd = sentAt + Math.min(left, hold.leaseMs);
      else hold.leaseEnd = Math.min(hold.leaseEnd + jump, sentAt + left);
    }
    this.#confirmedAtJump = jumped;
    tenure.deadlineMoved();
    return undefined;
  }

  /** For `only` this hold, or for all that the watchdog renews. */
  renewalItem(leaseMs: number, only?: HoldRecord): RenewalItem {
    const { protocol, owner } = this.tenure;
    const item = { key: protocol.key, owner, leaseMs };
    if (protocol.half === undefined && protocol.parts === undefined) return item;
    const renewed = (hold: HoldRecord): boolean => (only === undefined ? hold.watched : hold === only);
    const holds = this.tenure.holds.map((hold) => ({
      half: hold.half,
      protocol: hold.protocol,
      renewed: renewed(hold),
    }));
    return { ...item, holds };
  }

  /** To be taken right before a renewal of this tenure is sent. */
  renewalTicket(leaseMs: number): RenewalTicket {
    this.mayLast(leaseMs);
    const partialOpen = this.#partials % 2 === 1 || this.tenure.strayIsOpen;
    return { partials: this.#partials, confirms: !partialOpen, jumped: this.services.clock.jumped };
  }

  /** What Redis answered: `left` ms from `sentAt` (monotonic), 0 if the owner does not hold the lock. */
  renewed(ticket: RenewalTicket, sentAt: number, left: number, only?: HoldRecord): void {
    const { tenure } = this;
    // Given back or lost while the renewal was under way: then "gone" is no news.
    if (tenure.state !== 'held') return;
    if (left === 0) {
      tenure.lose('gone');
      return;
    }
    // That attempt of a partial release may run last, with the shorter lease.
    if (this.#mayShorten(ticket)) return;
    this.#confirmedAtJump = Math.max(this.#confirmedAtJump, ticket.jumped);
    if (only !== undefined) only.longestLeaseMs = Math.max(only.longestLeaseMs, left);
    for (const hold of only === undefined ? tenure.holds : [only]) {
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
    const { tenure } = this;
    const { protocol, turns } = tenure;
    return turns.take(async (settleBy) => {
      await turns.ready();
      hold.throwIfLost();
      if (hold.state !== 'open') {
        throw new NotOwnerError(protocol.name, `extend(): this hold of "${protocol.name}" was given back.`);
      }
      const ticket = this.renewalTicket(leaseMs);
      const item = this.renewalItem(leaseMs, hold);
      const request = await turns.answered(protocol.renewal.renew([item]), settleBy);
      turns.doubt(request);
      tenure.throwIfLost();
      const renewal = await orByKey(protocol.renewal, item, request);
      if (renewal.error !== undefined) return turns.failed(request);
      const left = renewal.reply?.[0] ?? 0;
      this.renewed(ticket, renewal.sentAt, Math.min(left, leaseMs), hold);
      tenure.throwIfLost();
      hold.throwIfLost();
      tenure.deadlineMoved();
    });
  }

  /**
   * Gives a hold that the watchdog has kept the lease that was asked for, counted from now. With other holds around it
   * the key lasts as long as theirs. It is over at `settleBy` (lease clock ms), done or failed.
   */
  begin(hold: HoldRecord, leaseMs: number, settleBy: number): Promise<void> {
    const { tenure } = this;
    const { turns } = tenure;
    return turns.take(async () => {
      await turns.ready();
      hold.throwIfLost();
      tenure.throwIfLost();
      const { clock } = this.services;
      const jumped = clock.jumped;
      const now = clock.now();
      // It may be shorter from the moment on that the request runs.
      hold.watched = false;
      hold.leaseMs = leaseMs;
      hold.longestLeaseMs = leaseMs;
      hold.leaseEnd = now + leaseMs;
      this.mayLast(leaseMs);
      tenure.deadlineMoved();
      const request = await this.setRemaining(settleBy, now);
      if (request.error !== undefined) return turns.failed(request);
      if (request.reply === 'gone') throw tenure.lose('gone');
      hold.throwIfLost();
      hold.leaseEnd = Math.max(hold.leaseEnd, request.sentAt + jumped + leaseMs);
    });
  }

  /** A partial release: sets what the open holds have left, as absolute counts and times. */
  async setRemaining(settleBy: number, now = this.services.clock.now()): Promise<ScriptRequest<HeldReply>> {
    const { tenure } = this;
    const remaining = tenure.holds.map(({ half, protocol, leaseEnd }) => ({
      half,
      protocol,
      leftMs: wholeMs(now, leaseEnd),
    }));
    const leaseMs = Math.max(...remaining.map(({ leftMs }) => leftMs));
    this.#partials += 1;
    const sent = tenure.protocol.releasePartial(tenure.owner, remaining, leaseMs);
    const request = await tenure.turns.answered(sent, settleBy);
    this.#partials += 1;
    tenure.turns.doubt(request);
    tenure.throwIfLost();
    return request;
  }
}

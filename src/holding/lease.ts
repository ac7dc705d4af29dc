/*
 * The time for which Redis has confirmed a tenure. Each hold has its own lease. The lease counts from the sending of
 * its request, and the client ends it a margin before Redis does. An error is not a loss: only a reply of Redis or the
 * deadline ends the tenure. After a jump of the clock the client asks Redis first.
 */
import { NotOwnerError, type LockError, type LockLostError, type LossReason } from '../errors.js';
import type { LeaseClock, JumpedMs, LeaseClockMs, MonotonicMs } from '../clock.js';
import { quoted } from '../visible.js';
import { orByKey } from '../redis/server-error.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { HeldReply, RenewalReply } from '../redis/scripts/replies.js';
import { latestEnd } from './compensations.js';
import type { HoldRecord } from './hold-record.js';
import { confirmLeft, hasCaller, sendRemaining } from './left-holds.js';
import type { LockProtocol, RenewalItem } from '../protocols/lock-protocol.js';
import type { RequestTurns } from './request-turns.js';

/** The clock and the options, in ms, that all leases of a client share. */
export interface LeaseServices {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number; readonly lockWatchdogTimeout: number };
}

/** The tenure, as its lease uses it. */
export interface LeasedTenure {
  readonly protocol: LockProtocol;
  readonly owner: string;
  readonly state: 'held' | 'kept' | 'releasing' | 'over';
  readonly loss: LockLostError | undefined;
  readonly holds: readonly HoldRecord[];
  readonly turns: RequestTurns;
  readonly lease: { recordLease(leaseMs: number): void };
  /** An attempt of a nested acquire or partial release may still run. */
  readonly isDoubtful: boolean;
  throwIfLost(): void;
  lose(reason: LossReason): LockLostError;
  /** The deadline has passed. */
  loseExpired(cause?: unknown): void;
  /** The deadline has changed: the watchdog has to check it. */
  deadlineMoved(): void;
}

/** `unconfirmed`: the lease has ended only by the clock that jumped. Redis has to confirm that the lock is held. */
export type LeaseStatus = 'valid' | 'unconfirmed' | 'lost';

/** The state at the sending of a renewal. The client compares it when the reply arrives. */
export interface RenewalTicket {
  readonly partials: number;
  readonly confirms: boolean;
  readonly jumped: JumpedMs;
}

export class Lease {
  /** Number of begun plus ended partial releases. A renewal that was pending during one confirms no deadline. */
  #partials = 0;
  #lastEnd: MonotonicMs = 0;
  /** When the watchdog last renewed the tenure; before, when the first hold opened that it renews. */
  renewedAt: LeaseClockMs = 0;
  /** A renewal was sent. Its attempts may run late. */
  hasRenewed = false;
  #confirmedAtJump: JumpedMs;
  #confirming: Promise<LockError | undefined> | undefined;

  constructor(
    private readonly services: LeaseServices,
    private readonly tenure: LeasedTenure,
    jumpedAtSending: JumpedMs,
  ) {
    this.#confirmedAtJump = jumpedAtSending;
  }

  /** When the last open hold expires. `Infinity` when no hold is open. */
  get deadline(): LeaseClockMs {
    const { holds } = this.tenure;
    if (holds.length === 0) return Infinity;
    let latest = -Infinity;
    for (const hold of holds) latest = Math.max(latest, hold.deadline);
    return latest;
  }

  /** The deadline plus the jump of the clock since the last confirmation: by then the lease has ended by any clock. */
  get deadlineByAnyClock(): LeaseClockMs {
    return this.deadline + this.services.clock.jumpedSince(this.#confirmedAtJump);
  }

  /**
   * When the leases end that the watchdog does not extend: callers gave them, or they are the last ones. 0 if they have
   * ended by the lease clock, or if there are none.
   */
  get givenEnd(): MonotonicMs {
    const { clock } = this.services;
    let end = -Infinity;
    for (const hold of this.tenure.holds) if (!hold.isRenewed && hasCaller(hold)) end = Math.max(end, hold.leaseEnd);
    return end > clock.now() ? clock.monotonicAt(end) : 0;
  }

  /** Whether a hold has a lease that the watchdog renews, or has renewed until its last lease. */
  get watched(): boolean {
    for (const hold of this.tenure.holds) if (hold.watched) return true;
    return false;
  }

  /** The shortest lease, in ms, that the watchdog still extends. `Infinity`: it renews no hold of this tenure. */
  get shortestRenewed(): number {
    let shortest = Infinity;
    for (const { watched, leaseEnd, renewedUntil, leaseMs } of this.tenure.holds)
      if (watched && leaseEnd < renewedUntil) shortest = Math.min(shortest, leaseMs);
    return shortest;
  }

  /** Why the tenure is lost at its deadline. */
  get lossAtDeadline(): LossReason {
    const open = this.tenure.holds.filter(hasCaller);
    const end = Math.max(...open.map(({ leaseEnd }) => leaseEnd));
    return open.some(({ leaseEnd, renewedUntil }) => leaseEnd === end && end >= renewedUntil)
      ? 'maxHoldTime'
      : 'expired';
  }

  /** When the last lease that any request of this tenure can have set has ended. */
  get lastEnd(): MonotonicMs {
    return this.#lastEnd;
  }

  /** Records a request that may set such a lease. It is sent at `now` at the latest. */
  recordLease(leaseMs: number, now?: MonotonicMs): void {
    this.#lastEnd = Math.max(this.#lastEnd, latestEnd(this.services, leaseMs, now));
  }

  /** Time, in ms, for which the lock is surely held. 0 when it is lost or unconfirmed. Reports no loss. */
  validFor(now = this.services.clock.now()): number {
    if (this.tenure.state !== 'held' || this.statusAt(now) !== 'valid') return 0;
    return Math.max(0, this.deadline - now);
  }

  /** The status by the clock alone. Has no side effect, in contrast to {@link check}. */
  statusAt(now: LeaseClockMs): LeaseStatus {
    const { state, loss } = this.tenure;
    if (state !== 'held') return loss === undefined ? 'valid' : 'lost';
    const jump = this.services.clock.jumpedSince(this.#confirmedAtJump);
    if (jump <= 0 && now < this.deadline) return 'valid';
    return now - jump < this.deadline ? 'unconfirmed' : 'lost';
  }

  /**
   * Checks the clock and reports a loss before the caller relies on the lock. After a blocked event loop the check runs
   * before any timer does. If only the clock jumped, a renewal asks Redis.
   */
  check(now = this.services.clock.now()): LeaseStatus {
    const status = this.statusAt(now);
    if (this.tenure.state !== 'held') return status;
    // The machine slept, or the clock was set. Only Redis knows which of the two happened.
    if (status === 'unconfirmed') void this.confirm();
    else if (status === 'lost') this.tenure.loseExpired();
    return status;
  }

  /**
   * The deadline has passed, or is less than a timer's slack from now. The tenure is lost unless only the clock jumped.
   */
  checkAtDeadline(): 'unconfirmed' | 'lost' {
    if (this.check() === 'unconfirmed') return 'unconfirmed';
    this.tenure.loseExpired();
    return 'lost';
  }

  /**
   * Asks Redis after a jump of the clock: Redis confirms the tenure, or the tenure is lost. Resolves with the error if
   * Redis could not be asked, and the tenure stays unconfirmed.
   */
  confirm(): Promise<LockError | undefined> {
    this.#confirming ??= this.#confirm().finally(() => (this.#confirming = undefined));
    return this.#confirming;
  }

  async #confirm(): Promise<LockError | undefined> {
    const { tenure } = this;
    const { clock } = this.services;
    const item = this.renewalItem();
    const ticket = this.takeRenewalTicket(item.leaseMs);
    const { jumped } = ticket;
    const { renewal } = tenure.protocol;
    const request = await orByKey(renewal, item, await renewal.renew([item]).done);
    if (tenure.state !== 'held') return undefined;
    const [reply = 'lost'] = request.reply ?? [];
    // The request failed, and the lease has not ended by either clock. It stays unconfirmed, and the next check asks
    // again.
    if (request.error !== undefined && clock.now() < this.deadline) {
      tenure.deadlineMoved();
      return request.error;
    }
    if (request.error !== undefined || reply === 'lost') {
      if (request.error === undefined) tenure.lose('gone');
      else tenure.loseExpired(request.error);
      return undefined;
    }
    // An attempt of the partial release may run after the renewal, with the time left by the clock that has jumped.
    if (this.#mayShorten(ticket)) {
      if (clock.now() < this.deadline) this.#confirmedAtJump = jumped;
      return undefined;
    }
    const sentAt = clock.at(request.sentAt, jumped);
    const jump = clock.jumpedSince(this.#confirmedAtJump, jumped);
    for (const hold of tenure.holds) {
      if (hold.isRenewed)
        hold.leaseEnd = Math.min(sentAt + Math.min(reply.remainingMs, hold.leaseMs), hold.renewedUntil);
      else hold.leaseEnd = Math.min(hold.leaseEnd + jump, sentAt + reply.remainingMs);
    }
    this.#confirmedAtJump = jumped;
    tenure.deadlineMoved();
    return undefined;
  }

  /**
   * The arguments of a renewal of `only` this hold, for `onlyMs`. Without `only`: of all holds that the watchdog renews. If
   * there are none, the renewal is for 1 ms: it extends nothing.
   */
  renewalItem(only?: HoldRecord, onlyMs = 1): RenewalItem {
    const { protocol, owner, holds: all } = this.tenure;
    let leaseMs = onlyMs;
    if (only === undefined) {
      const now = this.services.clock.now();
      for (const { watched, leaseEnd, renewedUntil, leaseMs: ownMs } of all)
        if (watched && leaseEnd < renewedUntil)
          leaseMs = Math.max(leaseMs, Math.min(ownMs, Math.ceil(renewedUntil - now)));
    }
    const item = { key: protocol.key, owner, leaseMs };
    if (protocol.side === undefined && protocol.lockedValues === undefined) return item;
    const renewed = (hold: HoldRecord): boolean => (only === undefined ? hold.isRenewed : hold === only);
    const holds = all.map((hold) => ({
      side: hold.side,
      protocol: hold.protocol,
      renewed: renewed(hold),
    }));
    return { ...item, holds };
  }

  /** The caller takes the ticket right before it sends a renewal of this tenure. */
  takeRenewalTicket(leaseMs: number): RenewalTicket {
    this.hasRenewed = true;
    this.recordLease(leaseMs);
    const partialOpen = this.#partials % 2 === 1 || this.tenure.isDoubtful;
    return { partials: this.#partials, confirms: !partialOpen, jumped: this.services.clock.jumped };
  }

  /** Redis replied to a renewal that was sent at `sentAt`. `only`: the one hold that it extended. */
  renewed(ticket: RenewalTicket, sentAt: MonotonicMs, reply: RenewalReply, only?: HoldRecord): void {
    const { tenure } = this;
    // The tenure was released or lost while the renewal was pending, so this reply reports no new loss.
    if (tenure.state !== 'held') return;
    if (reply === 'lost') {
      tenure.lose('gone');
      return;
    }
    // An attempt of the partial release may run after the renewal, with the shorter lease.
    if (this.#mayShorten(ticket)) return;
    this.#confirmedAtJump = Math.max(this.#confirmedAtJump, ticket.jumped);
    const left = reply.remainingMs;
    const from = this.services.clock.at(sentAt, ticket.jumped);
    if (only !== undefined) only.longestLeaseMs = Math.max(only.longestLeaseMs, left);
    for (const hold of only === undefined ? tenure.holds : [only]) {
      // The key may last longer for another hold. This hold counts on its own lease alone.
      const leaseMs = only === undefined ? Math.min(left, hold.leaseMs) : left;
      const until = only === undefined ? hold.renewedUntil : Infinity;
      if (only !== undefined || hold.watched) hold.leaseEnd = Math.max(hold.leaseEnd, Math.min(from + leaseMs, until));
    }
  }

  /** Whether an attempt of a partial release was unanswered at any time while the renewal was pending. */
  #mayShorten(ticket: RenewalTicket): boolean {
    return !ticket.confirms || ticket.partials !== this.#partials;
  }

  /** Extends the lease of a hold to at least `leaseMs` from now. Never shortens the lease. */
  extend(hold: HoldRecord, leaseMs: number): Promise<void> {
    const { tenure } = this;
    const { protocol, turns } = tenure;
    return turns.take(async (settleBy) => {
      await turns.ready();
      hold.throwIfLost();
      if (hold.state !== 'open') {
        throw new NotOwnerError(protocol.name, `extend(): this hold of ${quoted(protocol.name)} was released before.`);
      }
      const ticket = this.takeRenewalTicket(leaseMs);
      const item = this.renewalItem(hold, leaseMs);
      const request = await turns.answered(protocol.renewal.renew([item]), settleBy);
      turns.addDoubt(request.doubt);
      tenure.throwIfLost();
      const renewal = await orByKey(protocol.renewal, item, request);
      if (renewal.error !== undefined) return turns.failed(request);
      const [reply = 'lost'] = renewal.reply ?? [];
      const own = reply === 'lost' ? reply : { remainingMs: Math.min(reply.remainingMs, leaseMs) };
      this.renewed(ticket, renewal.sentAt, own, hold);
      tenure.throwIfLost();
      hold.throwIfLost();
      tenure.deadlineMoved();
    });
  }

  /**
   * Starts the lease that the caller requested, on a hold that the watchdog has renewed until now. The key lasts as
   * long as the longest lease of the holds around this hold. The call settles by `settleBy`.
   */
  begin(hold: HoldRecord, leaseMs: number, settleBy: LeaseClockMs): Promise<void> {
    const { tenure } = this;
    const { turns } = tenure;
    return turns.take(async () => {
      await turns.ready();
      hold.throwIfLost();
      tenure.throwIfLost();
      const { clock } = this.services;
      const jumped = clock.jumped;
      const now = clock.now();
      // The lease may be shorter from the moment when the request runs, so the new deadline counts before the reply.
      hold.watched = false;
      hold.leaseMs = leaseMs;
      hold.longestLeaseMs = leaseMs;
      hold.leaseEnd = now + leaseMs;
      this.recordLease(leaseMs);
      tenure.deadlineMoved();
      const request = await this.setRemaining(settleBy, now);
      if (request.error !== undefined) return turns.failed(request);
      if (request.reply?.kind === 'gone') throw tenure.lose('gone');
      hold.throwIfLost();
      hold.leaseEnd = Math.max(hold.leaseEnd, clock.at(request.sentAt, jumped) + leaseMs);
    });
  }

  /** A partial release: sets the counts and the remaining times, in ms, of the open holds as absolute values. */
  async setRemaining(settleBy: LeaseClockMs, now = this.services.clock.now()): Promise<ScriptRequest<HeldReply>> {
    const { tenure } = this;
    this.#partials += 1;
    const sent = sendRemaining(tenure, now);
    const request = await tenure.turns.answered(sent, settleBy);
    this.#partials += 1;
    tenure.turns.addDoubt(request.doubt);
    tenure.throwIfLost();
    if (request.reply?.kind === 'held') confirmLeft(tenure.holds);
    return request;
  }
}

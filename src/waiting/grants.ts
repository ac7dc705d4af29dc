/*
 * Turns replies into grants. The waiter whose try succeeded gets the lock, or a tenure that ends hands the lock over to
 * its successor. One reply can let several waiters through an open latch. Released permits go to the next waiters in
 * line. If a waiter has left before its grant, the grant goes on to the next waiter. A message grants nothing, because
 * all databases of a server share its channels.
 */
import { NotReplicatedError, type LockError } from '../errors.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply, Granted, HandOffReply, Handed } from '../redis/scripts/replies.js';
import type { LeaseClock, JumpedMs, LeaseClockMs } from '../clock.js';
import { latestEnd, type Compensations } from '../holding/compensations.js';
import type { WakeUps } from './wake-ups.js';
import { HandOffStreak } from './hand-off-streak.js';
import { grantDeadline } from '../holding/hold-record.js';
import type { LocalLine } from './line.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import type { ResolvedOptions } from '../options.js';
import type { RetrySchedule } from './retry-schedule.js';
import { SharedWaiter } from './shared-waiter.js';
import type { TenureEnd } from '../holding/tenure-end.js';
import { tellAcquired } from '../holding/tenure-events.js';
import type { Ended, TenureHost } from '../holding/tenure-host.js';
import { Tenure, type TenureServices } from '../holding/tenure.js';
import { LockWaiter } from './lock-waiter.js';
import type { Try, Waiter } from './waiter.js';

type GrantRequest = ScriptRequest<AcquireReply> | ScriptRequest<HandOffReply>;

/** The services that the grants of one client share. */
export interface GrantServices {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number; readonly handOff: ResolvedOptions['handOff'] };
  readonly tenures: TenureServices;
  readonly compensations: Compensations;
  newOwner(): string;
}

/** The line that the grants are for. */
export interface GrantingLine extends TenureHost<Tenure> {
  /** Whether calls of this client wait in the other line of this lock. Readers and writers wait in two lines. */
  othersWait(protocol: LockProtocol): boolean;
}

export class Grants {
  /** Waiters with a pending hand-over. */
  readonly successors = new Set<LockWaiter>();
  readonly #streak: HandOffStreak;
  /** Number of permits that this client has acquired here and not released. */
  #permits = 0;

  constructor(
    private readonly services: GrantServices,
    private readonly host: GrantingLine,
    private readonly line: LocalLine,
    private readonly schedule: RetrySchedule,
    private readonly wakeUps: WakeUps,
    /** Whether the waiters of this line can hold the lock at the same time. */
    private readonly concurrent: boolean,
  ) {
    this.#streak = new HandOffStreak(services.options.handOff, services.clock);
  }

  /**
   * Returns `true` if the grant was used, also when it goes on to another waiter because this one has left. `taken`:
   * the reply confirms an acquisition, which may have come too late.
   */
  grantIfTaken(waiter: Waiter, { request, jumped, sequence }: Try, taken: boolean): boolean {
    const { clock } = this.services;
    const sentAt = clock.at(request.sentAt, jumped);
    const now = clock.now();
    if (waiter instanceof LockWaiter) {
      if (request.reply?.kind === 'granted' && now < grantDeadline(sentAt, waiter.terms.leaseMs)) {
        this.#streak.reset();
        this.#grant(waiter, request, request.reply, sentAt, jumped, now);
        return true;
      }
    } else if (waiter instanceof SharedWaiter) {
      const { reply } = request;
      const open = waiter.sharesReplies && reply !== undefined && this.#tellAll(waiter, reply, sequence);
      if (open || (taken && now < sentAt + (waiter.leaseMs ?? Infinity))) {
        this.#share(waiter, request, sentAt, sequence);
        return true;
      }
    }
    return false;
  }

  /**
   * Creates the tenure of the waiter's owner, which has the lock now. If the waiter no longer wants the lock, the
   * tenure ends and the lock goes on to the next waiter.
   */
  #grant(
    waiter: LockWaiter,
    request: GrantRequest,
    reply: Granted | Handed,
    sentAt: LeaseClockMs,
    jumped: JumpedMs,
    now: LeaseClockMs,
  ): void {
    const { protocol, owner } = waiter;
    const doubtUntil = waiter.doubtUntil(request.doubt);
    const handedOff = reply.kind === 'handed';
    const tenure = new Tenure(this.services.tenures, this.host, protocol, owner, doubtUntil, jumped, handedOff);
    waiter.hasLock();
    this.line.remove(waiter);
    this.schedule.granted();
    this.line.addHolder(tenure);
    this.schedule.next = this.concurrent ? 'all' : 'head';
    if (!waiter.wantsGrant) {
      tenure.releaseUnclaimed(waiter.terms.leaseMs);
      waiter.addDoubt(request.doubt);
      waiter.reject(waiter.reason as LockError);
      return;
    }
    const record = tenure.open(waiter.terms, sentAt, now);
    record.token = tenure.token = reply.token;
    tellAcquired(tenure, record, waiter.terms.askedAt);
    // A forced unlock named this owner while the reply was pending. An attempt that ran after the forced unlock may
    // have acquired the lock again. Without a release here, that field would stay in Redis without a hold.
    if (waiter.forced === waiter.owner) tenure.force(true);
    waiter.resolve(tenure, record);
  }

  /** Grants the waiter its request. Other waiters can be granted at the same time. */
  #share(waiter: SharedWaiter, request: ScriptRequest<AcquireReply>, sentAt: LeaseClockMs, sequence: number): void {
    this.line.remove(waiter);
    this.schedule.granted();
    if (!waiter.wantsGrant) {
      void waiter.releaseInBackground(request);
      waiter.reject(waiter.reason as LockError);
    } else {
      this.#permits += waiter.passablePermits;
      waiter.grant(request);
    }
    // The next waiter tries at once, unless the reply says when something will be free for that waiter.
    const next = request.reply?.kind === 'permits' ? request.reply.next : undefined;
    if (next !== undefined) this.schedule.learn(next, sentAt, sequence);
    else this.schedule.wakeUpPending = true;
  }

  /**
   * Applies the reply to every waiter that came before the try was sent. Returns whether the reply grants `asker`,
   * which sent the try.
   */
  #tellAll(asker: SharedWaiter, reply: AcquireReply, sequence: number): boolean {
    const open = asker.isGrantedBy(reply);
    // Skip the loop for a single try on a closed latch. Otherwise each of many such calls would walk the whole line.
    if (!open && !this.line.has(asker)) return false;
    for (const waiter of [...this.line]) {
      if (!(waiter instanceof SharedWaiter) || waiter === asker || waiter.cameAfter >= sequence) continue;
      if (!waiter.isGrantedBy(reply)) continue;
      this.line.remove(waiter);
      waiter.grant(undefined);
    }
    return open;
  }

  /**
   * Passes released permits to the first waiters of this line. The permits are never free in between, so nothing
   * changes in Redis. Returns the number of permits that remain to be released in Redis.
   */
  passOn(permits: number): number {
    let left = permits;
    // Permits that this client has not acquired are new, so Redis has to count them.
    if (permits <= this.#permits) {
      for (let waiter = this.line.head; waiter !== undefined; waiter = this.line.head) {
        if (!(waiter instanceof SharedWaiter) || waiter.passablePermits === 0 || waiter.passablePermits > left) break;
        this.#streak.start();
        if (this.#streak.pastFairShare()) {
          this.schedule.yield();
          break;
        }
        this.#streak.count();
        left -= waiter.passablePermits;
        this.line.remove(waiter);
        // Redis may be granting a pending try of this waiter. Serve the waiter all the same: no other may overtake it.
        waiter.grant(undefined);
        if (left === 0) return 0;
      }
    }
    this.#streak.reset();
    this.#permits = Math.max(0, this.#permits - left);
    return left;
  }

  /**
   * Passes on permits that a try acquired for a waiter that had been served meanwhile. The head of the line gets the
   * permits as if by a try of its own. Returns `false` if the head cannot take them.
   */
  passTaken({ passablePermits: takes }: SharedWaiter): boolean {
    const { head } = this.line;
    if (takes === 0 || !(head instanceof SharedWaiter) || head.passablePermits !== takes) return false;
    this.#permits += takes;
    return this.passOn(takes) === 0;
  }

  /**
   * Returns the waiter that gets the lock by hand-over when a tenure ends. `leaseEnd`: when the
   * current lease of the key ends.
   */
  successorFor(leaseEnd: LeaseClockMs): LockWaiter | undefined {
    const { head } = this.line;
    if (!(head instanceof LockWaiter) || head.isBusy || !head.protocol.handsOff) return undefined;
    // Other clients sleep until the lease end that they know. If the successor's process died, its shorter lease would
    // end earlier, and no message would wake those clients.
    if (this.services.clock.now() + head.terms.leaseMs < leaseEnd) return undefined;
    this.#streak.start();
    return this.#streak.withinHardLimit() ? head : undefined;
  }

  /**
   * Hands the lock over to the successor in one script. The successor's lease counts from the first attempt, because a
   * repeat writes nothing. `released` reports the release of the hold before. Listeners must get that report before the
   * next `acquired` event.
   */
  async handOff(tenure: Tenure, successor: LockWaiter, released: () => void): Promise<TenureEnd> {
    const { clock } = this.services;
    const jumped = clock.jumped;
    const alone = (): boolean => this.wakeUps.isConfirmed && !this.host.othersWait(successor.protocol);
    const ours = this.#streak.pastFairShare() ? Number(alone()) : 'not counted';
    successor.receive();
    this.successors.add(successor);
    const { leaseMs } = successor.terms;
    const request = await successor.protocol.handOff(tenure.owner, successor.owner, leaseMs, ours).done;
    successor.received();
    this.successors.delete(successor);
    const named = successor.owner;
    const sentAt = clock.at(request.firstSentAt, jumped);
    const now = clock.now();
    const { reply } = request;
    if (reply?.kind === 'handed' && now < grantDeadline(sentAt, leaseMs)) {
      this.line.holders.delete(tenure);
      this.#streak.count();
      released();
      this.#grant(successor, request, reply, sentAt, jumped, now);
      return { kind: 'handed' };
    }
    const until = latestEnd(this.services, leaseMs);
    // An attempt may still write the old owner id to Redis, so the waiter needs a new one.
    successor.owner = this.services.newOwner();
    successor.addDoubt(request.doubt);
    if (successor.reason !== undefined) successor.reject(successor.reason);
    if (request.error !== undefined && !(request.error instanceof NotReplicatedError)) {
      return {
        kind: 'failed',
        error: request.error,
        alsoOwners: [named],
        doubtUntil: request.doubt?.until ?? 0,
        leaseEnd: until,
      };
    }
    if (reply?.kind === 'freed') return { kind: 'freed' };
    if (reply?.kind === 'gone') return { kind: 'gone', doubt: ours === 'not counted' ? undefined : request.doubt };
    void this.services.compensations.add({
      send: () => successor.protocol.release([named]),
      notBefore: request.doubt?.until ?? 0,
      until,
    });
    this.schedule.wakeUpPending = true;
    return { kind: 'handed late' };
  }

  /** Called when a tenure of this client no longer has the lock. */
  ended(tenure: Tenure, how: Ended): void {
    this.line.removeHolder(tenure);
    if (how === 'handed') return;
    this.#streak.reset();
    if (how !== 'freed') this.schedule.wakeUpPending = true;
    else if (this.line.waiterCount > 0 && this.line.holders.size === 0 && !this.concurrent) this.schedule.yield();
  }
}

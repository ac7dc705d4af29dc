/*
 * Who gets the lock: the waiter whose try was granted, the successor that a tenure hands it to when it ends, or, of what
 * several can have at once, all whom one answer lets in, and who comes next when permits are given back. What is granted
 * to somebody who is not there any more goes on to the next. A message grants nothing: channels know no databases.
 */
import { NotReplicatedError, type LockError } from '../errors.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply, HandOffReply } from '../redis/scripts/replies.js';
import type { LeaseClock } from '../clock.js';
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
import { LockWaiter, type Waiter } from './waiter.js';

type GrantRequest = ScriptRequest<AcquireReply> | ScriptRequest<HandOffReply>;

/** What the grants of one client share. */
export interface GrantServices {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number; readonly handOff: ResolvedOptions['handOff'] };
  readonly tenures: TenureServices;
  readonly compensations: Compensations;
  newOwner(): string;
}

/** The line that the grants are for. */
export interface GrantingLine extends TenureHost<Tenure> {
  /** Whether calls of this client wait in the other line of this lock, as readers do beside writers. */
  othersWait(protocol: LockProtocol): boolean;
}

export class Grants {
  /** The waiters that are being handed the lock. */
  readonly successors = new Set<LockWaiter>();
  readonly #streak: HandOffStreak;
  /** Permits that this client has taken here and not given back. */
  #permits = 0;

  constructor(
    private readonly services: GrantServices,
    private readonly host: GrantingLine,
    private readonly line: LocalLine,
    private readonly schedule: RetrySchedule,
    private readonly wakeUps: WakeUps,
    /** The calls that wait here can hold together. */
    private readonly concurrent: boolean,
  ) {
    this.#streak = new HandOffStreak(services.options.handOff, services.clock);
  }

  /** True if the try was granted, to whomever. `taken`: Redis says so, but it may have come too late. */
  tried(
    waiter: Waiter,
    request: ScriptRequest<AcquireReply>,
    taken: boolean,
    jumped: number,
    sequence: number,
  ): boolean {
    const sentAt = request.sentAt + jumped;
    const now = this.services.clock.now();
    if (waiter instanceof LockWaiter) {
      if (taken && now < grantDeadline(sentAt, waiter.leaseMs)) {
        this.#streak.reset();
        this.#grant(waiter, request, sentAt, jumped, false, now);
        return true;
      }
    } else if (waiter instanceof SharedWaiter) {
      const open = waiter.forAll && request.error === undefined && this.#tellAll(waiter, request.reply, sequence);
      if (open || (taken && now < sentAt + waiter.leaseMs)) {
        this.#share(waiter, request, sentAt, sequence);
        return true;
      }
    }
    return false;
  }

  /** The lock is the waiter's owner's. If nobody wants it any more it goes on to the next. */
  #grant(
    waiter: LockWaiter,
    request: GrantRequest,
    sentAt: number,
    jumped: number,
    handedOff: boolean,
    now: number,
  ): void {
    const openUntil = waiter.grantOpenUntil(request);
    const tenure = new Tenure(this.services.tenures, this.host, waiter.protocol, waiter.owner, openUntil, jumped);
    waiter.hasLock();
    this.line.remove(waiter);
    this.schedule.granted();
    this.line.holds(tenure);
    this.schedule.admitAll = this.concurrent;
    if (!waiter.wantsGrant) {
      tenure.endUnclaimed(waiter.terms.leaseMs);
      waiter.doubts(request);
      waiter.reject(waiter.leaving as LockError);
      return;
    }
    const record = tenure.open(waiter.terms, sentAt, now);
    if (request.reply !== undefined) record.token = tenure.token = waiter.protocol.tokenIn?.(request.reply);
    tellAcquired(tenure, record, handedOff);
    // The hold may be of an attempt that came after it was forced open: then nobody would give it back.
    if (waiter.forced === waiter.owner) tenure.force(true);
    waiter.resolve(tenure, record);
  }

  /** The waiter has what it came for, and others may have the same. */
  #share(waiter: SharedWaiter, request: ScriptRequest<AcquireReply>, sentAt: number, sequence: number): void {
    this.line.remove(waiter);
    this.schedule.granted();
    if (!waiter.wantsGrant) {
      void waiter.takeBack(request);
      waiter.reject(waiter.leaving as LockError);
    } else {
      this.#permits += waiter.takes;
      waiter.granted(request);
    }
    // The next in line tries at once, unless this answer says when there will be something for it.
    const freeIn = waiter.nextFreeIn(request.reply);
    if (freeIn !== undefined) this.schedule.learn(freeIn, sentAt, sequence);
    else this.schedule.wakeUpPending = true;
  }

  /** True if the answer lets in `asker`, whose try it answers. It lets in others that came before that try as well. */
  #tellAll(asker: SharedWaiter, reply: AcquireReply, sequence: number): boolean {
    const open = asker.letInBy(reply);
    // Many single looks at a closed latch, beside many who wait, would go through the whole line each.
    if (!open && !this.line.has(asker)) return false;
    for (const waiter of [...this.line]) {
      if (!(waiter instanceof SharedWaiter) || waiter === asker || waiter.cameAfter >= sequence) continue;
      if (!waiter.letInBy(reply)) continue;
      this.line.remove(waiter);
      waiter.served = waiter.busy;
      waiter.trying?.abandon();
      waiter.granted(undefined);
    }
    return open;
  }

  /**
   * Permits that are given back here go to whoever is first in line here, without being free in between: to Redis
   * nothing changes. Returns how many are left to give back there.
   */
  passOn(permits: number): number {
    let left = permits;
    // What nobody here has taken is new: Redis has to learn of it.
    if (permits <= this.#permits) {
      for (let waiter = this.line.head; waiter !== undefined; waiter = this.line.head) {
        if (!(waiter instanceof SharedWaiter) || waiter.takes === 0 || waiter.takes > left) break;
        this.#streak.begin();
        if (this.#streak.asksForOthers()) {
          this.schedule.yield();
          break;
        }
        this.#streak.count();
        left -= waiter.takes;
        this.line.remove(waiter);
        // Redis may be granting it the same just now; it is served first all the same, for nobody is to overtake it.
        waiter.served = waiter.busy;
        waiter.trying?.abandon();
        waiter.granted(undefined);
        if (left === 0) return 0;
      }
    }
    this.#streak.reset();
    this.#permits = Math.max(0, this.#permits - left);
    return left;
  }

  /** What a try took for somebody who had been served by then goes to the next in line, as if by a try of its own. */
  passTaken({ takes }: SharedWaiter): boolean {
    const { head } = this.line;
    if (takes === 0 || !(head instanceof SharedWaiter) || head.takes !== takes) return false;
    this.#permits += takes;
    return this.passOn(takes) === 0;
  }

  /** Who gets the lock when `tenure` ends, without it being free in between. Its lease is the key's until `leaseEnd`. */
  successorFor(leaseEnd: number): LockWaiter | undefined {
    const { head } = this.line;
    if (!(head instanceof LockWaiter) || head.busy || !head.protocol.handsOff) return undefined;
    // Others sleep until the end that they have learned. A shorter lease might end, with its process, in silence.
    if (this.services.clock.now() + head.leaseMs < leaseEnd) return undefined;
    this.#streak.begin();
    return this.#streak.mayGoOn() ? head : undefined;
  }

  /**
   * One script gives the lock to the successor. Its lease counts from the first attempt: a repeat writes nothing. `released`
   * tells listeners of the hold before: that comes before they hear of the next one.
   */
  async handOff(tenure: Tenure, successor: LockWaiter, released: () => void): Promise<TenureEnd> {
    const { clock } = this.services;
    const jumped = clock.jumped;
    const alone = (): boolean => this.wakeUps.isConfirmed && !this.host.othersWait(successor.protocol);
    const ours = this.#streak.asksForOthers() ? Number(alone()) : -1;
    successor.busy = true;
    this.successors.add(successor);
    const { leaseMs } = successor.terms;
    const request = await successor.protocol.handOff(tenure.owner, successor.owner, leaseMs, ours).done;
    successor.busy = false;
    this.successors.delete(successor);
    const named = successor.owner;
    const sentAt = request.firstSentAt + jumped;
    const now = clock.now();
    const { reply } = request;
    const handed = reply === 'handed' || (reply !== undefined && successor.protocol.tokenIn?.(reply) !== undefined);
    if (handed && now < grantDeadline(sentAt, leaseMs)) {
      this.line.holders.delete(tenure);
      this.#streak.count();
      released();
      this.#grant(successor, request, sentAt, jumped, true, now);
      return { kind: 'handed' };
    }
    const until = latestEnd(this.services, leaseMs);
    // The name is spent: somebody may still act on it.
    successor.owner = this.services.newOwner();
    successor.doubts(request);
    if (successor.leaving !== undefined) successor.reject(successor.leaving);
    if (request.error !== undefined && !(request.error instanceof NotReplicatedError)) {
      return { kind: 'failed', error: request.error, alsoOwners: [named], openUntil: request.openUntil, until };
    }
    if (request.reply === 'published') return { kind: 'freed' };
    if (request.reply === 'gone') return { kind: 'gone', inDoubt: request.inDoubt && ours >= 0 };
    void this.services.compensations.add({
      send: () => successor.protocol.release([named]),
      notBefore: request.openUntil,
      until,
    });
    this.schedule.wakeUpPending = true;
    return { kind: 'handed' };
  }

  /** A tenure of ours does not have the lock any more. */
  ended(tenure: Tenure, how: Ended): void {
    this.line.ended(tenure);
    if (how === 'handed') return;
    this.#streak.reset();
    if (how !== 'freed') this.schedule.wakeUpPending = true;
    else if (this.line.waiterCount > 0 && this.line.holders.size === 0 && !this.concurrent) this.schedule.yield();
  }
}

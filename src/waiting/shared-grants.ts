/*
 * Grants of permits and latches. Several callers can have them at the same time, and Redis stores no owner, so a grant
 * creates no tenure. One reply can let several waiters through an open latch. Released permits go to the next waiters in
 * line.
 */
import type { LockError } from '../errors.js';
import type { LeaseClockMs } from '../clock.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import type { GrantServices } from './grants.js';
import { HandOffStreak } from './hand-overs/hand-off-streak.js';
import type { LocalLine } from './line.js';
import { PermitHandOvers } from './permit-hand-overs.js';
import type { RetrySchedule } from './retry-schedule.js';
import { SharedWaiter } from './shared-waiter.js';
import type { WakeUps } from './wake-ups.js';
import type { Try } from './waiter.js';

export class SharedGrants {
  readonly handOvers: PermitHandOvers;
  readonly #streak: HandOffStreak;
  #permits = 0;

  constructor(
    private readonly services: Pick<GrantServices, 'clock' | 'options' | 'compensations'>,
    private readonly line: LocalLine,
    private readonly schedule: RetrySchedule,
    wakeUps: WakeUps,
    host: { changed(): void },
  ) {
    this.handOvers = new PermitHandOvers(services, line, schedule, wakeUps, host);
    this.#streak = new HandOffStreak(services.options.handOff, services.clock);
  }

  /** Number of permits that this client has acquired here and not released. */
  get acquired(): number {
    return this.#permits;
  }

  /** `taken`: the reply confirms an acquisition, whose lease may have ended. Returns `true` if the grant was used. */
  grantIfTaken(waiter: SharedWaiter, { request, jumped, sequence }: Try, taken: boolean): boolean {
    const { clock } = this.services;
    const { reply } = request;
    const sentAt = clock.at(request.sentAt, jumped);
    const isOpen = waiter.sharesReplies && reply !== undefined && this.#grantAll(waiter, reply, sequence);
    if (!isOpen && !(taken && clock.now() < sentAt + (waiter.leaseMs ?? Infinity))) return false;
    this.#grant(waiter, request, sentAt, sequence);
    return true;
  }

  #grant(waiter: SharedWaiter, request: ScriptRequest<AcquireReply>, sentAt: LeaseClockMs, sequence: number): void {
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
    if (next !== undefined) this.schedule.learn(next, sentAt, sequence, 1);
    else this.schedule.wakeUpPending = true;
  }

  /**
   * Applies the reply to every waiter that came before the try was sent. Returns whether the reply grants `asker`,
   * which sent the try.
   */
  #grantAll(asker: SharedWaiter, reply: AcquireReply, sequence: number): boolean {
    const isOpen = asker.isGrantedBy(reply);
    // Skip the loop for a single try on a closed latch. Otherwise each of many such calls would walk the whole line.
    if (!isOpen && !this.line.has(asker)) return false;
    for (const waiter of [...this.line]) {
      if (!(waiter instanceof SharedWaiter) || waiter === asker || waiter.cameAfter >= sequence) continue;
      if (!waiter.isGrantedBy(reply)) continue;
      this.line.remove(waiter);
      waiter.grant(undefined);
    }
    return isOpen;
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
        // Redis may be granting a pending try of this waiter. Grant the waiter all the same: no other may overtake it.
        waiter.grant(undefined);
        if (left === 0) return 0;
      }
    }
    this.#streak.reset();
    this.#permits = Math.max(0, this.#permits - left);
    return left;
  }

  /**
   * Passes on permits that a try acquired for a waiter that had been granted meanwhile. The head of the line gets the
   * permits as if by a try of its own. Returns `false` if the head cannot take them.
   */
  passSurplus(waiter: SharedWaiter, request: ScriptRequest<AcquireReply>): boolean {
    const { passablePermits: permits } = waiter;
    const { head } = this.line;
    if (this.handOvers.giveSurplus(waiter, request)) return true;
    if (permits === 0 || !(head instanceof SharedWaiter) || head.passablePermits !== permits) return false;
    this.#permits += permits;
    return this.passOn(permits) === 0;
  }
}

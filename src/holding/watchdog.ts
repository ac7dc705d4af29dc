/*
 * The one renewal loop. A client has one timer. The timer fires for the next tick (a third of a lease), for a batch that has
 * to be repeated, and for the earliest deadline of all holds, renewed or not. A tick renews the tenures that are due, and all
 * others whose leases are about as long: so locks with the same lease stay together.
 */
import type { LeaseClock, Timer, JumpedMs, LeaseClockMs, MonotonicMs } from '../clock.js';
import type { Reports } from '../diagnostics/reports.js';
import { RefusedError } from '../errors.js';
import { failedBySplit, orByKey } from '../redis/server-error.js';
import type { RenewalTicket } from './lease.js';
import { LightSet } from '../light-set.js';
import type { Renewal, RenewalItem, RenewalScript } from '../protocols/lock-protocol.js';
import { watchForLeak } from './single-hold.js';
import type { Tenure } from './tenure.js';
import { DEADLINES_TOGETHER_MS, RENEWAL_RETRY_MS } from '../timing.js';

/** How many renewals a lease has. */
const TICKS_A_LEASE = 3;
/** Leases of which the shorter one is longer than this share of the longer one are renewed together. */
const TOGETHER = 2 / 3;
const BATCH = 100;
/** A client with 100,000 locks sends their renewals over more than 100 turns of the event loop. */
const BATCHES_A_TURN = 8;

export class Watchdog {
  readonly #tenures = new LightSet<Tenure>();
  readonly #retries = new Set<Tenure>();
  #timer: Timer | undefined;
  /** When the timer fires. */
  #firesAt: MonotonicMs = Infinity;
  #armedAtJump: JumpedMs = 0;
  #nextTick: LeaseClockMs = Infinity;
  #nextRetry: LeaseClockMs = Infinity;
  #nextDeadline: LeaseClockMs = Infinity;
  #closed = false;

  constructor(
    private readonly clock: LeaseClock,
    private readonly reports: Pick<Reports, 'report'>,
  ) {}

  get size(): number {
    return this.#tenures.size;
  }

  *tenures(): Iterable<Tenure> {
    yield* this.#tenures;
  }

  /** A hold was opened. The watchdog checks its deadline, and renews it if it has no lease of its own. */
  add(tenure: Tenure): void {
    if (this.#closed) return;
    this.#tenures.add(tenure);
    this.deadlineMoved(tenure);
    // The last release does not stop the tick. The tick stops when it finds no tenure to renew. Otherwise every section
    // without a lease would start and stop a timer.
    const dueAt = tenure.lease.renewedAt + tenure.lease.shortestRenewed / TICKS_A_LEASE;
    if (dueAt >= this.#nextTick) return;
    this.#nextTick = dueAt;
    this.#arm();
  }

  remove(tenure: Tenure): void {
    this.#tenures.delete(tenure);
    this.#retries.delete(tenure);
  }

  deadlineMoved(tenure: Tenure): void {
    const deadline = tenure.lease.deadline;
    // After a jump of the clock the next known deadline may have passed, although its timer is not due yet.
    if (deadline >= this.#nextDeadline && this.clock.jumped === this.#armedAtJump) return;
    this.#nextDeadline = Math.min(this.#nextDeadline, deadline);
    this.#arm();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#tenures.clear();
    this.#retries.clear();
  }

  #arm(): void {
    const at = Math.min(this.#nextTick, this.#nextRetry, this.#nextDeadline - DEADLINES_TOGETHER_MS);
    if (at === Infinity || this.#closed) return;
    // A timer does not follow a jump of the clock: a timer that was set before the jump fires too late by the lease
    // clock.
    const firesAt = this.clock.clock.monotonic() + at - this.clock.now();
    this.#armedAtJump = this.clock.jumped;
    if (firesAt >= this.#firesAt) return;
    this.#timer?.cancel();
    this.#firesAt = firesAt;
    this.#timer = this.clock.setTimer(at, () => this.#fire());
  }

  #fire(): void {
    this.#firesAt = Infinity;
    const now = this.clock.now();
    // Report losses first. After a blocked event loop a renewal must not delay the report to a caller.
    if (now >= this.#nextDeadline - DEADLINES_TOGETHER_MS) this.#checkDeadlines(now);
    if (now >= this.#nextTick) void this.#renew(this.#takeDue(now));
    if (now >= this.#nextRetry) {
      const retries = [...this.#retries];
      this.#retries.clear();
      this.#nextRetry = Infinity;
      void this.#renew(retries);
    }
    this.#arm();
  }

  /** Returns the tenures to renew now, and sets the next tick. */
  #takeDue(now: LeaseClockMs): Tenure[] {
    const dueMs = new Set<number>();
    const renewed: Tenure[] = [];
    for (const tenure of this.#tenures) {
      const { renewedAt, shortestRenewed } = tenure.lease;
      if (shortestRenewed === Infinity) continue;
      renewed.push(tenure);
      if (now >= renewedAt + shortestRenewed / TICKS_A_LEASE) dueMs.add(shortestRenewed);
    }
    this.#nextTick = Infinity;
    const due: Tenure[] = [];
    for (const tenure of renewed) {
      const leaseMs = tenure.lease.shortestRenewed;
      for (const each of dueMs) {
        if (Math.min(each, leaseMs) <= Math.max(each, leaseMs) * TOGETHER) continue;
        tenure.lease.renewedAt = now;
        due.push(tenure);
        break;
      }
      this.#nextTick = Math.min(this.#nextTick, tenure.lease.renewedAt + leaseMs / TICKS_A_LEASE);
    }
    return due;
  }

  #checkDeadlines(now: number): void {
    // A listener of a loss may release a hold of another tenure, and so move a deadline during this loop.
    this.#nextDeadline = Infinity;
    const notAfter = (deadline: number): number => (this.#nextDeadline = Math.min(this.#nextDeadline, deadline));
    for (const tenure of [...this.#tenures]) {
      const deadline = tenure.lease.deadline;
      if (deadline > now + DEADLINES_TOGETHER_MS) notAfter(deadline);
      // The confirmation moves the deadline or ends the tenure. Check again when the lease has ended by any clock.
      else if (tenure.lease.checkAtDeadline() === 'unconfirmed')
        notAfter(tenure.lease.deadlineByAnyClock + DEADLINES_TOGETHER_MS);
    }
  }

  /** No batch waits for the reply to another batch, so a batch that fails delays no other. */
  async #renew(tenures: readonly Tenure[]): Promise<void> {
    let sent = 0;
    for (const [script, group] of this.#groups(tenures)) {
      for (let i = 0; i < group.length; i += BATCH) {
        if (sent > 0 && sent % BATCHES_A_TURN === 0) await new Promise(setImmediate);
        sent += 1;
        const batch = group.slice(i, i + BATCH).filter(({ state }) => state === 'held');
        if (batch.length > 0 && !this.#closed) void this.#renewBatch(script, batch);
      }
    }
  }

  #groups(tenures: readonly Tenure[]): [RenewalScript, Tenure[]][] {
    const all: [RenewalScript, Tenure[]][] = [];
    const groups = new Map<RenewalScript, Map<string | number, Tenure[]>>();
    for (const tenure of tenures) {
      const script = tenure.protocol.renewal;
      const bySlot = groups.get(script) ?? new Map<string | number, Tenure[]>();
      groups.set(script, bySlot);
      const slot = script.groupOf(tenure.lease.renewalItem());
      let group = bySlot.get(slot);
      if (group === undefined) {
        group = [];
        bySlot.set(slot, group);
        all.push([script, group]);
      }
      group.push(tenure);
    }
    return all;
  }

  async #renewBatch(script: RenewalScript, batch: readonly Tenure[]): Promise<void> {
    for (const tenure of batch) tenure.holds.forEach(watchForLeak);
    const items = batch.map((tenure) => tenure.lease.renewalItem());
    const tickets = batch.map((tenure, i) => tenure.lease.takeRenewalTicket((items[i] as RenewalItem).leaseMs));
    let request: Renewal = await script.renew(items).done;
    const [only, ...others] = items;
    if (only !== undefined && others.length === 0) request = await orByKey(script, only, request);
    if (this.#closed) return;
    if (batch.length > 1 && failedBySplit(request.error)) {
      // A request for one key finds the server that has the key now.
      for (const tenure of batch) void this.#renewBatch(script, [tenure]);
      return;
    }
    if (batch.length > 1 && request.error instanceof RefusedError) {
      // One key without a permission, or of another type, makes Redis refuse the whole batch. Halve the batch, so that
      // the tenures of the other keys are not lost.
      const middle = Math.ceil(batch.length / 2);
      void this.#renewBatch(script, batch.slice(0, middle));
      void this.#renewBatch(script, batch.slice(middle));
      return;
    }
    batch.forEach((tenure, i) => {
      if (tenure.state !== 'held') return;
      if (request.error !== undefined) {
        this.reports.report('renewFailed', tenure.protocol, { owner: tenure.owner, cause: request.error });
        this.#retry(tenure);
        return;
      }
      const reply = request.reply?.[i] ?? 'lost';
      tenure.lease.renewed(tickets[i] as RenewalTicket, request.sentAt, reply);
      if (reply === 'lost') return;
      this.reports.report('renewed', tenure.protocol, { owner: tenure.owner, remaining: reply.remainingMs });
    });
  }

  #retry(tenure: Tenure): void {
    this.#retries.add(tenure);
    if (this.#nextRetry !== Infinity) return;
    this.#nextRetry = this.clock.now() + RENEWAL_RETRY_MS;
    this.#arm();
  }
}

/*
 * The one renewal loop. One timer per client: it fires for the next tick (a third of the watchdog timeout), for a
 * batch that has to be repeated, and for the earliest deadline of any hold, whether renewed or not.
 */
import type { LeaseClock, Timer } from '../clock.js';
import type { EventSource } from '../events.js';
import { watchForLeak } from './single-hold.js';
import type { RenewalScript } from './lock-protocol.js';
import type { RenewalTicket, Tenure } from './tenure.js';

const BATCH = 100;
const RETRY_MS = 1_000;
/** Deadlines this close together are looked at in one go. */
const SLACK_MS = 2;

export class Watchdog {
  readonly #tenures = new Set<Tenure>();
  readonly #retries = new Set<Tenure>();
  #timer: Timer | undefined;
  #firesAt = Infinity;
  #nextTick = Infinity;
  #nextRetry = Infinity;
  #nextDeadline = Infinity;
  #closed = false;

  constructor(
    private readonly clock: LeaseClock,
    private readonly events: EventSource,
    private readonly leaseMs: number,
    private readonly everyMs: number,
  ) {}

  get size(): number {
    return this.#tenures.size;
  }

  *tenures(): Iterable<Tenure> {
    yield* this.#tenures;
  }

  /** A hold was opened: its deadline is watched, and if it has no lease of its own it is renewed. */
  add(tenure: Tenure): void {
    if (this.#closed) return;
    this.#tenures.add(tenure);
    this.deadlineMoved(tenure);
    // The tick is not stopped by the last release: it stops itself when it finds nothing. A section without lease
    // would otherwise start and stop a timer.
    if (this.#nextTick === Infinity && tenure.watched) {
      this.#nextTick = this.clock.now() + this.everyMs;
      this.#arm();
    }
  }

  remove(tenure: Tenure): void {
    this.#tenures.delete(tenure);
    this.#retries.delete(tenure);
  }

  deadlineMoved(tenure: Tenure): void {
    const deadline = tenure.deadline;
    if (deadline >= this.#nextDeadline) return;
    this.#nextDeadline = deadline;
    this.#arm();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#tenures.clear();
    this.#retries.clear();
  }

  #arm(): void {
    const at = Math.min(this.#nextTick, this.#nextRetry, this.#nextDeadline - SLACK_MS);
    if (at >= this.#firesAt || this.#closed) return;
    this.#timer?.cancel();
    this.#firesAt = at;
    this.#timer = this.clock.setTimer(at, () => this.#fire());
  }

  #fire(): void {
    this.#firesAt = Infinity;
    const now = this.clock.now();
    // Losses first: after a blocked event loop no renewal may come between a caller and the news.
    if (now >= this.#nextDeadline - SLACK_MS) this.#checkDeadlines(now);
    if (now >= this.#nextTick) {
      const watched = [...this.#tenures].filter((tenure) => tenure.watched);
      this.#nextTick = watched.length > 0 ? now + this.everyMs : Infinity;
      for (const tenure of watched) tenure.holds.forEach(watchForLeak);
      this.#renew(watched);
    }
    if (now >= this.#nextRetry) {
      const retries = [...this.#retries];
      this.#retries.clear();
      this.#nextRetry = Infinity;
      this.#renew(retries);
    }
    this.#arm();
  }

  #checkDeadlines(now: number): void {
    let next = Infinity;
    for (const tenure of [...this.#tenures]) {
      const deadline = tenure.deadline;
      if (deadline > now + SLACK_MS) next = Math.min(next, deadline);
      else if (tenure.expire() === 'unconfirmed') continue; // its confirmation moves the deadline, or loses it
    }
    this.#nextDeadline = next;
  }

  /** Every batch goes out at once and fails alone. */
  #renew(tenures: readonly Tenure[]): void {
    const groups = new Map<RenewalScript, Map<string | number, Tenure[]>>();
    for (const tenure of tenures) {
      const script = tenure.protocol.renewal;
      const bySlot = groups.get(script) ?? new Map<string | number, Tenure[]>();
      groups.set(script, bySlot);
      const slot = script.groupOf(tenure.renewalItem(this.leaseMs));
      const group = bySlot.get(slot);
      if (group === undefined) bySlot.set(slot, [tenure]);
      else group.push(tenure);
    }
    for (const [script, bySlot] of groups) {
      for (const group of bySlot.values()) {
        for (let i = 0; i < group.length; i += BATCH) void this.#renewBatch(script, group.slice(i, i + BATCH));
      }
    }
  }

  async #renewBatch(script: RenewalScript, batch: readonly Tenure[]): Promise<void> {
    const tickets = batch.map((tenure) => tenure.renewalTicket(this.leaseMs));
    const request = await script.renew(batch.map((tenure) => tenure.renewalItem(this.leaseMs))).done;
    if (this.#closed) return;
    batch.forEach((tenure, i) => {
      if (tenure.state !== 'held') return;
      const lockName = tenure.protocol.name;
      if (request.error !== undefined) {
        this.events.emit('renewFailed', { lockName, owner: tenure.owner, cause: request.error });
        this.#retry(tenure);
        return;
      }
      const left = request.reply?.[i] ?? 0;
      tenure.renewed(tickets[i] as RenewalTicket, request.sentAt, left);
      if (left > 0) this.events.emit('renewed', { lockName, owner: tenure.owner, remaining: left });
    });
  }

  #retry(tenure: Tenure): void {
    this.#retries.add(tenure);
    if (this.#nextRetry !== Infinity) return;
    this.#nextRetry = this.clock.now() + RETRY_MS;
    this.#arm();
  }
}

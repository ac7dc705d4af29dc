import type { LeaseClock, LeaseClockMs } from '../clock.js';
import type { LockError } from '../errors.js';
import type { Reports } from '../diagnostics/reports.js';
import { LightSet } from '../light-set.js';
import type { LongWaits } from '../diagnostics/long-wait.js';
import type { TimeLimits } from './limits/time-limits.js';
import type { FairPlaces, QueuedTurn } from './fair-places.js';
import type { Tenure } from '../holding/tenure.js';
import { LockWaiter } from './lock-waiter.js';
import type { Waiter } from './waiter.js';
import { YIELD_MS } from '../timing.js';

/** The services that the lines of one client share. */
export interface LineServices {
  readonly clock: LeaseClock;
  readonly reports: Reports;
  readonly longWaits: LongWaits;
  readonly timeLimits: TimeLimits;
}

/**
 * The calls of this client that wait in one line, in order of arrival, and the tenures of this client that have the
 * lock.
 */
export class LocalLine {
  readonly #waiters = new LightSet<Waiter>();
  /** The last waiter that tried behind the head. */
  #passing: Waiter | undefined;
  /** No waiter asks for fewer permits. */
  #fewest = Infinity;
  /** `false`: no waiter creates a semaphore that does not exist. */
  #anyCreates = false;
  /** Number of requests for this lock that have settled. */
  news = 0;
  /** Why the newest of them failed. Absent: Redis replied. */
  unavailable: LockError | undefined;
  /** Tenures of this client that have the lock. */
  readonly holders = new LightSet<Tenure>();

  constructor(
    private readonly services: LineServices,
    /** The queue in Redis in which the only waiter of this line has a place. Absent for a kind without such a queue. */
    readonly queue: FairPlaces | undefined,
    private readonly host: { lastWaiterLeft(): void },
  ) {}

  get waiterCount(): number {
    return this.#waiters.size;
  }

  get head(): Waiter | undefined {
    return this.#waiters.first;
  }

  /** Whether a tenure of this client has the lock, and no release in the background is on its way to Redis. */
  get isHeld(): boolean {
    for (const { isLeaving } of this.holders) if (!isLeaving) return true;
    return false;
  }

  /** The head, if the head waits for a lock. */
  get first(): LockWaiter | undefined {
    const { head } = this;
    return head instanceof LockWaiter ? head : undefined;
  }

  [Symbol.iterator](): Iterator<Waiter> {
    return this.#waiters[Symbol.iterator]();
  }

  /**
   * The waiter that may pass the waiters before it: the first one that asks for fewer permits than `tooMany`. `'missing'`:
   * there is no semaphore, so it is the first one that creates the semaphore.
   */
  passing(tooMany: number | 'missing'): Waiter | undefined {
    if (tooMany === 'missing') return this.#creating();
    if (tooMany <= this.#fewest) return undefined;
    for (const waiter of this.#waiters) if (waiter.permits < tooMany) return (this.#passing = waiter);
    // Do not walk the line again for each further call.
    this.#fewest = tooMany;
    return undefined;
  }

  #creating(): Waiter | undefined {
    if (!this.#anyCreates) return undefined;
    for (const waiter of this.#waiters) if (waiter.creates) return (this.#passing = waiter);
    this.#anyCreates = false;
    return undefined;
  }

  /** Whether the try of a waiter behind the head is pending. */
  get isPassed(): boolean {
    return this.#passing?.isBusy === true;
  }

  has(waiter: Waiter): boolean {
    return this.#waiters.has(waiter);
  }

  add(waiter: Waiter): void {
    waiter.newsAtJoin = this.news;
    this.#waiters.add(waiter);
    if (waiter.permits < this.#fewest) this.#fewest = waiter.permits;
    if (waiter.creates) this.#anyCreates = true;
  }

  /** A request for this lock has settled. `unavailable`: why it failed. */
  settled(unavailable?: LockError): void {
    this.news += 1;
    this.unavailable = unavailable;
  }

  /** Called when the call starts to wait. `turn`: its line. */
  waitBegins(waiter: Waiter, turn: QueuedTurn): void {
    if (waiter instanceof LockWaiter) this.queue?.join(waiter, turn);
    waiter.watchTime(this.services.timeLimits);
    this.services.longWaits.waiting(this.queue ?? this);
    this.services.reports.waiting(waiter.named, (this.queue ?? this).waiterCount);
  }

  remove(waiter: Waiter): void {
    if (!this.#waiters.delete(waiter)) return;
    if (this.#passing === waiter) this.#passing = undefined;
    this.queue?.leave(waiter);
    if (this.#waiters.size > 0) return;
    if (this.queue === undefined) this.services.longWaits.stop(this);
    this.host.lastWaiterLeft();
  }

  addHolder(tenure: Tenure): void {
    this.holders.add(tenure);
    this.queue?.holders.add(tenure);
  }

  /** Called when the tenure no longer has the lock. */
  removeHolder(tenure: Tenure): void {
    this.holders.delete(tenure);
    this.queue?.holders.delete(tenure);
  }

  /**
   * Checks the lease of each tenure of this client that has the lock. A tenure whose deadline has passed reports its
   * loss.
   */
  checkHolders(): void {
    for (const tenure of this.holders) if (tenure.state === 'held') tenure.lease.check();
  }

  /**
   * The time of the next step while a tenure of this client has the lock: the deadline of that tenure.
   * 0 if no tenure of this client has the lock.
   */
  holdersDeadline(now: LeaseClockMs): LeaseClockMs {
    let latest = 0;
    for (const tenure of this.holders) {
      const sure = tenure.state === 'held' && tenure.lease.statusAt(now) === 'valid' && tenure.holds.length > 0;
      // The end of the tenure, or the reply that confirms its lease, causes a step before this time.
      if (sure) latest = Math.max(latest, tenure.lease.deadline);
      else if (tenure.state !== 'over') latest = Math.max(latest, now + YIELD_MS);
    }
    return latest;
  }

  /**
   * Whether another waiter of this client has an earlier place in the Redis queue. Redis has then not announced the
   * turn of this line's head.
   */
  get isBehind(): boolean {
    const { head } = this;
    return head instanceof LockWaiter && this.queue?.isBehind(head) === true;
  }
}

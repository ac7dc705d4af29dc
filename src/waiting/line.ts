import type { LeaseClock } from '../clock.js';
import type { EventSource } from '../events.js';
import { LightSet } from '../light-set.js';
import type { LongWaits } from './long-wait.js';
import { YIELD_MS } from './retry-schedule.js';
import type { QueuedLine } from './fair-places.js';
import type { Tenure } from '../holding/tenure.js';
import { LockWaiter, type Waiter } from './waiter.js';

/** What the lines of one client share. */
export interface LineServices {
  readonly clock: LeaseClock;
  readonly events: EventSource;
  readonly longWaits: LongWaits;
}

/** The calls of this client that wait in one line, in the order in which they came, and the tenures that have the lock. */
export class LocalLine {
  readonly #waiters = new LightSet<Waiter>();
  /** Tenures of this client that have the lock. */
  readonly holders = new LightSet<Tenure>();

  constructor(
    private readonly services: LineServices,
    /** The line in Redis that the one waiter of this entry stands in. */
    readonly queue: QueuedLine | undefined,
    /** Told when nobody waits any more. */
    private readonly lastLeft: () => void,
  ) {}

  get waiterCount(): number {
    return this.#waiters.size;
  }

  get head(): Waiter | undefined {
    return this.#waiters.first;
  }

  /** The head, if it waits for a lock. */
  get first(): LockWaiter | undefined {
    const { head } = this;
    return head instanceof LockWaiter ? head : undefined;
  }

  [Symbol.iterator](): Iterator<Waiter> {
    return this.#waiters[Symbol.iterator]();
  }

  has(waiter: Waiter): boolean {
    return this.#waiters.has(waiter);
  }

  add(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  /** From here on the call really waits. `wake` makes it try. */
  stand(waiter: Waiter, wake: () => void): void {
    if (waiter instanceof LockWaiter) this.queue?.join(waiter, wake);
    this.services.longWaits.waiting(this.queue ?? this);
    const { events } = this.services;
    if (events.heard('waiting')) {
      events.emit('waiting', { lockName: waiter.name, waiters: (this.queue ?? this).waiterCount });
    }
  }

  remove(waiter: Waiter): void {
    if (!this.#waiters.delete(waiter)) return;
    this.queue?.leave(waiter);
    if (this.#waiters.size > 0) return;
    if (this.queue === undefined) this.services.longWaits.stop(this);
    this.lastLeft();
  }

  holds(tenure: Tenure): void {
    this.holders.add(tenure);
    this.queue?.holders.add(tenure);
  }

  /** The tenure does not have the lock any more. */
  ended(tenure: Tenure): void {
    this.holders.delete(tenure);
    this.queue?.holders.delete(tenure);
  }

  /** Has each tenure of this client that has the lock look at the clock: one whose deadline has passed reports its loss. */
  checkHolders(): void {
    for (const tenure of this.holders) if (tenure.state === 'held') tenure.lease.check();
  }

  /** When to look again while a tenure of this client has the lock: at its deadline. 0 without one. */
  holdersDeadline(now: number): number {
    let latest = 0;
    for (const tenure of this.holders) {
      const sure = tenure.state === 'held' && tenure.lease.statusAt(now) === 'valid' && tenure.holds.length > 0;
      // The end of the tenure, or the answer that confirms it, makes the next step.
      if (sure) latest = Math.max(latest, tenure.lease.deadline);
      else if (tenure.state !== 'over') latest = Math.max(latest, now + YIELD_MS);
    }
    return latest;
  }

  /** Another of this client still waits in Redis before the head of this line: so nobody has told it to come. */
  get isBehind(): boolean {
    const { head } = this;
    return head instanceof LockWaiter && this.queue?.isBehind(head) === true;
  }
}

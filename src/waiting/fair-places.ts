import type { LeaseClock, Timer } from '../clock.js';
import { LightSet } from '../light-set.js';
import type { WaitQueue } from '../protocols/lock-protocol.js';
import type { LongWaits } from './long-wait.js';
import type { Tenure } from '../holding/tenure.js';
import type { Waiter, LockWaiter } from './waiter.js';

/** The lease ends in Redis at some moment of its last millisecond. */
const AFTER_LEASE_MS = 2;

/**
 * Those of this client that have a place in the queue of one lock. Each waits at an entry of its own; this keeps their
 * places, with one command a second for all of them, and has those try whom no message tells that it is their turn:
 * the one before them has died, the holder's lease has ended, or their place is gone.
 */
export class QueuedLine {
  /** Tenures of this client that have the lock. */
  readonly holders = new LightSet<Tenure>();
  /** Lines of single waiters that have their place here; this ends with the last of them. */
  lines = 0;
  /** In the order in which they came, each with what makes it try. */
  readonly #waiters = new Map<Waiter, { readonly waiter: LockWaiter; readonly wake: () => void }>();
  #timer: Timer | undefined;
  #refreshing = false;

  constructor(
    private readonly clock: LeaseClock,
    private readonly longWaits: LongWaits,
    /** How often the places are refreshed. */
    private readonly refreshMs: number,
    readonly key: string,
    private readonly queue: WaitQueue,
  ) {}

  get waiterCount(): number {
    return this.#waiters.size;
  }

  get first(): LockWaiter | undefined {
    for (const { waiter } of this.#waiters.values()) return waiter;
    return undefined;
  }

  /** Whether another that surely has a place before it still waits. Should that be lost, the next refresh tells both. */
  isBehind({ queuedAt = NaN }: LockWaiter): boolean {
    for (const { waiter } of this.#waiters.values()) if ((waiter.queuedAt ?? NaN) < queuedAt) return true;
    return false;
  }

  join(waiter: LockWaiter, wake: () => void): void {
    this.#waiters.set(waiter, { waiter, wake });
    if (this.#timer === undefined && !this.#refreshing) this.#refreshIn(this.refreshMs);
  }

  leave(waiter: Waiter): void {
    if (!this.#waiters.delete(waiter) || this.#waiters.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.longWaits.stop(this);
  }

  #refreshIn(ms: number): void {
    this.#timer = this.clock.clock.setTimer(ms, () => {
      this.#timer = undefined;
      void this.#refresh();
    });
  }

  /** Unanswered it is not repeated but asked anew: `fairWaiterTimeout` has room for a few that fail. */
  async #refresh(): Promise<void> {
    this.#refreshing = true;
    const asked = [...this.#waiters.values()];
    const { reply } = await this.queue.refresh(asked.map(({ waiter }) => waiter.owner)).done;
    this.#refreshing = false;
    for (const at of reply?.toTry ?? []) {
      const told = asked[at];
      if (told !== undefined && this.#waiters.has(told.waiter)) told.wake();
    }
    if (this.#waiters.size === 0) return;
    const lookInMs = reply === undefined || reply.lookInMs < 0 ? Infinity : reply.lookInMs + AFTER_LEASE_MS;
    this.#refreshIn(Math.min(this.refreshMs, lookInMs));
  }
}

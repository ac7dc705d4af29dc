import type { LeaseClock, Timer } from '../clock.js';
import type { LockError } from '../errors.js';
import { LightSet } from '../light-set.js';
import type { WaitQueue } from '../protocols/lock-protocol.js';
import type { LongWaits } from '../diagnostics/long-wait.js';
import type { Tenure } from '../holding/tenure.js';
import type { Grant, LockWaiter } from './lock-waiter.js';
import type { Waiter } from './waiter.js';
import { AFTER_LEASE_MS } from '../timing.js';

/** The line of one waiter in a Redis queue, as the refreshes and the other lines of the client use it. */
export interface QueuedTurn {
  /** The waiter, while a hand-over to it is pending. The client keeps its line until then. */
  readonly successors: LightSet<LockWaiter>;
  /** Makes the waiter try. */
  wake(): void;
  /**
   * The hand-over to the waiter gave it nothing. Makes the line step, because a message may have come meanwhile. If the
   * waiter has left, the client removes the line.
   */
  resume(): void;
  /** A refresh of the place has settled. `unavailable`: why it failed. */
  refreshed(unavailable?: LockError): void;
  /** Gives the waiter the lock that another line has handed over. */
  grant(grant: Grant): void;
}

/**
 * The waiters of this client that have a place in the Redis queue of one lock. Each waiter has a line of its own. One
 * command per refresh interval keeps the places of all these waiters. The reply names the waiters that have to try
 * although no message announces their turn: the waiter before them has died, the holder's lease has ended, or their
 * place is gone.
 */
export class FairPlaces {
  /** Tenures of this client that have the lock. */
  readonly holders = new LightSet<Tenure>();
  /**
   * Number of lines, each with one waiter, that use this object. The client drops the object with the last of these
   * lines.
   */
  lines = 0;
  /** The waiters in order of arrival. */
  readonly #waiters = new Map<Waiter, { readonly waiter: LockWaiter; readonly turn: QueuedTurn }>();
  #timer: Timer | undefined;
  #refreshing = false;

  constructor(
    private readonly clock: LeaseClock,
    private readonly longWaits: LongWaits,
    /** Interval between two refreshes, in ms. */
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

  /**
   * Whether another waiter of this client certainly has an earlier place and still waits. If Redis has lost that place,
   * the reply to the next refresh tells both waiters to try.
   */
  isBehind({ queuedAt }: LockWaiter): boolean {
    if (queuedAt === undefined) return false;
    for (const { waiter } of this.#waiters.values()) if ((waiter.queuedAt ?? Infinity) < queuedAt) return true;
    return false;
  }

  /** The waiter of this client that is the first in the Redis queue, if that is certain. */
  get next(): LockWaiter | undefined {
    const { first } = this;
    return first === undefined || first.queuedAt === undefined || this.isBehind(first) ? undefined : first;
  }

  turnOf(waiter: LockWaiter): QueuedTurn | undefined {
    return this.#waiters.get(waiter)?.turn;
  }

  join(waiter: LockWaiter, turn: QueuedTurn): void {
    this.#waiters.set(waiter, { waiter, turn });
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

  /**
   * Refreshes the places. After a failed refresh, the client only waits for the next one: `fairWaiterTimeout` leaves
   * room for a few failures.
   */
  async #refresh(): Promise<void> {
    this.#refreshing = true;
    const asked = [...this.#waiters.values()];
    const { error, reply } = await this.queue.refresh(asked.map(({ waiter }) => waiter.owner)).done;
    this.#refreshing = false;
    for (const { turn } of asked) turn.refreshed(error);
    for (const at of reply?.toTry ?? []) {
      const told = asked[at];
      if (told !== undefined && this.#waiters.has(told.waiter)) told.turn.wake();
    }
    if (this.#waiters.size === 0) return;
    const lookInMs = reply?.lookInMs;
    this.#refreshIn(lookInMs === undefined ? this.refreshMs : Math.min(this.refreshMs, lookInMs + AFTER_LEASE_MS));
  }
}

import type { LeaseClock } from '../clock.js';
import type { EventSource } from '../events.js';
import type { Compensations } from './compensations.js';
import type { TenureEnd } from './tenure-end.js';

/** A local waiter that can be handed the lock. Only the host that named it knows more. */
interface Successor {
  readonly owner: string;
}

/** Why a tenure does not have the lock any more; `unknown`: its release was not answered. */
export type Ended = 'freed' | 'handed' | 'lost' | 'unknown';

/** What a tenure asks of the line of waiters that it came from, and reports to it. */
export interface TenureHost<T> {
  /** The local waiter that gets the lock when a tenure ends. `leaseEnd`: lease clock ms at which the key expires. */
  successorFor(leaseEnd: number): Successor | undefined;
  /**
   * One script moves the lock from the tenure to the successor. `released` reports the release to listeners, before the
   * acquisition of the successor is reported.
   */
  handOff(tenure: T, successor: Successor, released: () => void): Promise<TenureEnd>;
  ended(tenure: T, how: Ended): void;
}

/** Renews tenures, and has each report its loss at its deadline. */
interface TenureWatch<T> {
  add(tenure: T): void;
  remove(tenure: T): void;
  deadlineMoved(tenure: T): void;
}

/** What the tenures of one client share. */
export interface ServicesOf<T> {
  readonly clock: LeaseClock;
  readonly options: {
    readonly commandTimeout: number;
    readonly attemptMs: number;
    readonly lockWatchdogTimeout: number;
  };
  readonly events: EventSource;
  readonly watchdog: TenureWatch<T>;
  readonly compensations: Compensations;
}

import type { JumpedMs, LeaseClock, LeaseClockMs } from '../clock.js';
import type { Reports } from '../diagnostics/reports.js';
import type { Compensations } from './compensations.js';
import type { TenureEnd } from './tenure-end.js';

/** A local waiter that can get the lock by a hand-over. */
interface Successor {
  readonly owner: string;
}

/**
 * How a tenure ended. `unknown`: its release failed, and may or may not have run. `left`: Redis keeps the lock for some
 * time after the release.
 */
export type Ended = 'freed' | 'handed' | 'lost' | 'unknown' | 'left';

/** The request by which Redis last confirmed the owner of a tenure, for sections that follow without a request. */
export interface Confirmation {
  readonly sentAt: LeaseClockMs;
  /** The lease that the request asked for, in ms. */
  readonly leaseMs: number;
  readonly jumped: JumpedMs;
  /** The connection that was up when Redis replied. */
  readonly session: object;
}

/** The line of waiters, as a tenure uses it. */
export interface TenureHost<T> {
  /**
   * Returns the waiter that gets the lock when a tenure ends. `leaseEnd`: when the key expires. A waiter whose own lease
   * would end before that does not get the lock.
   */
  successorFor(leaseEnd: LeaseClockMs): Successor | undefined;
  /**
   * One script moves the lock from the tenure to the successor. `released` emits the release of the tenure's hold,
   * before the client emits the acquisition of the successor. `othersFirst`: if other clients wait, the script frees the
   * lock in any case, because no caller has had it.
   */
  handOff(tenure: T, successor: Successor, released: () => void, othersFirst: boolean): Promise<TenureEnd>;
  /**
   * Keeps the lock with its owner for a while after the last hold, if the options allow that and no call of this client
   * waits. Returns whether it does.
   */
  keepIfAllowed(tenure: T): boolean;
  /** Called when the tenure no longer has the lock. */
  tenureEnded(tenure: T, how: Ended): void;
}

/** Renews tenures, and checks the deadline of each. */
interface TenureWatch<T> {
  add(tenure: T): void;
  remove(tenure: T): void;
  deadlineMoved(tenure: T): void;
}

/** The parts of a client that its tenures share. Times of the options are in ms. */
export interface ServicesOf<T> {
  readonly clock: LeaseClock;
  readonly options: {
    readonly commandTimeout: number;
    readonly attemptMs: number;
    readonly lockWatchdogTimeout: number;
  };
  readonly reports: Reports;
  readonly watchdog: TenureWatch<T>;
  readonly compensations: Compensations;
  /** The pending releases that no caller waits for. */
  readonly backgroundReleases: {
    add(key: string, released: Promise<void>): void;
    of(key: string): Promise<void> | undefined;
  };
}

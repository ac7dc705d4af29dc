/* What this process holds and waits for, and the most contended locks, as the server sends them to the page. */
import type { Named, OwnerView, ProcessView, RowKind } from './rows.js';

export interface Own {
  /** At most 100, oldest first. Of more than 2,000, only the first 2,000 are compared. */
  readonly holds: readonly OwnHold[];
  readonly holdCount: number;
  /** At most 100, oldest first. */
  readonly waits: readonly OwnWait[];
  readonly waitCount: number;
  readonly stats: OwnStats;
}

/** An open hold of this client. */
export interface OwnHold extends Named {
  readonly kind: string;
  readonly owner: string;
  readonly holdCount: number;
  /** Time since the acquisition, in ms. */
  readonly age: number;
  /** The rest of the lease as the client knows it, in ms. */
  readonly remaining: number;
  /** Whether the watchdog renews the lease. */
  readonly isRenewed: boolean;
  /** `null` if the client records no call sites. */
  readonly callSite: string | null;
}

/** A call of this client that waits. */
export interface OwnWait extends Named {
  readonly kind: string;
  /** Time since the server first saw the call wait, in ms. */
  readonly age: number;
  readonly callSite: string | null;
}

/** Counters of this client since its creation. */
export interface OwnStats {
  readonly granted: number;
  readonly busy: number;
  readonly aborted: number;
  readonly failed: number;
  readonly waits: number;
  readonly handOvers: number;
  readonly renewals: number;
  readonly renewalFailures: number;
  readonly losses: number;
}

/** One waiter, or several unknown ones, and the owners in front of it. At most 200, the longest waits first. */
export interface WaitEdge extends Named {
  /**
   * - `this client`: a call of this client. `callSite` and `age` are known, if the client records call sites.
   * - `queued`: a place in the queue of a fair lock.
   * - `others`: other clients. Redis tells their number only.
   */
  readonly waiter: 'this client' | 'queued' | 'others';
  /** Number of calls or clients; 1 for `queued`. */
  readonly count: number;
  /** The owner id of a `queued` waiter; `null` otherwise. */
  readonly owner: string | null;
  /** `null` for `others`, and for a process that is unknown. */
  readonly process: ProcessView | null;
  readonly callSite: string | null;
  /** Time since the server first saw the call wait, in ms; `null` if unknown. */
  readonly age: number | null;
  /** The first owners that have the lock; at most 3. */
  readonly holders: readonly OwnerView[];
  /** Number of owners; `null`: unknown, and more than `holders`. */
  readonly holderCount: number | null;
}

/** How much a lock was waited for since the page was opened first. */
export interface Contended extends Named {
  readonly kind: RowKind;
  /** Number of clients that wait now; `null` if unknown. */
  readonly waiters: number | null;
  /** The largest number of waiting clients that was seen. */
  readonly mostWaiters: number;
  /** Time for which at least one client was seen waiting, in ms. */
  readonly waitedForMs: number;
  /** Calls of this client that took at least 10 ms: how many ended, the longest and their sum, in ms. */
  readonly own: { readonly count: number; readonly longestMs: number; readonly totalMs: number };
}

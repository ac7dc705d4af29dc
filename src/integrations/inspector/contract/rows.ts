/* The table of locks, as the server sends it to the page. */
import type { OwnerProcess } from '../../../index.js';

/** A process that has named its connections. Any program can give its connections any name. */
export type ProcessView = OwnerProcess;

/** A name, which may be long. `id` identifies it. */
export interface Named {
  /** A digest of the whole name. */
  readonly id: string;
  /** The beginning of the name: at most 1 kB as JSON. */
  readonly name: string;
  /** Number of UTF-16 code units of the whole name. */
  readonly length: number;
}

/** One row of the table. */
export interface Row extends Named {
  /** As `Inspection.kind`: `lock`, `fenced`, `fair`, `read-write`, `group`, `counter`, `permits`, `free` or `unknown`. */
  readonly kind: RowKind;
  /** At most 20 owners. */
  readonly owners: readonly OwnerView[];
  /** Number of owners; `null`: unknown, and more than `owners`. */
  readonly ownerCount: number | null;
  /** The first waiters in the queue of a fair lock, the next owner first; at most 20. `waiters` is its length. */
  readonly queue: readonly QueuedView[];
  /** Number of clients that wait, or the length of the queue; `null` if Redis refuses to tell. */
  readonly waiters: number | null;
  /** The rest of the lease, in ms, when the row was read. -1: no end. -2: there is no key. */
  readonly remaining: number;
  /** The longest rest that was seen of the present owners, in ms: the full length of the lease bar. */
  readonly lease: number;
  /** How long before this event the row was read, in ms. */
  readonly readAgo: number;
  /** The free permits of a semaphore or the count of a latch; `null` for other kinds. */
  readonly value: string | null;
  /** The taken permits, by the end of their leases; at most 50. */
  readonly permits: readonly PermitView[];
  /** Number of taken permits. */
  readonly permitCount: number;
}

export type RowKind = 'free' | 'lock' | 'fenced' | 'fair' | 'read-write' | 'group' | 'counter' | 'permits' | 'unknown';

export interface OwnerView {
  /** The owner id: `<client id>:<number>`. */
  readonly owner: string;
  readonly holdCount: number;
  readonly mode: 'exclusive' | 'read' | 'write';
  /** Whether the owner belongs to the client of the inspector. */
  readonly isThisClient: boolean;
  /** `null`: unknown, as of a JVM. */
  readonly process: ProcessView | null;
  /** When the owner was seen first with this lock, in epoch ms. The owner may have the lock for longer. */
  readonly since: number;
}

export interface QueuedView {
  readonly owner: string;
  readonly isThisClient: boolean;
  readonly process: ProcessView | null;
}

export interface PermitView {
  readonly id: string;
  /** In ms, when the row was read. -1: no lease. 0: the lease has ended, but Redis still counts the permit as taken. */
  readonly remaining: number;
}

/** A part of what has changed: one update has at most 500 kB of rows, and the next one has more. */
export interface RowsChange {
  /** New rows, and rows of which something other than the passing of time has changed. */
  readonly changed: readonly Row[];
  /** Ids of rows that are gone, or no longer among the first rows of the view. */
  readonly removed: readonly string[];
}

export interface Summary {
  /**
   * Number of names in use that the server knows: at most 20,000 of a listing with 32 million characters, and those that
   * pages ask for.
   */
  readonly total: number;
  /** Number of these names that match the search. */
  readonly matching: number;
  /** Number of rows of this stream: the most waited for, and then those that were seen for the longest time. */
  readonly shown: number;
  /** Number of names that a client waits for. */
  readonly waitedFor: number;
  /** Whether there are more names in Redis than the server lists. */
  readonly isTruncated: boolean;
  /** When the last complete listing ended, in epoch ms; `null` before the end of the first one. */
  readonly listedAt: number | null;
  /** How long the last complete listing took, in ms. Until the next one ends, the table lacks newer names. */
  readonly listedIn: number | null;
}

/** The details of the selected lock. The server reads it four times a second. */
export interface Selected {
  /** What the view selects: its `id` or `select`. */
  readonly asked: string;
  /**
   * With `kind: 'free'` if nothing is locked under the name. The row may be in no `rows` event. With an empty name: no
   * name with the selected id is in use.
   */
  readonly row: Row;
}

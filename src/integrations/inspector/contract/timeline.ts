/* The timeline of one lock, as the server sends it to the page. */
import type { ProcessView } from './rows.js';

/** The part of a hold that the timeline can draw. A later bar with the same `id` replaces the one before. */
export interface TimelineBar {
  readonly id: number;
  readonly owner: string;
  readonly mode: 'exclusive' | 'read' | 'write';
  readonly isThisClient: boolean;
  readonly process: ProcessView | null;
  readonly from: number;
  /** Whether `from` is the acquisition. Else the owner was seen then, and may have the lock for longer. */
  readonly isFromStart: boolean;
  /** `null` while the owner has the lock. */
  readonly to: number | null;
  readonly ended: 'released' | 'handed over' | 'expired' | 'lost' | 'freed' | null;
  /** Whether the owner got the lock straight from another owner. */
  readonly handedOver: boolean;
  readonly holdCount: number;
  /** When renewals were confirmed. Only of this client's holds. At most the last 50. */
  readonly renewals: readonly number[];
}

/** One line of the timeline, in words. */
export interface TimelineEntry {
  readonly id: number;
  readonly at: number;
  readonly what:
    | 'acquired'
    | 'handed over'
    | 'released'
    | 'expired'
    | 'lost'
    | 'freed'
    | 'renewed'
    | 'renewal failed'
    | 'waiting'
    | 'gave up'
    | 'hold count'
    | 'waiters'
    | 'value';
  /** At most 1 kB as JSON. */
  readonly text: string;
  /** `client`: this client's events told it, at that moment. `seen`: it happened since the look before. */
  readonly source: 'client' | 'seen';
}

export interface TimelineChange {
  /** New and changed bars. The server keeps the last 100. */
  readonly bars: readonly TimelineBar[];
  /** New entries, oldest first. The server keeps the last 200. */
  readonly entries: readonly TimelineEntry[];
}

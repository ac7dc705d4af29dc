/**
 * What several processes did with locks, and what must not be in such a history.
 *
 * `at` is CLOCK_MONOTONIC in ms, which all processes of one machine share (`stamp()` of history-recorder.mjs). A stamp
 * is taken inside what it stands for: "ok" after the call has returned, "invoke" before it is made. So a hold counts
 * for less than it really lasts, never for more.
 */
interface Stamped {
  readonly at: number;
  readonly process: string;
}

export type HistoryEvent = Stamped &
  (
    | {
        type: 'acquire-invoke';
        call: string;
        lock: string;
        settlesWithin?: number;
        leaseTime?: number;
        /** It is one of several that one call takes: maybe without a lease until all are there. */
        joint?: boolean;
        permits?: number;
      }
    | AcquireOk
    /** Rejected, or answered busy. */
    | { type: 'acquire-fail'; call: string; reason: string }
    /** Rejected, and it may have run. */
    | { type: 'acquire-unknown'; call: string; reason: string }
    /** The holder was told how long its hold is good for; the latest word counts. `until` = `at`: not at all. */
    | { type: 'valid'; hold: string; until: number }
    | { type: 'release-invoke'; hold: string; validUntil: number; settlesWithin?: number }
    | { type: 'release-ok'; hold: string }
    | { type: 'release-fail'; hold: string; reason: string }
    | { type: 'loss-signal'; hold: string; cause: string }
    /** The server ran something that creates, extends or changes a hold for this call. Giving back is none. */
    | { type: 'effect'; call: string; effect: string }
    /** The process did not run from `from` until `at`: blocked, or stopped. */
    | { type: 'stalled'; from: number }
    /** Its machine slept: the monotonic clock that it sees stood still meanwhile. */
    | { type: 'slept'; from: number }
    | { type: 'died' }
    /** Seen at the server: from `from` until `at` this owner had the lock there; then this ended it. */
    | { type: 'held'; from: number; lock: string; owner: string; half?: 'read' | 'write'; ended?: string }
    /** Between `from` and `at` locks were taken away behind the library's back: DEL, forced, restarted empty. */
    | { type: 'broken'; from: number; locks: readonly string[] | 'all'; tokensLost?: boolean }
    /** `lock`: what `broken` calls it. */
    | { type: 'latch-set'; latch: string; lock?: string }
    /** `asked`: count-downs that had begun by then. */
    | { type: 'latch-opened'; latch: string; of: number; asked: number }
    /** Somebody has waited in vain; `counted`: count-downs that had been answered, the last one at `lastCountedAt`. */
    | { type: 'latch-closed'; latch: string; of: number; counted: number; lastCountedAt: number }
    /** Nobody had or wanted any, and there are that many from now on: what was lost before does not count. */
    | { type: 'permits-set'; lock: string }
    /** At a quiet point: so many permits were free, of so many. */
    | { type: 'permits-free'; lock: string; free: number; of: number }
    /** A fault struck this process, or all of them, from `from` on; what it leaves is over at `at`. `renews`: it keeps no hold from being renewed. */
    | { type: 'disturbed'; from: number; whom: string; by: string; renews?: boolean }
    /** At a quiet point, after a collection. */
    | { type: 'heap'; size: HeapSize }
    /** Batches of as many sections each, while nothing else happened; `sizes`: before the first one and after each. */
    | { type: 'drilled'; sections: number; sizes: readonly HeapSize[] }
    /** A call that nothing disturbed did what it must not do. */
    | { type: 'wrong'; what: string }
    /** Found when all was over. */
    | { type: 'left'; what: 'key' | 'queue entry' | 'channel' | 'timer' | 'listener' | 'waiter'; name: string }
  );

/** What a process has in use. */
export interface HeapSize {
  readonly bytes: number;
  readonly objects: number;
}

interface AcquireOk {
  type: 'acquire-ok';
  call: string;
  hold: string;
  owner: string;
  /** The hold that the call was made inside of. */
  parent?: string | undefined;
  /** The holder's own deadline. */
  validUntil: number;
  token?: string | number | bigint | undefined;
  shared?: boolean | undefined;
  /** How many were taken, of how many: no lock, and nobody signals their loss. */
  permits?: { taken: number; of: number } | undefined;
}

export type EventOf<T extends HistoryEvent['type']> = Extract<HistoryEvent, { type: T }>;

/** What a server's stamps, turned into ours, may be off. */
export const CLOCK_SLACK_MS = 2;

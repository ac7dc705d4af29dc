/**
 * The history of the locks of several processes, and the facts that such a history must not contain.
 *
 * `at` is CLOCK_MONOTONIC in ms, which all processes of one machine share (`stamp()` of history-recorder.mjs). A stamp
 * is taken inside the event that it stands for: "ok" after the call has returned, "invoke" before it is made. So a hold
 * counts for less than it really lasts, never for more.
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
    /** The holder learned how long its hold is valid; the latest report counts. `until` = `at`: not valid. */
    | { type: 'valid'; hold: string; until: number }
    | { type: 'release-invoke'; hold: string; validUntil: number; settlesWithin?: number }
    | { type: 'release-ok'; hold: string }
    | { type: 'release-fail'; hold: string; reason: string }
    | { type: 'loss-signal'; hold: string; cause: string }
    /** The server ran a command that creates, extends or changes a hold for this call. A release is none. */
    | { type: 'effect'; call: string; effect: string }
    /** The process did not run from `from` until `at`: blocked, or stopped. */
    | { type: 'stalled'; from: number }
    /** The machine of the process slept: the monotonic clock of the process stopped for that time. */
    | { type: 'slept'; from: number }
    | { type: 'died' }
    /**
     * Seen at the server: from `from` until `at` this owner had the lock there; then this ended it. `handedOver`: the
     * owner before passed it on. `confirmed`: the leases that the server set for it meanwhile.
     */
    | {
        type: 'held';
        from: number;
        lock: string;
        owner: string;
        half?: 'read' | 'write';
        ended?: string;
        handedOver?: boolean;
        confirmed?: readonly Confirmed[];
      }
    /** Between `from` and `at` locks were deleted without the library: DEL, force unlock, empty restart. */
    | { type: 'broken'; from: number; locks: readonly string[] | 'all'; tokensLost?: boolean }
    /** A client of this process forced the release of the lock between `from` and `at`, and this was its answer. */
    | { type: 'forced'; from: number; lock: string; client: string; freed: boolean }
    /** The options of a client: its owners begin with its id. `local` and `keep` in ms. */
    | { type: 'client'; client: string; local: number; keep: number }
    /** By its own event, the client granted a hold. `holds`: of the owner, from then on. */
    | { type: 'began'; lock: string; owner: string; holds: number; shared?: boolean }
    /** By its own event, the client knew that a hold had ended. */
    | { type: 'ended'; lock: string; owner: string; holds: number; shared?: boolean }
    /** `lock`: its name in `broken`. */
    | { type: 'latch-set'; latch: string; lock?: string }
    /** `asked`: number of count-downs that had begun by then. */
    | { type: 'latch-opened'; latch: string; of: number; asked: number }
    /** A waiter timed out; `counted`: number of answered count-downs, the last one at `lastCountedAt`. */
    | { type: 'latch-closed'; latch: string; of: number; counted: number; lastCountedAt: number }
    /** No permit was in use, and the semaphore has this number from now on: earlier losses do not count. */
    | { type: 'permits-set'; lock: string }
    /** At a quiet point: so many permits were free, of so many. */
    | { type: 'permits-free'; lock: string; free: number; of: number }
    /**
     * A fault struck this process, or all of them, from `from` on; its effects end at `at`. `renews`: holds are renewed
     * during the fault.
     */
    | { type: 'disturbed'; from: number; whom: string; by: string; renews?: boolean }
    /** At a quiet point, after a collection. */
    | { type: 'heap'; size: HeapSize }
    /** Batches of as many sections each, while nothing else happened; `sizes`: before the first one and after each. */
    | { type: 'drilled'; sections: number; sizes: readonly HeapSize[] }
    /** An undisturbed call behaved incorrectly. */
    | { type: 'wrong'; what: string }
    /** Found at the end. */
    | { type: 'left'; what: 'key' | 'queue entry' | 'channel' | 'timer' | 'listener' | 'waiter'; name: string }
  );

/** A lease that a server set at `at`. It ends at `until`. */
export interface Confirmed {
  readonly at: number;
  readonly until: number;
}

/** The resources that a process uses. */
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
  /** Number of taken permits, and their total: they are no lock, and no signal reports their loss. */
  permits?: { taken: number; of: number } | undefined;
}

export type EventOf<T extends HistoryEvent['type']> = Extract<HistoryEvent, { type: T }>;

/** Error, in ms, of the time stamps of a server after the conversion to local time. */
export const CLOCK_SLACK_MS = 2;

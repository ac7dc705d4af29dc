/*
 * What the server and the page say to each other: types alone, so that the page's script has no code of the server.
 *
 * All paths are relative to the base path of the inspector, which ends with a slash. The page uses relative URLs only.
 *
 *   GET  ./               the page. The base path without its slash redirects here.
 *   GET  ./inspector.css  its style
 *   GET  ./inspector.js   its script, one ES module: what the build makes of `page/inspector.ts`
 *   GET  ./events         server-sent events: `ServerEvents`. The query is a `View`. One of these streams is the only
 *                         connection that a page keeps. To search, to select a lock or to show more rows, the page closes
 *                         its stream and opens another one.
 *   POST ./unlock         frees a lock: `UnlockRequest` as JSON, with the header `holdfast-csrf`. Only with `actions`.
 *
 * The Content-Security-Policy of the page needs `script-src`, `style-src` and `connect-src` for this origin, and `img-src
 * data:` for its icon. The script sets styles through the CSSOM only, so that no inline style is needed.
 *
 * Every error is JSON: `ErrorReply`. After a status other than 200, a browser does not open the stream again by itself.
 * The page shows the error and a button that tries again.
 *
 * Where a time is a moment, it is in epoch ms of the server (`at`, `since`). The page converts it by `Hello.now`. Where it
 * is a rest, it is in ms and counts down from `readAgo` before the event was sent.
 *
 * All text comes from Redis or from other programs and is untrusted: the page sets it as text, never as HTML.
 */
import type { Finding } from '../../index.js';
import type { OwnerView, ProcessView, RowKind, RowsChange, Selected, Summary } from './row-messages.js';
import type { TimelineChange } from './timeline-messages.js';

export type * from './row-messages.js';
export type * from './timeline-messages.js';

/** The query of `./events`: what one page shows. Every part may be absent. */
export interface View {
  /** Shows the names that contain this text, in any case, and those with an owner whose process contains it. */
  readonly search?: string;
  /** The name whose details and timeline the page shows. */
  readonly select?: string;
  /** Number of rows, at most 1,000. @defaultValue 200 */
  readonly rows?: string;
}

/** The events of the stream, by name. `data` of each is the payload as JSON. */
export interface ServerEvents {
  /** The first event of every stream. All that the page knew before is void. */
  hello: Hello;
  /** Changed rows of the table. */
  rows: RowsChange;
  /** How much was listed. */
  summary: Summary;
  /** The selected lock. `null`: nothing is selected. */
  selected: Selected | null;
  /** What is new in the timeline of the selected lock. */
  timeline: TimelineChange;
  /** What this client holds and waits for. Replaces the one before. */
  own: Own;
  /** Who waits for whom. Replaces the one before. */
  waits: readonly WaitEdge[];
  /** The most contended locks, most contended first; at most ten. Replaces the one before. */
  contended: readonly Contended[];
  /** What the doctor found. Replaces the one before. */
  doctor: Doctor;
  /** What does not work at the moment. Replaces the one before; empty if everything works again. */
  problems: readonly Problem[];
  /** The last event of a stream that the server ends. The page does not open another one by itself. */
  bye: Bye;
}

export interface Hello {
  /** The wall clock of the server, in epoch ms. */
  readonly now: number;
  /** The version of the package. Another version than that of the page's script: the page reloads itself. */
  readonly version: string;
  /** The client that the inspector uses. */
  readonly client: { readonly id: string; readonly name: string; readonly host: string; readonly pid: number };
  /** The key prefix of the client. Names are shown without it. */
  readonly keyPrefix: string;
  /** Whether the page may free locks. */
  readonly actions: boolean;
  /** The value of the header `holdfast-csrf`; `null` without `actions`. */
  readonly csrf: string | null;
  /** The user, as `authorize` named it; `null` if it named none. */
  readonly user: string | null;
  /** The view that the stream shows, with its defaults. */
  readonly view: { readonly search: string; readonly select: string | null; readonly rows: number };
}

export interface Own {
  /** At most 100, oldest first. */
  readonly holds: readonly OwnHold[];
  readonly holdCount: number;
  /** At most 100, oldest first. */
  readonly waits: readonly OwnWait[];
  readonly waitCount: number;
  readonly stats: OwnStats;
}

/** An open hold of this client. */
export interface OwnHold {
  readonly name: string;
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
export interface OwnWait {
  readonly name: string;
  readonly kind: string;
  /** Time since the call, in ms. */
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
export interface WaitEdge {
  readonly name: string;
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
  /** Time since the call, in ms; `null` if unknown. */
  readonly age: number | null;
  /** The owners that have the lock. */
  readonly holders: readonly OwnerView[];
}

/** How much a lock was waited for since the page was opened first. */
export interface Contended {
  readonly name: string;
  readonly kind: RowKind;
  /** Number of clients that wait now; `null` if unknown. */
  readonly waiters: number | null;
  /** The largest number of waiting clients that was seen. */
  readonly mostWaiters: number;
  /** Time for which at least one client was seen waiting, in ms. */
  readonly waitedForMs: number;
  /** Waits of this client: how many ended, the longest and their sum, in ms. */
  readonly own: { readonly count: number; readonly longestMs: number; readonly totalMs: number };
}

export interface Doctor {
  /** In epoch ms; `null` while the first examination runs. */
  readonly at: number | null;
  /** Without the probes of permissions: they would change Redis. */
  readonly findings: readonly FindingView[];
}

export type FindingView = Pick<Finding, 'check' | 'level' | 'message'> & {
  readonly server: string | null;
  readonly advice: string | null;
};

export interface Problem {
  readonly what: 'list' | 'rows' | 'selected' | 'doctor' | 'connection';
  readonly since: number;
  /** The message of the error. */
  readonly message: string;
}

export interface Bye {
  /** `slow`: the page did not read its events, so that they piled up. It may open another stream. */
  readonly reason: 'client closed' | 'slow' | 'not allowed';
}

/** The body of `POST ./unlock`, as `application/json` of at most 8 kB. */
export interface UnlockRequest {
  readonly name: string;
  /** The owner that may lose the lock, as the page showed it. */
  readonly owner: string;
  /** The name of the lock, as the user has typed it again. */
  readonly confirm: string;
}

export interface UnlockReply {
  /** `false`: this owner no longer has the lock. */
  readonly freed: boolean;
}

export interface ErrorReply {
  readonly error: {
    readonly code:
      | 'unauthenticated'
      | 'forbidden'
      | 'not found'
      | 'method not allowed'
      | 'wrong host'
      | 'cross-site'
      | 'csrf'
      | 'actions off'
      | 'not confirmed'
      | 'invalid'
      | 'too large'
      | 'not JSON'
      | 'too many pages'
      | 'unavailable'
      | 'unknown outcome'
      | 'refused'
      | 'closed'
      | 'internal';
    /** What is wrong and what to do. */
    readonly message: string;
  };
}

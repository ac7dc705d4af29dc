/* The events of the stream. */
import type { Finding } from '../../../index.js';
import type { Contended, Own, WaitEdge } from './own.js';
import type { RowsChange, Selected, Summary } from './rows.js';
import type { TimelineChange } from './timeline.js';

/** The query of `./events`: what one page shows. Every part may be absent. */
export interface View {
  /** Shows the names that contain this text, in any case, and those with an owner whose process contains it. */
  readonly search?: string;
  /** The name whose details and timeline the page shows: at most 4,096 characters. */
  readonly select?: string;
  /** The id of that name, if the page does not know the whole name. */
  readonly id?: string;
  /** Number of rows, at most 1,000. @defaultValue 200 */
  readonly rows?: string;
}

/**
 * The events of the stream, by name. `data` of each is the payload as JSON. The server updates a page at most four times a
 * second, with at most 1 MB.
 */
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
  /** Identifies the files of the page. If a later stream has another version, the page reloads itself. */
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
  readonly view: {
    readonly search: string;
    readonly select: string | null;
    readonly id: string | null;
    readonly rows: number;
  };
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
  readonly what: 'list' | 'rows' | 'selected' | 'doctor';
  readonly since: number;
  /** The message of the error. */
  readonly message: string;
  /** Whether Redis is unavailable: the page shows what was read before. */
  readonly isOutage: boolean;
}

export interface Bye {
  /**
   * `slow`: the page did not read its events, so that they piled up. It may open another stream. `failed`: the server
   * could not make an update, and has written a warning.
   */
  readonly reason: 'client closed' | 'server closed' | 'slow' | 'not allowed' | 'failed';
}

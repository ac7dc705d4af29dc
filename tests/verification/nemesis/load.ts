import type { HistoryRecorder } from '../../support/history/history-recorder.mjs';
import { Random } from '../../support/random.js';
import type { WorkerParts } from '../../support/processes/worker-orders.js';
import { spans } from './span-count.mjs';
import { Clients, Targets } from './target.js';

export interface FlowOptions {
  readonly seed: string;
  readonly flows: number;
  /** The objects, by `kinds.ts`. The last one is also force-unlocked at times. */
  readonly names: readonly string[];
  /** Names that share their channels with some of these. */
  readonly twins: readonly string[];
  /** Which of the calm names this process wants. */
  readonly calm: readonly string[];
  /** There are keys that Redis refuses. */
  readonly refusing: boolean;
  readonly tokens: 'counter' | 'clock';
  readonly commandTimeout: number;
  readonly lockWatchdogTimeout: number;
  /** On average, between two sections of a flow. */
  readonly pauseMs: number;
}

export interface FlowResult {
  readonly sections: number;
  /** Of this process's scripts; 0 if it is not traced. */
  readonly spans: number;
  /** Calls that gave no hold, by the code of the error, or `busy`. */
  readonly refused: Readonly<Record<string, number>>;
  /** Releases that rejected, by code. */
  readonly notReleased: Readonly<Record<string, number>>;
  /** Locks that the client believes to hold when all flows have ended. */
  readonly heldAtEnd: readonly string[];
}

const SHORTEST_LEASE_MS = 60;
const LONGEST_LEASE_MS = 2_400;

/** The shared state of the flows of one process. */
export class Load {
  readonly options: FlowOptions;
  readonly targets: Targets;
  readonly clients: Clients;
  readonly recorder: HistoryRecorder;
  sections = 0;
  readonly refused: Record<string, number> = {};
  readonly notReleased: Record<string, number> = {};
  /** Sections without a waiting caller. */
  readonly children = new Set<Promise<void>>();
  readonly #leases: number[] = [];
  readonly #leaseOrder: Random;

  constructor(
    readonly parts: WorkerParts,
    options: FlowOptions,
  ) {
    this.options = options;
    this.clients = new Clients(parts.clients);
    this.recorder = parts.recorder!;
    this.targets = new Targets(this.clients, [...options.names, ...options.twins], options.tokens);
    this.#leaseOrder = new Random(`${parts.name} leases`, options.seed);
  }

  result(): FlowResult {
    const { sections, refused, notReleased } = this;
    const clients = [...this.parts.clients.values()];
    return {
      sections,
      spans: spans.ofScripts,
      refused,
      notReleased,
      heldAtEnd: clients.flatMap((client) => client.holds().map(({ lockName }) => lockName)),
    };
  }

  /** Distinct for the calls of this process over a long time, so that the server log shows the call of a request. */
  nextLease(): number {
    if (this.#leases.length === 0) {
      for (let ms = SHORTEST_LEASE_MS; ms < LONGEST_LEASE_MS; ms++) this.#leases.push(ms);
      for (let i = this.#leases.length - 1; i > 0; i--) {
        const j = this.#leaseOrder.below(i + 1);
        [this.#leases[i], this.#leases[j]] = [this.#leases[j]!, this.#leases[i]!];
      }
    }
    return this.#leases.pop()!;
  }

  count(counts: Record<string, number>, error: unknown): void {
    const code = codeOf(error);
    counts[code] = (counts[code] ?? 0) + 1;
  }
}

/** The codes that distinguish errors. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error);

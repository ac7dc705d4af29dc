import type { LockClient, LockEvents } from 'holdfast';
import type { HistoryRecorder } from '../../support/history/history-recorder.mjs';
import { Random } from '../../support/random.js';
import type { WorkerParts } from '../../support/processes/worker-orders.js';
import { spans } from './span-count.mjs';
import { elsewhere } from './kinds.js';
import { mayFollow, type HotOptions } from './hot-options.js';
import { Clients, ELSEWHERE_CLIENT, Targets } from './target.js';

export interface FlowOptions {
  readonly seed: string;
  readonly flows: number;
  /** The objects, by `kinds.ts`. The last one is also force-unlocked at times. */
  readonly names: readonly string[];
  /** Names that share their channels with some of these. */
  readonly twins: readonly string[];
  /** Which of the calm names this process wants. */
  readonly calm: readonly string[];
  /** Names with one short section after the other. */
  readonly busy: readonly string[];
  /** There are keys that Redis refuses. */
  readonly refusing: boolean;
  readonly tokens: 'counter' | 'clock';
  readonly commandTimeout: number;
  readonly lockWatchdogTimeout: number;
  /** Of all clients of this process. */
  readonly hot: HotOptions;
  /** Of 40 sections at the last name, so many are followed by a forced unlock. */
  readonly forced: number;
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

type SectionEvent = Pick<LockEvents['acquired'], 'lockName' | 'owner' | 'mode'> & { readonly holdCount?: number };

const SHORTEST_LEASE_MS = 60;
const LONGEST_LEASE_MS = 2_400;
/** Leases of calls that come one after the other differ by less: then local hand-overs may pass the lock on. */
const SIMILAR_MS = 60;

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
    for (const [name, client] of parts.clients) this.#recordSections(name, client);
  }

  /** The begins and ends of sections, as the events of the client tell them at that very moment. */
  #recordSections(name: string, client: LockClient): void {
    const { recorder, options } = this;
    const { local, keep } = options.hot;
    recorder.write({ type: 'client', client: client.id, local, keep });
    const told = (type: 'began' | 'ended', event: SectionEvent): void => {
      const { lockName, owner, holdCount: holds = 0, mode } = event;
      if (local === 0 || !mayFollow(lockName)) return;
      const lock = name === ELSEWHERE_CLIENT ? elsewhere(lockName) : lockName;
      recorder.write({ type, lock, owner, holds, ...(mode === 'shared' && { shared: true }) });
    };
    client.events.on('acquired', (event) => told('began', event));
    client.events.on('released', (event) => told('ended', event));
    client.events.on('leaseLost', (event) => told('ended', event));
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
      const size = this.options.hot.local > 0 ? SIMILAR_MS : LONGEST_LEASE_MS - SHORTEST_LEASE_MS;
      const groups: number[][] = [];
      for (let from = SHORTEST_LEASE_MS; from < LONGEST_LEASE_MS; from += size)
        groups.push(this.#shuffled(Array.from({ length: size }, (_, at) => from + at)));
      this.#leases.push(...this.#shuffled(groups).flat());
    }
    return this.#leases.pop()!;
  }

  #shuffled<T>(all: T[]): T[] {
    for (let i = all.length - 1; i > 0; i--) {
      const j = this.#leaseOrder.below(i + 1);
      [all[i], all[j]] = [all[j]!, all[i]!];
    }
    return all;
  }

  count(counts: Record<string, number>, error: unknown): void {
    const code = codeOf(error);
    counts[code] = (counts[code] ?? 0) + 1;
  }
}

/** The codes that distinguish errors. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error);

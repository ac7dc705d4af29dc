/* What the inspector's page reads of a client, beyond the public methods of the client. */
import type { LockKind } from '../events.js';
import { hasCaller } from '../holding/left-holds.js';
import type { Tenure } from '../holding/tenure.js';
import { batchesOf, describe, type Inspecting, type ReadEntry } from '../inspection/describe.js';
import { examineSlowly } from '../inspection/doctor/doctor.js';
import type { Finding } from '../inspection/doctor/finding.js';
import { list } from '../inspection/list.js';
import { Servers, type Pace, type Server } from '../inspection/servers.js';
import { LockWaiter } from '../waiting/lock-waiter.js';
import type { Waiter } from '../waiting/waiter.js';
import { holdInfoOf, tenuresOf, type HoldInfo } from './hold-info.js';
import type { Wiring } from './wiring.js';

/** A hold of the client. */
export interface OverviewHold extends HoldInfo {
  readonly kind: LockKind;
  /** Rest of the lease, in ms, as the client knows it. */
  readonly remaining: number;
  /** Whether the watchdog renews the lease. */
  readonly isRenewed: boolean;
}

/** A call of the client that waits. */
export interface OverviewWait {
  readonly lockName: string;
  /** `undefined`: the call waits for permits or for a latch. */
  readonly kind: LockKind | undefined;
  /** The owner id that the call gets with the lock; `undefined` for permits and latches. */
  readonly owner: string | undefined;
  /** Time since this object first saw the call wait, in ms. */
  readonly age: number;
  readonly callSite: string | undefined;
}

/** The first of many, and the number of all. */
export interface Some<T> {
  readonly first: readonly T[];
  readonly count: number;
}

/** Number of owners, waiters and permits that are read of one name. */
const MOST = 50;
/** Number of holds and of waiting calls among which the oldest are found. */
const MOST_SEEN = 2_000;

/** Reads a client and its Redis slowly, and of each object only a part. `pace` is called before each command. */
export class Overview {
  readonly #inspecting: Inspecting;
  /** When each waiting call was seen first, in ms. */
  readonly #seen = new WeakMap<Waiter, number>();
  /** The names of semaphores and latches, as the last listing found them. */
  #counters = new Set<string>();

  constructor(
    private readonly wiring: Wiring,
    pace: Pace,
  ) {
    const { client, executor, lines, port } = wiring;
    const { clientId, keyPrefix } = port;
    const idleChannels = (): ReadonlySet<string> => lines.idleChannels();
    const servers = this.#servers(pace);
    this.#inspecting = { client, clientId, keyPrefix, executor, servers, idleChannels, pace, most: MOST };
  }

  get clientName(): string {
    return this.wiring.options.clientName;
  }

  get keyPrefix(): string {
    return this.wiring.port.keyPrefix;
  }

  get isClosed(): boolean {
    return this.wiring.client.closed;
  }

  /** The names in use, as `client.list()` finds them. */
  async *list(signal: AbortSignal): AsyncIterable<ReadEntry> {
    const counters = new Set<string>();
    try {
      for await (const entry of list(this.#inspecting, { signal })) {
        if (entry.kind === 'counter') {
          counters.add(entry.name);
          this.#counters.add(entry.name);
        }
        yield entry;
      }
    } finally {
      if (!signal.aborted) this.#counters = counters;
    }
  }

  /**
   * Reads names again, those of one server together. A name that is no longer in use becomes `null`. So does a number,
   * unless the last listing or a waiting call says that it is a semaphore or latch. A name whose server is unknown at the
   * moment is absent.
   */
  async read(names: readonly string[]): Promise<Map<string, ReadEntry | null>> {
    const inspecting = this.#inspecting;
    const byServer = new Map<Server, string[]>();
    for (const name of names) {
      const server = inspecting.servers.of(this.keyPrefix + name);
      if (server === undefined) continue;
      const same = byServer.get(server) ?? [];
      if (same.push(name) === 1) byServer.set(server, same);
    }
    const read = new Map<string, ReadEntry | null>();
    for (const [server, own] of byServer) {
      for (const batch of batchesOf(own)) {
        const entries = await describe(inspecting, server, batch, (name) => this.#counters.has(name));
        for (const name of batch) read.set(name, null);
        for (const entry of entries) read.set(entry.name, entry);
      }
    }
    return read;
  }

  /** What the doctor finds without its probes. `ready` is called before the commands to each server. */
  examine(ready: (commands: number) => Promise<void>): Promise<Finding[]> {
    const { clock, executor, topology } = this.wiring;
    // The doctor measures round trips, so its commands go out without a pause between them.
    const examined = { servers: this.#servers(), clock: clock.clock, executor, topology };
    return examineSlowly(examined, ready);
  }

  /** The open holds, at most `most` of them: the oldest of the first 2,000. */
  holds(most: number): Some<OverviewHold> {
    const now = this.wiring.clock.now();
    const seen: { readonly tenure: Tenure; readonly since: number }[] = [];
    let count = 0;
    for (const tenure of tenuresOf(this.wiring.lines)) {
      const outermost = tenure.holds.find(hasCaller);
      if (outermost === undefined) continue;
      count += 1;
      if (count > MOST_SEEN) continue;
      tenure.lease.check(now);
      seen.push({ tenure, since: outermost.openedAt });
    }
    const oldest = seen.sort((a, b) => a.since - b.since).slice(0, most);
    const first = oldest.map(({ tenure }) => ({
      ...holdInfoOf(tenure, now),
      kind: tenure.protocol.kind,
      remaining: tenure.lease.validFor(now),
      isRenewed: tenure.lease.watched,
    }));
    return { first, count };
  }

  /** The waiting calls, at most `most` of them: those of the first 2,000 that have waited for the longest time. */
  waits(most: number): Some<OverviewWait> {
    const now = this.wiring.clock.clock.monotonic();
    const seen: { readonly waiter: Waiter; readonly since: number }[] = [];
    let count = 0;
    for (const line of this.wiring.lines) {
      for (const waiter of line.waiters) {
        count += 1;
        if (count > MOST_SEEN) continue;
        const since = this.#seen.get(waiter) ?? now;
        this.#seen.set(waiter, since);
        seen.push({ waiter, since });
      }
    }
    const longest = seen.sort((a, b) => a.since - b.since).slice(0, most);
    return { first: longest.map(({ waiter, since }) => waitOf(waiter, now - since)), count };
  }

  #servers(pace?: Pace): Servers {
    const { executor, topology } = this.wiring;
    return new Servers(executor, topology, pace);
  }
}

function waitOf(waiter: Waiter, age: number): OverviewWait {
  const lock = waiter instanceof LockWaiter ? waiter : undefined;
  return {
    ...{ lockName: waiter.name, kind: lock?.protocol.kind, owner: lock?.owner },
    ...{ age, callSite: waiter.site?.toString() },
  };
}

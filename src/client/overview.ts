/* What the inspector's page reads of a client, beyond the public methods of the client. */
import type { LockKind } from '../events.js';
import { describe, type Inspecting, type ListEntry } from '../inspection/describe.js';
import { examineSlowly } from '../inspection/doctor/doctor.js';
import type { Finding } from '../inspection/doctor/finding.js';
import { BATCH, list } from '../inspection/list.js';
import { Servers, type Pace, type Server } from '../inspection/servers.js';
import { LockWaiter } from '../waiting/lock-waiter.js';
import type { Waiter } from '../waiting/waiter.js';
import { heldTenures, holdInfoOf, type HoldInfo } from './hold-info.js';
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

/** Reads a client and its Redis slowly. `pace` is called before each command. */
export class Overview {
  readonly #inspecting: Inspecting;
  /** When each waiting call was seen first, in ms. */
  readonly #seen = new WeakMap<Waiter, number>();

  constructor(
    private readonly wiring: Wiring,
    pace: Pace,
  ) {
    const { client, executor, port } = wiring;
    const { clientId, keyPrefix } = port;
    this.#inspecting = { client, clientId, keyPrefix, executor, servers: this.#servers(pace), pace };
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
  list(signal: AbortSignal): AsyncIterable<ListEntry> {
    return list(this.#inspecting, { signal });
  }

  /**
   * Reads names again, those of one server together. A name that is no longer in use becomes `null`. A name whose server
   * is unknown at the moment is absent.
   */
  async read(names: readonly string[]): Promise<Map<string, ListEntry | null>> {
    const inspecting = this.#inspecting;
    const byServer = new Map<Server, string[]>();
    for (const name of names) {
      const server = inspecting.servers.of(this.keyPrefix + name);
      if (server === undefined) continue;
      const same = byServer.get(server) ?? [];
      if (same.push(name) === 1) byServer.set(server, same);
    }
    const read = new Map<string, ListEntry | null>();
    for (const [server, own] of byServer) {
      for (let at = 0; at < own.length; at += BATCH) {
        const batch = own.slice(at, at + BATCH);
        const entries = await describe(inspecting, server, batch);
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

  holds(): OverviewHold[] {
    const now = this.wiring.clock.now();
    return heldTenures(this.wiring).map((tenure) => ({
      ...holdInfoOf(tenure, now),
      kind: tenure.protocol.kind,
      remaining: tenure.lease.validFor(now),
      isRenewed: tenure.lease.watched,
    }));
  }

  waits(): OverviewWait[] {
    const now = this.wiring.clock.clock.monotonic();
    const waits: OverviewWait[] = [];
    for (const line of this.wiring.lines) {
      for (const waiter of line.waiters) {
        const since = this.#seen.get(waiter) ?? now;
        this.#seen.set(waiter, since);
        const lock = waiter instanceof LockWaiter ? waiter : undefined;
        waits.push({
          lockName: waiter.name,
          kind: lock?.protocol.kind,
          owner: lock?.owner,
          age: now - since,
          callSite: waiter.site?.toString(),
        });
      }
    }
    return waits;
  }

  #servers(pace?: Pace): Servers {
    const { executor, topology } = this.wiring;
    return new Servers(executor, topology, pace);
  }
}

import { LeaseClock, type Clock } from '../clock.js';
import { logToNodeDebug } from '../diagnostics/log.js';
import { Reports } from '../diagnostics/reports.js';
import { createEvents } from '../events.js';
import { runOutside } from '../ownership/flow.js';
import { KeptLocks } from '../waiting/hand-overs/kept-locks.js';
import type { LockWaiter } from '../waiting/lock-waiter.js';
import { TimeLimits } from '../waiting/limits/time-limits.js';
import { LocalHandOvers } from '../waiting/hand-overs/local-hand-over.js';
import { BackgroundReleases } from '../waiting/hand-overs/background-releases.js';
import { Compensations } from '../holding/compensations.js';
import { Watchdog } from '../holding/watchdog.js';
import type { LockServices } from '../locks/single-lock.js';
import type { ResolvedOptions } from '../options.js';
import { CallSite } from '../ownership/call-site.js';
import { groupRenewal } from '../several/group/group-lock-protocol.js';
import { plainRenewal } from '../protocols/plain-lock-protocol.js';
import type { ProtocolPort } from '../protocols/protocol-port.js';
import { readWriteRenewal } from '../protocols/read-write-lock-protocol.js';
import type { ChannelSource } from '../redis/connections/channel-source.js';
import { connectionNameOf } from '../redis/connections/connection-name.js';
import { databaseOf, serverOf } from '../redis/connections/own-connection.js';
import type { UserConnection } from '../redis/connections/user-connection.js';
import { ScriptExecutor } from '../redis/requests/script-executor.js';
import { ServerIdentity } from '../redis/requests/server-identity.js';
import * as reads from '../redis/scripts/reads.js';
import { openTopology } from '../redis/topologies/open-topology.js';
import type { Topology } from '../redis/topologies/topology.js';
import { Sections } from '../ownership/sections.js';
import { Lanes } from '../synchronizers/lanes.js';
import type { OwnerlessServices } from '../synchronizers/ownerless-object.js';
import { LongWaits } from '../diagnostics/long-wait.js';
import { QueueReleases } from '../protocols/queue-releases.js';
import { ReaderReleases } from '../protocols/reader-releases.js';
import { WaitLines } from '../waiting/wait-lines.js';

/** The inputs of the mechanisms of a client. */
export interface ClientParts {
  /** Redisson's client id: a random UUID. */
  readonly clientId: string;
  readonly server: ServerIdentity;
  readonly options: ResolvedOptions;
  readonly clock: Clock;
  readonly reports: Reports;
  readonly executor: ScriptExecutor;
  readonly subscriber: ChannelSource;
  /** Reads the fields of a hash in Redis. The fields of a lock name its owners. */
  fieldsOf(key: string): Promise<readonly string[]>;
}

/** The mechanisms of one client, and the services for its locks and for its objects without an owner. */
export interface Mechanisms {
  readonly client: { closed: boolean; draining: boolean };
  readonly options: ResolvedOptions;
  readonly clock: LeaseClock;
  readonly reports: Reports;
  readonly compensations: Compensations;
  readonly watchdog: Watchdog;
  readonly lines: WaitLines;
  readonly kept: KeptLocks<LockWaiter>;
  readonly sections: Sections;
  readonly locks: LockServices;
  readonly objects: OwnerlessServices;
}

/** Creates the mechanisms and passes each one its services. */
export function mechanismsOf({
  clientId,
  server,
  options,
  clock: systemClock,
  reports,
  executor,
  subscriber,
  fieldsOf,
}: ClientParts): Mechanisms {
  const client = { closed: false, draining: false };
  const sections = new Sections();
  const clock = new LeaseClock(systemClock);
  const compensations = new Compensations(clock);
  const watchdog = new Watchdog(clock, reports);
  let owners = 0;
  const newOwner = (): string => `${clientId}:${++owners}`;
  const callSite = (above: (...args: never[]) => unknown): CallSite | undefined =>
    options.callSites ? CallSite.capture(above) : undefined;
  const longWaits = new LongWaits(clientId, clock, fieldsOf);
  const backgroundReleases = new BackgroundReleases();
  const tenures = { clock, options, reports, watchdog, compensations, backgroundReleases };
  const { routes } = executor;
  const isOneConnection = (key: string): boolean =>
    routes.connectionFor(key, true) === routes.connectionFor(key, false);
  // Grants and releases may take two connections, and a release has to be possible.
  const sessionOf = (key: string): object | undefined =>
    routes.connectionFor(key, false)?.session && routes.connectionFor(key, true)?.session;
  const localHandOvers = new LocalHandOvers({ clock, options, sessionOf });
  const kept = new KeptLocks<LockWaiter>(clock);
  const timeLimits = new TimeLimits(clock);
  const waiting = {
    kept,
    isOneConnection,
    localHandOvers,
    client,
    sections,
    clock,
    options,
    reports,
    compensations,
    longWaits,
    timeLimits,
    tenures,
    newOwner,
  };
  const lines = new WaitLines(waiting, subscriber);
  return {
    client,
    options,
    clock,
    reports,
    compensations,
    watchdog,
    lines,
    kept,
    sections,
    locks: {
      client,
      sections,
      clientId,
      server,
      clock,
      options,
      reports,
      executor,
      compensations,
      queueReleases: new QueueReleases(),
      tenures,
      lines,
      longWaits,
      newOwner,
      localHandOvers,
      kept,
      callSite,
    },
    objects: {
      client,
      clock,
      options,
      reports,
      compensations,
      lanes: new Lanes(clock, compensations),
      lines,
      tenures,
      sections,
    },
  };
}

/** The mechanisms of a client and its connections to Redis. */
export interface Wiring extends Mechanisms {
  readonly topology: Topology;
  readonly executor: ScriptExecutor;
  readonly port: ProtocolPort;
}

/** Creates the mechanisms and connects them with each other. The connections are still being opened when it returns. */
export function wire(clientId: string, given: UserConnection, options: ResolvedOptions, clock: Clock): Wiring {
  const reports = new Reports(clientId, clock, createEvents(runOutside));
  logToNodeDebug({ id: clientId, events: reports.events });
  let clockReported = false;
  const topology = openTopology(given, options, connectionNameOf(clientId, options.clientName), clock, {
    error: (connection, cause) => reports.report('connectionError', {}, { connection, cause }),
    clockUnavailable: (cause) => {
      // Every connection reports that Redis refuses TIME. Emit one event per client.
      if (!clockReported) reports.report('clockUnavailable', {}, { cause });
      clockReported = true;
    },
  });
  const executor = new ScriptExecutor(topology, clock, options.commandTimeout, options.attemptMs);
  const slotGroup = (key: string): number => topology.slotGroup(key);
  const port: ProtocolPort = {
    executor,
    clientId,
    keyPrefix: options.keyPrefix,
    get publish() {
      return topology.publish;
    },
    slotGroup,
    readerReleases: new ReaderReleases(),
    renewals: {
      plain: plainRenewal(executor, slotGroup),
      readWrite: readWriteRenewal(executor, slotGroup),
      group: groupRenewal(executor),
    },
  };
  const { subscriber } = topology;
  const fieldsOf = (key: string): Promise<readonly string[]> => executor.ask(reads.hkeys, [key], []);
  const server = new ServerIdentity(serverOf(given), executor, databaseOf(given));
  const parts = { clientId, server, options, clock, reports, executor, subscriber, fieldsOf };
  return { ...mechanismsOf(parts), topology, executor, port };
}

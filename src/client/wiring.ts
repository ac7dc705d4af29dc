import { LeaseClock, type Clock } from '../clock.js';
import { CallSite } from '../ownership/call-site.js';
import { Compensations } from '../holding/compensations.js';
import { EntryRegistry } from '../waiting/wait-lines.js';
import { Lanes } from '../synchronizers/lanes.js';
import { LongWaits } from '../waiting/long-wait.js';
import type { LockRuntime } from '../waiting/lock-runtime.js';
import { Watchdog } from '../holding/watchdog.js';
import type { EventSource } from '../events.js';
import type { ResolvedOptions } from '../options.js';
import { groupRenewal } from '../protocols/group-lock-protocol.js';
import { plainRenewal, type ProtocolPort } from '../protocols/plain-lock-protocol.js';
import { readWriteRenewal } from '../locks/read-write-lock.js';
import { openTopology } from '../redis/topologies/open-topology.js';
import type { UserConnection } from '../redis/connections/user-connection.js';
import { serverOf } from '../redis/connections/own-connection.js';
import { ScriptExecutor } from '../redis/requests/script-executor.js';
import * as reads from '../redis/scripts/reads.js';
import type { Topology } from '../redis/topologies/topology.js';

/** The mechanisms of one client. */
export interface Assembly {
  readonly runtime: LockRuntime & { closed: boolean };
  readonly topology: Topology;
  readonly executor: ScriptExecutor;
  readonly port: ProtocolPort;
}

/** Makes them and puts them together; the connections are on their way when it returns. */
export function assemble(
  id: string,
  given: UserConnection,
  options: ResolvedOptions,
  clock: Clock,
  events: EventSource,
): Assembly {
  const { attemptMs, commandTimeout, lockWatchdogTimeout, renewEveryMs, callSites } = options;
  let clockTold = false;
  const topology = openTopology(given, options, clock, {
    error: (connection, cause) => events.emit('connectionError', { connection, cause }),
    clockUnavailable: (cause) => {
      // Every connection finds out for itself.
      if (!clockTold) events.emit('clockUnavailable', { cause });
      clockTold = true;
    },
  });
  const executor = new ScriptExecutor(topology, clock, commandTimeout, attemptMs);
  const slotGroup = (key: string): number => topology.slotGroup(key);
  const port: ProtocolPort = {
    executor,
    clientId: id,
    keyPrefix: options.keyPrefix,
    get publish() {
      return topology.publish;
    },
    slotGroup,
    renewals: {
      plain: plainRenewal(executor, slotGroup),
      readWrite: readWriteRenewal(executor, slotGroup),
      group: groupRenewal(executor),
    },
  };
  const leaseClock = new LeaseClock(clock);
  const compensations = new Compensations(leaseClock);
  let tenures = 0;
  const runtime: Assembly['runtime'] = {
    clientId: id,
    server: serverOf(given),
    options,
    clock: leaseClock,
    events,
    entries: new EntryRegistry(
      () => runtime,
      () => topology.subscriber,
    ),
    watchdog: new Watchdog(leaseClock, events, lockWatchdogTimeout, renewEveryMs),
    compensations,
    lanes: new Lanes(leaseClock, compensations),
    longWaits: new LongWaits(id, leaseClock, (key) => executor.ask(reads.hkeys, [key], [])),
    closed: false,
    newOwner: () => `${id}:${++tenures}`,
    callSite: (above) => (callSites ? CallSite.capture(above) : undefined),
  };
  return { runtime, topology, executor, port };
}

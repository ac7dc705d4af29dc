import type { Clock } from '../../clock.js';
import { ClientClosedError, LockError, NotReplicatedError, RedisUnavailableError, RefusedError } from '../../errors.js';
import { info, time } from '../../redis/scripts/server.js';
import { ifRefused } from '../describe.js';
import type { Server, Servers } from '../servers.js';
import { finding, ok, type Finding } from './finding.js';
import { findingsIn, hasShardedChannels, infoIn } from './server-info.js';
import { CLOCK_DIFFERENCE_MS } from '../../timing.js';

/** What the doctor needs of a client. */
export interface Examined {
  readonly servers: Servers;
  readonly clock: Clock;
  readonly executor: { readonly commandTimeout: number };
  readonly topology: { readonly isCluster: boolean; readonly acks: number };
}

/** Number of round trips that the latency is measured with. */
const ROUND_TRIPS = 5;
/** Number of commands that one server gets: INFO, PUBSUB, CLIENT and the round trips. */
const COMMANDS = ROUND_TRIPS + 3;

/** Looks at every server that has keys. */
export async function examineServers(examined: Examined): Promise<Finding[]> {
  const { servers, missing } = await examined.servers.all();
  const each = servers.map((server) => examineServer(server, examined).catch(ifUnavailable(server)));
  return [...notReached(missing), ...(await Promise.all(each)).flat()];
}

/** Looks at one server after the other. `ready` is called before each, with the number of commands that it gets. */
export async function examineSlowly(
  examined: Examined,
  ready: (commands: number) => Promise<void>,
): Promise<Finding[]> {
  const { servers, missing } = await examined.servers.all();
  const findings = notReached(missing);
  for (const server of servers) {
    await ready(COMMANDS);
    findings.push(...(await examineServer(server, examined).catch(ifUnavailable(server))));
  }
  return findings;
}

const notReached = (missing: readonly string[]): Finding[] =>
  missing.map((what) => {
    const message = `${what} cannot be reached: locks whose keys belong there do not work`;
    const advice = 'start the server, or give its slots to another one (redis-cli --cluster fix)';
    return finding('cluster', 'error', 'cluster', message, advice);
  });

/** What is known of a server of a cluster that stopped to reply. The other servers are examined. */
const ifUnavailable =
  ({ address }: Server) =>
  (error: unknown): Finding[] => {
    if (!(error instanceof RedisUnavailableError) || address === undefined) throw error;
    return notReached([`server ${address}`]);
  };

async function examineServer(server: Server, examined: Examined): Promise<Finding[]> {
  const text = await server.ask(info, [], []).catch(ifRefused(undefined));
  const told = infoIn(text ?? '');
  const port = told.get('tcp_port');
  // The address is not known through Sentinel or a proxy. The run id tells servers apart.
  const name = port === undefined ? 'server' : `server ${told.get('run_id')?.slice(0, 8) ?? ''} (port ${port})`;
  const { isCluster, acks } = examined.topology;
  const findings =
    text === undefined
      ? [finding('server', 'note', name, 'INFO is refused, so the settings are unknown', 'allow +info')]
      : findingsIn(told, name, isCluster, acks);
  const isClassic = isCluster && !server.sharded && hasShardedChannels(told);
  return [
    ...findings,
    ...(await clockFindings(server, name, examined)),
    await channelFinding(server, name, isClassic),
    await processFinding(server, name),
  ];
}

async function clockFindings(server: Server, name: string, { clock, executor }: Examined): Promise<Finding[]> {
  const trips: number[] = [];
  let aheadMs = 0;
  try {
    for (let i = 0; i < ROUND_TRIPS; i++) {
      const sentAt = clock.monotonic();
      const serverMs = await server.ask(time, [], []);
      const tripMs = clock.monotonic() - sentAt;
      if (tripMs <= Math.min(...trips, Infinity)) aheadMs = serverMs - (clock.wall() - tripMs / 2);
      trips.push(tripMs);
    }
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    const message =
      'TIME is refused: late requests cannot be recognised, and group, fair and expirable objects do not work';
    return [finding('time', 'error', name, message, 'allow +time')];
  }
  const median = trips.sort((a, b) => a - b)[Math.floor(ROUND_TRIPS / 2)] as number;
  const latency = `a round trip takes ${median.toFixed(1)} ms`;
  const difference = `the clock of the server is ${Math.round(Math.abs(aheadMs))} ms ${aheadMs < 0 ? 'behind' : 'ahead'}`;
  const advice = 'no lock depends on it, but logs of the two machines will not agree: check NTP';
  return [
    ok('time', name, 'TIME is allowed'),
    Math.abs(aheadMs) > CLOCK_DIFFERENCE_MS
      ? finding('clock', 'note', name, difference, advice)
      : ok('clock', name, difference),
    median > executor.commandTimeout / 30
      ? finding('latency', 'warning', name, latency, 'raise commandTimeout, or move the client closer to Redis')
      : ok('latency', name, latency),
  ];
}

/** `isClassic`: the client uses classic pub/sub in a cluster whose servers have sharded pub/sub. */
async function channelFinding(server: Server, name: string, isClassic: boolean): Promise<Finding> {
  const counted = await server.subscribers(['holdfast:doctor']).catch(ifRefused(undefined));
  if (counted === undefined) {
    return finding(
      'pub/sub',
      'warning',
      name,
      'PUBSUB is refused: hand-overs assume that others wait',
      'allow +pubsub',
    );
  }
  if (!isClassic) return ok('pub/sub', name, server.sharded ? 'sharded pub/sub is used' : 'classic pub/sub is used');
  const message = 'classic pub/sub is used: each message goes to every node of the cluster';
  const advice = 'set shardedSubscriptions to auto in every client of these locks';
  return finding('pub/sub', 'note', name, message, advice);
}

async function processFinding(server: Server, name: string): Promise<Finding> {
  const { size } = await server.clients();
  if (size > 0) return ok('processes', name, `${size} ${size === 1 ? 'client' : 'clients'} of Holdfast connected`);
  const advice = 'allow +client|setname and +client|list';
  return finding('processes', 'note', name, 'CLIENT is refused: owners have no process', advice);
}

/** A call that waited was not woken. */
export class NoMessageError extends Error {
  constructor(isSubscribed: boolean) {
    super(
      isSubscribed
        ? 'the server confirmed the subscription and delivered no message'
        : 'the server did not confirm the subscription',
    );
  }
}

/**
 * Runs the probes together, and tells what is refused: a Redis that answers none of them delays the list by one command
 * deadline. `use` uses one kind of lock or synchronizer.
 */
export function probe(probes: Iterable<readonly [kind: string, use: () => Promise<unknown>]>): Promise<Finding[]> {
  return Promise.all(
    Array.from(probes, async ([kind, use]) => {
      try {
        await use();
        return ok('permissions', undefined, `${kind} works`);
      } catch (error) {
        if (error instanceof ClientClosedError || !(error instanceof Error)) throw error;
        return finding('permissions', 'error', undefined, `${kind} fails: ${error.message}`, adviceFor(error));
      }
    }),
  );
}

function adviceFor(error: Error): string {
  if (error instanceof NoMessageError)
    return 'waiting calls are not woken: let what is between the client and the server pass pub/sub on, or connect directly';
  if (error instanceof RefusedError) {
    return error.rule === undefined
      ? 'Redis does not refuse this for a missing permission: remove the cause that it names'
      : `allow ${error.rule}: see docs/permissions.md`;
  }
  if (error instanceof NotReplicatedError) return 'start the missing replicas, or lower the option replicas.acks';
  if (!(error instanceof LockError)) return 'this is a defect of Holdfast: report it';
  return `do first what the findings of the servers advise, and see: ${error.help}`;
}

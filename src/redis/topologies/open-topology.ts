import type { Clock } from '../../clock.js';
import type { ResolvedOptions } from '../../options.js';
import { ClusterTopology } from './cluster-topology.js';
import type { MasterReports } from '../connections/master.js';
import type { UserConnection } from '../connections/user-connection.js';
import { isCluster } from '../connections/own-connection.js';
import { sourceOf } from '../connections/credentials.js';
import { sourceOfProvider } from '../connections/node-redis.js';
import { StandaloneTopology } from './standalone-topology.js';
import type { Topology } from './topology.js';

/** Creates the topology that fits the user's connection. */
export function openTopology(
  given: UserConnection,
  { attemptMs, replicas, shardedSubscriptions, credentials }: ResolvedOptions,
  connectionName: string,
  clock: Clock,
  reports: MasterReports,
): Topology {
  // With a single server, replicas confirm only if the user set `replicas.acks`.
  const single = replicas?.always ? replicas : undefined;
  const source = credentials === undefined ? sourceOfProvider(given, clock) : sourceOf(credentials, clock);
  const terms = { attemptMs, connectionName, clock, credentials: source };
  if (isCluster(given)) return new ClusterTopology(given, shardedSubscriptions, clock, terms, replicas, reports);
  const sentinel = (given.options.sentinels?.length ?? 0) > 0;
  return new StandaloneTopology(given, clock, terms, sentinel ? replicas : single, reports);
}

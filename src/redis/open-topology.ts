import type { Clock } from '../clock.js';
import type { ResolvedOptions } from '../options.js';
import { ClusterTopology } from './cluster-topology.js';
import type { MasterReports } from './master.js';
import { isCluster, type RedisSource } from './own-connection.js';
import { StandaloneTopology } from './standalone-topology.js';
import type { Topology } from './topology.js';

/** The topology that a connection of the user's belongs to. */
export function openTopology(
  source: RedisSource,
  { attemptMs, replicas, shardedSubscriptions }: ResolvedOptions,
  clock: Clock,
  reports: MasterReports,
): Topology {
  // Of a single server nobody expects replicas, unless they say so.
  const single = replicas?.always ? replicas : undefined;
  if ('url' in source) return new StandaloneTopology(source, clock, attemptMs, single, reports);
  const { redis } = source;
  if (isCluster(redis)) return new ClusterTopology(redis, shardedSubscriptions, clock, attemptMs, replicas, reports);
  const sentinel = (redis.options.sentinels?.length ?? 0) > 0;
  return new StandaloneTopology({ redis }, clock, attemptMs, sentinel ? replicas : single, reports);
}

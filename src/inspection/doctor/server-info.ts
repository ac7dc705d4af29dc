/* What INFO of one server tells about the safety of locks. */
import { finding, ok, type Finding } from './finding.js';

export type ServerInfo = ReadonlyMap<string, string>;

export const infoIn = (text: string): ServerInfo =>
  new Map([...text.matchAll(/^([^#:\r\n][^:\r\n]*):([^\r\n]*)\r?$/gm)].map(([, key = '', value = '']) => [key, value]));

/** Whether the servers of a cluster can send a message to one node instead of all. */
export const hasShardedChannels = (info: ServerInfo): boolean =>
  info.has('valkey_version') || Number.parseInt(info.get('redis_version') ?? '') >= 7;

const numberIn = (info: ServerInfo, key: string): number => Number(info.get(key) ?? NaN);

/** The findings of one server. `acks`: the replicas that must confirm a grant; 0 if none must. */
export function findingsIn(info: ServerInfo, server: string, isCluster: boolean, acks: number): Finding[] {
  return [
    version(info, server),
    ...clusterMode(info, server, isCluster),
    ...eviction(info, server),
    persistence(info, server),
    ...replicas(info, server, acks),
  ];
}

function version(info: ServerInfo, server: string): Finding {
  const [name, version] = info.has('valkey_version')
    ? ['Valkey', info.get('valkey_version')]
    : ['Redis', info.get('redis_version')];
  if (version === undefined) {
    const advice = 'ask your provider whether it is compatible with Redis 6.0 or later';
    return finding('version', 'note', server, 'the server does not tell its version', advice);
  }
  if (Number.parseInt(version) >= 6) return ok('version', server, `${name} ${version}`);
  return finding('version', 'error', server, `${name} ${version} is too old`, 'use Redis 6.0 or later, or Valkey');
}

function clusterMode(info: ServerInfo, server: string, isCluster: boolean): Finding[] {
  if (info.get('cluster_enabled') !== '1' || isCluster) return [];
  const advice = 'pass a Cluster of ioredis as `redis`, or give the command --cluster';
  return [
    finding(
      'cluster',
      'error',
      server,
      'the server is a node of a cluster, and the client knows this node alone',
      advice,
    ),
  ];
}

function eviction(info: ServerInfo, server: string): Finding[] {
  const [limit, used, policy] = [
    numberIn(info, 'maxmemory'),
    numberIn(info, 'used_memory'),
    info.get('maxmemory_policy'),
  ];
  if (Number.isNaN(limit) || policy === undefined) {
    const advice = 'ask your provider for the policy noeviction, so that no key of a held lock is deleted';
    return [finding('eviction', 'note', server, 'the server does not tell maxmemory and maxmemory-policy', advice)];
  }
  if (limit === 0) return [ok('eviction', server, 'maxmemory is not set, so no key is evicted')];
  const share = used / limit;
  const full = share > 0.9;
  const memory = `${Math.round(100 * share)} % of maxmemory is used`;
  return [
    policy === 'noeviction'
      ? ok('eviction', server, 'maxmemory-policy is noeviction')
      : finding(
          'eviction',
          'error',
          server,
          `maxmemory-policy is ${policy}: Redis may delete the key of a held lock when memory is full`,
          'set maxmemory-policy to noeviction, or use a Redis of its own for locks',
        ),
    full
      ? finding('memory', 'warning', server, memory, 'at maxmemory no lock can be acquired: raise it, or remove data')
      : ok('memory', server, memory),
  ];
}

function persistence(info: ServerInfo, server: string): Finding {
  if (info.get('aof_enabled') === '1') return ok('persistence', server, 'the append-only file is on');
  return finding(
    'persistence',
    'note',
    server,
    'the append-only file is off: a server that restarts has lost locks that were acquired since the last snapshot',
    'set appendonly to yes, or use fencing tokens',
  );
}

function replicas(info: ServerInfo, server: string, acks: number): Finding[] {
  if (info.get('role') !== 'master') {
    const advice = 'connect to the master, or through Sentinel';
    return [finding('role', 'error', server, `the server is a ${info.get('role') ?? 'replica'}`, advice)];
  }
  const online = [...info].filter(([key, value]) => /^slave\d+$/.test(key) && value.includes('state=online')).length;
  const connected = `${online} ${online === 1 ? 'replica' : 'replicas'} connected`;
  if (online === 0 && acks === 0) return [ok('replicas', server, connected)];
  if (acks === 0) {
    const message = `${connected}, and no grant waits for them: a failover may lose a held lock`;
    return [finding('replicas', 'note', server, message, 'set the option replicas.acks to 1')];
  }
  if (online >= acks) return [ok('replicas', server, `${connected}, ${acks} must confirm a grant`)];
  const message = `${connected}, and ${acks} should confirm a grant`;
  return [finding('replicas', 'warning', server, message, 'start a replica: without one a failover loses held locks')];
}

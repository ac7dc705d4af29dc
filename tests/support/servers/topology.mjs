// @ts-check
import { Cluster, Redis } from 'ioredis';

/**
 * The suites run on one server, or through a cluster or Sentinel. A server that a test knows by its URL (the server of
 * the suite, a proxy in front of it, or a server of the test) is then reached through that topology. HOLDFAST_TOPOLOGY
 * names the topology; `npm run suite -- topologies` sets it and starts the servers.
 *
 * @typedef {{ url: string } | { redis: Redis } | { redis: Cluster, shardedSubscriptions: boolean }} Reached
 */
export const topology = process.env.HOLDFAST_TOPOLOGY ?? 'single';

/**
 * The suite's other servers, as the servers themselves name them.
 *
 * @type {{ master?: string, others: string[], sentinels: { host: string, port: number }[] }}
 */
const nodes = { others: [], sentinels: [], ...JSON.parse(process.env.HOLDFAST_TEST_NODES ?? '{}') };

/** @param {string} url @returns {import('ioredis').RedisOptions} */
function optionsOf(url) {
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    host: hostname,
    port: Number(port),
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
    ...(topology !== 'cluster' && pathname.length > 1 && { db: Number(pathname.slice(1)) }),
  };
}

/**
 * For `createClient`.
 *
 * @param {string} url
 * @param {import('ioredis').RedisOptions} [given]  options of the user's connection
 * @returns {Reached}
 */
export function reach(url, given) {
  if (topology === 'single') return given === undefined ? { url } : { redis: redisAt(url, given) };
  const own = optionsOf(url);
  const here = { host: own.host ?? '127.0.0.1', port: own.port ?? 6379 };
  if (topology === 'sentinel') {
    // Sentinel returns the master of the suite. The wanted server is mapped to that address.
    const natMap = (/** @type {string} */ announced) => (announced === nodes.master ? here : null);
    const options = { ...given, ...own, lazyConnect: true, name: 'locks', sentinels: nodes.sentinels, natMap };
    return { redis: new Redis(/** @type {any} */ (options)) };
  }
  const natMap = (/** @type {string} */ announced) => (nodes.others.includes(announced) ? null : here);
  const { keyPrefix, ...rest } = { ...given, ...own };
  const redis = new Cluster([here], {
    lazyConnect: true,
    natMap,
    ...(keyPrefix !== undefined && { keyPrefix }),
    redisOptions: /** @type {any} */ ({ ...rest, host: undefined, port: undefined }),
  });
  // The tests watch the channels as every server knows them; tests/topologies has both kinds.
  return { redis, shardedSubscriptions: false };
}

/**
 * No code closes this connection, so it must not connect.
 *
 * @param {string} url
 * @param {import('ioredis').RedisOptions} given
 */
const redisAt = (url, given) =>
  new Redis(url, /** @type {any} */ ({ replyMapping: 'legacy', ...given, lazyConnect: true }));

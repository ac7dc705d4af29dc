import { Redis, type Cluster, type ClusterNode, type RedisOptions } from 'ioredis';
import type { Clock, Timer } from '../../clock.js';
import { askBeforeConnect, readBeforeConnect, warnOnce, type CredentialsSource } from './credentials.js';
import { detached } from './detached.js';
import type { NodeAddress } from '../cluster-slots.js';
import { startupNodesOf, withKnownScheme, type UserConnection } from './user-connection.js';
import { pauseAfter } from '../../back-off.js';
import { DISCONNECT_MS, RECONNECT_JITTER_MS, RECONNECT_PAUSES, REJECTED_MS } from '../../timing.js';

const pauseBefore = (times: number): number =>
  pauseAfter(RECONNECT_PAUSES, times) + Math.random() * RECONNECT_JITTER_MS;

/** What the connections of one client have in common. */
export interface OwnTerms {
  /** Time for one attempt, in milliseconds. */
  readonly attemptMs: number;
  /** The name that `CLIENT LIST` shows. */
  readonly connectionName: string;
  readonly clock: Clock;
  /** `undefined`: the credentials are those of the user's connection. */
  readonly credentials: CredentialsSource | undefined;
}

/**
 * The options of every connection of this package. They fix how ioredis sends, answers and repeats commands: if a
 * user's setting queued or resent a command, the command could run after its caller got an error. The options for the
 * address, the credentials and TLS come from the user.
 */
function ownOptions({ attemptMs, connectionName }: OwnTerms): RedisOptions & { replyMapping: 'legacy' } {
  const options = {
    // ioredis ignores a server that refuses CLIENT SETNAME.
    connectionName,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    // The ready check needs INFO, which may be forbidden. The first reply also shows whether the server is loading.
    enableReadyCheck: false,
    // Only this option ends the handshake with a server that accepts the connection and never replies.
    socketTimeout: attemptMs,
    connectTimeout: attemptMs,
    disconnectTimeout: DISCONNECT_MS,
    commandTimeout: undefined,
    blockingTimeout: undefined,
    reconnectOnError: null,
    keyPrefix: '',
    stringNumbers: false,
    readOnly: false,
    monitor: false,
    protocol: 2,
    replyMapping: 'legacy',
    disableClientInfo: true,
    showFriendlyErrorStack: false,
    scripts: undefined,
    himportFieldsets: undefined,
    // With Sentinel, connect only to the master, learn of a failover at once, and keep trying.
    role: 'master',
    failoverDetector: true,
    sentinelCommandTimeout: attemptMs,
    sentinelRetryStrategy: pauseBefore,
    sentinelReconnectStrategy: pauseBefore,
  };
  return options as unknown as RedisOptions & { replyMapping: 'legacy' };
}

export function isCluster(redis: UserConnection): redis is Cluster {
  return redis.isCluster;
}

/** The `keyPrefix` of the user's connection. The client makes it part of each name, so ioredis must not add it. */
export const prefixOf = (given: UserConnection): string => given.options.keyPrefix ?? '';

/** The `connectionName` of the user's connection; the empty string if Redis would refuse it, too. */
export function nameOf(given: UserConnection): string {
  const name = isCluster(given) ? given.options.redisOptions?.connectionName : given.options.connectionName;
  return /^[!-~]*$/.test(name ?? '') ? (name ?? '') : '';
}

export function nodeOptions(node: ClusterNode): RedisOptions {
  if (typeof node === 'number') return { port: node };
  if (typeof node === 'object') return { ...(node as RedisOptions), port: node.port ?? 6379 };
  // Let ioredis parse the address. A lazy connection does not connect.
  const address = node.includes('://') ? withKnownScheme(node, 'redis') : node;
  const { host, port, username, password, tls } = new Redis(address, { lazyConnect: true }).options;
  return Object.fromEntries(
    Object.entries({ host, port, username, password, tls }).filter(
      ([, value]) => value !== undefined && value !== null,
    ),
  );
}

/** The number of the database; `undefined` in a cluster. ioredis treats null as database 0. */
export const databaseOf = (given: UserConnection): number | undefined =>
  isCluster(given) ? undefined : (given.options.db ?? 0);

/** The name of the server or cluster in the configuration. It contains no credentials. */
export function serverOf(given: UserConnection): string {
  if (isCluster(given)) {
    // Use the startup nodes, because a cluster that is not connected knows no other nodes.
    const nodes = startupNodesOf(given).map(nodeOptions);
    return JSON.stringify(nodes.map(({ host, port }) => `${host ?? '127.0.0.1'}:${port ?? 6379}`).sort());
  }
  const { host, port, path, sentinels, name } = given.options;
  const database = databaseOf(given);
  if (sentinels) return `${name ?? ''}@${sentinels.map((each) => `${each.host}:${each.port}`).join()}/${database}`;
  return `${path ?? `${host}:${port}`}/${database}`;
}

/** Connects outside of the caller's async context: the connection serves later calls, too. Errors arrive as events. */
export function connect(redis: Redis): void {
  void detached(() => redis.connect().catch(() => undefined));
}

/** Opens a connection to a single server, directly or through Sentinel. */
export function openOwnConnection(given: Redis, terms: OwnTerms): Redis {
  const redis = given.duplicate(ownOptions(terms));
  ownSentinels(redis);
  return withCredentials(redis, terms, () => given.options);
}

/** `current` returns the options of the user's connection, whose credentials the user may change at any time. */
function withCredentials(redis: Redis, terms: OwnTerms, current: () => RedisOptions): Redis {
  const { credentials, clock } = terms;
  warnOnce(redis, terms);
  readBeforeConnect(redis, () => {
    const { username, password, sentinelUsername, sentinelPassword } = current();
    return { sentinelUsername, sentinelPassword, ...(credentials === undefined && { username, password }) };
  });
  if (credentials !== undefined) askBeforeConnect(redis, credentials, clock);
  return redis;
}

/**
 * Reconnects until the returned function is called. ioredis alone has two faults:
 * - It gives up for good if a failover message arrives while it gets the master from Sentinel. Every connection asks
 *   Sentinel after its master has died.
 * - It does not pause before it reconnects to a server that rejected it.
 */
export function keepTrying(redis: Redis, clock: Clock): () => void {
  let times = 0;
  let stopped = false;
  let timer: Timer | undefined;
  let readyAt = -Infinity;
  let rejections = 0;
  redis.on('ready', () => {
    times = 0;
    readyAt = clock.monotonic();
  });
  const pauseAfter = (failures: number): number => {
    rejections = clock.monotonic() - readyAt < REJECTED_MS ? rejections + 1 : 0;
    return pauseBefore(Math.max(failures, rejections));
  };
  redis.options.retryStrategy = pauseAfter;
  redis.on('end', () => {
    if (stopped) return;
    times += 1;
    timer = clock.setTimer(pauseBefore(times), () => connect(redis));
  });
  return () => {
    stopped = true;
    timer?.cancel();
    // Otherwise a socket that is still connecting would subscribe to the sentinels, and never close.
    redis.options.failoverDetector = false;
  };
}

interface SentinelConnector {
  readonly connecting: boolean;
  connectToSentinel(endpoint: unknown, options?: object): Redis;
  disconnect(): void;
}

/**
 * Ends the connections to sentinels together with the connection that needs them. ioredis gives them no options of ours:
 * a timer for each of them would keep the process alive for 2 s. Their errors are handled, or ioredis would print them to
 * the console.
 */
function ownSentinels(redis: Redis): void {
  const { connector } = redis as unknown as { connector?: Partial<SentinelConnector> };
  const { connectToSentinel: connect, disconnect } = connector ?? {};
  if (connector === undefined || connect === undefined || disconnect === undefined) return;
  const open = new Set<Redis>();
  const connectToSentinel = (endpoint: unknown, options?: object): Redis => {
    const sentinel = connect.call(connector, endpoint, { ...options, disconnectTimeout: DISCONNECT_MS });
    open.add(sentinel);
    sentinel.on('error', () => undefined);
    sentinel.on('end', () => open.delete(sentinel));
    // The connection was closed during the pause between two rounds of all sentinels.
    if (connector.connecting === false) sentinel.disconnect();
    return sentinel;
  };
  const end = (): void => {
    disconnect.call(connector);
    for (const sentinel of open) sentinel.disconnect();
  };
  Object.assign(connector, { connectToSentinel, disconnect: end });
}

/** Opens a connection to one node of a cluster. `current` returns the options of the user's cluster for its nodes. */
export function openNodeConnection(
  address: NodeAddress,
  current: () => RedisOptions,
  terms: OwnTerms,
  override: RedisOptions = {},
): Redis {
  const node = { ...current(), ...address };
  const own: ReturnType<typeof ownOptions> = { ...node, ...ownOptions(terms), ...override, replyMapping: 'legacy' };
  return withCredentials(new Redis(own), terms, current);
}

import { Redis, type Cluster, type ClusterNode, type RedisOptions } from 'ioredis';
import type { Clock, Timer } from '../../clock.js';
import { detached } from './detached.js';
import type { UserConnection } from './user-connection.js';

const RECONNECT_MS = { first: 25, most: 500, jitter: 25 };
/**
 * A server that takes no more clients connects, says so and closes. That is no success, as ioredis counts it; and who
 * was busy hears of it a while after.
 */
const TURNED_AWAY_MS = 500;

const pauseBefore = (times: number): number =>
  Math.min(RECONNECT_MS.first * 2 ** Math.min(times - 1, 10), RECONNECT_MS.most) + Math.random() * RECONNECT_MS.jitter;

/**
 * Whatever decides how commands are sent, answered or repeated is ours: a setting of the user's that queues or resends
 * a command would run it after its caller was told that it failed. What says where and as whom to connect is the user's.
 */
function ownOptions(attemptMs: number): RedisOptions & { replyMapping: 'legacy' } {
  const options = {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    // INFO may be refused, and an answer says sooner than a look whether the server is loading.
    enableReadyCheck: false,
    // Nothing else ends the handshake with a server that accepts and never answers.
    socketTimeout: attemptMs,
    connectTimeout: attemptMs,
    disconnectTimeout: 50,
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
    // Through Sentinel: only to the master, told of a failover at once, and never left without another try.
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

/** The `keyPrefix` of a given connection: it is part of the name, not ioredis's business. */
export const prefixOf = (given: UserConnection): string => given.options.keyPrefix ?? '';

/** Private by its type only: it is what duplicate() copies, and says where to begin. */
export const startupNodesOf = (given: Cluster): readonly ClusterNode[] =>
  (given as unknown as { startupNodes: ClusterNode[] }).startupNodes;

export function nodeOptions(node: ClusterNode): RedisOptions {
  if (typeof node === 'number') return { port: node };
  if (typeof node === 'object') return { ...(node as RedisOptions), port: node.port ?? 6379 };
  // ioredis reads its own addresses; a lazy connection is none yet.
  const { host, port, username, password, tls } = new Redis(node, { lazyConnect: true }).options;
  return Object.fromEntries(
    Object.entries({ host, port, username, password, tls }).filter(
      ([, value]) => value !== undefined && value !== null,
    ),
  );
}

/** Where it leads, for telling servers apart; without credentials. */
export function serverOf(given: UserConnection): string {
  if (isCluster(given)) {
    // What it was given: as long as it is not connected it knows no others.
    const nodes = startupNodesOf(given).map(nodeOptions);
    return JSON.stringify(nodes.map(({ host, port }) => `${host ?? '127.0.0.1'}:${port ?? 6379}`).sort());
  }
  const { host, port, path, db, sentinels, name } = given.options;
  if (sentinels) return `${name ?? ''}@${sentinels.map((each) => `${each.host}:${each.port}`).join()}/${db ?? 0}`;
  return `${path ?? `${host}:${port}`}/${db ?? 0}`;
}

/** Its errors arrive as events. It serves more than the call that is the first to need it. */
export function connect(redis: Redis): void {
  void detached(() => redis.connect().catch(() => undefined));
}

/** A connection of our own to a single server, directly or through Sentinel. */
export function openOwnConnection(given: Redis, attemptMs: number): Redis {
  const redis = given.duplicate(ownOptions(attemptMs));
  silenceSentinels(redis);
  return redis;
}

/**
 * ioredis gives a connection up for good when word of a failover comes while it asks Sentinel for the master, which is
 * what every connection does after its master has died; and it knows no pause before a server that turns it away.
 * Returns what ends the trying.
 */
export function keepTrying(redis: Redis, clock: Clock): () => void {
  let times = 0;
  let stopped = false;
  let timer: Timer | undefined;
  let readyAt = -Infinity;
  let turnedAway = 0;
  redis.on('ready', () => {
    times = 0;
    readyAt = clock.monotonic();
  });
  const pauseAfter = (failures: number): number => {
    turnedAway = clock.monotonic() - readyAt < TURNED_AWAY_MS ? turnedAway + 1 : 0;
    return pauseBefore(Math.max(failures, turnedAway));
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
    // A socket that is just connecting would begin to listen to the sentinels when it is there, and never end.
    redis.options.failoverDetector = false;
  };
}

interface SentinelConnector {
  connectToSentinel(...args: unknown[]): Redis;
}

/** Nobody listens to the connections that wait for word of a failover: each failure would go to the console. */
function silenceSentinels(redis: Redis): void {
  const { connector } = redis as unknown as { connector?: Partial<SentinelConnector> };
  const connect = connector?.connectToSentinel;
  if (connector === undefined || connect === undefined) return;
  const silently = (...args: unknown[]): Redis => connect.apply(connector, args).on('error', () => undefined);
  connector.connectToSentinel = silently;
}

/** A connection of our own to one node of a cluster. */
export function openNodeConnection(node: RedisOptions, attemptMs: number, override: RedisOptions = {}): Redis {
  const own: ReturnType<typeof ownOptions> = { ...node, ...ownOptions(attemptMs), ...override, replyMapping: 'legacy' };
  return new Redis(own);
}

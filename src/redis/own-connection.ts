import { Redis, type Cluster, type RedisOptions } from 'ioredis';
import { InvalidArgumentError } from '../errors.js';

/** A connection to copy the address, credentials, TLS and so on from; it is never used itself. */
export type GivenRedis = Redis | Cluster;
export type RedisSource = { readonly url: string } | { readonly redis: GivenRedis };

const RECONNECT_MS = { first: 25, most: 500, jitter: 25 };

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
    retryStrategy: (times: number) =>
      Math.min(RECONNECT_MS.first * 2 ** Math.min(times - 1, 10), RECONNECT_MS.most) +
      Math.random() * RECONNECT_MS.jitter,
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
    failoverDetector: true,
  };
  return options as unknown as RedisOptions & { replyMapping: 'legacy' };
}

function isCluster(redis: GivenRedis): redis is Cluster {
  return redis.isCluster;
}

/** The `keyPrefix` of a given connection: it is part of the name, not ioredis's business. */
export function prefixOf(source: RedisSource): string {
  if ('url' in source || isCluster(source.redis)) return '';
  return source.redis.options.keyPrefix ?? '';
}

export function openOwnConnection(source: RedisSource, attemptMs: number): Redis {
  const options = ownOptions(attemptMs);
  if ('url' in source) return new Redis(source.url, options);
  if (isCluster(source.redis)) {
    throw new InvalidArgumentError('redis', 'a connection to one server or through Sentinel', 'a Cluster');
  }
  return source.redis.duplicate(options);
}

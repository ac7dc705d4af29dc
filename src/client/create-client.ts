import { systemClock, type Clock } from '../clock.js';
import { runOutside } from '../ownership/flow.js';
import { InvalidArgumentError } from '../errors.js';
import { resolveOptions, type ClientOptions } from '../options.js';
import { LockClient } from './lock-client.js';
import { countClient } from './open-clients.js';
import { detached } from '../redis/connections/detached.js';
import {
  checkAddress,
  checkDatabase,
  fromIoredisOptions,
  fromUrl,
  hasServers,
  isOfIoredis,
  type IoredisOptions,
  type IovalkeyConnection,
  type UserConnection,
} from '../redis/connections/user-connection.js';
import { fromNodeRedis, type NodeRedisSource } from '../redis/connections/node-redis.js';
import { nameOf, prefixOf } from '../redis/connections/own-connection.js';

export type { LockClient } from './lock-client.js';

/**
 * Where Redis is: a URL (`redis://`, `rediss://`, `valkey://` or `valkeys://`), or a connection of ioredis or iovalkey, or
 * options of `new Redis()` of ioredis, or a client of the package `redis` or the options of one. The client opens its own
 * connections with the address, TLS options, credentials and database of a passed connection. It never uses or closes the passed connection. A cluster or sentinel of the package
 * `redis` does not publish its options, so pass those options instead.
 */
export type Connection =
  | { url: string; redis?: undefined }
  | { redis: UserConnection | IovalkeyConnection | NodeRedisSource | IoredisOptions; url?: undefined };

/** The argument of {@link createClient}: a connection and the options of the client. */
export type CreateClientOptions = Connection & ClientOptions;

/** @internal Parts that tests replace. */
export interface ClientParts {
  readonly clock?: Clock;
}

/**
 * Creates a client. Create one per process and Redis, and `close()` it at the end. The call opens the connections in
 * the background and returns at once.
 *
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid.
 * @example
 * const client = createClient({ url: 'redis://127.0.0.1:6379' });
 * await client.getLock('order:42').withLock(async () => ship());
 * await client.close();
 * @redisson `Redisson#create(Config)`
 */
export function createClient(options: CreateClientOptions): LockClient;
/** @internal */
// eslint-disable-next-line @typescript-eslint/unified-signatures -- the published types leave this one out
export function createClient(options: CreateClientOptions, parts: ClientParts): LockClient;
export function createClient(options: CreateClientOptions, parts: ClientParts = {}): LockClient {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError('options', 'an object with url or redis', withoutCredentials(options));
  }
  const given = connectionIn(options);
  const resolved = resolveOptions(options, prefixOf(given), nameOf(given));
  // The timers and sockets of the client outlive this call, so they must not be inside a hold of the caller.
  return runOutside(() => {
    const clock = parts.clock ?? systemClock((fn) => detached(() => runOutside(fn)));
    return LockClient.open(given, resolved, clock, countClient(options));
  });
}

const A_CONNECTION =
  'a connection of ioredis, made by its `new Redis(...)` or `new Cluster(...)`, or the options of `new Redis(...)` with a ' +
  'host, a port, a path or sentinels, a connection of iovalkey, or a client of the package redis or its options (for a ' +
  'cluster, pool or sentinel of redis pass its options; a url works as well)';

function connectionIn({ url, redis }: CreateClientOptions): UserConnection {
  if (url === undefined && redis === undefined) {
    throw new InvalidArgumentError('url', 'an address, unless redis is given', url);
  }
  if (url !== undefined && redis !== undefined) {
    throw new InvalidArgumentError('redis', 'absent where url is given', withoutCredentials(redis));
  }
  if (redis !== undefined) {
    const given = isOfIoredis(redis) ? redis : fromOptions(redis);
    if (given === undefined || !hasServers(given))
      throw new InvalidArgumentError('redis', A_CONNECTION, withoutCredentials(redis));
    checkAddress(given);
    checkDatabase(given);
    return given;
  }
  if (typeof url !== 'string')
    throw new InvalidArgumentError('url', 'a string that begins with redis:// or the like', withoutCredentials(url));
  return fromUrl(url);
}

/** For some options ioredis throws errors of its own, such as for an empty list of sentinels. */
function fromOptions(given: unknown): UserConnection | undefined {
  try {
    return fromIoredisOptions(given) ?? fromNodeRedis(given);
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw error;
    return undefined;
  }
}

/** Hides credentials, since errors end up in logs with their fields. */
function withoutCredentials(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) return {};
  return typeof value === 'string' ? value.replace(/^[^]*@/, '...@') : value;
}

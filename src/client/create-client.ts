import { systemClock, type Clock } from '../clock.js';
import { runOutside } from '../ownership/flow.js';
import { InvalidArgumentError } from '../errors.js';
import type { EventBus } from '../events.js';
import type { Inspection } from './inspection.js';
import { resolveOptions, type ClientOptions } from '../options.js';
import type { ContextOptions } from '../locks/arguments.js';
import type { CountDownLatch } from '../synchronizers/latch.js';
import type { FairLock } from '../locks/fair-lock.js';
import type { FencedLock, FencedLockOptions } from '../locks/fenced-lock.js';
import type { GroupMultiLock } from '../locks/group-lock.js';
import type { Lock } from '../locks/lock.js';
import type { MultiLock } from '../several/multi-lock.js';
import type { PermitExpirableSemaphore } from '../synchronizers/expirable-semaphore.js';
import type { SemaphoreOptions } from '../synchronizers/permit-source.js';
import type { ReadWriteLock } from '../locks/read-write-lock.js';
import type { RedLock, RedLockOptions } from '../several/red-lock.js';
import type { Semaphore } from '../synchronizers/semaphore.js';
import type { SpinLockOptions } from '../locks/spin-lock.js';
import { RedisLockClient } from './lock-client.js';
import { detached } from '../redis/connections/detached.js';
import { checkDatabase, fromUrl, isOfIoredis, type UserConnection } from '../redis/connections/user-connection.js';
import { prefixOf } from '../redis/connections/own-connection.js';

/**
 * Where Redis is: a URL (`redis://` or `rediss://`), or an ioredis connection. The client opens connections of its own with
 * the settings of the given one. It never uses or closes the given connection.
 */
export type Connection = { url: string; redis?: undefined } | { redis: UserConnection; url?: undefined };

/** The argument of {@link createClient}: a connection and the options of the client. */
export type CreateClientOptions = Connection & ClientOptions;

/** An open lock of a client, as `client.holds()` lists it. */
export interface HoldInfo {
  readonly lockName: string;
  /** The owner id in Redis: `<client id>:<number>`. */
  readonly owner: string;
  /** Number of open holds of this owner. */
  readonly holdCount: number;
  /** Time since the outermost of the holds was opened, in milliseconds. */
  readonly age: number;
  /** The line of code that opened the outermost hold; `undefined` if `callSites` is off. */
  readonly callSite: string | undefined;
}

/** The options of `client.close()`. */
export interface CloseOptions {
  /**
   * Whether `close()` releases every open hold before it closes the connections. Otherwise the locks stay held until
   * their leases end.
   *
   * @defaultValue `false`
   */
  releaseHolds?: boolean | undefined;
}

/**
 * A client of one Redis server, Sentinel group or cluster. {@link createClient} creates it. Each client is a stranger to
 * every other client, also in the same process.
 *
 * @redisson `RedissonClient`, as far as locks and synchronizers go
 */
export interface LockClient extends AsyncDisposable {
  /** The part before the colon in every owner id of this client: a random UUID. */
  readonly id: string;
  /** Lifecycle events: acquired, released, lease lost, connection errors and more. See {@link LockEvents}. */
  readonly events: EventBus;
  /**
   * Resolves when Redis is available. Other calls need not wait for it: each waits for the connection within its own
   * command deadline.
   *
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis was not available within `commandTimeout`.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: the credentials are wrong.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @redisson `Redisson#create(Config)` connects
   */
  ready(): Promise<void>;
  /**
   * Creates a handle for a reentrant lock. The call sends no command.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const lock = client.getLock('order:42');
   * await lock.withLock({ waitTime: 5_000 }, async () => ship());
   * @redisson `RedissonClient#getLock`
   */
  getLock(name: string, options?: ContextOptions): Lock;
  /**
   * Creates a handle for a lock that refuses a second hold of its owner with `NonReentrantError`.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const lock = client.getNonReentrantLock('import');
   * @redisson `RedissonClient#getNonReentrantLock`
   */
  getNonReentrantLock(name: string, options?: ContextOptions): Lock;
  /**
   * Creates a handle for a lock that serves its waiters in the order of their requests, across all processes.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const lock = client.getFairLock('printer');
   * @redisson `RedissonClient#getFairLock`
   */
  getFairLock(name: string, options?: ContextOptions): FairLock;
  /**
   * Creates a handle for a fair lock that refuses a second hold of its owner with `NonReentrantError`.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const lock = client.getNonReentrantFairLock('printer');
   * @redisson `RedissonClient#getNonReentrantFairLock`
   */
  getNonReentrantFairLock(name: string, options?: ContextOptions): FairLock;
  /**
   * Creates a handle for a lock whose waiters poll with growing pauses instead of subscribing to a channel.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const lock = client.getSpinLock('cache', { backOff: { initialDelay: 1, maxDelay: 64 } });
   * @redisson `RedissonClient#getSpinLock`
   */
  getSpinLock(name: string, options?: SpinLockOptions): Lock;
  /**
   * Creates a handle for a lock whose holds carry fencing tokens. Each token is larger than all earlier ones.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * await client.getFencedLock('disk').withLock(async ({ token }) => disk.write(data, token));
   * @redisson `RedissonClient#getFencedLock`
   */
  getFencedLock(name: string, options?: FencedLockOptions): FencedLock;
  /**
   * Creates a handle for a read-write lock: many readers or one writer.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const catalog = client.getReadWriteLock('catalog');
   * const items = await catalog.readLock().withLock(async () => load());
   * @redisson `RedissonClient#getReadWriteLock`
   */
  getReadWriteLock(name: string, options?: ContextOptions): ReadWriteLock;
  /**
   * Creates a handle for several values of one group. One script locks all of them or none.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the group, a value or an option is invalid.
   * @example
   * const seats = client.getMultiLock('seats', ['12A', '12B']);
   * @redisson `RedissonClient#getMultiLock(String, Collection<Object>)`. The values are strings, as with its `StringCodec`.
   */
  getMultiLock(group: string, values: readonly string[], options?: ContextOptions): GroupMultiLock;
  /**
   * Creates one lock of several locks, which may be of other clients and kinds. Pass options as the last argument. The
   * multi-lock acts for the context of the options, or for the context that all of its locks name.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: a lock or an option is invalid, or the contexts differ.
   * @example
   * const both = client.getMultiLock(client.getLock('account:1'), client.getLock('account:2'));
   * @redisson `RedissonClient#getMultiLock(RLock...)`
   */
  getMultiLock(...locks: readonly (Lock | ContextOptions)[]): MultiLock;
  /**
   * Creates a lock that a majority of independent servers grants. Pass one lock of each server's client, and options as
   * the last argument.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: a lock or an option is invalid.
   * @example
   * const lock = a.getRedLock(a.getLock('job'), b.getLock('job'), c.getLock('job'));
   * @redisson `RedissonClient#getRedLock(RLock...)`
   */
  getRedLock(...locks: readonly (Lock | RedLockOptions)[]): RedLock;
  /**
   * Creates a handle for a semaphore: permits without owners. With `permits`, the first use sets the semaphore up.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const uploads = client.getSemaphore('uploads', { permits: 5 });
   * await uploads.withPermits(async () => upload(file));
   * @redisson `RedissonClient#getSemaphore`
   */
  getSemaphore(name: string, options?: SemaphoreOptions): Semaphore;
  /**
   * Creates a handle for a semaphore whose permits have an id and a lease each. With `permits`, the first use sets the
   * semaphore up.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const licenses = client.getPermitExpirableSemaphore('licenses', { permits: 3 });
   * await licenses.withPermit({ leaseTime: 30_000 }, async () => render());
   * @redisson `RedissonClient#getPermitExpirableSemaphore`
   */
  getPermitExpirableSemaphore(name: string, options?: SemaphoreOptions): PermitExpirableSemaphore;
  /**
   * Creates a handle for a count-down latch: a gate that opens when its count reaches 0.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name is invalid, or it has braces in a cluster.
   * @example
   * const started = client.getCountDownLatch('started');
   * @redisson `RedissonClient#getCountDownLatch`
   */
  getCountDownLatch(name: string): CountDownLatch;
  /** Lists the locks that this client holds now. The call sends no command. */
  holds(): HoldInfo[];
  /**
   * Reads from Redis, at one moment, what is stored under a name.
   *
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply within one command deadline.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @example
   * const { kind, owners, remaining } = await client.inspect('order:42');
   */
  inspect(name: string): Promise<Inspection>;
  /**
   * Closes the client. Renewals stop, and waiters and open holds get a `ClientClosedError`. The call settles within one
   * command deadline even if Redis is unavailable. Every call returns the promise of the first call.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid.
   * @example
   * process.once('SIGTERM', () => void client.close({ releaseHolds: true }));
   * @redisson `RedissonClient#shutdown()`. Differs: with `releaseHolds` it releases the locks.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** @internal Parts that tests replace. */
export interface ClientParts {
  readonly clock?: Clock;
}

/**
 * Creates a client. Create one per process and Redis, and `close()` it at the end. The call opens the connections in the
 * background and returns at once.
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
  const resolved = resolveOptions(options, prefixOf(given));
  // The timers and sockets of the client outlive this call, so they must not be inside a hold of the caller.
  return runOutside(
    () => new RedisLockClient(given, resolved, parts.clock ?? systemClock((fn) => detached(() => runOutside(fn)))),
  );
}

const A_CONNECTION =
  'a connection of ioredis, made by its `new Redis(...)` or `new Cluster(...)` ' +
  '(a client of the package redis, a mock or options cannot be used; a url can)';

function connectionIn({ url, redis }: CreateClientOptions): UserConnection {
  if (url === undefined && redis === undefined) {
    throw new InvalidArgumentError('url', 'an address, unless redis is given', url);
  }
  if (url !== undefined && redis !== undefined) {
    throw new InvalidArgumentError('redis', 'absent where url is given', withoutCredentials(redis));
  }
  if (redis !== undefined) {
    if (!isOfIoredis(redis)) throw new InvalidArgumentError('redis', A_CONNECTION, withoutCredentials(redis));
    checkDatabase(redis);
    return redis;
  }
  if (typeof url !== 'string' || !/^rediss?:\/\//.test(url)) {
    throw new InvalidArgumentError('url', 'a string that begins with redis:// or rediss://', withoutCredentials(url));
  }
  return fromUrl(url);
}

/** Hides credentials, since errors end up in logs with their fields. */
function withoutCredentials(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) return {};
  return typeof value === 'string' ? value.replace(/^[^]*@/, '...@') : value;
}

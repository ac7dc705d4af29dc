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
import { checkDatabase, givenBy, isOfIoredis, type GivenRedis } from '../redis/connections/user-connection.js';
import { prefixOf } from '../redis/connections/own-connection.js';

/** Where Redis is: a URL, or a connection of yours. It is duplicated, never used, and stays yours to close. */
export type Connection = { url: string; redis?: undefined } | { redis: GivenRedis; url?: undefined };

export type CreateClientOptions = Connection & ClientOptions;

/** One open lock of this client, as `holds()` lists it. */
export interface HoldInfo {
  readonly lockName: string;
  readonly owner: string;
  readonly holdCount: number;
  /** ms since the outermost of the holds was opened. */
  readonly age: number;
  /** The line that opened it, with `callSites` on. */
  readonly callSite: string | undefined;
}

export interface CloseOptions {
  /** Give every open hold back before the connections close. Default: they end with their leases. */
  releaseHolds?: boolean | undefined;
}

/** A client of one Redis: Redisson's `RedissonClient`, as far as locks go. Each one is a stranger to every other. */
export interface LockClient extends AsyncDisposable {
  /** Redisson's client id: the part before the colon of every owner of this client. */
  readonly id: string;
  /** What it tells besides its promises. Redisson has nothing like it. */
  readonly events: EventBus;
  /**
   * Resolves when Redis can be used. Calls need not wait for it: they wait by themselves, within their own deadlines.
   * Redisson connects in `Redisson#create(Config)`.
   *
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: not within `commandTimeout`.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: the credentials are wrong.
   */
  ready(): Promise<void>;
  /** A reentrant lock. @see Redisson `RedissonClient#getLock` */
  getLock(name: string, options?: ContextOptions): Lock;
  /** A lock that its own owner cannot take twice. @see Redisson `RedissonClient#getNonReentrantLock` */
  getNonReentrantLock(name: string, options?: ContextOptions): Lock;
  /** A lock that is given in the order in which it was asked for. @see Redisson `RedissonClient#getFairLock` */
  getFairLock(name: string, options?: ContextOptions): FairLock;
  /** A fair lock that its own owner cannot take twice. @see Redisson `RedissonClient#getNonReentrantFairLock` */
  getNonReentrantFairLock(name: string, options?: ContextOptions): FairLock;
  /** A lock whose waiters poll. @see Redisson `RedissonClient#getSpinLock` */
  getSpinLock(name: string, options?: SpinLockOptions): Lock;
  /** A lock with fencing tokens. @see Redisson `RedissonClient#getFencedLock` */
  getFencedLock(name: string, options?: FencedLockOptions): FencedLock;
  /** Two locks in one: many readers or one writer. @see Redisson `RedissonClient#getReadWriteLock` */
  getReadWriteLock(name: string, options?: ContextOptions): ReadWriteLock;
  /**
   * Several values of one group, locked together by one script. @see Redisson
   * `RedissonClient#getMultiLock(String, Collection<Object>)`; the values are strings, as with its `StringCodec`.
   */
  getMultiLock(group: string, values: readonly string[], options?: ContextOptions): GroupMultiLock;
  /**
   * Several locks as one, also of other clients and kinds. A last argument may have options. It acts for the context
   * of the options, or for the one that all locks name.
   *
   * @see Redisson `RedissonClient#getMultiLock(RLock...)`
   */
  getMultiLock(...locks: readonly (Lock | ContextOptions)[]): MultiLock;
  /**
   * A lock that a majority of independent servers grants: one lock at a client of each. A last argument may have
   * options. @see Redisson `RedissonClient#getRedLock(RLock...)`
   */
  getRedLock(...locks: readonly (Lock | RedLockOptions)[]): RedLock;
  /** Permits that nobody owns; `permits` sets it up at its first use. @see Redisson `RedissonClient#getSemaphore` */
  getSemaphore(name: string, options?: SemaphoreOptions): Semaphore;
  /**
   * Permits with an id and a lease each; `permits` sets it up at its first use.
   *
   * @see Redisson `RedissonClient#getPermitExpirableSemaphore`
   */
  getPermitExpirableSemaphore(name: string, options?: SemaphoreOptions): PermitExpirableSemaphore;
  /** A gate that opens when it has been counted down. @see Redisson `RedissonClient#getCountDownLatch` */
  getCountDownLatch(name: string): CountDownLatch;
  /** The locks that this client holds now. Redisson has no such call. */
  holds(): HoldInfo[];
  /** What Redis has under a name, in one moment. Redisson has no such call. */
  inspect(name: string): Promise<Inspection>;
  /**
   * Ends the client: renewals stop, waiters reject and open holds abort with `ClientClosedError`. Settles within one
   * command deadline, also with Redis down. Every call returns the promise of the first one.
   *
   * @see Redisson `RedissonClient#shutdown()`; differs: with `releaseHolds` it gives the locks back.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** @internal Parts that tests replace. */
export interface ClientParts {
  readonly clock?: Clock;
}

/**
 * Makes a client. Nothing is sent before it is used; make one per process and Redis, and `close()` it at the end.
 *
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: at once, for a bad option.
 * @see Redisson `Redisson#create(Config)`.
 */
export function createClient(options: CreateClientOptions): LockClient;
/** @internal */
// eslint-disable-next-line @typescript-eslint/unified-signatures -- the published types leave this one out
export function createClient(options: CreateClientOptions, parts: ClientParts): LockClient;
export function createClient(options: CreateClientOptions, parts: ClientParts = {}): LockClient {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError('options', 'an object with url or redis', withoutCredentials(options));
  }
  const given = givenIn(options);
  const resolved = resolveOptions(options, prefixOf(given));
  // What is made here lives as long as the client; it must not be inside a hold of whoever happened to make it.
  return runOutside(
    () => new RedisLockClient(given, resolved, parts.clock ?? systemClock((fn) => detached(() => runOutside(fn)))),
  );
}

const A_CONNECTION =
  'a connection of ioredis, made by its `new Redis(...)` or `new Cluster(...)` ' +
  '(a client of the package redis, a mock or options cannot be used; a url can)';

function givenIn({ url, redis }: CreateClientOptions): GivenRedis {
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
  return givenBy(url);
}

/** Errors end up in logs, with their fields. */
function withoutCredentials(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) return {};
  return typeof value === 'string' ? value.replace(/^[^]*@/, '...@') : value;
}

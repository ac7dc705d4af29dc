import { randomUUID } from 'node:crypto';
import { LeaseClock, systemClock, type Clock, type Timer } from './clock.js';
import { supportsBoundPromises } from './core/bound-promise.js';
import { CallSite } from './core/call-site.js';
import { Compensations } from './core/compensations.js';
import { EntryRegistry } from './core/entry-registry.js';
import { runOutside } from './core/flow.js';
import { Lanes } from './core/lanes.js';
import type { LockProtocol } from './core/lock-protocol.js';
import type { LockRuntime } from './core/lock-runtime.js';
import type { Tenure } from './core/tenure.js';
import { Watchdog } from './core/watchdog.js';
import { ClientClosedError, InvalidArgumentError, RedisUnavailableError } from './errors.js';
import { createEvents, type EventBus } from './events.js';
import { inspectionOf, type Inspection } from './inspection.js';
import { resolveOptions, type ClientOptions } from './options.js';
import {
  checkContext,
  checkHandleOptions,
  checkName,
  checkValues,
  type ContextOptions,
} from './primitives/arguments.js';
import { CountDownLatch } from './primitives/count-down-latch.js';
import { FairLock, FairLockProtocol } from './primitives/fair-lock.js';
import { checkTokens, FencedLock, FencedLockProtocol, type FencedLockOptions } from './primitives/fenced-lock.js';
import { GroupLockProtocol, groupRenewal } from './primitives/group-lock-protocol.js';
import { GroupMultiLock } from './primitives/group-multi-lock.js';
import { locksAndOptions } from './primitives/joint-lock.js';
import type { Lock } from './primitives/lock.js';
import { ReadProtocol, ReadWriteLock, readWriteRenewal, WriteProtocol } from './primitives/read-write-lock.js';
import { SingleLock } from './primitives/single-lock.js';
import { MultiLock } from './primitives/multi-lock.js';
import { checkDriftFactor, RedLock, type RedLockOptions } from './primitives/red-lock.js';
import { pausesOf, SpinLockProtocol, type SpinLockOptions } from './primitives/spin-lock.js';
import { PermitExpirableSemaphore } from './primitives/permit-expirable-semaphore.js';
import { Semaphore } from './primitives/semaphore.js';
import { NonReentrantLockProtocol } from './primitives/non-reentrant-lock.js';
import { plainRenewal, PlainLockProtocol, type ProtocolPort } from './primitives/plain-lock-protocol.js';
import { fairQueueKey, latchChannel, takenPermitsKey, tokenKey } from './redis/keys.js';
import { openTopology } from './redis/open-topology.js';
import { prefixOf, serverOf, type GivenRedis, type RedisSource } from './redis/own-connection.js';
import { ScriptExecutor } from './redis/script-executor.js';
import { inspect } from './redis/scripts/object.js';
import type { Topology } from './redis/topology.js';

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
  readonly events: EventBus;
  /**
   * Resolves when Redis can be used. Calls need not wait for it: they wait by themselves, within their own deadlines.
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
   * Several locks as one, also of other clients and kinds. A last argument may have options.
   *
   * @see Redisson `RedissonClient#getMultiLock(RLock...)`
   */
  getMultiLock(...locks: readonly (Lock | ContextOptions)[]): MultiLock;
  /**
   * A lock that a majority of independent servers grants: one lock at a client of each. A last argument may have
   * options. @see Redisson `RedissonClient#getRedLock(RLock...)`
   */
  getRedLock(...locks: readonly (Lock | RedLockOptions)[]): RedLock;
  /** Permits that nobody owns. @see Redisson `RedissonClient#getSemaphore` */
  getSemaphore(name: string): Semaphore;
  /** Permits with an id and a lease each. @see Redisson `RedissonClient#getPermitExpirableSemaphore` */
  getPermitExpirableSemaphore(name: string): PermitExpirableSemaphore;
  /** A gate that opens when it has been counted down. @see Redisson `RedissonClient#getCountDownLatch` */
  getCountDownLatch(name: string): CountDownLatch;
  /** The locks that this client holds now. */
  holds(): HoldInfo[];
  /** What Redis has under a name, in one moment. */
  inspect(name: string): Promise<Inspection>;
  /**
   * Ends the client: renewals stop, waiters reject and open holds abort with `ClientClosedError`. Settles within two
   * command deadlines, also with Redis down. Every call returns the promise of the first one.
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
  const source = sourceOf(options);
  const resolved = resolveOptions(options, prefixOf(source));
  // What is made here lives as long as the client; it must not be inside a hold of whoever happened to make it.
  return runOutside(() => new RedisLockClient(source, resolved, parts.clock ?? systemClock(runOutside)));
}

function sourceOf({ url, redis }: CreateClientOptions): RedisSource {
  if (url === undefined && redis === undefined) {
    throw new InvalidArgumentError('url', 'an address, unless redis is given', url);
  }
  if (url !== undefined && redis !== undefined) {
    throw new InvalidArgumentError('redis', 'absent where url is given', redis);
  }
  if (redis !== undefined) {
    if (typeof redis !== 'object' || typeof redis.duplicate !== 'function') {
      throw new InvalidArgumentError('redis', 'a connection of ioredis', redis);
    }
    return { redis };
  }
  if (typeof url !== 'string' || !/^rediss?:\/\//.test(url)) {
    throw new InvalidArgumentError('url', 'a string that begins with redis:// or rediss://', withoutCredentials(url));
  }
  return { url };
}

/** Messages end up in logs. */
const withoutCredentials = (url: unknown): unknown => (typeof url === 'string' ? url.replace(/^[^]*@/, '...@') : url);

class RedisLockClient implements LockClient {
  readonly id = randomUUID();
  readonly events = createEvents(runOutside);
  readonly #runtime: LockRuntime & { closed: boolean };
  readonly #topology: Topology;
  readonly #executor: ScriptExecutor;
  readonly #port: ProtocolPort;
  #closing: Promise<void> | undefined;

  constructor(source: RedisSource, options: LockRuntime['options'], clock: Clock) {
    const { attemptMs, commandTimeout, lockWatchdogTimeout, renewEveryMs, callSites } = options;
    let clockTold = false;
    const topology = openTopology(source, options, clock, {
      error: (connection, cause) => this.events.emit('connectionError', { connection, cause }),
      clockUnavailable: (cause) => {
        // Every connection finds out for itself.
        if (!clockTold) this.events.emit('clockUnavailable', { cause });
        clockTold = true;
      },
    });
    this.#topology = topology;
    const executor = new ScriptExecutor(topology, clock, commandTimeout, attemptMs);
    this.#executor = executor;
    const slotGroup = (key: string): number => topology.slotGroup(key);
    this.#port = {
      executor,
      clientId: this.id,
      keyPrefix: options.keyPrefix,
      get publish() {
        return topology.publish;
      },
      slotGroup,
      renewals: {
        plain: plainRenewal(executor, slotGroup),
        readWrite: readWriteRenewal(executor, slotGroup),
        group: groupRenewal(executor),
      },
    };
    const leaseClock = new LeaseClock(clock);
    const compensations = new Compensations(leaseClock);
    let tenures = 0;
    this.#runtime = {
      clientId: this.id,
      server: serverOf(source),
      options,
      clock: leaseClock,
      events: this.events,
      entries: new EntryRegistry(
        () => this.#runtime,
        () => topology.subscriber,
      ),
      watchdog: new Watchdog(leaseClock, this.events, lockWatchdogTimeout, renewEveryMs),
      compensations,
      lanes: new Lanes(leaseClock, compensations),
      closed: false,
      newOwner: () => `${this.id}:${++tenures}`,
      callSite: (above) => (callSites ? CallSite.capture(above) : undefined),
    };
    void supportsBoundPromises();
  }

  async ready(): Promise<void> {
    if (this.#runtime.closed) throw new ClientClosedError();
    const { commandTimeout } = this.#runtime.options;
    try {
      await this.#topology.whenReady(this.#runtime.clock.clock.monotonic() + commandTimeout);
    } catch (cause) {
      if (cause instanceof Error && 'code' in cause) throw cause;
      if (this.#runtime.closed) throw new ClientClosedError();
      throw new RedisUnavailableError(`Redis was not ready within ${commandTimeout} ms`, 'none', { cause });
    }
  }

  getLock(name: string, options: ContextOptions = {}): Lock {
    return this.#lock(new PlainLockProtocol(this.#port, this.#checkName(name)), options);
  }

  #checkName(name: unknown): string {
    const checked = checkName(name);
    this.#topology.checkName(this.#port.keyPrefix + checked);
    return checked;
  }

  getNonReentrantLock(name: string, options: ContextOptions = {}): Lock {
    return this.#lock(new NonReentrantLockProtocol(this.#port, this.#checkName(name)), options);
  }

  getFairLock(name: string, options: ContextOptions = {}): FairLock {
    return this.#fairLock(name, true, options);
  }

  getNonReentrantFairLock(name: string, options: ContextOptions = {}): FairLock {
    return this.#fairLock(name, false, options);
  }

  #fairLock(name: string, reentrant: boolean, options: ContextOptions): FairLock {
    const { context } = checkHandleOptions(options);
    const protocol = new FairLockProtocol(this.#port, this.#checkName(name), this.#runtime.options, reentrant);
    return new FairLock(this.#runtime, this.#executor, protocol, context);
  }

  getSpinLock(name: string, options: SpinLockOptions = {}): Lock {
    const { backOff, context } = checkHandleOptions(options, ['backOff']);
    return this.#lock(new SpinLockProtocol(this.#port, this.#checkName(name), pausesOf(backOff)), { context });
  }

  getFencedLock(name: string, options: FencedLockOptions = {}): FencedLock {
    const { tokens, context } = checkHandleOptions(options, ['tokens']);
    const protocol = new FencedLockProtocol(this.#port, this.#checkName(name), checkTokens(tokens));
    return new FencedLock(this.#runtime, this.#executor, protocol, context);
  }

  getReadWriteLock(name: string, options: ContextOptions = {}): ReadWriteLock {
    const read = this.#lock(new ReadProtocol(this.#port, this.#checkName(name)), options);
    return new ReadWriteLock(name, read, this.#lock(new WriteProtocol(this.#port, name), options));
  }

  getMultiLock(group: string, values: readonly string[], options?: ContextOptions): GroupMultiLock;
  getMultiLock(...locks: readonly (Lock | ContextOptions)[]): MultiLock;
  getMultiLock(...given: readonly unknown[]): GroupMultiLock | MultiLock {
    if (typeof given[0] !== 'string') {
      const { locks, options } = locksAndOptions<ContextOptions>(given, ['context']);
      return new MultiLock(locks, checkContext(options.context));
    }
    const [group, values, options] = given as [string, unknown, ContextOptions?];
    const { context } = checkHandleOptions(options);
    const protocol = new GroupLockProtocol(this.#port, this.#checkName(group), checkValues(values));
    return new GroupMultiLock(this.#runtime, this.#executor, protocol, context);
  }

  getRedLock(...given: readonly (Lock | RedLockOptions)[]): RedLock {
    const { locks, options } = locksAndOptions<RedLockOptions>(given, ['context', 'driftFactor']);
    return new RedLock(locks, checkDriftFactor(options.driftFactor), checkContext(options.context));
  }

  getSemaphore(name: string): Semaphore {
    return new Semaphore(this.#runtime, this.#port, this.#checkName(name));
  }

  getPermitExpirableSemaphore(name: string): PermitExpirableSemaphore {
    return new PermitExpirableSemaphore(this.#runtime, this.#port, this.#checkName(name));
  }

  getCountDownLatch(name: string): CountDownLatch {
    const checked = this.#checkName(name);
    const key = this.#port.keyPrefix + checked;
    // Redisson puts braces around a name that has some, which names another slot.
    if (this.#topology.slotGroup(key) !== this.#topology.slotGroup(latchChannel(key))) {
      throw new InvalidArgumentError('name', 'without braces, for a latch in a cluster', name);
    }
    return new CountDownLatch(this.#runtime, this.#port, checked);
  }

  #lock(protocol: LockProtocol, options: ContextOptions): Lock {
    return new SingleLock(this.#runtime, this.#executor, protocol, checkHandleOptions(options).context);
  }

  holds(): HoldInfo[] {
    const now = this.#runtime.clock.now();
    return [...this.#tenures()]
      .filter((tenure) => tenure.lease.check() !== 'lost' && tenure.holds.length > 0)
      .map(({ protocol, owner, holds }) => ({
        lockName: protocol.name,
        owner,
        holdCount: holds.length,
        age: Math.round(now - (holds[0]?.openedAt ?? now)),
        callSite: holds[0]?.site?.toString(),
      }));
  }

  async inspect(name: string): Promise<Inspection> {
    if (this.#runtime.closed) throw new ClientClosedError();
    const key = this.#port.keyPrefix + this.#checkName(name);
    const reply = await this.#executor.ask(inspect, [key, fairQueueKey(key), tokenKey(key), takenPermitsKey(key)], []);
    return inspectionOf(name, this.id, reply);
  }

  close(options: CloseOptions = {}): Promise<void> {
    this.#closing ??= runOutside(() => this.#close(options));
    return this.#closing;
  }

  async #close({ releaseHolds = false }: CloseOptions): Promise<void> {
    const runtime = this.#runtime;
    runtime.closed = true;
    const closed = new ClientClosedError();
    runtime.entries.rejectWaiters(closed);
    // What is being given back already is waited for.
    if (!releaseHolds) for (const tenure of [...this.#tenures()]) if (!tenure.ending) tenure.abandon(closed);
    await this.#within(runtime.options.commandTimeout, this.#giveBack(releaseHolds));
    for (const tenure of [...this.#tenures()]) tenure.abandon(closed);
    runtime.watchdog.close();
    runtime.entries.close(closed);
    await runtime.compensations.close();
    this.#executor.closed = true;
    this.#topology.close();
  }

  async #giveBack(openHolds: boolean): Promise<void> {
    if (openHolds) {
      const open = [...this.#tenures()].flatMap((tenure) => [...tenure.holds].reverse());
      await Promise.allSettled(open.map((hold) => hold.tenure.release(hold)));
    }
    // A try that was under way when its call was rejected may yet take the lock, and is then given back.
    await this.#runtime.entries.whenQuiet();
  }

  async #within(ms: number, work: Promise<void>): Promise<void> {
    let timer: Timer | undefined;
    await Promise.race([work, new Promise<void>((over) => (timer = this.#runtime.clock.clock.setTimer(ms, over)))]);
    timer?.cancel();
  }

  *#tenures(): Iterable<Tenure> {
    for (const entry of this.#runtime.entries) yield* entry.holders;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

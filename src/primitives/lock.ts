import { acquire, innermostHold, type Acquisition } from '../core/acquisition.js';
import { boundDeferred, boundRejection, supportsBoundPromises, type BoundDeferred } from '../core/bound-promise.js';
import { runInside } from '../core/flow.js';
import { Hold } from '../core/hold.js';
import type { HoldRecord } from '../core/hold-record.js';
import { isLockContext, type LockContext } from '../core/lock-context.js';
import type { LockProtocol } from '../core/lock-protocol.js';
import type { LockRuntime } from '../core/lock-runtime.js';
import { patience, type Settle } from '../core/waiter.js';
import {
  ClientClosedError,
  InvalidArgumentError,
  LockLostError,
  LockTimeoutError,
  NotOwnerError,
  UnsupportedRuntimeError,
} from '../errors.js';
import * as reads from '../redis/scripts/reads.js';
import type { ScriptExecutor } from '../redis/script-executor.js';
import {
  checkContext,
  checkLeaseTime,
  checkOptions,
  checkWaitTime,
  type AcquireOptions,
  type ContextOptions,
  type LockOptions,
} from './arguments.js';

const LOCK_OPTIONS = ['leaseTime', 'signal', 'context'] as const;
const CALL_OPTIONS = ['signal', 'context'] as const;
const ACQUIRE_OPTIONS = ['waitTime', 'leaseTime', 'signal', 'context'] as const;

/** Options of a call that gives its times as arguments. */
export type CallOptions = Pick<AcquireOptions, 'signal' | 'context'>;

type Method = (...args: never[]) => unknown;

/**
 * A reentrant lock: Redisson's `RLock`. The object is a name and holds nothing; make one per call or keep one in a
 * module. All times are milliseconds.
 *
 * A hold belongs to the code that awaited it: after `await lock.lock()` the rest of that function, and everything it
 * calls or starts, is inside the hold until it is given back. A call on the same lock from inside re-enters, every
 * other call is a stranger, whatever handle it uses. Waiters are not served in order.
 */
export class Lock<H extends Hold = Hold> {
  /** @internal */
  protected readonly runtime: LockRuntime;
  /** @internal */
  protected readonly executor: ScriptExecutor;
  /** @internal */
  protected readonly protocol: LockProtocol;
  /** @internal */
  protected readonly context: LockContext | undefined;

  /** @internal */
  constructor(
    runtime: LockRuntime,
    executor: ScriptExecutor,
    protocol: LockProtocol,
    context: LockContext | undefined,
  ) {
    this.runtime = runtime;
    this.executor = executor;
    this.protocol = protocol;
    this.context = context;
  }

  get name(): string {
    return this.protocol.name;
  }

  /**
   * Acquires the lock, waiting without limit.
   *
   * - Free: takes it, hold count 1.
   * - Held by the hold that the caller is inside of: adds a hold; a branch beside another waits for its turn.
   * - Held by another: waits for a wake-up or for the end of the holder's lease, then tries again.
   *
   * @param leaseTime ms the hold lasts. Absent or -1: the watchdog renews it until `unlock()`.
   * @throws {LockAbortedError} `ERR_LOCK_ABORTED`: `signal` fired first. No hold and no waiter is left behind.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis was away for one command deadline. Nothing is
   *   held; what an unanswered request may have taken is given back in the background.
   * @throws {LockLostError} `ERR_LOCK_LOST`: called inside a hold that was lost and not given back yet.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: before any command.
   * @throws {ConcurrentContextError} `ERR_LOCK_CONCURRENT_CONTEXT`: the context is acquiring this lock already.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: the server does not allow it.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed, before or meanwhile.
   * @throws {UnsupportedRuntimeError} `ERR_LOCK_UNSUPPORTED_RUNTIME`: this runtime cannot tell who awaits.
   * @see Redisson `RLock#lock()`, `lock(long, TimeUnit)`; differs: milliseconds only, the lease belongs to the hold.
   */
  lock(leaseTime?: number, options?: CallOptions): Promise<void>;
  lock(options: LockOptions): Promise<void>;
  lock(first?: number | LockOptions, second?: CallOptions): Promise<void> {
    try {
      const acquisition = this.lockAcquisition(first, second, this.lock);
      return this.bare('lock', acquisition, () => undefined, undefined);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * Acquires the lock if it becomes free within `waitTime`.
   *
   * @param waitTime ms to wait; absent, 0 or less: one try. `Infinity` is accepted.
   * @param leaseTime ms the hold lasts. Absent or -1: the watchdog renews it until `unlock()`.
   * @returns `false` if it was busy all the time, and for no other reason. No hold and no waiter is left behind.
   * @throws as {@link lock}.
   * @see Redisson `RLock#tryLock(long, long, TimeUnit)`; differs: milliseconds only.
   */
  tryLock(waitTime?: number, leaseTime?: number, options?: CallOptions): Promise<boolean>;
  tryLock(options: AcquireOptions): Promise<boolean>;
  tryLock(first?: number | AcquireOptions, leaseTime?: number, third?: CallOptions): Promise<boolean> {
    try {
      const acquisition = this.tryLockAcquisition(first, leaseTime, third, this.tryLock);
      return this.bare('tryLock', acquisition, () => true, false);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * Gives back the innermost hold that `lock()` or `tryLock()` opened around the caller. Holds of `withLock` and
   * `acquire` are left alone.
   *
   * - It was the last one: the lock is free, and a waiter is woken.
   * - Others of this owner remain: they keep the lock, for as long as their own leases say.
   *
   * @throws {NotOwnerError} `ERR_LOCK_NOT_OWNER`: the caller is inside no such hold. Nothing was changed.
   * @throws {LockLostError} `ERR_LOCK_LOST`: the hold was lost before. It is over now; a further call is `NotOwnerError`.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: unanswered. The hold is over for this process and
   *   goes on being given back in the background; a further `unlock()` waits for that.
   * @see Redisson `RLock#unlock()`.
   */
  unlock(options?: ContextOptions): Promise<void> {
    try {
      const owner = options === undefined ? this.context : (checkOptions(options, ['context']).context ?? this.context);
      const hold = innermostHold(this.runtime, this.protocol, owner, canBeUnlocked);
      if (hold === undefined) throw new NotOwnerError(this.name, this.#notOwnerMessage());
      const { givingBack } = Hold.recordOf(hold);
      if (givingBack !== undefined) return givingBack;
      return hold.release();
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * Frees the lock whoever holds it, and wakes a waiter. Holds of this client are told at once (`leaseLost`), others
   * when they next hear from Redis. Fencing tokens are the remedy for what the old holder may still do.
   *
   * @returns whether it was held.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: `outcome` says whether it may have been freed.
   * @see Redisson `RLock#forceUnlock()`.
   */
  async forceUnlock(): Promise<boolean> {
    this.checkOpen();
    for (;;) {
      const holders = [...this.runtime.entries.holdersOf(this.protocol.key)];
      // Only the owners that were there at the call: a repeat after a lost reply must not free the next one's hold.
      const fields = await this.executor.ask(reads.hkeys, [this.protocol.key], []);
      const owners = this.protocol.forceableAmong?.(fields) ?? this.protocol.holdersAmong(fields);
      if (owners.length === 0) return false;
      const request = await this.protocol.release(owners).done;
      const freed = request.error === undefined ? request.reply === 'freed' || request.inDoubt : request.inDoubt;
      if (freed) for (const tenure of holders) if (owners.includes(tenure.owner)) tenure.force(request.inDoubt);
      if (request.error !== undefined) throw request.error;
      if (freed) return true;
    }
  }

  /** Whether anybody holds the lock. @see Redisson `RLock#isLocked()`; differs: always asks the master. */
  async isLocked(): Promise<boolean> {
    this.checkOpen();
    if (this.protocol.half === undefined) return this.executor.ask(reads.exists, [this.protocol.key], []);
    return this.protocol.holdersAmong(await this.executor.ask(reads.hkeys, [this.protocol.key], [])).length > 0;
  }

  /** ms until the lock is free if nobody renews it; -2: it is free, -1: it has no expiry. @see Redisson `RLock#remainTimeToLive()` */
  async remainTimeToLive(): Promise<number> {
    this.checkOpen();
    return this.executor.ask(reads.pttl, [this.protocol.key], []);
  }

  /**
   * Whether this owner holds the lock, by Redis's word.
   *
   * @param owner a `LockContext` of this client, or `<client id>:<number>` as in `hold.owner`.
   * @see Redisson `RLock#isHeldByThread(long)`.
   */
  async isHeldBy(owner: LockContext | string): Promise<boolean> {
    this.checkOpen();
    if (typeof owner === 'string' && owner !== '') {
      return this.executor.ask(reads.hexists, [this.protocol.key], [this.protocol.fieldOf(owner)]);
    }
    if (!isLockContext(owner)) {
      throw new InvalidArgumentError('owner', 'a LockContext or an owner id', owner);
    }
    const record = this.#openRecord(owner);
    return record === undefined ? false : this.isHeldBy(record.tenure.owner);
  }

  /**
   * Whether the caller is inside a hold that Redis confirms. Outside of one: `false`, without a command.
   *
   * @see Redisson `RLock#isHeldByCurrentThread()`.
   */
  async isHeldByCurrentContext(): Promise<boolean> {
    this.checkOpen();
    const record = this.#openRecord(this.context);
    return record === undefined ? false : this.isHeldBy(record.tenure.owner);
  }

  /**
   * Holds of the caller's owner, by Redis's word. Outside of a hold: 0, without a command.
   *
   * @see Redisson `RLock#getHoldCount()`.
   */
  async getHoldCount(): Promise<number> {
    this.checkOpen();
    const record = this.#openRecord(this.context);
    if (record === undefined) return 0;
    return this.executor.ask(reads.hgetCount, [this.protocol.key], [this.protocol.fieldOf(record.tenure.owner)]);
  }

  /** The hold that the caller is inside of, also one that was lost and not given back yet. Asks nobody. */
  currentHold(): H | undefined {
    return innermostHold(this.runtime, this.protocol, this.context, isOfThisHalf) as H | undefined;
  }

  /**
   * Acquires the lock and gives the hold as an object, for `await using` or for giving it back elsewhere.
   *
   * @param options.waitTime ms to wait; absent: without limit.
   * @throws {LockTimeoutError} `ERR_LOCK_TIMEOUT`: it was busy for all of `waitTime`.
   * @throws as {@link lock}.
   */
  acquire(options?: AcquireOptions): Promise<H> {
    try {
      const acquisition = this.acquisition(checkOptions(options, ACQUIRE_OPTIONS), Infinity, false, this.acquire);
      return this.#asHold<H>(acquisition, undefined);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * As {@link acquire}, but answers `null` when the lock stays busy.
   *
   * @param options.waitTime ms to wait; absent, 0 or less: one try.
   */
  tryAcquire(options?: AcquireOptions): Promise<H | null> {
    try {
      const acquisition = this.acquisition(checkOptions(options, ACQUIRE_OPTIONS), 0, false, this.tryAcquire);
      return this.#asHold<H | null>(acquisition, null);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * Runs `fn` inside a hold and gives it back afterwards. Waits like {@link acquire}.
   *
   * - `fn` fails: its error is rethrown untouched; a release that fails as well goes to the event `releaseFailed`.
   * - `fn` is done and the hold was lost meanwhile: `LockLostError` with what `fn` returned as `result`.
   *
   * @param fn gets the hold; hand its `signal` to what must stop when the lock is lost.
   */
  withLock<T>(fn: (hold: H) => T | PromiseLike<T>): Promise<T>;
  withLock<T>(options: AcquireOptions, fn: (hold: H) => T | PromiseLike<T>): Promise<T>;
  async withLock<T>(
    first: AcquireOptions | ((hold: H) => T | PromiseLike<T>),
    second?: (hold: H) => T | PromiseLike<T>,
  ): Promise<T> {
    const fn = typeof first === 'function' ? first : second;
    if (typeof fn !== 'function') throw new InvalidArgumentError('fn', 'a function', fn);
    const options = checkOptions(typeof first === 'function' ? undefined : first, ACQUIRE_OPTIONS);
    const acquisition = this.acquisition(options, Infinity, false, this.withLock);
    const hold = await new Promise<H>((granted, failed) =>
      acquire(this.runtime, acquisition, { granted: (taken) => granted(taken as H), failed }),
    );
    let result: T;
    try {
      const returned = runInside(hold, () => fn(hold));
      // Awaiting what is no promise would cost a short section two promises and two turns of the queue.
      result = isThenable(returned) ? await returned : returned;
    } catch (error) {
      await hold.release().catch((cause: unknown) => {
        this.runtime.events.emit('releaseFailed', { lockName: this.name, owner: hold.owner, cause });
      });
      throw error;
    }
    try {
      await hold.release();
    } catch (cause) {
      if (cause instanceof LockLostError) {
        throw new LockLostError(this.name, hold.owner, cause.reason, { cause, result });
      }
      this.runtime.events.emit('releaseFailed', { lockName: this.name, owner: hold.owner, cause });
    }
    return result;
  }

  /** @internal */
  protected lockAcquisition(first: number | LockOptions | undefined, second: unknown, method: Method): Acquisition {
    const options =
      typeof first === 'object'
        ? checkOptions(first, LOCK_OPTIONS)
        : { ...checkOptions(second as CallOptions, CALL_OPTIONS), leaseTime: first };
    return this.acquisition(options, Infinity, true, method);
  }

  /** @internal */
  protected tryLockAcquisition(
    first: number | AcquireOptions | undefined,
    leaseTime: number | undefined,
    third: unknown,
    method: Method,
  ): Acquisition {
    const options =
      typeof first === 'object'
        ? checkOptions(first, ACQUIRE_OPTIONS)
        : { ...checkOptions(third as CallOptions, CALL_OPTIONS), waitTime: first, leaseTime };
    return this.acquisition(options, 0, true, method);
  }

  /** @internal */
  protected acquisition(options: AcquireOptions, waitByDefault: number, bare: boolean, method: Method): Acquisition {
    this.checkOpen();
    const runtime = this.runtime;
    const leaseTime = checkLeaseTime(options.leaseTime);
    const waitTime = checkWaitTime(options.waitTime, waitByDefault);
    return {
      protocol: this.protocol,
      terms: {
        leaseMs: leaseTime ?? runtime.options.lockWatchdogTimeout,
        watched: leaseTime === undefined,
        bare,
        site: runtime.callSite(method),
      },
      patience: patience(runtime, waitTime, options.signal),
      context: checkContext(options.context) ?? this.context,
    };
  }

  /** @internal The acquisition itself is unbound; only the promise that the caller gets knows who awaits it. */
  protected bare<T>(
    method: string,
    acquisition: Acquisition,
    granted: (hold: H) => T,
    busy: T | undefined,
  ): Promise<T> {
    const supported = acquisition.context !== undefined || supportsBoundPromises();
    if (supported === false) return boundRejection(new UnsupportedRuntimeError(method));
    const deferred = boundDeferred<T>();
    const settle = settleWith(deferred, acquisition, (hold) => granted(hold as H), busy);
    if (supported === true) acquire(this.runtime, acquisition, settle);
    else {
      void supported.then((yes) => {
        if (yes) acquire(this.runtime, acquisition, settle);
        else deferred.reject(new UnsupportedRuntimeError(method));
      });
    }
    return deferred.promise;
  }

  #asHold<T extends Hold | null>(acquisition: Acquisition, busy: T | undefined): Promise<T> {
    const deferred = boundDeferred<T>();
    acquire(
      this.runtime,
      acquisition,
      settleWith(deferred, acquisition, (hold) => hold as T, busy),
    );
    return deferred.promise;
  }

  #openRecord(context: LockContext | undefined): HoldRecord | undefined {
    const hold = innermostHold(this.runtime, this.protocol, context);
    if (hold === undefined) return undefined;
    const record = Hold.recordOf(hold);
    record.tenure.check();
    return record.state === 'open' ? record : undefined;
  }

  /** @internal */
  protected checkOpen(): void {
    if (this.runtime.closed) throw new ClientClosedError();
  }

  #notOwnerMessage(): string {
    const [tenure] = this.runtime.entries.holdersOf(this.protocol.key);
    const held = tenure?.holds[0];
    let message = `unlock(): this flow does not hold lock "${this.name}".`;
    if (held !== undefined) {
      message +=
        ` It is held in this process${held.site === undefined ? '' : ` since ${held.site.toString()}`}.` +
        ' A hold can be given back by the code that awaited lock() or tryLock() and what that code calls; an async ' +
        'helper that locks and returns, Promise.all and Promise.race keep it for themselves. Keep the Hold instead: ' +
        'const hold = await lock.acquire(); ... await hold.release().';
    }
    return `${message} Details: README, "Who owns a lock".`;
  }
}

const isThenable = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';

const canBeUnlocked = (record: HoldRecord, { half }: LockProtocol): boolean =>
  record.unlockable && record.half === half;
const isOfThisHalf = (record: HoldRecord, { half }: LockProtocol): boolean =>
  record.state !== 'closed' && record.half === half;

/** `busy`: what the promise resolves with when the lock stayed busy; undefined: it rejects. */
function settleWith<T>(
  deferred: BoundDeferred<T>,
  { context }: Acquisition,
  value: (hold: Hold) => T,
  busy: T | undefined,
): Settle {
  return {
    // No flow enters a hold of a context.
    granted: (hold) => deferred.resolve(value(hold), context === undefined ? hold : undefined),
    failed: (error) => {
      if (busy !== undefined && error instanceof LockTimeoutError) deferred.resolve(busy);
      else deferred.reject(error);
    },
  };
}

import { boundDeferred, boundRejection, supportsBoundPromises } from '../ownership/bound-promise.js';
import type { CallSite } from '../ownership/call-site.js';
import { runInside } from '../ownership/flow.js';
import type { Hold } from '../holding/hold.js';
import type { LockContext } from '../ownership/lock-context.js';
import { showAs } from '../summary.js';
import { ClientClosedError, LockLostError, NotOwnerError, UnsupportedRuntimeError } from '../errors.js';
import {
  checkAlone,
  checkBody,
  checkContext,
  checkLeaseTime,
  checkOptions,
  checkWaitTime,
  type AcquireOptions,
  type ContextOptions,
  type LockOptions,
} from './arguments.js';
import { settleWith, type CallOptions, type LockCall, type LockSettle, type Method } from './lock-call.js';

const LOCK_OPTIONS = ['leaseTime', 'signal', 'context'] as const;
const CALL_OPTIONS = ['signal', 'context'] as const;
const ACQUIRE_OPTIONS = ['waitTime', 'leaseTime', 'signal', 'context'] as const;

/**
 * A reentrant lock: Redisson's `RLock`. The object is a name and holds nothing; make one per call or keep one in a
 * module. All times are milliseconds.
 *
 * A hold belongs to the code that awaited it: after `await lock.lock()` the rest of that function, and everything it
 * calls or starts, is inside the hold until it is given back. A call on the same lock from inside re-enters, every
 * other call is a stranger, whatever handle it uses. Waiters are not served in order.
 */
export abstract class Lock<H extends Hold = Hold> {
  /** @internal */
  protected readonly context: LockContext | undefined;

  /** @internal */
  constructor(context: LockContext | undefined) {
    this.context = context;
  }

  /** The name that it was asked for by. @see Redisson `RObject#getName()` */
  abstract get name(): string;

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
      const call = this.lockCall(first, second, this.lock);
      return this.bare('lock', call, () => undefined, undefined);
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
      const call = this.tryLockCall(first, leaseTime, third, this.tryLock);
      return this.bare('tryLock', call, () => true, false);
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
   *   goes on being given back in the background; a further `unlock()`, with no other hold around it, waits for that.
   * @see Redisson `RLock#unlock()`; differs: a hold that was lost is told apart from one that never was.
   */
  unlock(options?: ContextOptions): Promise<void> {
    try {
      const owner = options === undefined ? this.context : (checkOptions(options, ['context']).context ?? this.context);
      const hold = this.unlockable(owner);
      if (hold === undefined) throw new NotOwnerError(this.name, this.notOwnerMessage());
      return hold.giveBack();
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
   * @see Redisson `RLock#forceUnlock()`; differs: it frees whoever held it at the call, also when it is repeated.
   */
  abstract forceUnlock(): Promise<boolean>;

  /** Whether anybody holds the lock. @see Redisson `RLock#isLocked()`; differs: always asks the master. */
  abstract isLocked(): Promise<boolean>;

  /** ms until the lock is free if nobody renews it; -2: it is free, -1: it has no expiry. @see Redisson `RLock#remainTimeToLive()` */
  abstract remainTimeToLive(): Promise<number>;

  /**
   * Whether this owner holds the lock, by Redis's word.
   *
   * @param owner a `LockContext` of this client, or `<client id>:<number>` as in `hold.owner`.
   * @see Redisson `RLock#isHeldByThread(long)`.
   */
  abstract isHeldBy(owner: LockContext | string): Promise<boolean>;

  /**
   * Whether the caller is inside a hold that Redis confirms. Outside of one: `false`, without a command.
   *
   * @see Redisson `RLock#isHeldByCurrentThread()`.
   */
  abstract isHeldByCurrentContext(): Promise<boolean>;

  /**
   * Holds of the caller's owner, by Redis's word. Outside of a hold: 0, without a command.
   *
   * @see Redisson `RLock#getHoldCount()`.
   */
  abstract getHoldCount(): Promise<number>;

  /**
   * The hold that the caller is inside of, also one that was lost and not given back yet. Asks nobody. Redisson has no
   * such call.
   */
  abstract currentHold(): H | undefined;

  /**
   * Acquires the lock and gives the hold as an object, for `await using` or for giving it back elsewhere. Redisson has
   * no such call.
   *
   * @param options.waitTime ms to wait; absent: without limit.
   * @throws {LockTimeoutError} `ERR_LOCK_TIMEOUT`: it was busy for all of `waitTime`.
   * @throws as {@link lock}.
   */
  acquire(options?: AcquireOptions): Promise<H> {
    try {
      const call = this.call(checkOptions(options, ACQUIRE_OPTIONS), Infinity, false, this.acquire);
      return this.#asHold<H>(call, undefined);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * As {@link acquire}, but answers `null` when the lock stays busy. Redisson has no such call.
   *
   * @param options.waitTime ms to wait; absent, 0 or less: one try.
   */
  tryAcquire(options?: AcquireOptions): Promise<H | null> {
    try {
      const call = this.call(checkOptions(options, ACQUIRE_OPTIONS), 0, false, this.tryAcquire);
      return this.#asHold<H | null>(call, null);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * Runs `fn` inside a hold and gives it back afterwards. Waits like {@link acquire}. Redisson has no such call.
   *
   * - `fn` fails: its error is rethrown untouched; a release that fails as well goes to the event `releaseFailed`.
   * - `fn` is done and the hold was lost meanwhile: `LockLostError` with what `fn` returned as `result`.
   * - `fn` is done and the client was closed meanwhile: `ClientClosedError` with what `fn` returned as `result`.
   *
   * @param fn gets the hold; hand its `signal` to what must stop when the lock is lost.
   */
  withLock<T>(fn: (hold: H) => T | PromiseLike<T>): Promise<T>;
  withLock<T>(options: AcquireOptions, fn: (hold: H) => T | PromiseLike<T>): Promise<T>;
  async withLock<T>(
    first: AcquireOptions | ((hold: H) => T | PromiseLike<T>),
    second?: (hold: H) => T | PromiseLike<T>,
  ): Promise<T> {
    const { options, fn } = checkBody(first, second);
    const call = this.call(checkOptions(options, ACQUIRE_OPTIONS), Infinity, false, this.withLock);
    const hold = await new Promise<H>((granted, failed) =>
      this.take(call, { granted: granted as (taken: Hold) => void, failed }),
    );
    let result: T;
    try {
      const returned = runInside(hold, fn);
      // Awaiting what is no promise would cost a short section two promises and two turns of the queue.
      result = isThenable(returned) ? await returned : returned;
    } catch (error) {
      await hold.release().catch((cause: unknown) => this.releaseFailed(hold, cause));
      throw error;
    }
    try {
      await hold.release();
    } catch (cause) {
      if (cause instanceof LockLostError) {
        throw new LockLostError(this.name, hold.owner, cause.reason, { cause, result });
      }
      // `close()` ended the hold while `fn` ran: another owner may have been inside.
      if (cause instanceof ClientClosedError) throw new ClientClosedError({ cause, result });
      this.releaseFailed(hold, cause);
    }
    return result;
  }

  /** @internal */
  protected lockCall(first: number | LockOptions | undefined, second: unknown, method: Method): LockCall {
    if (typeof first === 'object') checkAlone(second);
    const options =
      typeof first === 'object'
        ? checkOptions(first, LOCK_OPTIONS)
        : { ...checkOptions(second as CallOptions, CALL_OPTIONS), leaseTime: first };
    return this.call(options, Infinity, true, method);
  }

  /** @internal */
  protected tryLockCall(
    first: number | AcquireOptions | undefined,
    leaseTime: number | undefined,
    third: unknown,
    method: Method,
  ): LockCall {
    if (typeof first === 'object') checkAlone(leaseTime, third);
    const options =
      typeof first === 'object'
        ? checkOptions(first, ACQUIRE_OPTIONS)
        : { ...checkOptions(third as CallOptions, CALL_OPTIONS), waitTime: first, leaseTime };
    return this.call(options, 0, true, method);
  }

  /** @internal */
  protected call(options: AcquireOptions, waitByDefault: number, bare: boolean, method: Method): LockCall {
    this.checkOpen();
    return {
      leaseTime: checkLeaseTime(options.leaseTime),
      waitTime: checkWaitTime(options.waitTime, waitByDefault),
      signal: options.signal,
      context: checkContext(options.context) ?? this.context,
      bare,
      site: this.callSite(method),
    };
  }

  /** @internal The acquisition itself is unbound; only the promise that the caller gets knows who awaits it. */
  protected bare<T>(method: string, call: LockCall, granted: (hold: H) => T, busy: T | undefined): Promise<T> {
    const supported = call.context !== undefined || supportsBoundPromises();
    if (supported === false) return boundRejection(new UnsupportedRuntimeError(method));
    const deferred = boundDeferred<T>();
    const settle = settleWith(deferred, call, (hold) => granted(hold as H), busy);
    if (supported === true) this.take(call, settle);
    else {
      void supported.then((yes) => {
        if (yes) this.take(call, settle);
        else deferred.reject(new UnsupportedRuntimeError(method));
      });
    }
    return deferred.promise;
  }

  #asHold<T extends Hold | null>(call: LockCall, busy: T | undefined): Promise<T> {
    const deferred = boundDeferred<T>();
    this.take(
      call,
      settleWith(deferred, call, (hold) => hold as T, busy),
    );
    return deferred.promise;
  }

  /** @internal Fails with `LockTimeoutError` if the lock stays busy. */
  protected abstract take(call: LockCall, settle: LockSettle): void;
  /** @internal The innermost hold that an `unlock()` of the caller, or of the context, gives back. */
  protected abstract unlockable(context: LockContext | undefined): Hold | undefined;
  /** @internal */
  protected abstract notOwnerMessage(): string;
  /** @internal The line that called `above`, if call sites are kept. */
  protected abstract callSite(above: Method): CallSite | undefined;
  /** @internal Tells what `withLock` cannot reject with. */
  protected abstract releaseFailed(hold: Hold, cause: unknown): void;
  /** @internal */
  protected abstract checkOpen(): void;
}

const isThenable = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';

showAs(Lock, ({ name }) => ({ name }));

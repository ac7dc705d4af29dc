import { holdChannel } from '../diagnostics/channels.js';
import { isTraced } from '../diagnostics/traces.js';
import { runTraced, takeTraced, type TracedLock } from './lock-trace.js';
import { boundDeferred, boundRejection, supportsBoundPromises } from '../ownership/bound-promise.js';
import type { CallSite } from '../ownership/call-site.js';
import { runBody } from '../ownership/flow.js';
import type { Hold } from '../holding/hold.js';
import type { LockContext } from '../ownership/lock-context.js';
import { showAs } from '../summary.js';
import { ClientClosedError, isForLoss, LockLostError, NotOwnerError, UnsupportedRuntimeError } from '../errors.js';
import type { ReleaseMode } from '../options.js';
import { checkBody, checkOptions } from './arguments.js';
import type { AcquireOptions, ContextOptions, LockOptions, TryLockOptions } from './arguments.js';
import {
  ACQUIRE_OPTIONS,
  isThenable,
  lockCallOf,
  lockOptions,
  NOTHING,
  PromisedOutcome,
  TRUE,
  tryLockOptions,
  type CallOptions,
  type GrantedValue,
  type LockCall,
  type LockSettle,
  type Method,
} from './lock-call.js';

/**
 * A reentrant lock. The object is only a handle for a name: create one per call, or keep one in a module. All times are
 * milliseconds.
 *
 * A hold belongs to the code that awaited it. After `await lock.lock()`, the rest of that function, and everything that
 * it calls or starts, is inside the hold until the release. A call on the same lock from inside re-enters. Every other
 * call is a stranger and waits, also a call through the same handle. Waiters are not served in order; see
 * {@link LockClient.getFairLock} for a lock that serves them in order.
 *
 * @redisson `RLock`
 */
export abstract class Lock<H extends Hold = Hold> {
  /** @internal */
  readonly context: LockContext | undefined;

  /** @internal */
  constructor(context: LockContext | undefined) {
    this.context = context;
  }

  /**
   * The name of the lock, without the key prefix.
   *
   * @redisson `RObject#getName()`
   */
  abstract get name(): string;

  /**
   * Acquires the lock. The call waits without limit; `options.signal` aborts the wait.
   *
   * - The lock is free: the caller gets a hold, and the hold count is 1.
   * - The caller is inside a hold of this lock: the caller gets a further hold. If another branch inside that hold has
   *   one, the call waits until that branch has released it.
   * - Another owner holds the lock: the call waits for the release message or for the end of the owner's lease, and
   *   then tries again.
   *
   * @param leaseTime - lease of the hold in milliseconds. Absent or -1: the watchdog renews the hold until `unlock()`.
   * @param options - see {@link CallOptions}.
   * @throws {LockAbortedError} `ERR_LOCK_ABORTED`: the signal was aborted first. The call leaves no hold and no waiter.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply within one command deadline. The
   *   call holds nothing. The client releases in the background what an unanswered request may have acquired.
   * @throws {LockLostError} `ERR_LOCK_LOST`: the caller is inside a hold of this lock that was lost and not yet
   *   released.
   * @throws {LockUpgradeError} `ERR_LOCK_UPGRADE`: the call would upgrade a hold that the caller is inside of.
   * @throws {NonReentrantError} `ERR_LOCK_NON_REENTRANT`: the lock is not reentrant, and the caller is inside a hold of
   *   it.
   * @throws {ConcurrentContextError} `ERR_LOCK_CONCURRENT_CONTEXT`: the context is already acquiring this lock.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an argument is invalid. No command was sent.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {NotReplicatedError} `ERR_LOCK_NOT_REPLICATED`: too few replicas confirmed the lock in time.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @throws {UnsupportedRuntimeError} `ERR_LOCK_UNSUPPORTED_RUNTIME`: this runtime cannot tell which code awaits.
   * @example
   * await lock.lock();
   * try {
   *   await reserve();
   * } finally {
   *   await lock.unlock();
   * }
   * @redisson `RLock#lock()`, `lock(long, TimeUnit)`. Differs: times are milliseconds, and the lease belongs to the
   *   hold.
   */
  lock(leaseTime?: number, options?: CallOptions): Promise<void>;
  lock(options: LockOptions): Promise<void>;
  lock(first?: number | LockOptions, second?: CallOptions): Promise<void> {
    try {
      const call = this.lockCall(first, second, this.lock);
      return this.takeForUnlock('lock', call, NOTHING, undefined);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * Acquires the lock if it becomes free within `waitTime`.
   *
   * @param waitTime - time to wait in milliseconds, or `Infinity`. Absent, 0 or less: the call tries once.
   * @param leaseTime - lease of the hold in milliseconds. Absent or -1: the watchdog renews the hold until `unlock()`.
   * @param options - see {@link CallOptions}.
   * @returns `true` with a hold, or `false` if the lock stayed busy. `false` has no other cause, and it leaves no hold
   *   and no waiter.
   * @throws the errors of {@link Lock.lock}.
   * @example
   * if (await lock.tryLock(5_000, 30_000)) {
   *   try {
   *     await reserve();
   *   } finally {
   *     await lock.unlock();
   *   }
   * }
   * @redisson `RLock#tryLock()`, `tryLock(long, TimeUnit)`, `tryLock(long, long, TimeUnit)`. Differs: times are
   *   milliseconds.
   */
  tryLock(waitTime?: number, leaseTime?: number, options?: CallOptions): Promise<boolean>;
  tryLock(options: TryLockOptions): Promise<boolean>;
  tryLock(first?: number | TryLockOptions, leaseTime?: number, third?: CallOptions): Promise<boolean> {
    try {
      const call = this.tryLockCall(first, leaseTime, third, this.tryLock);
      return this.takeForUnlock('tryLock', call, TRUE, false);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * Releases the innermost hold that `lock()` or `tryLock()` opened around the caller. Holds of `withLock` and
   * `acquire` are unaffected.
   *
   * - The owner has no further hold: the lock is free, and the client wakes a waiter.
   * - The owner has further holds: they keep the lock for as long as their own leases last.
   *
   * @throws {NotOwnerError} `ERR_LOCK_NOT_OWNER`: the caller is inside no such hold. The lock is unchanged.
   * @throws {LockLostError} `ERR_LOCK_LOST`: the hold was lost before. This call ends it, and a further `unlock()`
   *   rejects with `NotOwnerError`.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The hold has ended in this
   *   process, and the release continues in the background. A further `unlock()` outside of other holds waits for that
   *   release.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command. The release continues in the background.
   * @redisson `RLock#unlock()`. Differs: the error distinguishes a lost hold from one that never existed.
   */
  unlock(options?: ContextOptions): Promise<void> {
    try {
      const owner = options === undefined ? this.context : (checkOptions(options, ['context']).context ?? this.context);
      const hold = this.unlockable(owner);
      if (hold === undefined) throw new NotOwnerError(this.name, this.notOwnerMessage());
      return hold.releaseByUnlock();
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * Frees the lock regardless of its owner, and wakes a waiter. Holds of this client are lost at once (`leaseLost`).
   * The holder in another process notices the loss with its next request, so its section may still run. Fencing tokens
   * protect a resource from such a section.
   *
   * @returns whether the lock was held.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. `outcome` says whether the call
   *   may have freed the lock.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @redisson `RLock#forceUnlock()`. Differs: a repeated request frees only the owner that held the lock at the call.
   */
  abstract forceUnlock(): Promise<boolean>;

  /**
   * Reads from Redis whether any owner holds the lock.
   *
   * @redisson `RLock#isLocked()`. Differs: the client always reads from the master.
   */
  abstract isLocked(): Promise<boolean>;

  /**
   * Reads from Redis for how long the lock stays held without a renewal.
   *
   * @returns milliseconds; -2 if the lock is free, -1 if the key has no expiry.
   * @redisson `RLock#remainTimeToLive()`
   */
  abstract remainTimeToLive(): Promise<number>;

  /**
   * Reads from Redis whether the given owner holds the lock.
   *
   * @param owner - a `LockContext` of this client, or an owner id as in `hold.owner`: `<client id>:<number>`.
   * @redisson `RLock#isHeldByThread(long)`
   */
  abstract isHeldBy(owner: LockContext | string): Promise<boolean>;

  /**
   * Reads from Redis whether it still has the hold that the caller is inside of. Outside of a hold the call resolves
   * with `false` and sends no command.
   *
   * @redisson `RLock#isHeldByCurrentThread()`
   */
  abstract isHeldByCurrentContext(): Promise<boolean>;

  /**
   * Reads from Redis the hold count of the hold that the caller is inside of. Outside of a hold the call resolves with
   * 0 and sends no command.
   *
   * @redisson `RLock#getHoldCount()`
   */
  abstract getHoldCount(): Promise<number>;

  /**
   * Returns the innermost hold around the caller, or `undefined`. The method returns a lost hold until its release. It
   * sends no command.
   */
  abstract currentHold(): H | undefined;

  /**
   * Acquires the lock and resolves with the hold as an object, for `await using` or for a release in other code.
   *
   * @param options - see {@link AcquireOptions}. Without `waitTime`, the call waits without limit.
   * @throws {LockTimeoutError} `ERR_LOCK_TIMEOUT`: the lock did not become free within `waitTime`.
   * @throws the errors of {@link Lock.lock} as well, except `UnsupportedRuntimeError`.
   * @example
   * await using hold = await lock.acquire({ waitTime: 5_000 });
   * await work({ signal: hold.signal });
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
   * Acquires the lock like {@link Lock.acquire}, but resolves with `null` if the lock stays busy.
   *
   * @param options - see {@link AcquireOptions}. Without `waitTime`, or with 0 or less, the call tries once.
   * @throws the errors of {@link Lock.acquire}, except `LockTimeoutError`.
   * @example
   * const hold = await lock.tryAcquire();
   * if (hold === null) return 'busy';
   * try {
   *   await work();
   * } finally {
   *   await hold.release();
   * }
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
   * Acquires the lock like {@link Lock.acquire}, runs `fn` inside the hold, and releases the hold. This is the
   * recommended way to use a lock.
   *
   * - `fn` fails: the call rejects with the error of `fn`, unchanged. If the release fails as well, the client emits
   *   `releaseFailed`.
   * - `fn` fails because the hold was lost, with `signal.reason`, an error that has it in its chain of causes, or an
   *   `AbortError`: the call rejects with a `LockLostError` whose `cause` is the error of `fn`.
   * - `fn` succeeds, but the hold was lost: the call rejects with a `LockLostError` whose `result` is the value of
   *   `fn`.
   * - `fn` succeeds, but the client was closed: the call rejects with a `ClientClosedError` whose `result` is the value
   *   of `fn`.
   * - With `release: 'background'`, the call settles when the release has been written. See {@link AcquireOptions}.
   *
   * @param fn - receives the hold. Pass `hold.signal` to the work that must stop when the lock is lost.
   * @returns the value of `fn`.
   * @throws the errors of {@link Lock.acquire}, and the error of `fn`.
   * @example
   * await lock.withLock({ waitTime: 5_000 }, async (hold) => {
   *   await charge(order, { signal: hold.signal });
   * });
   */
  withLock<T>(fn: (hold: H) => T | PromiseLike<T>): Promise<T>;
  /**
   * Runs `fn` inside a hold that is acquired with these options. See the other overload.
   *
   * @param options - see {@link AcquireOptions}.
   * @param fn - receives the hold.
   */
  withLock<T>(options: AcquireOptions, fn: (hold: H) => T | PromiseLike<T>): Promise<T>;
  async withLock<T>(
    first: AcquireOptions | ((hold: H) => T | PromiseLike<T>),
    second?: (hold: H) => T | PromiseLike<T>,
  ): Promise<T> {
    const { options, fn } = checkBody(first, second);
    const call = this.call(checkOptions(options, ACQUIRE_OPTIONS), Infinity, false, this.withLock);
    const hold = await new Promise<H>((granted, failed) =>
      this.#take(call, { granted: (taken) => granted(this.ofHold(taken, call.release) as H), failed }, true),
    );
    let result: T;
    try {
      const returned = holdChannel.hasSubscribers
        ? runTraced(this.tracedAs(call.context), hold, fn)
        : runBody(hold, fn);
      // An `await` of a plain value would cost a short section two promises and two turns of the microtask queue.
      result = isThenable(returned) ? await returned : returned;
    } catch (error) {
      await hold.release().catch((cause: unknown) => {
        if (!(cause instanceof LockLostError && isForLoss(error, cause))) return this.releaseFailed(hold, cause);
        throw new LockLostError(this.name, hold.owner, cause.reason, { cause: error });
      });
      throw error;
    }
    try {
      await hold.release();
    } catch (cause) {
      if (cause instanceof LockLostError) {
        throw new LockLostError(this.name, hold.owner, cause.reason, { cause, result });
      }
      // `close()` ended the hold while `fn` ran, so another owner may have acquired the lock.
      if (cause instanceof ClientClosedError) throw new ClientClosedError({ cause, result });
      this.releaseFailed(hold, cause);
    }
    return result;
  }

  /** @internal */
  protected lockCall(first: number | LockOptions | undefined, second: unknown, method: Method): LockCall {
    return this.call(lockOptions(first, second), Infinity, true, method);
  }

  /** @internal */
  protected tryLockCall(
    first: number | TryLockOptions | undefined,
    leaseTime: number | undefined,
    third: unknown,
    method: Method,
  ): LockCall {
    return this.call(tryLockOptions(first, leaseTime, third), 0, true, method);
  }

  /** @internal */
  protected call(options: AcquireOptions, waitByDefault: number, byUnlock: boolean, method: Method): LockCall {
    this.checkOpen();
    return lockCallOf(options, waitByDefault, byUnlock, this.context, this.callSite(method));
  }

  /**
   * @internal Acquires through an unbound promise. Only the promise that the caller gets is bound to the awaiting code.
   */
  protected takeForUnlock<T>(method: string, call: LockCall, value: GrantedValue<T>, busy: T | undefined): Promise<T> {
    const supported = call.context !== undefined || supportsBoundPromises();
    if (supported === false) return boundRejection(new UnsupportedRuntimeError(method));
    const deferred = boundDeferred<T>();
    const settle = new PromisedOutcome(deferred, call, value, busy);
    if (supported === true) this.#take(call, settle);
    else {
      void supported.then((yes) => {
        if (yes) this.#take(call, settle);
        else deferred.reject(new UnsupportedRuntimeError(method));
      });
    }
    return deferred.promise;
  }

  #asHold<T extends H | null>(call: LockCall, busy: T | undefined): Promise<T> {
    const deferred = boundDeferred<T>();
    this.#take(call, new PromisedOutcome<T>(deferred, call, this as GrantedValue<Hold> as GrantedValue<T>, busy));
    return deferred.promise;
  }

  /** @internal Prepares the hold for a release in the background, if the call or the client asks for that. */
  ofHold(hold: Hold, release: ReleaseMode = this.releaseMode): Hold {
    if (release === 'background') hold.leavesInBackground((cause) => this.releaseFailed(hold, cause));
    return hold;
  }

  #take(call: LockCall, settle: LockSettle, hasBody = false): void {
    if (!isTraced()) return this.take(call, settle);
    takeTraced(this.tracedAs(call.context), call, settle, hasBody, (traced) => this.take(call, traced));
  }

  /** @internal What the release of a hold waits for, if the call does not say it. */
  abstract get releaseMode(): ReleaseMode;
  /** @internal The lock, as the diagnostics channels name it. */
  protected abstract tracedAs(context: LockContext | undefined): TracedLock;
  /** @internal Acquires the lock. Fails with `LockTimeoutError` if the lock stays busy. */
  protected abstract take(call: LockCall, settle: LockSettle): void;
  /** @internal The innermost hold that `unlock()` releases for the caller or for the context. */
  protected abstract unlockable(context: LockContext | undefined): Hold | undefined;
  /** @internal */
  protected abstract notOwnerMessage(): string;
  /** @internal The line of code that called `above`, if the client records call sites. */
  protected abstract callSite(above: Method): CallSite | undefined;
  /** @internal Emits the event for a failed release that `withLock` does not reject with. */
  protected abstract releaseFailed(hold: Hold, cause: unknown): void;
  /** @internal */
  protected abstract checkOpen(): void;
}

showAs(Lock, ({ name }) => ({ name }));

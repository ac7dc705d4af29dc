import { PermitWaiter } from './permit-waiter.js';
import { waitLimitOf, type WaitLimit } from '../waiting/limits/wait-limit.js';
import { LockTimeoutError } from '../errors.js';
import type { SemaphoreProtocol } from '../protocols/semaphore-protocol.js';
import type { ReleaseReply } from '../redis/scripts/semaphore.js';
import {
  checkAnyPermits,
  checkBody,
  checkOptions,
  checkPermits,
  checkTimeToLive,
  checkWaitTime,
} from '../locks/arguments.js';
import { SemaphorePermits } from './semaphore-permits.js';
import { PermitSource } from './permit-source.js';
import type { PermitsOptions, WaitOptions } from './ownerless-object.js';

const WITH_OPTIONS = ['permits', 'waitTime', 'signal'] as const;

/**
 * A semaphore: a number of permits in Redis that the callers of all processes share. The object is only a handle for a
 * name. All times are milliseconds.
 *
 * Permits have no owner. Any process can release permits that another process acquired. A process that dies never
 * releases its permits; use {@link LockClient.getPermitExpirableSemaphore} where that can happen.
 *
 * The client serves its own waiters for the same number of permits in the order of their calls. A waiter for fewer
 * permits may pass a waiter for more, so a waiter for many permits can wait long. Waiters of different clients are served
 * in no order. Released permits go directly to the client's next
 * waiter. After as many hand-offs as the option `handOff` allows, they go through Redis, where other clients can
 * acquire them.
 *
 * A request takes effect at most once, even if its reply is lost and the client repeats it.
 *
 * @redisson `RSemaphore`
 */
export class Semaphore extends PermitSource {
  /** @internal */
  declare protected readonly protocol: SemaphoreProtocol;

  /**
   * Acquires permits. The call waits without limit unless `options.waitTime` limits the wait. A call that rejects holds
   * nothing.
   *
   * - Enough permits are free: the call acquires all of them at once.
   * - Too few permits are free: the call acquires none of them and waits for a release.
   *
   * @param permits - number of permits. Default: 1. With 0, the call resolves and sends no command.
   * @param options - `waitTime` in milliseconds, or `Infinity`; `signal` aborts the wait.
   * @throws {LockTimeoutError} `ERR_LOCK_TIMEOUT`: too few permits became free within `options.waitTime`.
   * @throws {LockAbortedError} `ERR_LOCK_ABORTED`: the signal was aborted first.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The client releases in the
   *   background what an unanswered request may have acquired.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an argument is invalid. No command was sent.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @example
   * await semaphore.acquire(2, { waitTime: 5_000 });
   * try {
   *   await upload(file);
   * } finally {
   *   await semaphore.release(2);
   * }
   * @redisson `RSemaphore#acquire(int)`
   */
  async acquire(permits?: number, options?: WaitOptions & { waitTime?: number | undefined }): Promise<void> {
    const { waitTime, signal } = checkOptions(options, ['waitTime', 'signal']);
    const wait = checkWaitTime(waitTime, Infinity);
    if (!(await this.#take(checkPermits(permits, 1), waitLimitOf(this.services.clock, wait, signal)))) {
      throw new LockTimeoutError(this.name, wait);
    }
  }

  /**
   * Acquires permits if enough of them become free within `waitTime`.
   *
   * @param permits - number of permits. Default: 1. With 0, the call resolves with `true` and sends no command.
   * @param waitTime - time to wait in milliseconds, or `Infinity`. Absent, 0 or less: the call tries once.
   * @param options - `signal` aborts the wait.
   * @returns `true` with the permits, or `false` if too few were free. `false` has no other cause, and it holds
   *   nothing.
   * @throws the errors of {@link Semaphore.acquire}, except `LockTimeoutError`.
   * @example
   * if (await semaphore.tryAcquire(1, 5_000)) {
   *   try {
   *     await upload(file);
   *   } finally {
   *     await semaphore.release();
   *   }
   * }
   * @redisson `RSemaphore#tryAcquire(int, long, TimeUnit)`. Differs: times are milliseconds.
   */
  async tryAcquire(permits?: number, waitTime?: number, options?: WaitOptions): Promise<boolean> {
    const { signal } = checkOptions(options, ['signal']);
    return this.#take(checkPermits(permits, 1), waitLimitOf(this.services.clock, checkWaitTime(waitTime, 0), signal));
  }

  /**
   * Acquires permits and resolves with them as an object, for `await using` or for a release in other code.
   *
   * @param options - see {@link PermitsOptions}. Without `waitTime`, the call waits without limit.
   * @throws the errors of {@link Semaphore.acquire}.
   * @example
   * await using permits = await semaphore.acquirePermits({ permits: 2, waitTime: 5_000 });
   * await upload(file);
   */
  async acquirePermits(options?: PermitsOptions): Promise<SemaphorePermits> {
    const { permits = 1, waitTime, signal } = checkOptions(options, WITH_OPTIONS);
    await this.acquire(permits, { waitTime, signal });
    return new SemaphorePermits(this.name, permits, () => this.release(permits));
  }

  /**
   * Acquires permits like {@link Semaphore.acquirePermits}, but resolves with `null` if too few are free.
   *
   * @param options - see {@link PermitsOptions}. Without `waitTime`, or with 0 or less, the call tries once.
   * @throws the errors of {@link Semaphore.acquire}, except `LockTimeoutError`.
   * @example
   * const permits = await semaphore.tryAcquirePermits({ permits: 2 });
   * if (permits === null) return 'busy';
   * try {
   *   await upload(file);
   * } finally {
   *   await permits.release();
   * }
   */
  async tryAcquirePermits(options?: PermitsOptions): Promise<SemaphorePermits | null> {
    const { permits = 1, waitTime, signal } = checkOptions(options, WITH_OPTIONS);
    if (!(await this.tryAcquire(permits, waitTime, { signal }))) return null;
    return new SemaphorePermits(this.name, permits, () => this.release(permits));
  }

  /**
   * Releases permits and wakes waiters. Redis does not check who acquired them, so a release without an acquire adds
   * permits, and creates the semaphore if there is none. Permits that this client acquired go directly to its next
   * waiter, without a request, within the limits of the option `handOff`.
   *
   * Do not repeat a release that was rejected with one of the first two errors: it continues in the background.
   *
   * @param permits - number of permits. Default: 1.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The client repeats the release
   *   in the background, for at most an hour.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command. The client repeats the release in the
   *   background, for at most an hour.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `permits` is invalid. No command was sent.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @redisson `RSemaphore#release(int)`
   */
  async release(permits?: number): Promise<void> {
    const count = checkPermits(permits, 1);
    this.checkOpen();
    const line = this.services.lines.line(this.protocol.key, this.protocol.channel);
    const { acquired } = line.shared;
    const left = line.passOn(count);
    const reply = left > 0 ? await this.#release(left, true) : undefined;
    if (reply === 'noOtherSubscriber') line.noOtherSubscriber();
    if (reply === 'created' && count <= acquired) this.warnOfLoss(left);
    this.services.reports.permitsReleased(this.protocol, count);
  }

  /**
   * Releases permits like {@link Semaphore.release}, but does nothing if the semaphore does not exist. The permits
   * always go to Redis, never directly to a waiter.
   *
   * @param permits - number of permits. Default: 1.
   * @returns whether the semaphore exists; always `false` for 0 permits.
   * @throws the errors of {@link Semaphore.release}.
   * @redisson `RSemaphore#releaseIfExists(int)`
   */
  async releaseIfExists(permits?: number): Promise<boolean> {
    const count = checkPermits(permits, 1);
    this.checkOpen();
    if (count === 0 || (await this.#release(count, false)) === 'none') return false;
    this.services.reports.permitsReleased(this.protocol, count);
    return true;
  }

  /** Another name for {@link Semaphore.releaseIfExists}. */
  tryRelease(permits?: number): Promise<boolean> {
    return this.releaseIfExists(permits);
  }

  /** @internal */
  protected override readonly countsTaken = false;

  /** @internal */
  protected override async total(): Promise<number | undefined> {
    const { acquired } = this.services.lines.line(this.protocol.key, this.protocol.channel).shared;
    const free = await this.protocol.readCount();
    return free === undefined ? undefined : free + acquired;
  }

  override async availablePermits(): Promise<number> {
    this.checkOpen();
    return (await this.protocol.readCount()) ?? this.protocol.declared ?? 0;
  }

  /**
   * Acquires all permits that are free. The call does not wait.
   *
   * @returns the number of acquired permits.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The client releases in the
   *   background what the request may have acquired.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @example
   * const permits = await semaphore.drainPermits();
   * try {
   *   await maintain();
   * } finally {
   *   if (permits > 0) await semaphore.release(permits);
   * }
   * @redisson `RSemaphore#drainPermits()`. Differs: the call keeps an expiry of the key.
   */
  async drainPermits(): Promise<number> {
    this.checkOpen();
    const { lanes, reports } = this.services;
    const askedAt = reports.now();
    const permits = await lanes.once(
      this.protocol.requests,
      (lane) => this.protocol.drain(lane),
      (lane) => this.protocol.cancelAcquire('drained', lane),
    );
    if (permits > 0) reports.permitsAcquired(this.protocol, permits, false, askedAt);
    return permits;
  }

  /**
   * Creates the semaphore with a number of free permits, unless it exists.
   *
   * @param permits - number of free permits; may be 0 or negative.
   * @param timeToLive - time in milliseconds after which Redis deletes the semaphore. Absent: the semaphore does not
   *   expire.
   * @returns `true` if this call created the semaphore, `false` if it exists already.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an argument is invalid. No command was sent.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. With `outcome: 'unknown'` the
   *   request may have run once, and it will not run later.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @redisson `RSemaphore#trySetPermits(int, Duration)`
   */
  override async trySetPermits(permits: number, timeToLive?: number): Promise<boolean> {
    checkAnyPermits(permits);
    if (timeToLive !== undefined) checkTimeToLive(timeToLive);
    this.checkOpen();
    return this.change((lane) => this.protocol.trySetPermits(permits, lane, timeToLive));
  }

  /**
   * Acquires one permit like {@link Semaphore.acquire}, runs `fn`, and releases the permit.
   *
   * - `fn` fails: the call rejects with the error of `fn`, unchanged. If the release fails as well, the client emits
   *   `releaseFailed`.
   * - `fn` succeeds, but the release fails: the call resolves with the value of `fn`. The release continues in the
   *   background, and the client emits `releaseFailed`.
   * - `fn` succeeds, but the client was closed: the call rejects with a `ClientClosedError` whose `result` is the value
   *   of `fn`. The permit stays taken.
   *
   * @returns the value of `fn`.
   * @throws the errors of {@link Semaphore.acquire}, and the error of `fn`.
   * @example
   * await semaphore.withPermits(async () => upload(file));
   */
  withPermits<T>(fn: () => T | PromiseLike<T>): Promise<T>;
  /**
   * Runs `fn` with permits that are acquired with these options. See the other overload.
   *
   * @param options - see {@link PermitsOptions}. Without `waitTime`, the call waits without limit.
   * @example
   * await semaphore.withPermits({ permits: 2, waitTime: 5_000 }, async () => upload(file));
   */
  withPermits<T>(options: PermitsOptions, fn: () => T | PromiseLike<T>): Promise<T>;
  async withPermits<T>(
    first: PermitsOptions | (() => T | PromiseLike<T>),
    second?: () => T | PromiseLike<T>,
  ): Promise<T> {
    const { options, fn } = checkBody(first, second);
    const permits = await this.acquirePermits(options);
    return this.within(permits, permits.permits, '', () => fn());
  }

  async #take(permits: number, waiting: WaitLimit): Promise<boolean> {
    this.checkOpen();
    if (permits === 0) return true;
    const granted = await this.wait<undefined>(
      (resolve, fail) => new PermitWaiter(this.protocol, permits, this.services, waiting, resolve, fail),
    );
    return granted !== undefined;
  }

  #release(permits: number, create: boolean): Promise<ReleaseReply> {
    return this.services.lanes.once(
      this.protocol.requests,
      (lane) => this.protocol.release(permits, create, lane),
      'repeat',
    );
  }
}

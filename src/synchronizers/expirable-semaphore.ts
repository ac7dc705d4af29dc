import { waitLimitOf } from '../waiting/limits/wait-limit.js';
import { InvalidArgumentError, LockTimeoutError, UnknownPermitError } from '../errors.js';
import type { PermitCount } from '../redis/scripts/permit-expirable-semaphore.js';
import {
  checkBody,
  checkLeaseTime,
  checkOptions,
  checkPermitIds,
  checkPermits,
  checkWaitTime,
} from '../locks/arguments.js';
import { ExpirablePermitWaiter } from './expirable-permit-waiter.js';
import type { TakenPermits } from '../waiting/shared-waiter.js';
import { PermitSource } from './permit-source.js';
import { releasePermits } from './permit-release.js';
import { Permit } from './permit.js';
import {
  arePermitIds,
  type PermitExpirableSemaphoreProtocol,
} from '../protocols/permit-expirable-semaphore-protocol.js';
import type { ExpirablePermitOptions, WaitOptions } from './ownerless-object.js';
import { timeLeftNumber } from '../lease-time.js';

const OPTIONS = ['permits', 'waitTime', 'leaseTime', 'signal'] as const;
/** Each permit has its own id in the request and in Redis, so the work of the server grows with the number. */
const MAX_PERMITS = 10_000;

/**
 * A semaphore whose permits have an id and an optional lease each. The object is only a handle for a name. All times
 * are milliseconds.
 *
 * Any process that knows the id of a permit can release the permit, change its lease, or read its remaining lease. The
 * client does not renew permits: at the end of its lease a permit is free again, even if the process that acquired it
 * has died.
 *
 * The client serves its own waiters for the same number of permits in the order of their calls. A waiter for fewer
 * permits may pass a waiter for more. Waiters of different clients are served in no order.
 *
 * @redisson `RPermitExpirableSemaphore`. Differs: the server's clock counts the leases, not the client's.
 */
export class PermitExpirableSemaphore extends PermitSource {
  /** @internal */
  declare protected readonly protocol: PermitExpirableSemaphoreProtocol;

  /**
   * Acquires a permit. The call waits without limit unless `options.waitTime` limits the wait. A call that rejects
   * holds nothing.
   *
   * @param leaseTime - lease of the permit in milliseconds, at least 10. Absent or -1: the permit has no lease.
   * @param options - `waitTime` in milliseconds, or `Infinity`; `signal` aborts the wait.
   * @returns the id of the permit.
   * @throws {LockTimeoutError} `ERR_LOCK_TIMEOUT`: no permit became free within `options.waitTime`.
   * @throws {LockAbortedError} `ERR_LOCK_ABORTED`: the signal was aborted first.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The client releases in the
   *   background what an unanswered request may have acquired.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an argument is invalid. No command was sent.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @example
   * const id = await semaphore.acquire(30_000, { waitTime: 5_000 });
   * try {
   *   await render();
   * } finally {
   *   await semaphore.tryRelease(id);
   * }
   * @redisson `RPermitExpirableSemaphore#acquire(long, TimeUnit)`. Differs: times are milliseconds.
   */
  async acquire(leaseTime?: number, options?: WaitOptions & { waitTime?: number | undefined }): Promise<string> {
    const [id] = await this.acquireMany(1, leaseTime, options);
    return id as string;
  }

  /**
   * Acquires several permits together, all or none. Everything else is as in {@link PermitExpirableSemaphore.acquire}.
   *
   * @param permits - number of permits, at most 10,000. With 0, the call resolves with no ids and sends no command.
   * @param leaseTime - lease of each permit in milliseconds, at least 10. Absent or -1: the permits have no lease.
   * @param options - `waitTime` in milliseconds, or `Infinity`; `signal` aborts the wait.
   * @returns the ids of the permits.
   * @throws the errors of {@link PermitExpirableSemaphore.acquire}.
   * @example
   * const ids = await semaphore.acquireMany(3, 30_000);
   * await render().finally(() => semaphore.tryRelease(ids));
   * @redisson `RPermitExpirableSemaphore#acquire(int, long, TimeUnit)`. Differs: 0 permits do not wait.
   */
  async acquireMany(
    permits: number,
    leaseTime?: number,
    options?: WaitOptions & { waitTime?: number | undefined },
  ): Promise<string[]> {
    const { waitTime, signal } = checkOptions(options, ['waitTime', 'signal']);
    const permit = await this.#acquireOrThrow(permits, leaseTime, waitTime, signal);
    return [...permit.ids];
  }

  /**
   * Acquires a permit if one becomes free within `waitTime`.
   *
   * @param waitTime - time to wait in milliseconds, or `Infinity`. Absent, 0 or less: the call tries once.
   * @param leaseTime - lease of the permit in milliseconds, at least 10. Absent or -1: the permit has no lease.
   * @param options - `signal` aborts the wait.
   * @returns the id of the permit, or `null` if no permit became free. `null` has no other cause.
   * @throws the errors of {@link PermitExpirableSemaphore.acquire}, except `LockTimeoutError`.
   * @example
   * const id = await semaphore.tryAcquire(5_000, 30_000);
   * if (id !== null) await render().finally(() => semaphore.tryRelease(id));
   * @redisson `RPermitExpirableSemaphore#tryAcquire(long, long, TimeUnit)`. Differs: times are milliseconds.
   */
  async tryAcquire(waitTime?: number, leaseTime?: number, options?: WaitOptions): Promise<string | null> {
    const [id] = await this.tryAcquireMany(1, waitTime, leaseTime, options);
    return id ?? null;
  }

  /**
   * Acquires several permits together, all or none, if enough of them become free within `waitTime`.
   *
   * @param permits - number of permits, at most 10,000. With 0, the call resolves with no ids and sends no command.
   * @param waitTime - time to wait in milliseconds, or `Infinity`. Absent, 0 or less: the call tries once.
   * @param leaseTime - lease of each permit in milliseconds, at least 10. Absent or -1: the permits have no lease.
   * @param options - `signal` aborts the wait.
   * @returns the ids of the permits, or an empty array if too few became free.
   * @throws the errors of {@link PermitExpirableSemaphore.acquire}, except `LockTimeoutError`.
   * @example
   * const ids = await semaphore.tryAcquireMany(3, 5_000, 30_000);
   * if (ids.length > 0) await render().finally(() => semaphore.tryRelease(ids));
   * @redisson `RPermitExpirableSemaphore#tryAcquire(int, long, long, TimeUnit)`
   */
  async tryAcquireMany(
    permits: number,
    waitTime?: number,
    leaseTime?: number,
    options?: WaitOptions,
  ): Promise<string[]> {
    const { signal } = checkOptions(options, ['signal']);
    const permit = await this.#take(permits, leaseTime, checkWaitTime(waitTime, 0), signal);
    return [...(permit?.ids ?? [])];
  }

  /**
   * Acquires permits and resolves with them as an object, for `await using` or for a release in other code.
   *
   * @param options - see {@link ExpirablePermitOptions}. Without `waitTime`, the call waits without limit.
   * @throws the errors of {@link PermitExpirableSemaphore.acquire}.
   * @example
   * await using permit = await semaphore.acquirePermit({ leaseTime: 30_000, waitTime: 5_000 });
   * await render({ signal: AbortSignal.timeout(permit.validFor()) });
   */
  async acquirePermit(options?: ExpirablePermitOptions): Promise<Permit> {
    const { permits, leaseTime, waitTime, signal } = checkOptions(options, OPTIONS);
    return this.#acquireOrThrow(checkPermits(permits, 1, 1), leaseTime, waitTime, signal);
  }

  /**
   * Acquires permits like {@link PermitExpirableSemaphore.acquirePermit}, but resolves with `null` if too few are free.
   *
   * @param options - see {@link ExpirablePermitOptions}. Without `waitTime`, or with 0 or less, the call tries once.
   * @throws the errors of {@link PermitExpirableSemaphore.acquire}, except `LockTimeoutError`.
   * @example
   * const permit = await semaphore.tryAcquirePermit({ leaseTime: 30_000 });
   * if (permit !== null) await render().finally(() => permit.release());
   */
  async tryAcquirePermit(options?: ExpirablePermitOptions): Promise<Permit | null> {
    const { permits, leaseTime, waitTime, signal } = checkOptions(options, OPTIONS);
    return (await this.#take(checkPermits(permits, 1, 1), leaseTime, checkWaitTime(waitTime, 0), signal)) ?? null;
  }

  /**
   * Acquires one permit without a lease, runs `fn`, and releases the permit.
   *
   * - `fn` fails: the call rejects with the error of `fn`, unchanged. If the release fails as well, the client emits
   *   `releaseFailed`.
   * - `fn` fails because the permit was no longer taken, with an `AbortError` or with an error that has that of the release in
   *   its chain of causes: the call rejects with a `LockLostError` whose `cause` is the error of `fn`.
   * - `fn` succeeds, but the permit was no longer taken: the call rejects with a `LockLostError` whose `result` is the
   *   value of `fn`.
   * - `fn` succeeds, but the release fails: the call resolves with the value of `fn`. The release continues in the
   *   background, and the client emits `releaseFailed`.
   * - `fn` succeeds, but the client was closed: the call rejects with a `ClientClosedError` whose `result` is the value
   *   of `fn`. The permit stays taken until the end of its lease, if it has one.
   *
   * @param fn - receives the permit.
   * @returns the value of `fn`.
   * @throws {LockLostError} `ERR_LOCK_LOST`: the lease ended before `fn` settled, or other code released the permit.
   * @throws the errors of {@link PermitExpirableSemaphore.acquire}, and the error of `fn`.
   * @example
   * await semaphore.withPermit(async () => render());
   */
  withPermit<T>(fn: (permit: Permit) => T | PromiseLike<T>): Promise<T>;
  /**
   * Runs `fn` with permits that are acquired with these options. See the other overload.
   *
   * @param options - see {@link ExpirablePermitOptions}. Without `waitTime`, the call waits without limit.
   * @param fn - receives the permits as one object.
   * @example
   * await semaphore.withPermit({ leaseTime: 30_000, waitTime: 5_000 }, async (permit) => render(permit.validFor()));
   */
  withPermit<T>(options: ExpirablePermitOptions, fn: (permit: Permit) => T | PromiseLike<T>): Promise<T>;
  async withPermit<T>(
    first: ExpirablePermitOptions | ((permit: Permit) => T | PromiseLike<T>),
    second?: (permit: Permit) => T | PromiseLike<T>,
  ): Promise<T> {
    const { options, fn } = checkBody(first, second);
    const permit = await this.acquirePermit(options);
    return this.within(permit, permit.ids.length, permit.ids.join(), () => fn(permit));
  }

  /**
   * Releases permits, all of them or none, and wakes waiters.
   *
   * Do not repeat a release that was rejected with one of the first two errors: it continues in the background. In the
   * background the client releases the permits that are still taken, even if others are not.
   *
   * @param ids - the id of a permit, or several ids.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The client repeats the release
   *   in the background until it succeeds.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command. The client repeats the release in the
   *   background, for at most an hour.
   * @throws {UnknownPermitError} `ERR_LOCK_UNKNOWN_PERMIT`: at least one of the permits is not taken, or its lease has
   *   ended. The call released none of them.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `ids` is not a string or an array of strings.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @redisson `RPermitExpirableSemaphore#release(String)`, `#release(List)`
   */
  async release(ids: string | readonly string[]): Promise<void> {
    const checked = checkPermitIds(ids);
    this.checkOpen();
    if (!arePermitIds(checked)) throw new UnknownPermitError(this.name, checked);
    await this.releaseHeld(checked, Infinity);
  }

  /** @internal Releases permits that no other caller can have acquired before `deadline` (lease-clock milliseconds). */
  async releaseHeld(ids: readonly string[], deadline: number): Promise<void> {
    this.checkOpen();
    if (!(await this.#release(ids, deadline))) throw new UnknownPermitError(this.name, ids);
  }

  /**
   * Releases permits like {@link PermitExpirableSemaphore.release}, all of them or none.
   *
   * @param ids - the id of a permit, or several ids.
   * @returns `true`, or `false` if at least one of the permits is not taken. The call then released none of them.
   * @throws the errors of {@link PermitExpirableSemaphore.release}, except `UnknownPermitError`.
   * @redisson `RPermitExpirableSemaphore#tryRelease(String)`, `#tryRelease(List)`. Differs: all or none.
   */
  async tryRelease(ids: string | readonly string[]): Promise<boolean> {
    const checked = checkPermitIds(ids);
    this.checkOpen();
    return arePermitIds(checked) && this.#release(checked);
  }

  /**
   * Replaces the lease of a permit. The new lease counts from now and may end earlier than the old one.
   *
   * @param id - the id of the permit.
   * @param leaseTime - the new lease in milliseconds, at least 10. Absent or -1: the permit has no lease.
   * @returns `true` if the permit has the new lease, `false` if it is not taken or its lease has ended.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The permit has the old lease or
   *   the new one, and this call will not change it later.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an argument is invalid. No command was sent.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @redisson `RPermitExpirableSemaphore#updateLeaseTime(String, long, TimeUnit)`
   */
  async updateLeaseTime(id: string, leaseTime?: number): Promise<boolean> {
    const checked = checkPermitIds(id);
    const leaseMs = checkLeaseTime(leaseTime, 'for none');
    this.checkOpen();
    if (!arePermitIds(checked)) return false;
    const request = await this.protocol.updateLease(checked[0] as string, leaseMs).done;
    // An unanswered attempt may still run. It would overwrite the lease that the caller sets next.
    await request.doubt?.settled();
    if (request.error !== undefined) throw request.error;
    return request.reply === true;
  }

  /**
   * Reads from Redis how much of the lease of a permit is left.
   *
   * @param id - the id of the permit.
   * @returns milliseconds; -1 if the permit has no lease.
   * @throws {UnknownPermitError} `ERR_LOCK_UNKNOWN_PERMIT`: the permit is not taken, or its lease has ended.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `id` is not a string. No command was sent.
   * @throws the errors of {@link PermitExpirableSemaphore.availablePermits} as well.
   * @redisson `RPermitExpirableSemaphore#getLeaseTime(String)`
   */
  async getLeaseTime(id: string): Promise<number> {
    const checked = checkPermitIds(id);
    this.checkOpen();
    const left = arePermitIds(checked) ? await this.protocol.lease(checked[0] as string) : 'missing';
    if (left === 'missing') throw new UnknownPermitError(this.name, checked);
    return timeLeftNumber(left);
  }

  override async availablePermits(): Promise<number> {
    const { exists, free, taken } = await this.#count();
    const { declared } = this.protocol;
    return exists || declared === undefined ? free : declared - taken;
  }

  /**
   * Reads from Redis how many permits are taken.
   *
   * @throws the errors of {@link PermitExpirableSemaphore.availablePermits}.
   * @redisson `RPermitExpirableSemaphore#acquiredPermits()`
   */
  async acquiredPermits(): Promise<number> {
    return (await this.#count()).taken;
  }

  /**
   * Reads from Redis how many permits the semaphore has, free and taken.
   *
   * @returns the number; 0 if the semaphore does not exist.
   * @throws the errors of {@link PermitExpirableSemaphore.availablePermits}.
   * @redisson `RPermitExpirableSemaphore#getPermits()`
   */
  async getPermits(): Promise<number> {
    const { exists, free, taken } = await this.#count();
    return exists ? free + taken : (this.protocol.declared ?? 0);
  }

  override async trySetPermits(permits: number): Promise<boolean> {
    const count = checkPermits(permits, undefined);
    this.checkOpen();
    return this.change((lane) => this.protocol.trySetPermits(count, lane));
  }

  /**
   * Sets how many permits the semaphore has, free and taken. Taken permits stay taken. If more permits are taken than
   * the new number, the number of free permits becomes negative, and waiters wait until enough permits are released.
   * The call creates the semaphore if there is none.
   *
   * @param permits - number of permits, 0 or more.
   * @throws the errors of {@link PermitExpirableSemaphore.trySetPermits}.
   * @redisson `RPermitExpirableSemaphore#setPermits(int)`
   */
  async setPermits(permits: number): Promise<void> {
    const count = checkPermits(permits, undefined);
    this.checkOpen();
    await this.change((lane) => this.protocol.setPermits(count, lane));
  }

  #release(ids: readonly string[], deadline = Infinity): Promise<boolean> {
    const released = (): void => this.services.reports.permitsReleased(this.protocol, ids.length);
    return releasePermits(this.services, { ids, deadline, protocol: this.protocol, released });
  }

  async #acquireOrThrow(permits: number, leaseTime?: number, waitTime?: number, signal?: AbortSignal): Promise<Permit> {
    const wait = checkWaitTime(waitTime, Infinity);
    const permit = await this.#take(permits, leaseTime, wait, signal);
    if (permit === undefined) throw new LockTimeoutError(this.name, wait);
    return permit;
  }

  async #take(permits: number, leaseTime?: number, waitTime = 0, signal?: AbortSignal): Promise<Permit | undefined> {
    const count = checkPermits(permits, undefined);
    if (count > MAX_PERMITS) throw new InvalidArgumentError('permits', `at most ${MAX_PERMITS}`, count);
    const leaseMs = checkLeaseTime(leaseTime, 'for none');
    const waiting = waitLimitOf(this.services.clock, waitTime, signal);
    this.checkOpen();
    if (count === 0) return new Permit(this, this.services.clock, { ids: [], sentAt: 0 }, -Infinity);
    const granted = await this.wait<TakenPermits>(
      (resolve, fail) =>
        new ExpirablePermitWaiter(this.protocol, count, this.services, waiting, leaseMs, resolve, fail),
    );
    return granted && new Permit(this, this.services.clock, granted.value, leaseMs);
  }

  /** @internal */
  protected override readonly countsTaken = true;

  /** @internal */
  protected override async total(): Promise<number | undefined> {
    const { exists, free, taken } = await this.protocol.count();
    return exists ? free + taken : undefined;
  }

  async #count(): Promise<PermitCount> {
    this.checkOpen();
    return this.protocol.count();
  }
}

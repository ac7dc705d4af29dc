/* Longer than 300 lines because half of it is doc comments: it is the contract of these permits. */
import { NO_LEASE_MS } from '../waiting/shared-waiter.js';
import { waitLimitOf } from '../waiting/waiter.js';
import { LockTimeoutError, UnknownPermitError } from '../errors.js';
import type { PermitCount } from '../redis/scripts/permit-expirable-semaphore.js';
import {
  checkAnyPermits,
  checkBody,
  checkLeaseTime,
  checkOptions,
  checkPermits,
  checkWaitTime,
} from '../locks/arguments.js';
import { ExpirablePermitWaiter, type Taken } from './expirable-permit-waiter.js';
import { PermitExpirableProtocol } from './permit-expirable-protocol.js';
import { PermitSource, type SemaphoreOptions } from './permit-source.js';
import { releasePermits } from './permit-release.js';
import { canBeIds, checkIds, checkTaken } from './permit-ids.js';
import { Permit, runWithPermit } from './permit.js';
import type { ProtocolPort } from '../protocols/protocol-port.js';
import type { OwnerlessServices, PermitsOptions, WaitOptions } from './ownerless-object.js';

/** Options of `acquirePermit`, `tryAcquirePermit` and `withPermit`. */
export interface ExpirablePermitOptions extends PermitsOptions {
  /** ms until the permits come back by themselves. Absent or -1: they are taken until they are given back. */
  leaseTime?: number | undefined;
}

const OPTIONS = ['permits', 'waitTime', 'leaseTime', 'signal'] as const;

/**
 * A number of permits in Redis, each taken under an id and, if it is given one, for a lease only: Redisson's
 * `RPermitExpirableSemaphore`. Whoever knows the id may give a permit back, make its lease longer or shorter, or ask
 * what is left of it. What a process that dies has taken comes back with its lease. Nothing renews a permit.
 *
 * Leases are counted by the server's clock, where Redisson takes the client's. Waiters of one process are served in
 * order; between processes there is no order.
 */
export class PermitExpirableSemaphore extends PermitSource {
  readonly #protocol: PermitExpirableProtocol;

  /** @internal */
  constructor(services: OwnerlessServices, port: ProtocolPort, name: string, options?: SemaphoreOptions) {
    super(services, port, name, options);
    this.#protocol = new PermitExpirableProtocol(port, this.key, this.requests);
  }

  /**
   * Takes a permit, waiting without limit, or for `waitTime`, until there is one.
   *
   * @param leaseTime ms until it comes back by itself, at least 10. Absent or -1: it is taken until it is given back.
   * @returns its id.
   * @throws {LockTimeoutError} `ERR_LOCK_TIMEOUT`: none was free for all of `options.waitTime`.
   * @throws {LockAbortedError} `ERR_LOCK_ABORTED`: `signal` fired first. Nothing is taken.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: what an unanswered request may have taken is given
   *   back in the background.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: before any command.
   * @redisson `RPermitExpirableSemaphore#acquire(long, TimeUnit)`. Differs: milliseconds only.
   */
  async acquire(leaseTime?: number, options?: WaitOptions & { waitTime?: number | undefined }): Promise<string> {
    const [id] = await this.acquireMany(1, leaseTime, options);
    return id as string;
  }

  /**
   * Takes several permits together, all or none, as {@link acquire}.
   *
   * @param permits at most 10,000; 0 is granted without a command.
   * @returns their ids.
   * @redisson `RPermitExpirableSemaphore#acquire(int, long, TimeUnit)`. Differs: 0 permits do not wait.
   */
  async acquireMany(
    permits: number,
    leaseTime?: number,
    options?: WaitOptions & { waitTime?: number | undefined },
  ): Promise<string[]> {
    const { waitTime, signal } = checkOptions(options, ['waitTime', 'signal']);
    const permit = await this.#orTimeout(permits, leaseTime, waitTime, signal);
    return [...permit.ids];
  }

  /**
   * Takes a permit if one is free within `waitTime`.
   *
   * @param waitTime ms; absent, 0 or less: one try.
   * @returns its id, or `null` if none was free all the time.
   * @throws as {@link acquire}.
   * @redisson `RPermitExpirableSemaphore#tryAcquire(long, long, TimeUnit)`. Differs: milliseconds only.
   */
  async tryAcquire(waitTime?: number, leaseTime?: number, options?: WaitOptions): Promise<string | null> {
    const [id] = await this.tryAcquireMany(1, waitTime, leaseTime, options);
    return id ?? null;
  }

  /**
   * Takes several permits together, all or none, as {@link tryAcquire}.
   *
   * @returns their ids; none if there were not enough.
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
   * As {@link acquireMany}, for one permit unless `permits` says more; gives an object that gives them back, at the end
   * of the block with `await using`. Redisson has no such call.
   */
  async acquirePermit(options?: ExpirablePermitOptions): Promise<Permit> {
    const { permits, leaseTime, waitTime, signal } = checkOptions(options, OPTIONS);
    return this.#orTimeout(checkPermits(permits, 1, 1), leaseTime, waitTime, signal);
  }

  /** As {@link acquirePermit}, but one try without `waitTime`, and `null` if there were not enough. Not in Redisson. */
  async tryAcquirePermit(options?: ExpirablePermitOptions): Promise<Permit | null> {
    const { permits, leaseTime, waitTime, signal } = checkOptions(options, OPTIONS);
    return (await this.#take(checkPermits(permits, 1, 1), leaseTime, checkWaitTime(waitTime, 0), signal)) ?? null;
  }

  /**
   * Runs `fn` with a permit and gives it back afterwards. Waits like {@link acquirePermit}. An error of `fn` is rethrown
   * untouched; a release that fails goes to the event `releaseFailed`. Redisson has no such call.
   *
   * @throws {LockLostError} `ERR_LOCK_LOST`: `fn` is done, but the lease was over before; `result` is what it returned.
   */
  withPermit<T>(fn: (permit: Permit) => T | PromiseLike<T>): Promise<T>;
  withPermit<T>(options: ExpirablePermitOptions, fn: (permit: Permit) => T | PromiseLike<T>): Promise<T>;
  async withPermit<T>(
    first: ExpirablePermitOptions | ((permit: Permit) => T | PromiseLike<T>),
    second?: (permit: Permit) => T | PromiseLike<T>,
  ): Promise<T> {
    const { options, fn } = checkBody(first, second);
    const permit = await this.acquirePermit(options);
    return runWithPermit(permit, fn, (cause) =>
      this.services.events.emit('releaseFailed', { lockName: this.name, owner: permit.ids.join(), cause }),
    );
  }

  /**
   * Gives permits back, all of them or none, and wakes waiters.
   *
   * @throws {UnknownPermitError} `ERR_LOCK_UNKNOWN_PERMIT`: one of them is not taken, or its lease is over.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: they go on being given back in the background.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: the same, for an hour.
   * @redisson `RPermitExpirableSemaphore#release(String)`, `#release(List)`
   */
  async release(ids: string | readonly string[]): Promise<void> {
    const checked = checkIds(ids);
    this.checkOpen();
    if (!canBeIds(checked)) throw new UnknownPermitError(this.name, checked);
    await this.giveBack(checked, Infinity);
  }

  /** @internal Permits that are surely held until `deadline` (lease clock ms). */
  async giveBack(ids: readonly string[], deadline: number): Promise<void> {
    this.checkOpen();
    if (!(await releasePermits(this.services, this.#protocol, ids, deadline)))
      throw new UnknownPermitError(this.name, ids);
  }

  /**
   * As {@link release}, but tells whether they were given back.
   *
   * @redisson `RPermitExpirableSemaphore#tryRelease(String)`, `#tryRelease(List)`, which counts them.
   */
  async tryRelease(ids: string | readonly string[]): Promise<boolean> {
    const checked = checkIds(ids);
    this.checkOpen();
    return canBeIds(checked) && (await releasePermits(this.services, this.#protocol, checked));
  }

  /**
   * Gives a permit another lease, from now on: longer or shorter.
   *
   * @param leaseTime ms; absent or -1: none.
   * @returns `false` if it is not taken, or its lease is over.
   * @redisson `RPermitExpirableSemaphore#updateLeaseTime(String, long, TimeUnit)`
   */
  async updateLeaseTime(id: string, leaseTime?: number): Promise<boolean> {
    const checked = checkIds(id);
    const leaseMs = checkLeaseTime(leaseTime, 'for none');
    this.checkOpen();
    if (!canBeIds(checked)) return false;
    const request = await this.#protocol.updateLease(checked[0] as string, leaseMs).done;
    // A copy that is still on its way would set this lease over one that is given next.
    if (request.inDoubt) await request.whenQuiet();
    if (request.error !== undefined) throw request.error;
    return request.reply === true;
  }

  /**
   * ms until a permit comes back by itself; -1: it has no lease.
   *
   * @throws {UnknownPermitError} `ERR_LOCK_UNKNOWN_PERMIT`: it is not taken, or its lease is over.
   * @redisson `RPermitExpirableSemaphore#getLeaseTime(String)`
   */
  async getLeaseTime(id: string): Promise<number> {
    const checked = checkIds(id);
    this.checkOpen();
    const left = canBeIds(checked) ? await this.#protocol.lease(checked[0] as string) : -2;
    if (left === -2) throw new UnknownPermitError(this.name, checked);
    return left;
  }

  /**
   * Free permits; below 0 if `setPermits` took more away.
   *
   * @redisson `RPermitExpirableSemaphore#availablePermits()`
   */
  async availablePermits(): Promise<number> {
    return (await this.#count()).free;
  }

  /**
   * Permits that are taken.
   *
   * @redisson `RPermitExpirableSemaphore#acquiredPermits()`
   */
  async acquiredPermits(): Promise<number> {
    return (await this.#count()).taken;
  }

  /**
   * Permits in all, free and taken; 0 without a semaphore.
   *
   * @redisson `RPermitExpirableSemaphore#getPermits()`
   */
  async getPermits(): Promise<number> {
    const { exists, free, taken } = await this.#count();
    return exists ? free + taken : 0;
  }

  /**
   * Makes the semaphore with so many permits, unless there is one.
   *
   * @returns whether it was made.
   * @redisson `RPermitExpirableSemaphore#trySetPermits(int)`
   */
  async trySetPermits(permits: number): Promise<boolean> {
    const count = checkPermits(permits, undefined);
    this.checkOpen();
    return this.change((lane) => this.#protocol.trySetPermits(count, lane));
  }

  /**
   * Sets how many permits there are in all, also of a semaphore that is in use: what is taken stays taken, and nobody
   * gets in until enough has come back.
   *
   * @redisson `RPermitExpirableSemaphore#setPermits(int)`
   */
  async setPermits(permits: number): Promise<void> {
    const count = checkPermits(permits, undefined);
    this.checkOpen();
    if (this.declared !== undefined) await this.setUp(this.declared);
    await this.change((lane) => this.#protocol.setPermits(count, lane));
  }

  /**
   * Changes the number of permits by a difference, which may be negative, and wakes waiters.
   *
   * @redisson `RPermitExpirableSemaphore#addPermits(int)`. Differs: an expiry of the semaphore stays.
   */
  async addPermits(permits: number): Promise<void> {
    checkAnyPermits(permits);
    this.checkOpen();
    if (this.declared !== undefined) await this.setUp(this.declared);
    await this.change((lane) => this.#protocol.addPermits(permits, lane));
  }

  async #orTimeout(
    permits: number,
    leaseTime: number | undefined,
    waitTime: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Permit> {
    const wait = checkWaitTime(waitTime, Infinity);
    const permit = await this.#take(permits, leaseTime, wait, signal);
    if (permit === undefined) throw new LockTimeoutError(this.name, wait);
    return permit;
  }

  async #take(
    permits: number,
    leaseTime: number | undefined,
    waitTime: number,
    signal: AbortSignal | undefined,
  ): Promise<Permit | undefined> {
    const count = checkTaken(permits);
    const leaseMs = checkLeaseTime(leaseTime, 'for none') ?? NO_LEASE_MS;
    const waiting = waitLimitOf(this.services.clock, waitTime, signal);
    this.checkOpen();
    if (count === 0) return new Permit(this, this.services.clock, { ids: [], sentAt: 0 }, -Infinity);
    if (this.declared !== undefined) await this.setUp(this.declared);
    const granted = await this.wait<Taken>(
      this.#protocol.channel,
      (resolve, fail) =>
        new ExpirablePermitWaiter(this.#protocol, count, this.services, this.name, waiting, leaseMs, resolve, fail),
    );
    return granted && new Permit(this, this.services.clock, granted.value, leaseMs);
  }

  async #count(): Promise<PermitCount> {
    this.checkOpen();
    if (this.declared !== undefined) await this.setUp(this.declared);
    return this.#protocol.count();
  }
}

import { asyncDispose } from '../async-dispose.js';
import { grantDeadline } from '../holding/hold-record.js';
import type { LeaseClock } from '../clock.js';
import { LockLostError, UnknownPermitError } from '../errors.js';
import { checkLeaseTime } from '../locks/arguments.js';
import { NO_LEASE_MS } from '../waiting/shared-waiter.js';
import type { Taken } from './expirable-permit-waiter.js';

/** What a permit needs of the semaphore that it is of. */
export interface PermitKeeper {
  readonly name: string;
  giveBack(ids: readonly string[], deadline: number): Promise<void>;
  updateLeaseTime(id: string, leaseTime: number | undefined): Promise<boolean>;
}

/**
 * One or several permits that were taken together: what `acquirePermit()` gives and `withPermit()` passes on. Redisson has
 * no such object, but ids.
 */
export class Permit implements AsyncDisposable {
  readonly #keeper: PermitKeeper;
  readonly #clock: LeaseClock;
  #deadline: number;
  /** Updates that overlap: nobody knows which of them Redis came to last. */
  #updates: { open: number; earliest: number } | undefined;
  #released: Promise<void> | undefined;

  /** The ids under which Redis keeps the permits. */
  readonly ids: readonly string[];

  /** @internal */
  constructor(keeper: PermitKeeper, clock: LeaseClock, { ids, sentAt }: Taken, leaseMs: number) {
    this.ids = ids;
    this.#keeper = keeper;
    this.#clock = clock;
    this.#deadline = deadlineOf(sentAt, leaseMs);
  }

  /** The name that the semaphore was asked for by. */
  get semaphoreName(): string {
    return this.#keeper.name;
  }

  /** The id; of several, the first. */
  get id(): string {
    return this.ids[0] as string;
  }

  /**
   * Whole ms for which the permits are surely held, counted from now; 0 afterwards and once they are being given back,
   * Infinity without a lease. With one `AbortSignal.timeout(permit.validFor())` ends work in time.
   */
  validFor(): number {
    return this.#released === undefined ? Math.max(0, Math.floor(this.#deadline - this.#clock.now())) : 0;
  }

  /**
   * Gives each of the permits another lease, from now on: longer or shorter.
   *
   * @param leaseTime ms; absent or -1: none, so that they stay taken until they are given back.
   * @throws {UnknownPermitError} `ERR_LOCK_UNKNOWN_PERMIT`: one of them is not taken any more.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: unanswered; the lease is the old one or the new one.
   */
  async updateLeaseTime(leaseTime?: number): Promise<void> {
    const leaseMs = checkLeaseTime(leaseTime, 'for none') ?? Infinity;
    const deadline = deadlineOf(this.#clock.now(), leaseMs);
    // Until it is answered only what holds in either case is sure.
    this.#deadline = Math.min(this.#deadline, deadline);
    const updates = (this.#updates ??= { open: 0, earliest: Infinity });
    updates.open += 1;
    updates.earliest = Math.min(updates.earliest, deadline);
    try {
      const known = await Promise.all(this.ids.map((id) => this.#keeper.updateLeaseTime(id, leaseTime)));
      if (known.includes(false)) {
        this.#deadline = -Infinity;
        throw new UnknownPermitError(this.semaphoreName, this.ids);
      }
    } catch (error) {
      updates.earliest = Math.min(updates.earliest, this.#deadline);
      throw error;
    } finally {
      updates.open -= 1;
      if (updates.open === 0) {
        this.#updates = undefined;
        this.#deadline = updates.earliest;
      }
    }
  }

  /**
   * Gives the permits back. Every call returns the promise of the first one.
   *
   * @throws {UnknownPermitError} `ERR_LOCK_UNKNOWN_PERMIT`: the lease was over, and others may have had them since.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: they go on being given back in the background.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: the same, for an hour.
   */
  release(): Promise<void> {
    this.#released ??= this.#keeper.giveBack(this.ids, this.#deadline);
    return this.#released;
  }

  [asyncDispose](): Promise<void> {
    return this.release();
  }
}

const deadlineOf = (sentAt: number, leaseMs: number): number =>
  leaseMs === Infinity || leaseMs === NO_LEASE_MS ? Infinity : grantDeadline(sentAt, leaseMs);

/** Runs `fn` and releases the permit. An error of `fn` is rethrown untouched; `releaseFailed` gets that of a release. */
export async function runWithPermit<T>(
  permit: Permit,
  fn: (permit: Permit) => T | PromiseLike<T>,
  releaseFailed: (cause: unknown) => void,
): Promise<T> {
  let result: T;
  try {
    result = await fn(permit);
  } catch (error) {
    await permit.release().catch(releaseFailed);
    throw error;
  }
  try {
    await permit.release();
  } catch (cause) {
    if (cause instanceof UnknownPermitError) {
      throw new LockLostError(permit.semaphoreName, permit.ids.join(), 'gone', { cause, result });
    }
    releaseFailed(cause);
  }
  return result;
}

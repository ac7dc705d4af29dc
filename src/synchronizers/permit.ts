import { asyncDispose } from '../async-dispose.js';
import { grantDeadline } from '../holding/hold-record.js';
import type { LeaseClock } from '../clock.js';
import { UnknownPermitError } from '../errors.js';
import { checkLeaseTime } from '../locks/arguments.js';
import type { TakenPermits } from '../waiting/shared-waiter.js';

/** The calls of a permit to its semaphore. */
export interface PermitIssuer {
  readonly name: string;
  releaseHeld(ids: readonly string[], deadline: number): Promise<void>;
  updateLeaseTime(id: string, leaseTime: number | undefined): Promise<boolean>;
}

/**
 * One or several permits of a permit-expirable semaphore that were acquired together. `acquirePermit()` and
 * `tryAcquirePermit()` resolve with it, and `withPermit()` passes it to its body.
 */
export class Permit implements AsyncDisposable {
  readonly #issuer: PermitIssuer;
  readonly #clock: LeaseClock;
  /** Lease-clock time, in milliseconds, until which no other caller can have acquired the permits. */
  #deadline: number;
  /**
   * Pending lease updates. The client does not know in which order Redis runs them, so the earliest deadline counts.
   */
  #updates: { open: number; earliest: number } | undefined;
  #released: Promise<void> | undefined;

  /** The ids of the permits in Redis: 32 hex digits each. */
  readonly ids: readonly string[];

  /** @internal `sentAt`: lease-clock time, in milliseconds, before the client sent the request. */
  constructor(issuer: PermitIssuer, clock: LeaseClock, { ids, sentAt }: TakenPermits, leaseMs: number | undefined) {
    this.ids = ids;
    this.#issuer = issuer;
    this.#clock = clock;
    this.#deadline = deadlineOf(sentAt, leaseMs);
  }

  /** The name of the semaphore, without the key prefix. */
  get semaphoreName(): string {
    return this.#issuer.name;
  }

  /** The id of the permit. If the object has several permits, the id of the first one. */
  get id(): string {
    return this.ids[0] as string;
  }

  /**
   * Returns the time, in whole milliseconds, for which no other caller can acquire the permits, counted from now. 0
   * after that time or once `release()` was called; `Infinity` without a lease. If the permits have a lease,
   * `AbortSignal.timeout(permit.validFor())` ends work in time.
   */
  validFor(): number {
    return this.#released === undefined ? Math.max(0, Math.floor(this.#deadline - this.#clock.now())) : 0;
  }

  /**
   * Replaces the lease of each permit. The new lease counts from now and may end earlier than the old one.
   *
   * @param leaseTime - the new lease in milliseconds, at least 10. Absent or -1: the permits stay taken until their
   *   release.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `leaseTime` is invalid. No command was sent.
   * @throws {UnknownPermitError} `ERR_LOCK_UNKNOWN_PERMIT`: at least one of the permits is no longer taken.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. Each permit has the old lease or
   *   the new one.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @example
   * await permit.updateLeaseTime(60_000);
   */
  async updateLeaseTime(leaseTime?: number): Promise<void> {
    const leaseMs = checkLeaseTime(leaseTime, 'for none');
    const deadline = deadlineOf(this.#clock.now(), leaseMs);
    // Until Redis replies, the permits may have the old lease or the new one. Only the earlier deadline is certain.
    this.#deadline = Math.min(this.#deadline, deadline);
    const updates = (this.#updates ??= { open: 0, earliest: Infinity });
    updates.open += 1;
    updates.earliest = Math.min(updates.earliest, deadline);
    try {
      const known = await Promise.all(this.ids.map((id) => this.#issuer.updateLeaseTime(id, leaseTime)));
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
   * Releases the permits. Every call returns the promise of the first call.
   *
   * @throws {UnknownPermitError} `ERR_LOCK_UNKNOWN_PERMIT`: the lease had ended, or other code had released a permit.
   *   Another caller may have acquired it since then.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The client repeats the release
   *   in the background until it succeeds.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command. The client repeats the release in the
   *   background, for at most an hour.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call. The permits
   *   stay taken until the end of their lease, if they have one.
   */
  release(): Promise<void> {
    this.#released ??= this.#issuer.releaseHeld(this.ids, this.#deadline);
    return this.#released;
  }

  /** Releases the permits at the end of an `await using` block. */
  [asyncDispose](): Promise<void> {
    return this.release();
  }
}

const deadlineOf = (sentAt: number, leaseMs: number | undefined): number =>
  leaseMs === undefined ? Infinity : grantDeadline(sentAt, leaseMs);

import { asyncDispose } from '../async-dispose.js';
import { runInside } from '../ownership/flow.js';
import { showAs } from '../summary.js';

/** One hold of a lock. `acquire()` and `tryAcquire()` resolve with it, and `withLock()` passes it to its body. */
export abstract class Hold implements AsyncDisposable {
  /** The name of the lock, without the key prefix. A hold of several locks has their names, separated by commas. */
  abstract get lockName(): string;

  /**
   * The owner id in Redis: `<client id>:<number>`. Nested holds share it. A hold of locks of several clients has one
   * owner id per client, separated by commas.
   */
  abstract get owner(): string;

  /**
   * A signal that aborts when the hold is lost (`reason` is the `LockLostError`) or the client is closed (`reason` is
   * the `ClientClosedError`). It aborts before another owner can acquire the lock, as far as this client can know. The
   * getter checks the clock first, so it notices an ended lease even after a blocked event loop.
   */
  abstract get signal(): AbortSignal;

  /**
   * The time, in whole milliseconds, for which Redis has confirmed the hold, counted from now. 0 if the hold has ended
   * or is unconfirmed. `AbortSignal.timeout(hold.validFor())` ends work in time even if every later renewal fails.
   */
  abstract validFor(): number;

  /**
   * Extends the lease of this hold to at least `leaseTime` milliseconds from now. The call never shortens a lease.
   *
   * @param leaseTime - milliseconds, at least 10.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `leaseTime` is invalid. No command was sent.
   * @throws {LockLostError} `ERR_LOCK_LOST`: the hold was lost.
   * @throws {NotOwnerError} `ERR_LOCK_NOT_OWNER`: the hold was released before.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The lease is unchanged or
   *   longer.
   * @example
   * await hold.extend(60_000);
   */
  abstract extend(leaseTime: number): Promise<void>;

  /**
   * Releases the hold. Every call returns the promise of the first call.
   *
   * @throws {LockLostError} `ERR_LOCK_LOST`: the hold was lost before.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The release continues in the
   *   background, and the lock is free at the latest when its lease ends.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command. The release continues in the background.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before the release.
   */
  abstract release(): Promise<void>;

  /**
   * Runs `fn` inside this hold: a call of `fn` on the lock re-enters. Use it where `acquire()` was awaited elsewhere.
   *
   * @returns the value of `fn`.
   */
  run<T>(fn: () => T): T {
    return runInside(this, fn);
  }

  /** Releases the hold at the end of an `await using` block. */
  [asyncDispose](): Promise<void> {
    return this.release();
  }

  /** @internal Whether its flow is still inside. A flow stays inside a lost hold until the release. */
  abstract get open(): boolean;

  /** @internal The release by `unlock()`. An `unlock()` after a failed one waits for the release in the background. */
  abstract giveBack(): Promise<void>;
}

showAs(Hold, ({ lockName, owner }) => ({ lockName, owner }));

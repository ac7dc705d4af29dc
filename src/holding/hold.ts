import { asyncDispose } from '../async-dispose.js';
import { runInside } from '../ownership/flow.js';
import { showAs } from '../summary.js';

/** One hold of a lock: what `acquire()` and `tryAcquire()` give, and what `withLock()` passes to its body. */
export abstract class Hold implements AsyncDisposable {
  /** The name that the lock was asked for by; of several locks their names, with commas between. */
  abstract get lockName(): string;

  /**
   * `<client id>:<number>`, the field in Redis. All holds nested in one another share it. Of locks at several clients
   * one for each, with commas between.
   */
  abstract get owner(): string;

  /**
   * Aborts once when the hold is lost (its `reason` is the `LockLostError`) or the client is closed
   * (`ClientClosedError`), no later than the moment from which somebody else may be inside. Reading it looks at the
   * clock first.
   */
  abstract get signal(): AbortSignal;

  /**
   * Whole ms for which the lock is surely held, counted from now; 0 if it is not, or if nobody can say.
   * `AbortSignal.timeout(hold.validFor())` ends work in time, whatever becomes of renewals.
   */
  abstract validFor(): number;

  /**
   * Makes the lease of this hold last at least `leaseTime` ms from now. Never shortens it.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: before any command.
   * @throws {LockLostError} `ERR_LOCK_LOST`: the lock was lost.
   * @throws {NotOwnerError} `ERR_LOCK_NOT_OWNER`: the hold was given back.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: unanswered; the lease is what it was, or longer.
   */
  abstract extend(leaseTime: number): Promise<void>;

  /**
   * Gives the hold back. Every call returns the promise of the first one.
   *
   * @throws {LockLostError} `ERR_LOCK_LOST`: it was lost before.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: unanswered; it goes on being given back in the
   *   background, and ends with its lease at the latest.
   */
  abstract release(): Promise<void>;

  /** Runs `fn` inside this hold: its calls on the lock re-enter. */
  run<T>(fn: () => T): T {
    return runInside(this, fn);
  }

  [asyncDispose](): Promise<void> {
    return this.release();
  }

  /** @internal A flow stays inside until the hold is given back, also when it has been lost. */
  abstract get open(): boolean;

  /** @internal What an `unlock()` does with it: one that follows a failed one waits for what goes on in the background. */
  abstract giveBack(): Promise<void>;
}

showAs(Hold, ({ lockName, owner }) => ({ lockName, owner }));

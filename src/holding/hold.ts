import { asyncDispose } from '../async-dispose.js';
import type { HoldTrace, TracedGrant } from '../diagnostics/traces.js';
import { boundRejection } from '../ownership/bound-promise.js';
import { runBody } from '../ownership/flow.js';
import { ClientClosedError, InvalidArgumentError, LockLostError } from '../errors.js';
import { refuseUnknown } from '../options.js';
import { showAs } from '../summary.js';

/** The options of a release. */
export interface ReleaseOptions {
  /**
   * Time, in milliseconds, for which the lock stays held after the call: an integer of at least 0. The renewal stops, and
   * the client frees the lock after that time. If this process has exited by then, the lease in Redis ends one second
   * later.
   *
   * @defaultValue 0: the lock is free at once
   */
  after?: number | undefined;
}

/** One hold of a lock. `acquire()` and `tryAcquire()` resolve with it, and `withLock()` passes it to its body. */
export abstract class Hold implements AsyncDisposable {
  #trace: HoldTrace | undefined;
  /** Reports a failed release. Present if the release of this hold is to continue in the background. */
  #releaseFailed: ((cause: unknown) => void) | undefined;
  #leaving: Promise<void> | undefined;

  /** The name of the lock, without the key prefix. A hold of several locks has their names, separated by commas. */
  abstract get lockName(): string;

  /**
   * The owner id in Redis: `<client id>:<number>`. Nested holds share it. A hold of locks of several clients has one
   * owner id per client, separated by commas.
   */
  abstract get owner(): string;

  /**
   * A signal that aborts when the hold is lost (`reason` is the `LockLostError`) or the client is closed (`reason` is
   * the `ClientClosedError`). It aborts before another owner can acquire the lock, except after an event that
   * this client cannot see, such as a failover or a forced unlock by another client. The getter checks the clock first, so it notices an ended lease even after a blocked event loop.
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
   * With `after`, the caller is outside of the hold at once, but the lock stays held for that time: other calls find it
   * busy, and `client.holds()` no longer lists it. The promise resolves when Redis has the new lease. If Redis answers
   * late, the hold may end up to `commandTimeout` later. A `close()` of the client does not shorten the time. Use it
   * for a job that several machines start at the same time by clocks that differ.
   *
   * If the hold was acquired with `release: 'background'`, the promise resolves when the release has been written to the
   * socket, and a release that fails later causes the event `releaseFailed`. While the connection is down, or an
   * earlier request of the hold is pending, the promise resolves when the release has settled.
   *
   * @param options - see {@link ReleaseOptions}.
   * @throws {LockLostError} `ERR_LOCK_LOST`: the hold was lost before.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The release continues in the
   *   background, and the lock is free at the latest when its lease ends.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command. The release continues in the background.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before the release.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid. The hold is unchanged.
   * @example
   * await hold.release({ after: 30_000 }); // no other machine runs the job within the next 30 s
   */
  release(options?: ReleaseOptions): Promise<void> {
    try {
      const after = checkAfter(options);
      if (this.#releaseFailed !== undefined && after === 0) return (this.#leaving ??= this.#leave(this.#releaseFailed));
      return this.#free(after);
    } catch (error) {
      return boundRejection(error);
    }
  }

  #free(after: number): Promise<void> {
    const released = this.free(after);
    return this.#trace === undefined ? released : this.#trace.releasing(released);
  }

  #leave(releaseFailed: (cause: unknown) => void): Promise<void> {
    const released = this.#free(0);
    const leaves = this.leave(released);
    let hasLeft = leaves === true;
    const settled = released.catch((cause: unknown) => {
      // A caller that still waits gets a loss. `close()` ends a hold as a loss does.
      if (!hasLeft && (cause instanceof LockLostError || cause instanceof ClientClosedError)) throw cause;
      releaseFailed(cause);
    });
    if (typeof leaves === 'boolean') return leaves ? Promise.resolve() : settled;
    return Promise.race([settled, leaves.then((left) => ((hasLeft = left) ? undefined : settled))]);
  }

  /**
   * Runs `fn` inside this hold: a call of `fn` on the lock re-enters. Use it where `acquire()` was awaited elsewhere.
   *
   * @returns the value of `fn`. For a query of a query builder, which begins when its `then` is called, a promise: the query
   *   begins inside the hold.
   */
  run<T>(fn: () => T): T {
    return runBody(this, fn);
  }

  /** Releases the hold at the end of an `await using` block. */
  [asyncDispose](): Promise<void> {
    return this.release();
  }

  /** @internal Whether its flow is still inside. A flow stays inside a lost hold until the release. */
  abstract get open(): boolean;

  /** @internal Releases the hold, `after` milliseconds from now. Every call returns the promise of the first call. */
  protected abstract free(after: number): Promise<void>;

  /**
   * @internal The caller does not wait for `released`, the outcome of the release, but until its request has left this
   * process. Returns or resolves with `false` if the request does not leave: the caller then has to wait for the outcome.
   */
  protected abstract leave(released: Promise<void>): boolean | Promise<boolean>;

  /** @internal The release continues in the background from the moment at which it was written. */
  leavesInBackground(releaseFailed: (cause: unknown) => void): void {
    this.#releaseFailed = releaseFailed;
  }

  /** @internal What the diagnostics channels say of the grant. */
  abstract get grant(): Required<TracedGrant>;

  /** @internal Ends the trace when the hold ends. */
  tracedBy(trace: HoldTrace): void {
    this.#trace = trace;
    // The listener must not refer to the hold: a dropped hold could then never be collected, and no warning would follow.
    const { signal } = this;
    if (signal.aborted) trace.failed(signal.reason);
    else signal.addEventListener('abort', () => trace.failed(signal.reason), { once: true });
  }

  /** @internal The release by `unlock()`. An `unlock()` after a failed one waits for the release in the background. */
  abstract releaseByUnlock(): Promise<void>;
}

/** Checks the options of a release. @returns `after`, in ms. */
function checkAfter(options: ReleaseOptions | undefined): number {
  if (options === undefined) return 0;
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw new InvalidArgumentError('options', 'an object, as { after: 5000 }', options);
  }
  refuseUnknown('options', options, ['after']);
  const { after = 0 } = options;
  if (!Number.isSafeInteger(after) || after < 0)
    throw new InvalidArgumentError('after', 'an integer of at least 0 (ms)', after);
  return after;
}

showAs(Hold, ({ lockName, owner }) => ({ lockName, owner }));

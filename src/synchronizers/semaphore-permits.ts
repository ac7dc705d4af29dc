import { asyncDispose } from '../async-dispose.js';

/** Permits of a semaphore that were acquired together. `acquirePermits()` and `tryAcquirePermits()` resolve with it. */
export class SemaphorePermits implements AsyncDisposable {
  readonly #release: () => Promise<void>;
  #released: Promise<void> | undefined;

  /** @internal */
  constructor(
    /** The name of the semaphore, without the key prefix. */
    readonly semaphoreName: string,
    /** Number of permits. */
    readonly permits: number,
    release: () => Promise<void>,
  ) {
    this.#release = release;
  }

  /**
   * Releases the permits. Every call returns the promise of the first call.
   *
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. The client repeats the release
   *   in the background, for at most an hour.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command. The client repeats the release in the
   *   background, for at most an hour.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call. The permits
   *   stay taken.
   */
  release(): Promise<void> {
    this.#released ??= this.#release();
    return this.#released;
  }

  /** Releases the permits at the end of an `await using` block. */
  [asyncDispose](): Promise<void> {
    return this.release();
  }
}

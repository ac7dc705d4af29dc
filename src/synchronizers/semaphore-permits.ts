import { asyncDispose } from '../async-dispose.js';

/** Permits of a semaphore that were taken together: what `acquirePermits()` gives. Redisson has no such object. */
export class SemaphorePermits implements AsyncDisposable {
  readonly #giveBack: () => Promise<void>;
  #released: Promise<void> | undefined;

  /** @internal */
  constructor(
    /** The name that the semaphore was asked for by. */
    readonly semaphoreName: string,
    readonly permits: number,
    giveBack: () => Promise<void>,
  ) {
    this.#giveBack = giveBack;
  }

  /**
   * Gives the permits back. Every call returns the promise of the first one.
   *
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: they go on being given back in the background.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: the same, for an hour.
   */
  release(): Promise<void> {
    this.#released ??= this.#giveBack();
    return this.#released;
  }

  [asyncDispose](): Promise<void> {
    return this.release();
  }
}

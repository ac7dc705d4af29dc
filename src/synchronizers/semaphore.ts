import type { SentRequest } from '../holding/compensations.js';
import type { Lane } from './lanes.js';
import { PermitWaiter, type PermitPort } from './permit-waiter.js';
import { waitLimitOf, type WaitLimit } from '../waiting/waiter.js';
import { InvalidArgumentError, LockTimeoutError } from '../errors.js';
import { semaphoreChannel } from '../redis/keys.js';
import * as scripts from '../redis/scripts/semaphore.js';
import { checkAnyPermits, checkBody, checkOptions, checkPermits, checkWaitTime } from '../locks/arguments.js';
import { SemaphorePermits } from './semaphore-permits.js';
import { PermitSource, type SemaphoreOptions } from './permit-source.js';
import type { ProtocolPort } from '../protocols/protocol-port.js';
import type { OwnerlessServices, PermitsOptions, WaitOptions } from './ownerless-object.js';

const WITH_OPTIONS = ['permits', 'waitTime', 'signal'] as const;

/**
 * A number of permits in Redis: Redisson's `RSemaphore`. Nobody owns them: whoever dies with permits never gives them
 * back (use the permit-expirable semaphore where that can happen), and any process may give back what another took.
 * Waiters of one process are served in order, a waiter for many before those behind it; between processes there is no
 * order, but permits that go from call to call inside a process go back to Redis as often as `handOff` says. A request of unknown outcome takes effect at most once.
 */
export class Semaphore extends PermitSource {
  readonly #channel: string;

  /** @internal */
  constructor(services: OwnerlessServices, port: ProtocolPort, name: string, options?: SemaphoreOptions) {
    super(services, port, name, options);
    this.#channel = semaphoreChannel(this.key);
  }

  /**
   * Takes permits, waiting without limit, or for `waitTime`, until there are enough.
   *
   * @throws {LockTimeoutError} `ERR_LOCK_TIMEOUT`: there were not enough for all of `options.waitTime`.
   * @throws {LockAbortedError} `ERR_LOCK_ABORTED`: `signal` fired first. Nothing is taken.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: what an unanswered request may have taken is given
   *   back in the background.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: before any command.
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
   * Takes permits if there are enough within `waitTime`.
   *
   * @param permits default 1; 0 is granted without a command.
   * @param waitTime ms; absent, 0 or less: one try.
   * @returns `false` if there were not enough all the time. Nothing is taken then.
   * @throws as {@link acquire}.
   * @redisson `RSemaphore#tryAcquire(int, long, TimeUnit)`. Differs: milliseconds only.
   */
  async tryAcquire(permits?: number, waitTime?: number, options?: WaitOptions): Promise<boolean> {
    const { signal } = checkOptions(options, ['signal']);
    return this.#take(checkPermits(permits, 1), waitLimitOf(this.services.clock, checkWaitTime(waitTime, 0), signal));
  }

  /**
   * As {@link acquire}; gives an object that gives them back, at the end of the block with `await using`. Redisson has no
   * such call.
   */
  async acquirePermits(options?: PermitsOptions): Promise<SemaphorePermits> {
    const { permits = 1, waitTime, signal } = checkOptions(options, WITH_OPTIONS);
    await this.acquire(permits, { waitTime, signal });
    return new SemaphorePermits(this.name, permits, () => this.release(permits));
  }

  /** As {@link acquirePermits}, but one try without `waitTime`, and `null` if there were not enough. Not in Redisson. */
  async tryAcquirePermits(options?: PermitsOptions): Promise<SemaphorePermits | null> {
    const { permits = 1, waitTime, signal } = checkOptions(options, WITH_OPTIONS);
    if (!(await this.tryAcquire(permits, waitTime, { signal }))) return null;
    return new SemaphorePermits(this.name, permits, () => this.release(permits));
  }

  /**
   * Gives permits back, or adds some, and wakes waiters. Permits that this client has taken go straight to whoever is
   * first in line here, without a request, within the limits of `handOff`.
   *
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: what nobody here got goes on being given back in the
   *   background, so do not repeat it.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: the same, for an hour.
   * @redisson `RSemaphore#release(int)`
   */
  async release(permits?: number): Promise<void> {
    const count = checkPermits(permits, 1);
    this.checkOpen();
    if (this.declared !== undefined) await this.setUp(this.declared);
    const line = this.services.lines.line(this.key, this.#channel);
    const left = line.passOn(count);
    if (left > 0 && (await this.#release(left, 1)) === 'unheard') line.noOtherSubscriber();
  }

  /**
   * As {@link release}, unless there is no such semaphore.
   *
   * @returns whether there was one; always `false` for 0 permits.
   * @redisson `RSemaphore#releaseIfExists(int)`
   */
  async releaseIfExists(permits?: number): Promise<boolean> {
    const count = checkPermits(permits, 1);
    this.checkOpen();
    if (this.declared !== undefined) await this.setUp(this.declared);
    return count > 0 && (await this.#release(count, 0)) !== 'none';
  }

  /** Another name of {@link releaseIfExists}, which Redisson has not. */
  tryRelease(permits?: number): Promise<boolean> {
    return this.releaseIfExists(permits);
  }

  /**
   * Permits that are free; 0 without a semaphore.
   *
   * @redisson `RSemaphore#availablePermits()`
   */
  async availablePermits(): Promise<number> {
    this.checkOpen();
    if (this.declared !== undefined) await this.setUp(this.declared);
    return this.readCount();
  }

  /**
   * Takes all permits that are free.
   *
   * @returns how many.
   * @redisson `RSemaphore#drainPermits()`. Differs: an expiry of the semaphore stays.
   */
  async drainPermits(): Promise<number> {
    this.checkOpen();
    if (this.declared !== undefined) await this.setUp(this.declared);
    return this.services.lanes.once(
      this.requests,
      ({ number, sequence }) => this.port.executor.run(scripts.drain, [this.key, this.requests], [number, sequence]),
      (lane) => this.#cancel(-1, lane),
    );
  }

  /**
   * Makes the semaphore with so many permits, unless there is one.
   *
   * @param timeToLive ms that it lasts; absent: for ever.
   * @returns whether it was made.
   * @redisson `RSemaphore#trySetPermits(int, Duration)`
   */
  async trySetPermits(permits: number, timeToLive?: number): Promise<boolean> {
    checkAnyPermits(permits);
    if (timeToLive !== undefined && (!Number.isSafeInteger(timeToLive) || timeToLive < 1)) {
      throw new InvalidArgumentError('timeToLive', 'an integer of at least 1 (ms)', timeToLive);
    }
    this.checkOpen();
    return this.change(({ number, sequence }) =>
      this.port.executor.run(
        scripts.trySet,
        [this.key, this.requests],
        [permits, timeToLive ?? -1, this.port.publish, this.#channel, number, sequence],
      ),
    );
  }

  /**
   * Changes the number of free permits, which may become negative, and wakes waiters.
   *
   * @param permits to add; negative: to take away without waiting.
   * @redisson `RSemaphore#addPermits(int)`. Differs: an expiry of the semaphore stays.
   */
  async addPermits(permits: number): Promise<void> {
    checkAnyPermits(permits);
    this.checkOpen();
    if (this.declared !== undefined) await this.setUp(this.declared);
    await this.change(({ number, sequence }) =>
      this.port.executor.run(
        scripts.add,
        [this.key, this.requests],
        [permits, this.port.publish, this.#channel, number, sequence],
      ),
    );
  }

  /**
   * Runs `fn` with permits and gives them back afterwards. Waits like {@link acquire}. An error of `fn` is rethrown
   * untouched; a release that fails goes to the event `releaseFailed`. Redisson has no such call.
   */
  withPermits<T>(fn: () => T | PromiseLike<T>): Promise<T>;
  withPermits<T>(options: PermitsOptions, fn: () => T | PromiseLike<T>): Promise<T>;
  async withPermits<T>(
    first: PermitsOptions | (() => T | PromiseLike<T>),
    second?: () => T | PromiseLike<T>,
  ): Promise<T> {
    const { options, fn } = checkBody(first, second);
    const { permits, waitTime, signal } = checkOptions(options, WITH_OPTIONS);
    await this.acquire(permits, { waitTime, signal });
    try {
      return await fn();
    } finally {
      await this.release(permits).catch((cause: unknown) => {
        this.services.events.emit('releaseFailed', { lockName: this.name, owner: '', cause });
      });
    }
  }

  async #take(permits: number, waiting: WaitLimit): Promise<boolean> {
    this.checkOpen();
    if (permits === 0) return true;
    if (this.declared !== undefined) await this.setUp(this.declared);
    const granted = await this.wait<undefined>(
      this.#channel,
      (resolve, fail) => new PermitWaiter(this.#port(permits), this.services, this.name, waiting, resolve, fail),
    );
    return granted !== undefined;
  }

  #port(permits: number): PermitPort {
    const { executor } = this.port;
    return {
      requests: this.requests,
      permits,
      send: ({ number, sequence }) =>
        executor.run(scripts.acquire, [this.key, this.requests], [permits, number, sequence]),
      cancel: (lane) => this.#cancel(permits, lane),
    };
  }

  #cancel(permits: number, { number, sequence }: Lane): SentRequest {
    return this.port.executor.run(
      scripts.cancel,
      [this.key, this.requests],
      [permits, this.port.publish, this.#channel, number, sequence],
    );
  }

  #release(permits: number, create: number): Promise<'none' | 'released' | 'unheard'> {
    return this.services.lanes.once(
      this.requests,
      ({ number, sequence }) =>
        this.port.executor.run(
          scripts.release,
          [this.key, this.requests],
          [permits, create, this.port.publish, this.#channel, number, sequence],
        ),
      'repeat',
    );
  }
}

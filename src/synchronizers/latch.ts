import { NO_LEASE_MS, SharedWaiter } from '../waiting/shared-waiter.js';
import { waitLimitOf, type WaitLimit } from '../waiting/waiter.js';
import { InvalidArgumentError } from '../errors.js';
import { latchChannel, latchOpenedKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as scripts from '../redis/scripts/latch.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import { checkOptions, checkWaitTime } from '../locks/arguments.js';
import type { LeaseClock } from '../clock.js';
import { SharedObject, type OwnerlessServices, type WaitOptions } from './ownerless-object.js';
import type { ProtocolPort } from '../protocols/protocol-port.js';

/**
 * A gate that opens for all when it has been counted down: Redisson's `RCountDownLatch`. It can be closed again with a
 * new count. A call that waited for the old count gets through even if the new one is set before it can look, unless a
 * JVM opened the latch: then it waits for the new count, as a JVM does.
 */
export class CountDownLatch extends SharedObject {
  readonly #channel: string;
  readonly #opened: string;

  /** @internal */
  constructor(services: OwnerlessServices, port: ProtocolPort, name: string) {
    super(services, port, name);
    this.#channel = latchChannel(this.key);
    this.#opened = latchOpenedKey(this.key);
  }

  /**
   * Waits until the count is zero; an open latch lets through at once.
   *
   * @param waitTime ms; absent: without limit. 0 or less: one look.
   * @returns `false` if the time ran out.
   * @throws {LockAbortedError} `ERR_LOCK_ABORTED`: `signal` fired first.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: without `waitTime`, Redis was away for one command
   *   deadline.
   * @redisson `RCountDownLatch#await(long, TimeUnit)`. Differs: milliseconds only.
   */
  async await(waitTime?: number, options?: WaitOptions): Promise<boolean> {
    const { signal } = checkOptions(options, ['signal']);
    const waiting = waitLimitOf(this.services.clock, checkWaitTime(waitTime, Infinity), signal);
    this.checkOpen();
    const look = (): ScriptRequest<AcquireReply> => this.port.executor.run(scripts.look, [this.key, this.#opened], []);
    const opened = await this.wait<undefined>(
      this.#channel,
      (resolve, fail) => new LatchWaiter(look, this.services.clock, this.name, waiting, resolve, fail),
    );
    return opened !== undefined;
  }

  /**
   * Lowers the count by one; at zero all who wait get through. An open latch stays open.
   *
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: with `outcome: 'unknown'` it was counted once or not
   *   at all, and will not be counted later.
   * @redisson `RCountDownLatch#countDown()`
   */
  async countDown(): Promise<void> {
    this.checkOpen();
    await this.change(({ number, sequence }) =>
      this.port.executor.run(scripts.countDown, this.#openedKeys, [this.port.publish, this.#channel, number, sequence]),
    );
  }

  /**
   * The count; 0: open.
   *
   * @redisson `RCountDownLatch#getCount()`
   */
  async getCount(): Promise<number> {
    this.checkOpen();
    return Math.max(0, await this.readCount());
  }

  /**
   * Closes the latch with a count, unless it is closed.
   *
   * @param count at least 1.
   * @returns whether it was open.
   * @redisson `RCountDownLatch#trySetCount(long)`. Differs: a count below 1 is refused.
   */
  async trySetCount(count: number): Promise<boolean> {
    if (!Number.isSafeInteger(count) || count < 1) {
      throw new InvalidArgumentError('count', 'an integer of at least 1', count);
    }
    this.checkOpen();
    return this.change(({ number, sequence }) =>
      this.port.executor.run(scripts.trySet, this.#keys, [count, this.port.publish, this.#channel, number, sequence]),
    );
  }

  /**
   * Opens the latch whatever its count is; all who wait get through.
   *
   * @returns whether it was closed.
   * @redisson `RCountDownLatch#delete()`. Differs: it wakes those who wait, a JVM's too.
   */
  async delete(): Promise<boolean> {
    this.checkOpen();
    return this.change(({ number, sequence }) =>
      this.port.executor.run(scripts.remove, this.#openedKeys, [this.port.publish, this.#channel, number, sequence]),
    );
  }

  get #keys(): [string, string] {
    return [this.key, this.requests];
  }

  get #openedKeys(): [string, string, string] {
    return [this.key, this.requests, this.#opened];
  }
}

/** A try looks at the count. One answer counts for every call that came before the try was sent. */
class LatchWaiter extends SharedWaiter {
  override readonly forAll = true;
  /** The newest opening that an answer to a look has told of, in µs of the server's clock. */
  #openedAt: number | undefined;

  constructor(
    private readonly look: () => ScriptRequest<AcquireReply>,
    clock: LeaseClock,
    name: string,
    waiting: WaitLimit,
    private readonly resolve: (value: undefined) => void,
    fail: (error: unknown) => void,
  ) {
    super(clock, name, waiting, NO_LEASE_MS, undefined, fail);
  }

  protected send(): ScriptRequest<AcquireReply> {
    return this.look();
  }

  granted(): void {
    this.unwatch();
    this.resolve(undefined);
  }

  takeBack(): undefined {
    // Looking takes nothing.
  }

  override letInBy(reply: AcquireReply): boolean {
    if (typeof reply !== 'number') return true;
    const openedAt = -reply;
    const before = this.#openedAt ?? openedAt;
    this.#openedAt = Math.max(before, openedAt);
    // Both looks were sent after the call came, so the latch was open while it waited.
    return openedAt > before;
  }
}

import { SharedWaiter } from '../waiting/shared-waiter.js';
import { waitLimitOf, type WaitLimit } from '../waiting/limits/wait-limit.js';
import { InvalidArgumentError } from '../errors.js';
import type { LatchProtocol } from '../protocols/latch-protocol.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import { checkOptions, checkWaitTime } from '../locks/arguments.js';
import type { LeaseClock } from '../clock.js';
import { OwnerlessObject, type WaitOptions } from './ownerless-object.js';

/**
 * A count-down latch: a gate that opens for all waiters when its count reaches 0. The object is only a handle for a
 * name. All times are milliseconds.
 *
 * `trySetCount` closes an open latch again. A call that waited before the latch opened resolves even if the latch is
 * closed again before the client can read the count. It waits for the new count only if Redisson opened the
 * latch, as waiters of Redisson do.
 *
 * @redisson `RCountDownLatch`
 */
export class CountDownLatch extends OwnerlessObject {
  /** @internal */
  declare protected readonly protocol: LatchProtocol;

  /**
   * Waits until the latch is open. If it is open, the call resolves at once.
   *
   * @param waitTime - time to wait in milliseconds. Absent or `Infinity`: the call waits without limit. 0 or less: the
   *   call reads the count once.
   * @param options - `signal` aborts the wait.
   * @returns `true` if the latch opened, `false` if it stayed closed for all of `waitTime`.
   * @throws {LockAbortedError} `ERR_LOCK_ABORTED`: the signal was aborted first.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply within one command deadline. With
   *   a `waitTime`, the client tries again until that time ends.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an argument is invalid. No command was sent.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @example
   * if (!(await latch.await(30_000))) throw new Error('the workers did not start within 30 s');
   * @redisson `RCountDownLatch#await(long, TimeUnit)`. Differs: times are milliseconds.
   */
  async await(waitTime?: number, options?: WaitOptions): Promise<boolean> {
    const { signal } = checkOptions(options, ['signal']);
    const waiting = waitLimitOf(this.services.clock, checkWaitTime(waitTime, Infinity), signal);
    this.checkOpen();
    const opened = await this.wait<undefined>(
      (resolve, fail) => new LatchWaiter(this.protocol, this.services.clock, waiting, resolve, fail),
    );
    return opened !== undefined;
  }

  /**
   * Decreases the count by 1. At 0 the latch opens and every waiter resolves. An open latch stays open.
   *
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. With `outcome: 'unknown'` the
   *   request may have run once, and it will not run later.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @example
   * await latch.countDown();
   * @redisson `RCountDownLatch#countDown()`
   */
  async countDown(): Promise<void> {
    this.checkOpen();
    await this.change((lane) => this.protocol.countDown(lane));
    this.services.reports.report('latchCountedDown', this.protocol, {});
  }

  /**
   * Reads the count from Redis.
   *
   * @returns the count; 0 if the latch is open.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply within one command deadline.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @redisson `RCountDownLatch#getCount()`
   */
  async getCount(): Promise<number> {
    this.checkOpen();
    return Math.max(0, (await this.protocol.readCount()) ?? 0);
  }

  /**
   * Closes the latch with a count, unless it is closed.
   *
   * @param count - number of `countDown()` calls that open the latch, at least 1.
   * @returns `true` if this call closed the latch, `false` if the latch was closed before.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `count` is invalid. No command was sent.
   * @throws the errors of {@link CountDownLatch.countDown} as well.
   * @redisson `RCountDownLatch#trySetCount(long)`. Differs: a count below 1 is refused.
   */
  async trySetCount(count: number): Promise<boolean> {
    if (!Number.isSafeInteger(count) || count < 1) {
      throw new InvalidArgumentError('count', 'an integer of at least 1', count);
    }
    this.checkOpen();
    return this.change((lane) => this.protocol.trySetCount(count, lane));
  }

  /**
   * Opens the latch regardless of its count. Every waiter resolves.
   *
   * @returns `true` if this call opened the latch, `false` if the latch was open before.
   * @throws the errors of {@link CountDownLatch.countDown}.
   * @redisson `RCountDownLatch#delete()`. Differs: the call wakes the waiters, those of a JVM as well.
   */
  async delete(): Promise<boolean> {
    this.checkOpen();
    return this.change((lane) => this.protocol.delete(lane));
  }

  /** @internal */
  protected override tellGranted(_permits: number, _handedOff: boolean, askedAt: number): void {
    this.services.reports.latchPassed(this.protocol, askedAt);
  }
}

/** A call that waits for the latch. A try reads the count. One reply settles every call that began before the try. */
class LatchWaiter extends SharedWaiter {
  override readonly sharesReplies = true;
  /** The latest opening that a reply has reported, in microseconds of the clock of the server. */
  #openedAtUs: number | undefined;

  constructor(
    private readonly protocol: LatchProtocol,
    clock: LeaseClock,
    waiting: WaitLimit,
    private readonly resolve: (value: undefined) => void,
    fail: (error: unknown) => void,
  ) {
    super(clock, protocol, waiting, undefined, undefined, fail);
  }

  protected send(): ScriptRequest<AcquireReply> {
    return this.protocol.look();
  }

  protected onGranted(): void {
    this.resolve(undefined);
  }

  releaseInBackground(): undefined {
    // A read acquires nothing.
  }

  override isGrantedBy(reply: AcquireReply): boolean {
    if (reply.kind !== 'busy') return true;
    const { openedAtUs = 0 } = reply;
    const before = this.#openedAtUs ?? openedAtUs;
    this.#openedAtUs = Math.max(before, openedAtUs);
    // The client sent both reads after the call began. If the later read reports a later opening, the latch was open
    // during the call.
    return openedAtUs > before;
  }
}

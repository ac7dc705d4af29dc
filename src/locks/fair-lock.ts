import type { WaitQueue } from '../protocols/lock-protocol.js';
import type { ResolvedOptions } from '../options.js';
import { fairAliveKey, fairChannel, fairQueueKey, fairTimeoutsKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as scripts from '../redis/scripts/fair-lock.js';
import type { AcquireReply, ReleaseReply } from '../redis/scripts/replies.js';
import { PlainLockProtocol } from '../protocols/plain-lock-protocol.js';
import type { ProtocolPort } from '../protocols/protocol-port.js';
import { SingleLock } from './single-lock.js';

/**
 * The plain lock's hash with Redisson's queue of waiters. A JVM removes a dead waiter by Redisson's timeouts. A sorted set
 * of Holdfast's own records which waiters of Holdfast clients are alive.
 */
export class FairLockProtocol extends PlainLockProtocol implements WaitQueue {
  // The next owner is the head of the queue, which may wait in another process.
  override readonly handsOff = false;
  readonly #keys: readonly [lock: string, queue: string, timeouts: string, alive: string];

  constructor(
    port: ProtocolPort,
    name: string,
    private readonly options: Pick<ResolvedOptions, 'fairLockWaitTimeout' | 'fairWaiterTimeout'>,
    override readonly reentrant = true,
  ) {
    super(port, name);
    this.#keys = [this.key, fairQueueKey(this.key), fairTimeoutsKey(this.key), fairAliveKey(this.key)];
  }

  get queue(): WaitQueue {
    return this;
  }

  channelOf(owner: string): string {
    return fairChannel(this.key, owner);
  }

  override acquire(owner: string, leaseMs: number, waits: boolean): ScriptRequest<AcquireReply> {
    const { fairLockWaitTimeout, fairWaiterTimeout } = this.options;
    const { executor, publish } = this.port;
    const waiterTimeoutMs = waits ? fairWaiterTimeout : 0;
    const terms = [leaseMs, fairLockWaitTimeout, waiterTimeoutMs] as const;
    return executor.run(scripts.acquire, this.#keys, [owner, ...terms, publish, this.channel]);
  }

  override release(owners: readonly string[]): ScriptRequest<ReleaseReply> {
    const { executor, publish } = this.port;
    return executor.run(scripts.release, this.#keys, [
      publish,
      this.channel,
      this.options.fairLockWaitTimeout,
      ...owners,
    ]);
  }

  refresh(owners: readonly string[]): ScriptRequest<scripts.RefreshReply> {
    const { fairLockWaitTimeout, fairWaiterTimeout } = this.options;
    const { executor, publish } = this.port;
    const terms = [fairLockWaitTimeout, fairWaiterTimeout] as const;
    return executor.run(scripts.refresh, this.#keys, [...terms, publish, this.channel, ...owners]);
  }
}

/**
 * A lock that serves its waiters in the order of their requests, across all processes. Everything else is as in
 * {@link Lock}.
 *
 * - A call that has to wait gets a place at the end of a queue in Redis, and no later call passes it. A call that does
 *   not wait gets a free lock only if the queue is empty.
 * - A waiter loses its place when its call fails, times out or is aborted, and when its client sends no refresh for
 *   `fairWaiterTimeout` (5 s). The client sends one refresh per second for all of its waiters of the lock.
 * - A live waiter that lost its place, because the queue was deleted or a failover dropped it, queues again at the end.
 * - Nested calls are served in this process and have no place in the queue.
 *
 * Three things differ from Redisson. The unlock of a lost fair lock rejects. A failed or aborted call leaves no place in
 * the queue. A dead Holdfast waiter delays the waiters behind it by 5 s once, regardless of `fairLockWaitTimeout`.
 *
 * @redisson `RedissonClient#getFairLock`
 */
export class FairLock extends SingleLock {}

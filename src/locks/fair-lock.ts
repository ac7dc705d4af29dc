import type { WaitQueue } from '../protocols/lock-protocol.js';
import type { ResolvedOptions } from '../options.js';
import { fairAliveKey, fairChannel, fairQueueKey, fairTimeoutsKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as scripts from '../redis/scripts/fair-lock.js';
import type { AcquireReply, ReleaseReply } from '../redis/scripts/lock.js';
import { PlainLockProtocol, type ProtocolPort } from '../protocols/plain-lock-protocol.js';
import { SingleLock } from './single-lock.js';

/**
 * The plain lock's hash, and Redisson's queue in front of it. Beside Redisson's timeouts, by which a JVM goes, a set of
 * our own says which of our waiters are alive.
 */
export class FairLockProtocol extends PlainLockProtocol implements WaitQueue {
  // The next owner is the head of the queue, in whatever process it waits.
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
 * A lock that is given in the order in which it was asked for, over all processes: what Redisson's
 * `getFairLock` gives. Everything else is as in {@link Lock}.
 *
 * - A call that has to wait gets a place at the end of a queue in Redis, and nobody passes it: a call that does not
 *   wait is refused while anybody is in the queue, also when the lock is free.
 * - It loses its place when it fails, when its time is up and when it is aborted; and when its client gives no sign of
 *   life for `fairWaiterTimeout` (5 s). The client gives one every second, with one command for all its waiters.
 * - A waiter that lost its place although it lives (the queue was deleted, a failover forgot it) queues again, at the
 *   end.
 * - Nested calls take turns in the process and stand in no queue.
 *
 * Differs from Redisson: unlocking a fair lock that was lost rejects; an interrupted or failed call leaves no place
 * behind; a dead waiter of ours costs those behind it 5 s once, whatever `fairLockWaitTimeout` says.
 */
export class FairLock extends SingleLock {}

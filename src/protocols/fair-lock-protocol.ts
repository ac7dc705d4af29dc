import type { LockKind } from '../events.js';
import type { Named } from '../lock-name.js';
import type { ResolvedOptions } from '../options.js';
import { fairAliveKey, fairChannel, fairQueueKey, fairTimeoutsKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as scripts from '../redis/scripts/fair-lock.js';
import type { AcquireReply, HandOffReply, ReleaseReply } from '../redis/scripts/replies.js';
import type { WaitQueue } from './lock-protocol.js';
import { PlainLockProtocol } from './plain-lock-protocol.js';
import type { ProtocolPort } from './protocol-port.js';

/**
 * The plain lock's hash with Redisson's queue of waiters. Redisson removes a dead waiter by its timeouts. An additional
 * sorted set records which waiters of Holdfast are alive.
 */
export class FairLockProtocol extends PlainLockProtocol implements WaitQueue {
  readonly #keys: readonly [lock: string, queue: string, timeouts: string, alive: string];

  constructor(
    port: ProtocolPort,
    named: Named,
    private readonly options: Pick<ResolvedOptions, 'fairLockWaitTimeout' | 'fairWaiterTimeout'>,
    private readonly reenters = true,
  ) {
    super(port, named);
    this.#keys = [this.key, fairQueueKey(this.key), fairTimeoutsKey(this.key), fairAliveKey(this.key)];
  }

  override get kind(): LockKind {
    return 'fair';
  }

  override get reentrant(): boolean {
    return this.reenters;
  }

  override get followsLocally(): boolean {
    return false;
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

  /** The queue decides who is next, so subscribers of other clients do not count. */
  override handOff(from: string, to: string, leaseMs: number): ScriptRequest<HandOffReply> {
    const { executor, publish } = this.port;
    const { fairLockWaitTimeout } = this.options;
    return executor.run(scripts.handOff, this.#keys, [from, to, leaseMs, fairLockWaitTimeout, publish, this.channel]);
  }

  refresh(owners: readonly string[]): ScriptRequest<scripts.RefreshReply> {
    const { fairLockWaitTimeout, fairWaiterTimeout } = this.options;
    const { executor, publish } = this.port;
    const terms = [fairLockWaitTimeout, fairWaiterTimeout] as const;
    return executor.run(scripts.refresh, this.#keys, [...terms, publish, this.channel, ...owners]);
  }
}

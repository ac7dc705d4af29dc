import type { Lane } from './lanes.js';
import { NO_LEASE_MS } from '../waiting/shared-waiter.js';
import { semaphoreChannel, takenPermitsKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import * as scripts from '../redis/scripts/permit-expirable-semaphore.js';
import * as semaphoreScripts from '../redis/scripts/semaphore.js';
import type { ProtocolPort } from '../protocols/protocol-port.js';

/** What a semaphore with leases says to Redis about one name. */
export class PermitExpirableProtocol {
  readonly channel: string;
  readonly #keys: [semaphore: string, taken: string];

  constructor(
    private readonly port: ProtocolPort,
    private readonly key: string,
    /** Where the number of permits is changed, it is changed once. */
    private readonly requests: string,
  ) {
    this.channel = semaphoreChannel(key);
    this.#keys = [key, takenPermitsKey(key)];
  }

  acquire(ids: readonly string[], leaseMs: number): ScriptRequest<AcquireReply> {
    const { executor, publish } = this.port;
    const lease = leaseMs === NO_LEASE_MS ? -1 : leaseMs;
    return executor.run(scripts.acquire, this.#keys, [lease, publish, this.channel, ...ids]);
  }

  /** All of the ids or none; `any`: those that are taken. Running it twice releases once, so it needs no lane. */
  release(ids: readonly string[], which: 'all' | 'any'): ScriptRequest<scripts.ReleaseReply> {
    const { executor, publish } = this.port;
    return executor.run(scripts.release, this.#keys, [publish, this.channel, which === 'any' ? 1 : 0, ...ids]);
  }

  updateLease(id: string, leaseMs: number | undefined): ScriptRequest<boolean> {
    const { executor, publish } = this.port;
    return executor.run(scripts.updateLease, this.#keys, [id, leaseMs ?? -1, publish, this.channel]);
  }

  /** ms that are left; -1: it has no lease, -2: it is not taken. */
  lease(id: string): Promise<number> {
    return this.port.executor.ask(scripts.lease, this.#keys, [id, this.port.publish, this.channel]);
  }

  count(): Promise<scripts.PermitCount> {
    return this.port.executor.ask(scripts.count, this.#keys, [this.port.publish, this.channel]);
  }

  trySetPermits(permits: number, { number, sequence }: Lane): ScriptRequest<boolean> {
    const { executor, publish } = this.port;
    const keys: [string, string] = [this.key, this.requests];
    return executor.run(semaphoreScripts.trySet, keys, [permits, -1, publish, this.channel, number, sequence]);
  }

  setPermits(permits: number, { number, sequence }: Lane): ScriptRequest<boolean> {
    const { executor, publish } = this.port;
    const keys: [string, string, string] = [...this.#keys, this.requests];
    return executor.run(scripts.set, keys, [permits, publish, this.channel, number, sequence]);
  }

  addPermits(permits: number, { number, sequence }: Lane): ScriptRequest<boolean> {
    const { executor, publish } = this.port;
    const keys: [string, string] = [this.key, this.requests];
    return executor.run(semaphoreScripts.add, keys, [permits, publish, this.channel, number, sequence]);
  }
}

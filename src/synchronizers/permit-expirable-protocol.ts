import type { Lane } from './lanes.js';
import { NO_LEASE_MS } from '../waiting/shared-waiter.js';
import { semaphoreChannel, takenPermitsKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import * as scripts from '../redis/scripts/permit-expirable-semaphore.js';
import * as semaphoreScripts from '../redis/scripts/semaphore.js';
import type { ProtocolPort } from '../protocols/protocol-port.js';

/** The requests of a permit-expirable semaphore to Redis. */
export class PermitExpirableProtocol {
  readonly channel: string;
  readonly #keys: [semaphore: string, taken: string];

  constructor(
    private readonly port: ProtocolPort,
    private readonly key: string,
    /** Key of the lanes. A change of the number of permits needs a lane to take effect at most once. */
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

  /**
   * Releases all of the permits or none; with `any`, those that are still taken. The request needs no lane: a repeat
   * finds that the ids are no longer taken.
   */
  release(ids: readonly string[], which: 'all' | 'any'): ScriptRequest<scripts.ReleaseReply> {
    const { executor, publish } = this.port;
    return executor.run(scripts.release, this.#keys, [publish, this.channel, which === 'any' ? 1 : 0, ...ids]);
  }

  updateLease(id: string, leaseMs: number | undefined): ScriptRequest<boolean> {
    const { executor, publish } = this.port;
    return executor.run(scripts.updateLease, this.#keys, [id, leaseMs ?? -1, publish, this.channel]);
  }

  /** Milliseconds until the lease ends; -1 if the permit has no lease, -2 if it is not taken. */
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

/** Redis stores an id as 16 bytes. A string that is not 32 hex digits cannot be an id, so it needs no request. */
export const arePermitIds = (ids: readonly string[]): boolean => ids.every((id) => /^[0-9a-f]{32}$/.test(id));

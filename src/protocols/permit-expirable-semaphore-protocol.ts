import type { Named } from '../lock-name.js';
import { takenPermitsKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as scripts from '../redis/scripts/permit-expirable-semaphore.js';
import type { TimeLeft } from '../lease-time.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import { declaredArg, leaseArg, subscribersArg, type OwnSubscribers } from '../redis/scripts/script.js';
import type { Lane } from './ownerless-protocol.js';
import type { ProtocolPort } from './protocol-port.js';
import { PermitsProtocol } from './semaphore-protocol.js';

/** Permits that are released, and the new ones that a waiter gets for them. */
export interface Exchange {
  readonly ids: readonly string[];
  readonly next: readonly string[];
}

/** The requests of Redisson's RPermitExpirableSemaphore: a number of free permits, and a set of the taken ones. */
export class PermitExpirableSemaphoreProtocol extends PermitsProtocol {
  readonly kind = 'permit-expirable-semaphore';
  readonly #keys: [semaphore: string, taken: string];
  readonly #allKeys: [semaphore: string, taken: string, requests: string];

  constructor(port: ProtocolPort, named: Named, declared: number | undefined) {
    super(port, named, declared);
    this.#keys = [this.key, takenPermitsKey(this.key)];
    this.#allKeys = [...this.#keys, this.requests];
  }

  acquire(ids: readonly string[], leaseMs: number | undefined): ScriptRequest<AcquireReply> {
    const { executor, publish } = this.port;
    const terms = [leaseArg(leaseMs), publish, this.channel, declaredArg(this.declared)];
    return executor.run(scripts.acquire, this.#keys, [...terms, ...ids]);
  }

  /**
   * Releases all of the permits or none; with `any`, those that are still taken. The request needs no lane: a repeat
   * finds that the ids are no longer taken.
   */
  release(ids: readonly string[], which: 'all' | 'any'): ScriptRequest<scripts.ReleaseReply> {
    const { executor, publish } = this.port;
    const terms = [declaredArg(this.declared), which === 'any' ? 1 : 0];
    return executor.run(scripts.release, this.#keys, [publish, this.channel, ...terms, ...ids]);
  }

  /**
   * Runs exchanges of released permits for new ones of waiters of this client, each of them as a whole or not at all.
   * All exchanges release the same number of permits, and take the same number with the same lease. `ours`: number of
   * subscribers of the channel that belong to this client. If the channel has more subscribers, the script only releases
   * the permits. The request needs no lane: a repeat finds the new ids.
   */
  handOff(
    exchanges: readonly Exchange[],
    leaseMs: number | undefined,
    ours: OwnSubscribers,
  ): ScriptRequest<readonly scripts.HandOffReply[]> {
    const { executor, publish } = this.port;
    const [{ next, ids }] = exchanges as [Exchange];
    const terms = [subscribersArg(ours), declaredArg(this.declared), leaseArg(leaseMs), next.length, ids.length];
    const args = [publish, this.channel, ...terms, ...exchanges.flatMap((each) => [...each.next, ...each.ids])];
    return executor.run(scripts.handOff, this.#keys, args);
  }

  updateLease(id: string, leaseMs: number | undefined): ScriptRequest<boolean> {
    const { executor, publish } = this.port;
    const args = [id, leaseArg(leaseMs), publish, this.channel, declaredArg(this.declared)] as const;
    return executor.run(scripts.updateLease, this.#keys, args);
  }

  /** Until the lease ends; `missing`: the permit is not taken. */
  lease(id: string): Promise<TimeLeft> {
    const { executor, publish } = this.port;
    return executor.ask(scripts.lease, this.#keys, [id, publish, this.channel, declaredArg(this.declared)]);
  }

  count(): Promise<scripts.PermitCount> {
    const { executor, publish } = this.port;
    return executor.ask(scripts.count, this.#keys, [publish, this.channel, declaredArg(this.declared)]);
  }

  delete(lane: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(scripts.remove, this.#allKeys, this.lastArgs(lane));
  }

  expire(timeToLive: number, { number, sequence }: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(scripts.expire, this.#allKeys, [timeToLive, number, sequence]);
  }

  setPermits(permits: number, lane: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(scripts.set, this.#allKeys, [permits, ...this.lastArgs(lane)]);
  }

  trySetPermits(permits: number, lane: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(scripts.trySet, this.#allKeys, [permits, ...this.lastArgs(lane)]);
  }

  addPermits(permits: number, lane: Lane): ScriptRequest<boolean> {
    const args = [permits, declaredArg(this.declared), ...this.lastArgs(lane)] as const;
    return this.port.executor.run(scripts.add, this.#allKeys, args);
  }
}

/** Redis stores an id as 16 bytes. A string that is not 32 hex digits cannot be an id, so it needs no request. */
export const arePermitIds = (ids: readonly string[]): boolean => ids.every((id) => /^[0-9a-f]{32}$/.test(id));

/**
 * Whether an earlier attempt of a request released its permits: the last attempt found none of them taken, the earlier
 * one is unanswered, and the lease of the permits has not ended by `now`.
 */
export const wasReleased = (reply: string | undefined, isDoubtful: boolean, leaseEnd: number, now: number): boolean =>
  reply === 'unknown' && isDoubtful && now < leaseEnd;

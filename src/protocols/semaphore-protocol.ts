import type { Named } from '../lock-name.js';
import type { TimeLeft } from '../lease-time.js';
import { semaphoreChannel } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as reads from '../redis/scripts/reads.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import { cancelledArg, declaredArg, leaseArg } from '../redis/scripts/script.js';
import * as scripts from '../redis/scripts/semaphore.js';
import { OwnerlessProtocol, type Lane } from './ownerless-protocol.js';
import type { ProtocolPort } from './protocol-port.js';

/** The requests that change the number of permits of a semaphore of either kind. */
export abstract class PermitsProtocol extends OwnerlessProtocol {
  constructor(
    port: ProtocolPort,
    named: Named,
    /** Number of permits with which a call creates a missing semaphore. `undefined`: calls do not create it. */
    readonly declared: number | undefined,
  ) {
    super(port, named, semaphoreChannel);
  }

  /** Until Redis deletes the semaphore. */
  timeLeft(): Promise<TimeLeft> {
    return this.port.executor.ask(reads.pttl, [this.key], []);
  }

  abstract delete(lane: Lane): ScriptRequest<boolean>;
  abstract expire(timeToLive: number, lane: Lane): ScriptRequest<boolean>;
  abstract addPermits(permits: number, lane: Lane): ScriptRequest<boolean>;
}

/** The requests of Redisson's RSemaphore: a number of free permits, and a channel. */
export class SemaphoreProtocol extends PermitsProtocol {
  readonly kind = 'semaphore';
  private readonly countKeys: [semaphore: string, requests: string] = [this.key, this.requests];

  /** `timeToLive`: milliseconds after which Redis deletes the semaphore; absent if it does not expire. */
  trySetPermits(permits: number, lane: Lane, timeToLive?: number): ScriptRequest<boolean> {
    const args = [permits, leaseArg(timeToLive), ...this.lastArgs(lane)] as const;
    return this.port.executor.run(scripts.trySet, this.countKeys, args);
  }

  addPermits(permits: number, lane: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(scripts.add, this.countKeys, [permits, this.declared ?? 0, ...this.lastArgs(lane)]);
  }

  acquire(permits: number, lane: Lane): ScriptRequest<AcquireReply> {
    const args = [permits, declaredArg(this.declared), ...this.lastArgs(lane)] as const;
    return this.port.executor.run(scripts.acquire, this.countKeys, args);
  }

  delete(lane: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(scripts.remove, this.countKeys, this.lastArgs(lane));
  }

  expire(timeToLive: number, { number, sequence }: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(scripts.expire, this.countKeys, [timeToLive, number, sequence]);
  }

  drain({ number, sequence }: Lane): ScriptRequest<number> {
    return this.port.executor.run(scripts.drain, this.countKeys, [declaredArg(this.declared), number, sequence]);
  }

  /** Releases the permits that an acquire, or a drain, took or will take. */
  cancelAcquire(permits: number | 'drained', lane: Lane): ScriptRequest<boolean> {
    const args = [cancelledArg(permits), ...this.lastArgs(lane)] as const;
    return this.port.executor.run(scripts.cancel, this.countKeys, args);
  }

  /**
   * If the semaphore is missing, the permits are from before its loss. So the declared number is free then, and not only
   * these permits. `create`: without a declared number, the permits create a missing semaphore.
   */
  release(permits: number, create: boolean, lane: Lane): ScriptRequest<scripts.ReleaseReply> {
    const isCreated = create || this.declared !== undefined;
    const missing = isCreated ? Math.max(permits, this.declared ?? 0) : undefined;
    const args = [permits, declaredArg(missing), ...this.lastArgs(lane)] as const;
    return this.port.executor.run(scripts.release, this.countKeys, args);
  }
}

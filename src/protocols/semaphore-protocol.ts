import type { Named } from '../lock-name.js';
import { semaphoreChannel } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import { cancelledArg, leaseArg } from '../redis/scripts/script.js';
import * as scripts from '../redis/scripts/semaphore.js';
import { OwnerlessProtocol, type Lane } from './ownerless-protocol.js';
import type { ProtocolPort } from './protocol-port.js';

/** The requests that change the number of permits of a semaphore of either kind. */
export abstract class PermitsProtocol extends OwnerlessProtocol {
  protected readonly countKeys: [semaphore: string, requests: string];

  constructor(port: ProtocolPort, named: Named) {
    super(port, named, semaphoreChannel);
    this.countKeys = [this.key, this.requests];
  }

  /** `timeToLive`: milliseconds after which Redis deletes the semaphore; absent if it does not expire. */
  trySetPermits(permits: number, lane: Lane, timeToLive?: number): ScriptRequest<boolean> {
    const args = [permits, leaseArg(timeToLive), ...this.lastArgs(lane)] as const;
    return this.port.executor.run(scripts.trySet, this.countKeys, args);
  }

  addPermits(permits: number, lane: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(scripts.add, this.countKeys, [permits, ...this.lastArgs(lane)]);
  }
}

/** The requests of Redisson's RSemaphore: a number of free permits, and a channel. */
export class SemaphoreProtocol extends PermitsProtocol {
  readonly kind = 'semaphore';

  acquire(permits: number, { number, sequence }: Lane): ScriptRequest<AcquireReply> {
    return this.port.executor.run(scripts.acquire, this.countKeys, [permits, number, sequence]);
  }

  drain({ number, sequence }: Lane): ScriptRequest<number> {
    return this.port.executor.run(scripts.drain, this.countKeys, [number, sequence]);
  }

  /** Releases the permits that an acquire, or a drain, took or will take. */
  cancelAcquire(permits: number | 'drained', lane: Lane): ScriptRequest<boolean> {
    const args = [cancelledArg(permits), ...this.lastArgs(lane)] as const;
    return this.port.executor.run(scripts.cancel, this.countKeys, args);
  }

  release(permits: number, create: boolean, lane: Lane): ScriptRequest<scripts.ReleaseReply> {
    return this.port.executor.run(scripts.release, this.countKeys, [permits, Number(create), ...this.lastArgs(lane)]);
  }
}

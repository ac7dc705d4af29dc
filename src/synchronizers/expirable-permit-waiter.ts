import { randomBytes } from 'node:crypto';
import { latestEnd } from '../holding/compensations.js';
import { SharedWaiter } from '../waiting/shared-waiter.js';
import type { WaitLimit } from '../waiting/waiter.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import { nextFreeIn, type AcquireReply } from '../redis/scripts/replies.js';
import type { OwnerlessServices } from './ownerless-object.js';
import type { PermitExpirableProtocol } from './permit-expirable-protocol.js';

/** Permits that were granted together. */
export interface Taken {
  readonly ids: readonly string[];
  /** Lease clock ms, before the request that took them. */
  readonly sentAt: number;
}

/** The ids are drawn before the request that names them: a repeat is known by them, and so is what is to be undone. */
export class ExpirablePermitWaiter extends SharedWaiter {
  #ids: readonly string[] | undefined;
  #jumped = 0;

  constructor(
    private readonly protocol: PermitExpirableProtocol,
    override readonly wants: number,
    private readonly services: Pick<OwnerlessServices, 'clock' | 'options' | 'compensations'>,
    name: string,
    waiting: WaitLimit,
    leaseMs: number,
    private readonly resolve: (value: Taken) => void,
    fail: (error: unknown) => void,
  ) {
    super(services.clock, name, waiting, leaseMs, undefined, fail);
  }

  protected send(): ScriptRequest<AcquireReply> {
    this.#ids ??= Array.from({ length: this.wants }, () => randomBytes(16).toString('hex'));
    this.#jumped = this.clock.jumped;
    return this.protocol.acquire(this.#ids, this.leaseMs);
  }

  /**
   * An attempt that is still on its way would take the permits once more if it came after they were given back, which
   * anybody may do: a grant counts when that can be no more.
   */
  override whenTried(request: ScriptRequest<AcquireReply>, fn: () => void): void {
    request.onDone(() => {
      if (request.error === undefined && typeof request.reply === 'object' && request.inDoubt) {
        void request.whenQuiet().then(fn);
      } else {
        fn();
      }
    });
  }

  override nextFreeIn(reply: AcquireReply): number | undefined {
    return nextFreeIn(reply);
  }

  granted(request: ScriptRequest<AcquireReply>): void {
    this.unwatch();
    this.resolve({ ids: this.#ids as readonly string[], sentAt: request.sentAt + this.#jumped });
  }

  takeBack(request: ScriptRequest<AcquireReply>): Promise<void> {
    const ids = this.#ids as readonly string[];
    this.#ids = undefined;
    return this.services.compensations.add({
      send: () => this.protocol.release(ids, 'any'),
      notBefore: request.openUntil,
      until: latestEnd(this.services, this.leaseMs),
    });
  }
}

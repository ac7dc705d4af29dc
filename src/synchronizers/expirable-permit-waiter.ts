import { randomBytes } from 'node:crypto';
import { latestEnd } from '../holding/compensations.js';
import type { LockRuntime } from '../waiting/lock-runtime.js';
import { SharedWaiter } from '../waiting/shared-waiter.js';
import type { Patience } from '../waiting/waiter.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/lock.js';
import type { PermitExpirableProtocol } from './permit-expirable-protocol.js';

/** Permits that were granted together. */
export interface Taken {
  readonly ids: readonly string[];
  /** Lease clock ms. */
  readonly sentAt: number;
}

/** The ids are drawn before the request that names them: a repeat is known by them, and so is what is to be undone. */
export class ExpirablePermitWaiter extends SharedWaiter {
  #ids: readonly string[] | undefined;
  #jumped = 0;

  constructor(
    private readonly protocol: PermitExpirableProtocol,
    override readonly wants: number,
    runtime: LockRuntime,
    name: string,
    waiting: Patience,
    leaseMs: number,
    private readonly resolve: (value: Taken) => void,
    fail: (error: unknown) => void,
  ) {
    super(runtime, name, waiting, leaseMs, undefined, fail);
  }

  protected send(): ScriptRequest<AcquireReply> {
    this.#ids ??= Array.from({ length: this.wants }, () => randomBytes(16).toString('hex'));
    this.#jumped = this.runtime.clock.jumped;
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

  granted(request: ScriptRequest<AcquireReply>): void {
    this.unwatch();
    this.resolve({ ids: this.#ids as readonly string[], sentAt: request.sentAt + this.#jumped });
  }

  takeBack(request: ScriptRequest<AcquireReply>): Promise<void> {
    const ids = this.#ids as readonly string[];
    this.#ids = undefined;
    return this.runtime.compensations.add({
      send: () => this.protocol.release(ids, 'any'),
      notBefore: request.openUntil,
      until: latestEnd(this.runtime, this.leaseMs),
    });
  }
}

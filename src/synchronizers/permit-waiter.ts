import type { SentRequest } from '../holding/compensations.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import { nextFreeIn, type AcquireReply } from '../redis/scripts/replies.js';
import { NO_LEASE_MS, SharedWaiter } from '../waiting/shared-waiter.js';
import type { WaitLimit } from '../waiting/waiter.js';
import type { Lane } from './lanes.js';
import type { OwnerlessServices } from './ownerless-object.js';

/** How one call asks for its permits. */
export interface PermitPort {
  readonly requests: string;
  readonly permits: number;
  send(lane: Lane): ScriptRequest<AcquireReply>;
  cancel(lane: Lane): SentRequest;
}

/** Each try has a lane to itself, for as long as it may be repeated or has to be taken back. */
export class PermitWaiter extends SharedWaiter {
  override readonly wants: number;
  #lane: Lane | undefined;

  constructor(
    private readonly permit: PermitPort,
    private readonly services: Pick<OwnerlessServices, 'clock' | 'lanes'>,
    name: string,
    waiting: WaitLimit,
    private readonly resolve: (value: undefined) => void,
    fail: (error: unknown) => void,
  ) {
    super(services.clock, name, waiting, NO_LEASE_MS, undefined, fail);
    this.wants = permit.permits;
  }

  override get takes(): number {
    return this.wants;
  }

  override nextFreeIn(reply: AcquireReply): number | undefined {
    return nextFreeIn(reply);
  }

  protected send(): ScriptRequest<AcquireReply> {
    this.#lane = this.services.lanes.take(this.permit.requests);
    return this.permit.send(this.#lane);
  }

  granted(): void {
    this.unwatch();
    this.resolve(undefined);
  }

  takeBack(): Promise<void> | undefined {
    const lane = this.#lane;
    if (lane === undefined) return undefined;
    this.#lane = undefined;
    return this.services.lanes.settle(lane, () => this.permit.cancel(lane));
  }

  override over(): void {
    if (this.#lane !== undefined) this.services.lanes.free(this.#lane);
    this.#lane = undefined;
  }
}

import type { SentRequest } from '../holding/compensations.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import { NO_LEASE_MS, SharedWaiter } from '../waiting/shared-waiter.js';
import type { WaitLimit } from '../waiting/waiter.js';
import type { Lane } from './lanes.js';
import type { OwnerlessServices } from './ownerless-object.js';

/** The requests of a waiter for a number of permits. */
export interface PermitPort {
  readonly requests: string;
  readonly permits: number;
  send(lane: Lane): ScriptRequest<AcquireReply>;
  cancel(lane: Lane): SentRequest;
}

/**
 * A call that waits for permits. Each try has its own lane. The lane stays in use while the try can be repeated, or
 * while its cancellation is unanswered: another request in the lane would hide whether the try has run.
 */
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

import type { Lane } from '../protocols/ownerless-protocol.js';
import type { SemaphoreProtocol } from '../protocols/semaphore-protocol.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import { SharedWaiter } from '../waiting/shared-waiter.js';
import type { WaitLimit } from '../waiting/limits/wait-limit.js';
import type { OwnerlessServices } from './ownerless-object.js';

/**
 * A call that waits for permits. Each try has its own lane. The lane stays in use while the try can be repeated, or
 * while its cancellation is unanswered: another request in the lane would hide whether the try has run.
 */
export class PermitWaiter extends SharedWaiter {
  #lane: Lane | undefined;

  constructor(
    private readonly protocol: SemaphoreProtocol,
    override readonly permits: number,
    private readonly services: Pick<OwnerlessServices, 'clock' | 'lanes'>,
    waiting: WaitLimit,
    private readonly resolve: (value: undefined, handedOff: boolean) => void,
    fail: (error: unknown) => void,
  ) {
    super(services.clock, protocol, waiting, undefined, undefined, fail);
  }

  override get passablePermits(): number {
    return this.permits;
  }

  override get creates(): boolean {
    return this.protocol.declared !== undefined;
  }

  protected send(): ScriptRequest<AcquireReply> {
    this.#lane = this.services.lanes.take(this.protocol.requests);
    return this.protocol.acquire(this.permits, this.#lane);
  }

  protected onGranted(request: ScriptRequest<AcquireReply> | undefined): void {
    this.resolve(undefined, request === undefined);
  }

  releaseInBackground(): Promise<void> | undefined {
    const lane = this.#lane;
    if (lane === undefined) return undefined;
    this.#lane = undefined;
    return this.services.lanes.settle(lane, () => this.protocol.cancelAcquire(this.permits, lane));
  }

  override onTryOver(): void {
    if (this.#lane !== undefined) this.services.lanes.free(this.#lane);
    this.#lane = undefined;
  }
}

import type { JumpedMs } from '../clock.js';
import { latestEnd } from '../holding/compensations.js';
import { newPermitIds } from '../waiting/permit-hand-overs.js';
import { SharedWaiter, type TakenPermits } from '../waiting/shared-waiter.js';
import type { WaitLimit } from '../waiting/limits/wait-limit.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import type { OwnerlessServices } from './ownerless-object.js';
import type { PermitExpirableSemaphoreProtocol } from '../protocols/permit-expirable-semaphore-protocol.js';

/**
 * A call that waits for permits of a permit-expirable semaphore. The waiter generates the permit ids before it sends
 * them. The script recognizes a repeated request by the ids. The ids also let the client release permits whose grant it
 * never saw.
 */
export class ExpirablePermitWaiter extends SharedWaiter {
  /** Absent after a release in the background: a later try must not acquire the ids that this release names. */
  #ids: readonly string[] | undefined;
  /** The jumps of the lease clock before the last try. */
  #jumped: JumpedMs = 0;

  constructor(
    private readonly protocol: PermitExpirableSemaphoreProtocol,
    override readonly permits: number,
    private readonly services: Pick<OwnerlessServices, 'clock' | 'options' | 'compensations'>,
    waiting: WaitLimit,
    leaseMs: number | undefined,
    private readonly resolve: (value: TakenPermits, handedOff?: boolean) => void,
    fail: (error: unknown) => void,
  ) {
    super(services.clock, protocol, waiting, leaseMs, undefined, fail);
  }

  override get creates(): boolean {
    return this.protocol.declared !== undefined;
  }

  protected send(): ScriptRequest<AcquireReply> {
    this.#ids ??= newPermitIds(this.permits);
    this.#jumped = this.clock.jumped;
    return this.protocol.acquire(this.#ids, this.leaseMs);
  }

  /**
   * A granted try may still have an unanswered attempt. As soon as the call resolves, any code can release the permits.
   * If the attempt ran after that release, it would acquire the permits again. The call therefore resolves only when no
   * attempt can still run.
   */
  override whenTried(request: ScriptRequest<AcquireReply>, fn: () => void): void {
    super.whenTried(request, () => {
      const doubt = request.reply?.kind === 'permits' ? request.doubt : undefined;
      if (doubt === undefined) fn();
      else void doubt.settled().then(fn);
    });
  }

  protected onGranted(request: ScriptRequest<AcquireReply>): void {
    this.resolve(this.takenBy(request));
  }

  override takenBy(request: ScriptRequest<AcquireReply>): TakenPermits {
    return { ids: this.#ids as readonly string[], sentAt: this.clock.at(request.sentAt, this.#jumped) };
  }

  override takeOver(permits: TakenPermits): void {
    this.settle();
    this.resolve(permits, true);
  }

  releaseInBackground(request: ScriptRequest<AcquireReply>): Promise<void> {
    const ids = this.#ids as readonly string[];
    this.#ids = undefined;
    return this.services.compensations.add({
      send: () => this.protocol.release(ids, 'any'),
      notBefore: request.doubt?.until ?? 0,
      until: latestEnd(this.services, this.leaseMs ?? Infinity),
    });
  }
}

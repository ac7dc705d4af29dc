import { releaseGoesOn } from '../holding/compensations.js';
import { RefusedError } from '../errors.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { ReleaseReply } from '../redis/scripts/permit-expirable-semaphore.js';
import type { OwnerlessServices } from './ownerless-object.js';
import type { PermitExpirableProtocol } from './permit-expirable-protocol.js';

/** For so long a release that is refused goes on: it may never be allowed. */
const REFUSED_MS = 3_600_000;

/** Whether the permits were taken, and are released now. `deadline`: lease clock ms until which they surely were. */
export async function releasePermits(
  { clock, compensations }: Pick<OwnerlessServices, 'clock' | 'compensations'>,
  protocol: PermitExpirableProtocol,
  ids: readonly string[],
  deadline = Infinity,
): Promise<boolean> {
  const { error, reply, inDoubt } = await protocol.release(ids, 'all').done;
  if (error === undefined) {
    // None is taken any more, and an attempt before was not answered: it did it, unless the lease had ended by now.
    return reply === 'released' || (reply === 'unknown' && inDoubt && clock.now() < deadline);
  }
  const allowedUntil = clock.clock.monotonic() + REFUSED_MS;
  const until = error instanceof RefusedError ? allowedUntil : Infinity;
  // Permits whose leases end meanwhile must not keep the others.
  const send = (): ScriptRequest<ReleaseReply> => protocol.release(ids, 'any');
  void compensations.add({ send, notBefore: 0, until });
  throw releaseGoesOn(error);
}

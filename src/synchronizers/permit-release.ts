import { releaseGoesOn } from '../holding/compensations.js';
import { RefusedError } from '../errors.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { ReleaseReply } from '../redis/scripts/permit-expirable-semaphore.js';
import type { OwnerlessServices } from './ownerless-object.js';
import type { PermitExpirableSemaphoreProtocol } from '../protocols/permit-expirable-semaphore-protocol.js';
import { REFUSED_RELEASE_MS } from '../timing.js';

/**
 * Releases permits, all of them or none.
 *
 * @param deadline - lease-clock time, in milliseconds, before which no other caller can have acquired the permits.
 * @returns whether the permits were taken and are released now.
 */
export async function releasePermits(
  { clock, compensations }: Pick<OwnerlessServices, 'clock' | 'compensations'>,
  protocol: PermitExpirableSemaphoreProtocol,
  ids: readonly string[],
  deadline = Infinity,
): Promise<boolean> {
  const { error, reply, doubt } = await protocol.release(ids, 'all').done;
  if (error === undefined) {
    // No permit is still taken, and an earlier attempt is unanswered. That attempt released the permits, unless
    // their lease has ended by now.
    return reply === 'released' || (reply === 'unknown' && doubt !== undefined && clock.now() < deadline);
  }
  const allowedUntil = clock.clock.monotonic() + REFUSED_RELEASE_MS;
  const until = error instanceof RefusedError ? allowedUntil : Infinity;
  // The leases of some permits may end before the release succeeds. The other permits must be released all the same.
  const send = (): ScriptRequest<ReleaseReply> => protocol.release(ids, 'any');
  void compensations.add({ send, notBefore: 0, until });
  throw releaseGoesOn(error);
}

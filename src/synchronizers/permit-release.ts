import { releaseGoesOn } from '../holding/compensations.js';
import { RefusedError, type LockError } from '../errors.js';
import { wasReleased } from '../protocols/permit-expirable-semaphore-protocol.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { ReleaseReply } from '../redis/scripts/permit-expirable-semaphore.js';
import type { ReleasedPermits } from '../waiting/permit-hand-overs.js';
import type { OwnerlessServices } from './ownerless-object.js';
import { REFUSED_RELEASE_MS } from '../timing.js';

type ReleaseServices = Pick<OwnerlessServices, 'clock' | 'compensations' | 'lines'>;

/**
 * Releases permits, all of them or none, or hands them over to the next waiter of this client. Returns whether the
 * permits were taken and are released now.
 */
export async function releasePermits(services: ReleaseServices, permits: ReleasedPermits): Promise<boolean> {
  const { ids, deadline, protocol } = permits;
  const handOver = await services.lines.line(protocol.key, protocol.channel).shared.handOvers.handOff(permits);
  if (handOver.kind === 'failed') throw releaseLater(services, protocol, handOver.ids, handOver.error);
  if (handOver.kind !== 'not sent') return handOver.kind === 'released';
  const { error, reply, doubt } = await protocol.release(ids, 'all').done;
  if (error !== undefined) throw releaseLater(services, protocol, ids, error);
  const isReleased = reply === 'released' || wasReleased(reply, doubt !== undefined, deadline, services.clock.now());
  if (!isReleased) return false;
  permits.released();
  return true;
}

/** Repeats a failed release in the background. Returns the error for the caller. */
function releaseLater(
  { clock, compensations }: ReleaseServices,
  protocol: ReleasedPermits['protocol'],
  ids: readonly string[],
  error: LockError,
): LockError {
  const allowedUntil = clock.clock.monotonic() + REFUSED_RELEASE_MS;
  const until = error instanceof RefusedError ? allowedUntil : Infinity;
  // The leases of some permits may end before the release succeeds. The other permits must be released all the same.
  const send = (): ScriptRequest<ReleaseReply> => protocol.release(ids, 'any');
  void compensations.add({ send, notBefore: 0, until });
  return releaseGoesOn(error);
}

import { ClientClosedError, RedisUnavailableError } from '../errors.js';
import type { Wiring } from './wiring.js';

/** Waits until Redis is available, for at most one command deadline. */
export async function whenReady({ client, clock, options, topology }: Wiring): Promise<void> {
  if (client.closed) throw new ClientClosedError();
  const { commandTimeout } = options;
  try {
    await topology.whenReady(clock.clock.monotonic() + commandTimeout);
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause) throw cause;
    if (client.closed) throw new ClientClosedError();
    throw new RedisUnavailableError(`Redis was not ready within ${commandTimeout} ms`, 'none', { cause });
  }
}

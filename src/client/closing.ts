import { within } from '../clock.js';
import { ClientClosedError } from '../errors.js';
import { tenuresOf } from './hold-info.js';
import type { Wiring } from './wiring.js';

/** The options of `client.close()`. */
export interface CloseOptions {
  /**
   * Whether `close()` releases every open hold before it closes the connections. Otherwise the locks stay held until
   * their leases end.
   *
   * @defaultValue `false`
   */
  releaseHolds?: boolean | undefined;
}

/** @internal Ends the mechanisms of a client, and then its connections. */
export async function closeClient(wiring: Wiring, { releaseHolds = false }: CloseOptions): Promise<void> {
  const { client, clock, options, lines, compensations, watchdog, executor, topology } = wiring;
  client.closed = true;
  const closed = new ClientClosedError();
  lines.rejectWaiters(closed);
  lines.abandonTries();
  compensations.hurry();
  // A pending release is not abandoned: `close()` waits for it.
  const open = [...tenuresOf(lines)].filter((tenure) => !tenure.isReleasing);
  // Abort every section before the first lock is freed: from then on another owner can acquire that lock.
  for (const tenure of open) tenure.abandon(closed, releaseHolds);
  if (releaseHolds) for (const tenure of open) tenure.releaseWithoutCaller();
  await within(clock.clock, options.commandTimeout, whenReleased(wiring));
  for (const tenure of [...tenuresOf(lines)]) tenure.abandon(closed);
  watchdog.close();
  lines.close(closed);
  compensations.close();
  executor.closed = true;
  topology.close();
}

async function whenReleased({ lines, compensations }: Wiring): Promise<void> {
  // A pending try may still acquire the lock after its call was rejected. The client then releases the lock.
  await lines.whenIdle();
  await compensations.whenDone();
}

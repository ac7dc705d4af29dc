import { within } from '../clock.js';
import { ClientClosedError } from '../errors.js';
import { drain } from './drain.js';
import { holdsOf, tenuresOf, type HoldInfo } from './hold-info.js';
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
  /**
   * Time, in milliseconds, for which `close()` waits until the open holds are released and the bodies of `withPermits` and
   * `withPermit` have ended. Meanwhile the client rejects new, pending and waiting calls with `ClientClosedError`, except those
   * from inside an open hold or such a body: the work there can still acquire what it needs to end.
   *
   * @defaultValue 0: `close()` does not wait for them
   */
  drain?: number | undefined;
}

/** The result of `client.close()`. */
export interface CloseResult {
  /** Whether no hold was open and no body of `withPermits` or `withPermit` ran when the client closed. */
  readonly drained: boolean;
  /** The holds that were still open when the client closed, as `client.holds()` lists them. */
  readonly holds: readonly HoldInfo[];
}

/** @internal Ends the mechanisms of a client, and then its connections. */
export async function closeClient(
  wiring: Wiring,
  { releaseHolds = false, drain: drainMs = 0 }: CloseOptions,
): Promise<CloseResult> {
  const { client, clock, options, kept, lines, sections, compensations, watchdog, executor, topology } = wiring;
  if (drainMs > 0) await drain(wiring, drainMs);
  const holds = holdsOf(wiring);
  const drained = holds.length === 0 && sections.running === 0;
  client.closed = true;
  const closed = new ClientClosedError();
  lines.rejectWaiters(closed);
  lines.abandonTries();
  kept.releaseAll();
  compensations.hurry();
  // A pending release is not abandoned: `close()` waits for it.
  const open = [...tenuresOf(lines)].filter((tenure) => !tenure.isReleasing);
  // Abort every section before the first lock is freed: from then on another owner can acquire that lock.
  for (const tenure of open) tenure.abandon(closed, releaseHolds);
  // The signals abort when this change is complete (after-change.ts).
  await Promise.resolve();
  if (releaseHolds) for (const tenure of open) void tenure.releaseWithoutCaller();
  await within(clock.clock, options.commandTimeout, whenReleased(wiring));
  for (const tenure of [...tenuresOf(lines)]) tenure.abandon(closed);
  watchdog.close();
  lines.close(closed);
  compensations.close();
  executor.closed = true;
  topology.close();
  return { drained, holds };
}

async function whenReleased({ lines, compensations, executor }: Wiring): Promise<void> {
  // A pending try may still acquire the lock after its call was rejected. The client then releases the lock.
  await lines.whenIdle();
  await compensations.whenDone();
  await executor.rolls.whenDone();
}

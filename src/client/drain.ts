import { ClientClosedError } from '../errors.js';
import { serves } from '../holding/innermost-hold.js';
import { holdsOf } from './hold-info.js';
import { DRAIN_LOOK_MS } from '../timing.js';
import type { Wiring } from './wiring.js';

/**
 * Waits until the sections of a client have ended, for at most `ms`. Rejects the waiting calls that are outside of every
 * section: their work has not begun, and the lock is free sooner for another process.
 */
export async function drain(wiring: Wiring, ms: number): Promise<void> {
  const { client, clock, kept, lines, locks } = wiring;
  client.draining = true;
  // From now on, calls from outside of every section are rejected, so nobody can follow a kept lock.
  kept.releaseAll();
  lines.rejectWaiters(new ClientClosedError(), (waiter) => serves(locks, waiter));
  const until = clock.clock.monotonic() + ms;
  for (;;) {
    const left = until - clock.clock.monotonic();
    if (left <= 0 || !isWorking(wiring)) return;
    await new Promise<void>((resolve) => void clock.clock.setTimer(Math.min(DRAIN_LOOK_MS, left), resolve, true));
  }
}

/** Whether code of the application is inside a section, or a pending request may still begin one. */
function isWorking(wiring: Wiring): boolean {
  if (wiring.sections.running > 0 || holdsOf(wiring).length > 0) return true;
  for (const line of wiring.lines) if (line.hasPending) return true;
  return false;
}

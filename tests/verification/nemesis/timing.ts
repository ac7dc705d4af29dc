import { setTimeout as pause } from 'node:timers/promises';
import { stamp } from '../../support/history/history-recorder.mjs';

/** Of every client. */
export const COMMAND_TIMEOUT_MS = 900;

/** The result of the work, or `undefined` after the time limit. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const limit = new AbortController();
  try {
    return await Promise.race([work, pause(ms, undefined, { signal: limit.signal })]);
  } catch {
    return undefined;
  } finally {
    limit.abort();
  }
}

/** The wall clock minus that of `stamp()`, ms: read at the moment in which the wall clock's millisecond changes. */
export async function wallAhead(): Promise<number> {
  let best = -Infinity;
  for (let i = 0; i < 20; i++) {
    const before = Date.now();
    let now = before;
    while (now === before) now = Date.now();
    // Standing here makes the difference too small, never too large.
    const at = stamp();
    best = Math.max(best, now - at);
    await pause(1);
  }
  return best;
}

import { setTimeout as sleep } from 'node:timers/promises';
import { RedisUnavailableError, type ListEntry } from '../index.js';
import { numberOption } from './arguments.js';
import { EXIT, type Session } from './session.js';
import { duration } from '../integrations/shared/inspection-words.js';
import { holdersText, leaseText, shown, table, waitersText } from './words.js';

const HEAD = ['NAME', 'KIND', 'WAITERS', 'HELD FOR', 'LEASE', 'HELD BY'];

/** An entry, and for how long the same owner has been seen. */
interface Row {
  readonly entry: ListEntry;
  readonly heldMs: number;
}

/**
 * When each owner was seen first. Redis does not know since when a lock is held, so the time counts from the first table
 * that showed it.
 */
export class Sightings {
  #seen = new Map<string, number>();

  rows(entries: readonly ListEntry[], now: number): Row[] {
    const seen = new Map<string, number>();
    const rows = entries.map((entry) => {
      const key = JSON.stringify([entry.name, entry.owners.map(({ owner }) => owner).sort()]);
      const since = this.#seen.get(key) ?? now;
      seen.set(key, since);
      return { entry, heldMs: now - since };
    });
    this.#seen = seen;
    return rows.sort(
      (a, b) =>
        (b.entry.waiters ?? 0) - (a.entry.waiters ?? 0) ||
        b.heldMs - a.heldMs ||
        (a.entry.name < b.entry.name ? -1 : 1),
    );
  }
}

/** `holdfast top [pattern]`. After its first table it goes on while Redis is unavailable, as `watch` does. */
export async function top({ args, client, terminal, signal }: Session): Promise<number> {
  const intervalMs = 1_000 * numberOption(args, 'interval', 2, 0.1);
  const count = numberOption(args, 'count', Infinity, 1);
  const limit = numberOption(args, 'limit', 50, 1);
  const sightings = new Sightings();
  if (terminal.isRich) await terminal.screen([]);
  for (let tables = 0; tables < count && !signal.aborted;) {
    const entries: ListEntry[] = [];
    let trouble: RedisUnavailableError | undefined;
    try {
      for await (const entry of client.list({ match: args.operand ?? '*', signal })) entries.push(entry);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError) || (tables === 0 && entries.length === 0)) throw error;
      trouble = error;
    }
    if (trouble === undefined || entries.length > 0) {
      await show(terminal, entries, sightings.rows(entries, performance.now()), limit, trouble);
    } else {
      if (terminal.json) await terminal.object({ at: new Date().toISOString(), what: 'unavailable' });
      else await terminal.screen([terminal.style('red', 'Redis is unavailable')]);
    }
    tables += 1;
    if (tables < count) await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
  }
  return signal.aborted ? EXIT.interrupted : EXIT.ok;
}

async function show(
  terminal: Session['terminal'],
  entries: readonly ListEntry[],
  rows: readonly Row[],
  limit: number,
  /** Why the table lacks entries of a cluster. */
  trouble: RedisUnavailableError | undefined,
): Promise<void> {
  const shownRows = rows.slice(0, limit);
  if (terminal.json) {
    for (const { entry, heldMs } of shownRows) await terminal.object({ ...entry, heldMs: Math.round(heldMs) });
    if (trouble !== undefined) await terminal.object({ at: new Date().toISOString(), what: 'unavailable' });
    return;
  }
  const waiting = entries.filter(({ waiters = 0 }) => waiters > 0).length;
  await terminal.screen([
    `${entries.length} in use, ${waiting} waited for${rows.length > limit ? `, first ${limit} shown` : ''}`,
    ...(trouble === undefined ? [] : [terminal.style('red', shown(trouble.message))]),
    ...lines(shownRows, terminal.columns),
  ]);
}

function lines(rows: readonly Row[], columns: number): string[] {
  const cells = rows.map(({ entry, heldMs }) => [
    shown(entry.name),
    entry.kind,
    waitersText(entry),
    entry.owners.length === 0 ? '-' : `≥ ${duration(heldMs)}`,
    leaseText(entry.remaining),
    holdersText(entry),
  ]);
  return table(HEAD, cells, columns);
}

import type { EventOf, HistoryEvent } from '../../support/history/history-events.js';
import { isRed, kindOf } from './kinds.js';

/** A multi-lock counts for each of its members. */
export function grantedByKind(events: readonly HistoryEvent[]): ReadonlyMap<string, number> {
  const kinds = new Map<string, number>();
  const kindOfCall = new Map<string, string>();
  for (const event of events) {
    if (event.type === 'acquire-invoke')
      kindOfCall.set(event.call, event.joint && !isRed(event.lock) ? 'multi' : (kindOf(event.lock) ?? ''));
    const kind =
      event.type === 'acquire-ok' ? kindOfCall.get(event.call) : event.type === 'latch-opened' ? 'latch' : undefined;
    if (kind !== undefined) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  return kinds;
}

/** Sections that followed another one under its owner, and those of them that began after Redis had lost the owner. */
export function followers(events: readonly HistoryEvent[]): { followed: number; followedAfterLoss: number } {
  const lostAt = new Map<string, number>();
  for (const event of events) if (event.type === 'held') lostAt.set(`${event.lock} ${event.owner}`, event.at);
  const began = events.filter((event): event is EventOf<'began'> => event.type === 'began' && event.holds === 1);
  const known = new Set<string>();
  let [followed, followedAfterLoss] = [0, 0];
  for (const { lock, owner, at } of [...began].sort((a, b) => a.at - b.at)) {
    const key = `${lock} ${owner}`;
    if (known.has(key)) followed += 1;
    if (known.has(key) && (lostAt.get(key) ?? Infinity) < at) followedAfterLoss += 1;
    known.add(key);
  }
  return { followed, followedAfterLoss };
}

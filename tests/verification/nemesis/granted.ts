import type { HistoryEvent } from '../../support/history/history-events.js';
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

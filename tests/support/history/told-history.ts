import type { HistoryEvent } from './history-events.js';
import { check } from './history.js';
import type { ViolationKind } from './history-violations.js';

export type Bare<T> = T extends unknown ? Omit<T, 'process'> & { process?: string } : never;

/** Two processes, A unless said otherwise. */
export const history = (...events: Bare<HistoryEvent>[]): HistoryEvent[] =>
  events.map((event) => ({ process: 'A', ...event }));

interface HoldTerms {
  process?: string;
  lock?: string;
  from: number;
  validUntil?: number;
  until?: number | 'never';
  parent?: string;
  owner?: string;
  token?: number;
  shared?: boolean;
}

/**
 * A hold that is requested 1 ms before `from`, granted at `from`, and released at `until` (with the reply 1 ms later).
 */
export function held(hold: string, { process = 'A', lock = 'x', from, ...terms }: HoldTerms): HistoryEvent[] {
  const { validUntil = from + 30_000, until: end = from + 10, owner = hold, ...rest } = terms;
  const all: Bare<HistoryEvent>[] = [
    { type: 'acquire-invoke', at: from - 1, process, call: `call-${hold}`, lock },
    { type: 'acquire-ok', at: from, process, call: `call-${hold}`, hold, owner, validUntil, ...rest },
  ];
  if (end !== 'never') {
    all.push({ type: 'release-invoke', at: end, process, hold, validUntil: Math.max(end, validUntil) });
    all.push({ type: 'release-ok', at: end + 1, process, hold });
  }
  return history(...all);
}

export const kinds = (events: HistoryEvent[]): ViolationKind[] => check(events).map(({ kind }) => kind);

import { expect, test } from '@jest/globals';
import type { HistoryEvent } from './history-events.js';
import { history, kinds, type Bare } from './told-history.js';

/** Two of four permits, acquired at `from` and released at `until`. */
function permits(hold: string, from: number, until: number | 'never', process = 'A'): HistoryEvent[] {
  const call = `call-${hold}`;
  const taken = { taken: 2, of: 4 };
  const all: Bare<HistoryEvent>[] = [
    { type: 'acquire-invoke', at: from - 1, process, call, lock: 's', permits: 2 },
    { type: 'acquire-ok', at: from, process, call, hold, owner: hold, validUntil: Infinity, permits: taken },
  ];
  if (until !== 'never') {
    all.push({ type: 'release-invoke', at: until, process, hold, validUntil: Infinity });
    all.push({ type: 'release-ok', at: until + 1, process, hold });
  }
  return history(...all);
}
const free = (at: number, count: number): HistoryEvent[] =>
  history({ type: 'permits-free', at, lock: 's', free: count, of: 4 });

test('permits are shared up to their number, with any owners, and not beyond', () => {
  const two = [...permits('a', 100, 300), ...permits('b', 110, 310, 'B')];
  expect(kinds([...two, ...permits('c', 301, 320)])).toEqual([]);
  expect(kinds([...two, ...permits('c', 200, 320)])).toEqual(['more permits than there are']);
  const gone = history({ type: 'broken', from: 150, at: 160, locks: 'all' });
  expect(kinds([...two, ...gone, ...permits('c', 200, 320)])).toEqual([]);
});

test('in the end all permits are free except those of killed processes', () => {
  const all = [...permits('a', 100, 300), ...permits('b', 110, 310, 'B')];
  expect(kinds([...all, ...free(20_000, 4)])).toEqual([]);
  expect(kinds([...all, ...free(20_000, 5)])).toEqual(['more permits than there are']);
  expect(kinds([...all, ...free(20_000, 2)])).toEqual(['permits lost']);
  const died = history({ type: 'died', at: 15_000, process: 'C' });
  expect(kinds([...all, ...permits('c', 320, 'never', 'C'), ...died, ...free(20_000, 2)])).toEqual([]);
  expect(kinds([...all, ...permits('c', 320, 330, 'C'), ...died, ...free(20_000, 2)])).toEqual(['permits lost']);
});

test('losses before the permits were set again neither count nor excuse', () => {
  const set = (at: number): HistoryEvent[] => history({ type: 'permits-set', at, lock: 's' });
  const gone = history({ type: 'broken', from: 150, at: 160, locks: 'all' });
  expect(kinds([...gone, ...free(20_000, 2)])).toEqual([]);
  expect(kinds([...gone, ...set(200), ...free(20_000, 2)])).toEqual(['permits lost']);
  const died = [...permits('c', 320, 'never', 'C'), ...history({ type: 'died', at: 400, process: 'C' })];
  expect(kinds([...died, ...free(20_000, 2)])).toEqual([]);
  expect(kinds([...died, ...set(20_001), ...free(40_000, 2)])).toEqual(['permits lost']);
  const three = ['d', 'e', 'f'].flatMap((hold) => permits(hold, 30_000, 30_100));
  expect(kinds([...gone, ...three])).toEqual([]);
  expect(kinds([...gone, ...set(20_000), ...three])).toEqual(['more permits than there are']);
});

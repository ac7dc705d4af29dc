import { expect, test } from '@jest/globals';
import type { HistoryEvent } from './history-events.js';
import { history, kinds } from './told-history.js';

const set = history({ type: 'latch-set', at: 100, latch: 'l' });
const opened = (asked: number): HistoryEvent[] =>
  history({ type: 'latch-opened', at: 6_000, latch: 'l', of: 2, asked });
const closed = (counted: number, lastCountedAt: number): HistoryEvent[] =>
  history({ type: 'latch-closed', at: 6_000, latch: 'l', of: 2, counted, lastCountedAt });

test('a latch opens with the last count-down, and not before', () => {
  expect(kinds([...set, ...opened(2)])).toEqual([]);
  expect(kinds([...set, ...opened(1)])).toEqual(['latch opened too early']);
  const gone = history({ type: 'broken', from: 150, at: 160, locks: 'all' });
  expect(kinds([...set, ...gone, ...opened(1)])).toEqual([]);
  const goneLater = history({ type: 'broken', from: 6_100, at: 6_200, locks: 'all' });
  expect(kinds([...set, ...goneLater, ...opened(1)])).toEqual(['latch opened too early']);
});

test('a waiter resumes within some seconds after the last count-down, and one that never does is found', () => {
  expect(kinds([...set, ...closed(1, 200)])).toEqual([]);
  expect(kinds([...set, ...closed(2, 200)])).toEqual(['latch not opened']);
  // A message may be missed; the next look is still to come.
  expect(kinds([...set, ...closed(2, 1_600)])).toEqual([]);
  const lost = history({ type: 'broken', from: 150, at: 250, locks: ['latch:1'] });
  expect(kinds([...set, ...lost, ...closed(2, 200)])).toEqual(['latch not opened']);
  const named = set.map((event) => ({ ...event, lock: 'latch:1' }));
  expect(kinds([...named, ...lost, ...closed(2, 200)])).toEqual([]);
  expect(kinds([...set, ...history({ type: 'stalled', from: 1_000, at: 3_000 }), ...closed(2, 200)])).toEqual([]);
});

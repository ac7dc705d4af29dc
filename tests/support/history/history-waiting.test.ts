import { expect, test } from '@jest/globals';
import type { HistoryEvent } from './history-events.js';
import { check } from './history.js';
import { held, history } from './told-history.js';

const kinds = (events: HistoryEvent[]): string[] => check(events, { allFaultsTold: true }).map(({ kind }) => kind);
const inOrder = (events: HistoryEvent[]): string[] =>
  check(events, { allFaultsTold: true, inOrder: () => true }).map(({ kind }) => kind);

/** Redis has the lock as this owner's. */
const seen = (owner: string, from: number, at: number): HistoryEvent[] =>
  history({ type: 'held', from, at, lock: 'x', owner });
/** A call that starts at `from` and is granted the lock at `until`, or waits to the end. */
const waits = (call: string, from: number, until: number | 'for ever', process = 'B'): HistoryEvent[] =>
  history(
    { type: 'acquire-invoke', process, at: from, call, lock: 'x' },
    ...(until === 'for ever'
      ? []
      : [
          {
            type: 'acquire-ok' as const,
            process,
            at: until,
            call,
            hold: call,
            owner: call,
            validUntil: until + 30_000,
          },
          { type: 'release-invoke' as const, process, at: until + 5, hold: call, validUntil: until + 30_000 },
          { type: 'release-ok' as const, process, at: until + 6, hold: call },
        ]),
  );
const disturbed = (whom: string, from: number, at: number): HistoryEvent[] =>
  history({ type: 'disturbed', process: 'nemesis', whom, from, at, by: 'cut' });

test('a waiter enters soon after the release', () => {
  const first = [...held('a', { from: 1_000, until: 2_000 }), ...seen('a', 1_000, 2_000)];
  const second = (at: number): HistoryEvent[] => [...waits('w', 1_500, at), ...seen('w', at, at + 5)];
  expect(kinds([...first, ...second(2_050)])).toEqual([]);
  expect(kinds([...first, ...second(5_000)])).toEqual(['left outside a free lock']);
});

test('a waiter for a lock that is free to the end of the history is found, too', () => {
  const first = [...held('a', { from: 1_000, until: 2_000 }), ...seen('a', 1_000, 2_000)];
  const later = history({ type: 'stalled', process: 'nemesis', from: 9_000, at: 9_000 });
  expect(kinds([...first, ...waits('w', 1_500, 'for ever'), ...later])).toEqual([
    'never settled',
    'left outside a free lock',
  ]);
});

test('a waiter may be late only in a fault window and until its effects end', () => {
  const first = [...held('a', { from: 1_000, until: 2_000 }), ...seen('a', 1_000, 2_000)];
  const second = [...waits('w', 1_500, 5_000), ...seen('w', 5_000, 5_005)];
  expect(kinds([...first, ...second, ...disturbed('B', 1_900, 4_500)])).toEqual([]);
  expect(kinds([...first, ...second, ...disturbed('all', 1_900, 4_500)])).toEqual([]);
  expect(kinds([...first, ...second, ...disturbed('B', 1_900, 3_000)])).toEqual(['left outside a free lock']);
  expect(kinds([...first, ...second, ...disturbed('A', 1_900, 4_000)])).toEqual(['left outside a free lock']);
  const stood = history({ type: 'stalled', process: 'B', from: 2_000, at: 4_500 });
  expect(kinds([...first, ...second, ...stood])).toEqual([]);
});

test('a fault may leave a dead waiter in front of a fair lock for a limited time', () => {
  const first = [...held('a', { from: 1_000, until: 2_000 }), ...seen('a', 1_000, 2_000)];
  const second = (at: number): HistoryEvent[] => [...waits('w', 1_500, at), ...seen('w', at, at + 5)];
  const elsewhere = disturbed('D', 1_900, 3_000);
  expect(inOrder([...first, ...second(6_500), ...elsewhere])).toEqual([]);
  expect(inOrder([...first, ...second(8_000), ...elsewhere])).toEqual(['left outside a free lock']);
});

test('a lock that other owners hold in between is not free', () => {
  const first = [...held('a', { from: 1_000, until: 2_000 }), ...seen('a', 1_000, 2_000)];
  const others = [2_100, 3_200].flatMap((from) => [
    ...held(`o${from}`, { from, until: from + 1_000 }),
    ...seen(`o${from}`, from, from + 1_000),
  ]);
  expect(kinds([...first, ...others, ...waits('w', 1_500, 4_300), ...seen('w', 4_300, 4_305)])).toEqual([]);
});

test('a fair lock goes to the first request, and other kinds have no order', () => {
  const first = held('a', { from: 1_000, until: 3_000 });
  const waiters = (b: number, c: number): HistoryEvent[] => [
    ...waits('b', 1_200, b, 'B'),
    ...waits('c', 2_000, c, 'C'),
  ];
  expect(inOrder([...first, ...waiters(3_010, 4_000)])).toEqual([]);
  expect(inOrder([...first, ...waiters(4_000, 3_010)])).toEqual(['overtaken in a fair queue']);
  expect(kinds([...first, ...waiters(4_000, 3_010)])).toEqual([]);
});

test('a request from nearly the same time, or struck by a fault, may be overtaken', () => {
  const first = held('a', { from: 1_000, until: 3_000 });
  const near = [...waits('b', 1_800, 4_000, 'B'), ...waits('c', 2_000, 3_010, 'C')];
  expect(inOrder([...first, ...near])).toEqual([]);
  const far = [...waits('b', 1_200, 4_000, 'B'), ...waits('c', 2_000, 3_010, 'C')];
  expect(inOrder([...first, ...far, ...disturbed('D', 2_500, 2_600)])).toEqual([]);
  expect(inOrder([...first, ...far, ...disturbed('D', 500, 600)])).toEqual(['overtaken in a fair queue']);
});

test('a nested call has no place in the queue', () => {
  const outer = held('a', { from: 1_000, until: 5_000 });
  const inner = held('b', { from: 3_000, until: 3_010, owner: 'a', parent: 'a' });
  expect(inOrder([...outer, ...inner, ...waits('c', 1_500, 5_010, 'C')])).toEqual([]);
});

test('a hold without a lease of its own is not lost while Redis answers', () => {
  const hold = held('a', { from: 1_000, until: 'never' });
  const lost = history({ type: 'loss-signal', at: 5_000, hold: 'a', cause: 'ERR_LOCK_LOST' });
  expect(kinds([...hold, ...lost])).toEqual(['lost while Redis answered']);
  expect(kinds([...hold, ...lost, ...disturbed('A', 3_000, 4_000)])).toEqual([]);
  expect(kinds([...hold, ...lost, ...disturbed('B', 3_000, 4_000)])).toEqual(['lost while Redis answered']);
  expect(kinds([...hold, ...lost, ...history({ type: 'stalled', from: 3_000, at: 4_500 })])).toEqual([]);
  const renews = disturbed('A', 3_000, 4_000).map((event) => ({ ...event, renews: true }));
  expect(kinds([...hold, ...lost, ...renews])).toEqual(['lost while Redis answered']);
  const forced = history({ type: 'broken', process: 'B', from: 4_900, at: 4_950, locks: ['x'] });
  expect(kinds([...hold, ...lost, ...forced])).toEqual([]);
});

test('a hold with its own lease ends with it', () => {
  const [invoke, ...hold] = held('a', { from: 1_000, validUntil: 5_000, until: 'never' });
  const lost = history({ type: 'loss-signal', at: 5_000, hold: 'a', cause: 'ERR_LOCK_LOST' });
  expect(kinds([{ ...invoke!, leaseTime: 4_000 } as HistoryEvent, ...hold, ...lost])).toEqual([]);
});

test('the heap of a process does not grow from one idle point to the next', () => {
  const heap = (process: string, ...sizes: number[]): HistoryEvent[] =>
    sizes.flatMap((bytes, at) => history({ type: 'heap', process, at, size: { bytes, objects: 20_000 } }));
  expect(kinds([...heap('A', 9e6, 9.1e6, 9e6), ...heap('B', 20e6)])).toEqual([]);
  expect(kinds(heap('A', 9e6, 13e6))).toEqual(['memory that grows']);
});

test('a process that keeps a little of each section is found, and one whose heap only varies is not', () => {
  const drilled = (...sizes: [bytes: number, objects: number][]): HistoryEvent[] =>
    history({
      type: 'drilled',
      process: 'A',
      at: 1,
      sections: 240,
      sizes: sizes.map(([bytes, objects]) => ({ bytes, objects })),
    });
  expect(
    kinds(drilled([12_112_064, 17_852], [12_032_728, 17_839], [12_332_376, 17_846], [12_340_000, 17_900])),
  ).toEqual([]);
  expect(
    kinds(drilled([12_000_000, 17_000], [12_000_000, 17_240], [12_000_000, 17_480], [12_000_000, 17_730])),
  ).toEqual(['memory that grows']);
  expect(
    kinds(drilled([12_000_000, 17_000], [12_030_000, 17_000], [12_060_000, 17_000], [12_100_000, 17_000])),
  ).toEqual(['memory that grows']);
});

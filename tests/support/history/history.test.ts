import { expect, test } from '@jest/globals';
import type { HistoryEvent } from './history-events.js';
import { check } from './history.js';
import { held, history, kinds } from './told-history.js';

test('a history of consecutive holds, timely loss reports, failures and unknown outcomes is clean', () => {
  const events = [
    ...held('a', { from: 100, until: 200 }),
    ...held('b', { process: 'B', from: 201, until: 300 }),
    ...held('other', { from: 150, lock: 'y', until: 250 }),
    // Lost at its deadline, released too late, with a loss report.
    ...held('c', { from: 400, validUntil: 500, until: 'never' }),
    ...history(
      { type: 'loss-signal', at: 500, hold: 'c', cause: 'expired' },
      { type: 'release-invoke', at: 600, hold: 'c', validUntil: 600 },
      { type: 'release-fail', at: 601, hold: 'c', reason: 'ERR_LOCK_LOST' },
    ),
    ...held('d', { process: 'B', from: 505, until: 700 }),
    // Busy, and unknown with its effect before the rejection.
    ...history(
      { type: 'acquire-invoke', at: 510, call: 'busy', lock: 'x', settlesWithin: 100 },
      { type: 'acquire-fail', at: 612, call: 'busy', reason: 'busy' },
      { type: 'acquire-invoke', at: 800, call: 'doubt', lock: 'x' },
      { type: 'effect', at: 850, call: 'doubt', effect: 'acquire' },
      { type: 'acquire-unknown', at: 900, call: 'doubt', reason: 'ERR_LOCK_REDIS_UNAVAILABLE' },
    ),
  ];
  expect(check(events)).toEqual([]);
});

test('the order of the event files does not matter', () => {
  const events = [...held('a', { from: 100, until: 200 }), ...held('b', { process: 'B', from: 150, until: 300 })];
  expect(kinds(events)).toEqual(['two valid holds at once']);
  expect(kinds([...events].reverse())).toEqual(['two valid holds at once']);
});

test('two valid holds at the same time are found, with the time that they share', () => {
  const [violation, ...others] = check([
    ...held('a', { from: 100, until: 200 }),
    ...held('b', { process: 'B', from: 180, until: 300 }),
  ]);
  expect(others).toEqual([]);
  expect(violation).toMatchObject({ kind: 'two valid holds at once' });
  expect(violation!.message).toContain('hold a of x (owner a, process A) and hold b of x (owner b, process B)');
  expect(violation!.message).toContain('20.0 ms');
});

test('a hold behind several others that still last overlaps with each of them', () => {
  const first = held('a', { from: 100, until: 1_000 });
  const nested = held('a2', { from: 110, until: 120, owner: 'a', parent: 'a' });
  expect(kinds([...first, ...nested, ...held('b', { process: 'B', from: 500, until: 510 })])).toEqual([
    'two valid holds at once',
  ]);
});

test('a hold counts until its release begins, its own deadline or its loss signal, whichever comes first', () => {
  const next = held('b', { process: 'B', from: 300, until: 310 });
  const told = (at: number) => history({ type: 'loss-signal', at, hold: 'a', cause: 'gone' });
  expect(kinds([...held('a', { from: 100, until: 299 }), ...next])).toEqual([]);
  expect(kinds([...held('a', { from: 100, validUntil: 299, until: 'never' }), ...told(299), ...next])).toEqual([]);
  expect(kinds([...held('a', { from: 100, until: 'never' }), ...told(299), ...next])).toEqual([]);
  expect(kinds([...held('a', { from: 100, until: 'never' }), ...next])).toEqual(['two valid holds at once']);
});

test('a renewal moves the deadline forward, and a nested release may move it back', () => {
  const hold = held('a', { from: 100, validUntil: 200, until: 'never' });
  const next = held('b', { process: 'B', from: 300, until: 310 });
  const told = history({ type: 'loss-signal', at: 500, hold: 'a', cause: 'expired' });
  const renewed = history({ type: 'valid', at: 150, hold: 'a', until: 500 });
  const shortened = history({ type: 'valid', at: 160, hold: 'a', until: 290 });
  expect(kinds([...hold, ...told, ...next])).toEqual(['loss signal too late']);
  expect(kinds([...hold, ...renewed, ...told, ...next])).toEqual(['two valid holds at once']);
  expect(kinds([...hold, ...renewed, ...shortened, ...told, ...next])).toEqual([]);
});

test('nested holds of one owner may overlap, and sibling branches must not', () => {
  const outer = held('a', { from: 100, until: 500 });
  const child = held('b', { from: 200, until: 300, owner: 'a', parent: 'a' });
  const grandchild = held('c', { from: 210, until: 290, owner: 'a', parent: 'b' });
  const sibling = held('d', { from: 250, until: 320, owner: 'a', parent: 'a' });
  expect(kinds([...outer, ...child, ...grandchild])).toEqual([]);
  expect(kinds([...outer, ...child, ...sibling])).toEqual(['two valid holds at once']);
  expect(kinds([...outer, ...child, ...grandchild, ...sibling])).toHaveLength(2);
});

test('a nested hold that outlives its parent excludes others', () => {
  const parent = held('a', { from: 100, until: 200 });
  const child = held('b', { from: 150, until: 400, owner: 'a', parent: 'a' });
  expect(kinds([...parent, ...child, ...held('c', { process: 'B', from: 410 })])).toEqual([]);
  expect(kinds([...parent, ...child, ...held('c', { process: 'B', from: 300 })])).toEqual(['two valid holds at once']);
});

test('a call inside a hold that contended as a stranger is a stranger', () => {
  const parent = held('a', { from: 100, until: 500 });
  const stranger = held('b', { from: 200, until: 300, owner: 'b', parent: 'a' });
  expect(kinds([...parent, ...stranger])).toEqual(['two valid holds at once']);
});

test('a hold at several clients is nested in the previous one if they share one owner', () => {
  const parent = held('a', { from: 100, until: 500, owner: 'x:1, y:1' });
  const nested = held('b', { from: 200, until: 300, owner: 'y:1, z:1', parent: 'a' });
  const stranger = held('c', { from: 310, until: 320, owner: 'x:11, z:2', parent: 'a' });
  expect(kinds([...parent, ...nested])).toEqual([]);
  expect(kinds([...parent, ...stranger])).toEqual(['two valid holds at once']);
});

test('readers overlap with readers and not with a writer', () => {
  const readers = ['a', 'b'].flatMap((reader) => held(reader, { from: 100, until: 300, shared: true }));
  expect(kinds(readers)).toEqual([]);
  expect(kinds([...readers, ...held('w', { from: 200, until: 250 })])).toHaveLength(2);
});

test('a hold after its lease without a loss signal is found', () => {
  const hold = held('a', { from: 100, validUntil: 1_000, until: 'never' });
  const later = history(
    { type: 'acquire-invoke', at: 2_000, call: 'z', lock: 'z' },
    { type: 'acquire-fail', at: 2_001, call: 'z', reason: 'busy' },
  );
  expect(kinds(hold)).toEqual([]);
  expect(kinds([...hold, ...later])).toEqual(['lease ended without a loss signal']);
  const told = history({ type: 'loss-signal', at: 1_000, hold: 'a', cause: 'expired' });
  expect(kinds([...hold, ...told, ...later])).toEqual([]);
});

test('a loss signal after the deadline is found, unless the process could not run', () => {
  const hold = held('a', { from: 100, validUntil: 1_000, until: 'never' });
  const told = history({ type: 'loss-signal', at: 3_000, hold: 'a', cause: 'expired' });
  expect(kinds([...hold, ...told])).toEqual(['loss signal too late']);
  expect(kinds([...hold, ...history({ type: 'stalled', from: 900, at: 3_001 }), ...told])).toEqual([]);
  expect(kinds([...hold, ...history({ type: 'stalled', from: 900, at: 2_000 }), ...told])).toEqual([
    'loss signal too late',
  ]);
  const elsewhere = history({ type: 'stalled', process: 'B', from: 900, at: 3_001 });
  expect(kinds([...hold, ...elsewhere, ...told])).toEqual(['loss signal too late']);
});

test('a dead process need not report a loss, but its hold still excludes others', () => {
  const hold = held('a', { from: 100, validUntil: 1_000, until: 'never' });
  const died = history({ type: 'died', at: 500 });
  const unfinished = history({ type: 'acquire-invoke', at: 450, call: 'last', lock: 'y' });
  expect(kinds([...hold, ...unfinished, ...died, ...held('b', { process: 'B', from: 1_001, until: 5_000 })])).toEqual(
    [],
  );
  expect(kinds([...hold, ...died, ...held('b', { process: 'B', from: 999 })])).toEqual(['two valid holds at once']);
});

test('a loss that is reported twice is found', () => {
  const told = history(
    { type: 'loss-signal', at: 150, hold: 'a', cause: 'gone' },
    { type: 'loss-signal', at: 160, hold: 'a', cause: 'expired' },
  );
  expect(kinds([...held('a', { from: 100, until: 'never' }), ...told])).toEqual(['loss signal twice']);
});

test('a release that succeeds after the loss, or after the deadline, is found', () => {
  const released = held('a', { from: 100, until: 300 });
  const told = history({ type: 'loss-signal', at: 200, hold: 'a', cause: 'gone' });
  expect(kinds([...released, ...told])).toEqual(['success after the loss']);
  const late = [
    ...held('a', { from: 100, validUntil: 200, until: 'never' }),
    ...history(
      { type: 'release-invoke', at: 210, hold: 'a', validUntil: 210 },
      { type: 'release-ok', at: 211, hold: 'a' },
    ),
  ];
  expect(kinds(late)).toEqual(['success after the loss']);
});

test('a nested call that succeeds inside a lost hold is found', () => {
  const told = history({ type: 'loss-signal', at: 200, hold: 'a', cause: 'gone' });
  const outer = held('a', { from: 100, until: 'never' });
  const nested = (from: number) => held('b', { from, owner: 'a', parent: 'a', until: 'never' });
  expect(kinds([...outer, ...told, ...nested(300)])).toEqual(['success after the loss']);
  expect(kinds([...outer, ...nested(150), ...told])).toEqual([]);
});

test('an effect after a rejection is found, and an effect after a grant is none', () => {
  const effect = (call: string) => history({ type: 'effect', at: 500, call, effect: 'acquire' });
  const invoke = history({ type: 'acquire-invoke', at: 100, call: 'c', lock: 'x' });
  const unknown = history({ type: 'acquire-unknown', at: 200, call: 'c', reason: 'unavailable' });
  const failed = history({ type: 'acquire-fail', at: 200, call: 'c', reason: 'busy' });
  expect(kinds([...invoke, ...unknown, ...effect('c')])).toEqual(['effect after the rejection']);
  expect(kinds([...invoke, ...failed, ...effect('c')])).toEqual(['effect after the rejection']);
  expect(kinds([...held('a', { from: 100 }), ...effect('call-a')])).toEqual([]);
});

test('a fencing token that decreases or repeats is found', () => {
  const first = held('a', { from: 100, until: 110, token: 7 });
  const second = (token: number) => [...first, ...held('b', { process: 'B', from: 200, until: 210, token })];
  expect(kinds(second(8))).toEqual([]);
  expect(kinds(second(7))).toEqual(['fencing token went back']);
  expect(kinds(second(6))).toEqual(['fencing token went back']);
  const third = [...second(9), ...held('c', { from: 300, until: 310, token: 8 })];
  expect(kinds(third)).toEqual(['fencing token went back']);
  expect(kinds([...first, ...held('b', { from: 200, lock: 'y', token: 1 })])).toEqual([]);
});

test('concurrent calls may be granted in any order, but never with the same token', () => {
  const side = (token: number) =>
    history(
      { type: 'acquire-invoke', at: 100, call: '1', lock: 'x' },
      { type: 'acquire-invoke', at: 100, call: '2', lock: 'x' },
      { type: 'acquire-ok', at: 110, call: '1', hold: 'a', owner: 'a', validUntil: 115, token: 5 },
      { type: 'loss-signal', at: 115, hold: 'a', cause: 'expired' },
      { type: 'acquire-ok', at: 120, call: '2', hold: 'b', owner: 'b', validUntil: 130, token },
      { type: 'loss-signal', at: 130, hold: 'b', cause: 'expired' },
    );
  expect(kinds(side(4))).toEqual([]);
  expect(kinds(side(5))).toEqual(['fencing token went back']);
});

test('nested holds may share the token of their owner', () => {
  const outer = held('a', { from: 100, until: 300, token: 5 });
  expect(kinds([...outer, ...held('b', { from: 200, owner: 'a', parent: 'a', token: 5 })])).toEqual([]);
  expect(kinds([...outer, ...held('b', { from: 200, owner: 'a', parent: 'a', token: 4 })])).toEqual([
    'fencing token went back',
  ]);
});

test('a deleted lock may be granted again, and the old holder must still learn of its loss', () => {
  const victim = held('a', { from: 100, validUntil: 1_000, until: 'never' });
  const broken = history({ type: 'broken', from: 200, at: 210, locks: ['x'] });
  const next = held('b', { process: 'B', from: 300, until: 5_000 });
  const told = history({ type: 'loss-signal', at: 900, hold: 'a', cause: 'gone' });
  expect(kinds([...victim, ...broken, ...next, ...told])).toEqual([]);
  expect(kinds([...victim, ...broken, ...next])).toEqual(['lease ended without a loss signal']);
  expect(
    kinds([...victim, ...history({ type: 'broken', from: 200, at: 210, locks: ['y'] }), ...next, ...told]),
  ).toEqual(['two valid holds at once']);
  // Later grants are protected as usual.
  expect(kinds([...broken, ...held('c', { from: 250, until: 400 }), ...next])).toEqual(['two valid holds at once']);
});

test('tokens may restart after the server was emptied, and increase from there', () => {
  const before = held('a', { from: 100, until: 110, token: 7 });
  const emptied = history({ type: 'broken', from: 200, at: 210, locks: 'all', tokensLost: true });
  const after = held('b', { from: 300, until: 310, token: 1 });
  expect(kinds([...before, ...emptied, ...after])).toEqual([]);
  expect(kinds([...before, ...emptied, ...after, ...held('c', { from: 400, token: 1 })])).toEqual([
    'fencing token went back',
  ]);
});

test.each(['key', 'queue entry', 'channel', 'timer', 'listener', 'waiter'] as const)(
  'a leftover %s is found',
  (what) => {
    const [violation] = check(history({ type: 'left', at: 100, what, name: 'its name' }));
    expect(violation).toMatchObject({ kind: 'left behind', message: `a ${what} was left: its name` });
  },
);

test('a call that never settles, or settles after its limit, is found', () => {
  expect(kinds(history({ type: 'acquire-invoke', at: 1, call: 'c', lock: 'x' }))).toEqual(['never settled']);
  const [, , invoke] = held('a', { from: 100, until: 200 });
  expect(kinds([...held('a', { from: 100, until: 'never' }), invoke!])).toEqual(['never settled']);
  const call = (settled: number) =>
    history(
      { type: 'acquire-invoke', at: 100, call: 'c', lock: 'x', settlesWithin: 1_000 },
      { type: 'acquire-fail', at: settled, call: 'c', reason: 'busy' },
    );
  expect(kinds(call(1_349))).toEqual([]);
  expect(kinds(call(1_351))).toEqual(['settled too late']);
  expect(check(call(1_351), { graceMs: 300 })).toEqual([]);
  expect(kinds([...call(1_351), ...history({ type: 'stalled', from: 400, at: 500 })])).toEqual([]);
});

test('an impossible history is distinguished from a forbidden one', () => {
  const ok = { type: 'acquire-ok', at: 5, call: 'c', hold: 'h', owner: 'o', validUntil: 9 } as const;
  expect(kinds(history(ok))).toEqual(['malformed history']);
  expect(kinds(history({ type: 'valid', at: 1, hold: 'h', until: 2 }))).toEqual(['malformed history']);
  expect(kinds(history({ type: 'effect', at: 1, call: 'c', effect: 'renew' }))).toEqual(['malformed history']);
  const invoke = { type: 'acquire-invoke', at: 1, call: 'c', lock: 'x' } as const;
  expect(kinds(history(invoke, ok, ok))).toEqual(['malformed history']);
  expect(kinds(history(invoke, invoke, ok))).toEqual(['malformed history']);
  expect(kinds(history(invoke, ok, { type: 'release-ok', at: 6, hold: 'h' }))).toEqual(['malformed history']);
});

test('a long history is checked in a time that does not grow with its square', () => {
  const events: HistoryEvent[] = [];
  for (let i = 0; i < 40_000; i++) events.push(...held(`h${i}`, { from: 100 + i * 20, until: 110 + i * 20, token: i }));
  const start = performance.now();
  expect(check(events)).toEqual([]);
  expect(performance.now() - start).toBeLessThan(5_000);
});

test('a hold that counts as valid after the server has freed its lock is found', () => {
  const hold = held('a', { from: 100, validUntil: 500, until: 400 });
  const atServer = (from: number, at: number, owner = 'a'): HistoryEvent[] =>
    history({ type: 'held', process: 'server', lock: 'x', owner, from, at });
  expect(kinds([...hold, ...atServer(99, 401)])).toEqual([]);
  expect(kinds([...hold, ...atServer(99, 250), ...atServer(250, 401)])).toEqual([]);
  expect(kinds([...hold, ...atServer(99, 390)])).toEqual(['valid without the lock']);
  // The clocks may be 2 ms apart, the report has whole ms, and a timer may fire 1 ms early.
  expect(kinds([...hold, ...atServer(99, 396.5)])).toEqual([]);
  expect(kinds([...hold, ...atServer(99, 395.5)])).toEqual(['valid without the lock']);
  expect(kinds([...hold, ...atServer(99, 401, 'b')])).toEqual(['valid without the lock']);
  expect(kinds([...hold, ...atServer(99, 200), ...atServer(300, 401)])).toEqual(['valid without the lock']);
  // The loss was reported before, or the lock was deleted.
  expect(
    kinds([...hold, ...atServer(99, 390), ...history({ type: 'loss-signal', at: 389, hold: 'a', cause: 'gone' })]),
  ).toEqual(['success after the loss']);
  expect(
    kinds([...hold, ...atServer(99, 390), ...history({ type: 'broken', at: 391, from: 389, locks: ['x'] })]),
  ).toEqual([]);
});

test('a reader may hold the lock through either half, and a writer only through the write half', () => {
  const hold = (shared: boolean) => held('a', { from: 100, validUntil: 500, until: 400, shared });
  const half = (which: 'read' | 'write'): HistoryEvent[] =>
    history({ type: 'held', process: 'server', lock: 'x', owner: 'a', half: which, from: 99, at: 401 });
  expect(kinds([...hold(true), ...half('read')])).toEqual([]);
  expect(kinds([...hold(true), ...half('write')])).toEqual([]);
  expect(kinds([...hold(false), ...half('write')])).toEqual([]);
  expect(kinds([...hold(false), ...half('read')])).toEqual(['valid without the lock']);
});

test('after a deadline during sleep, only a hold that Redis still has may be released', () => {
  const hold = held('a', { from: 100, validUntil: 200, until: 300 });
  const slept = history({ type: 'slept', from: 150, at: 290 });
  const kept = (at: number) => history({ type: 'held', from: 99, at, lock: 'x', owner: 'a' });
  expect(kinds([...hold, ...slept, ...kept(305)])).toEqual([]);
  const late = ['success after the loss'];
  expect(kinds([...hold, ...slept])).toEqual(late);
  expect(kinds([...hold, ...slept, ...kept(250)])).toEqual(late);
  expect(kinds([...hold, ...kept(305)])).toEqual(late);
  expect(kinds([...hold, ...history({ type: 'slept', from: 210, at: 290 }), ...kept(305)])).toEqual(late);
  expect(kinds([...hold, ...history({ type: 'slept', process: 'B', from: 150, at: 290 }), ...kept(305)])).toEqual(late);
});

test('after a deadline during sleep, the loss is reported before the lease ends without a reply', () => {
  const asleep = (process: string, from = 150) => history({ type: 'slept', process, from, at: from + 1_000 });
  const told = (at: number) => [
    ...held('a', { from: 100, validUntil: 600, until: 'never' }),
    ...history({ type: 'loss-signal', at, hold: 'a', cause: 'gone' }),
    { ...history({ type: 'stalled', from: 150, at: 1_150 })[0]!, process: 'A' },
  ];
  expect(kinds([...told(1_600), ...asleep('A')])).toEqual([]);
  expect(kinds([...told(1_600 + 249), ...asleep('A')])).toEqual([]);
  const late = ['loss signal too late'];
  expect(kinds([...told(1_600 + 251), ...asleep('A')])).toEqual(late);
  expect(kinds([...told(1_600), ...asleep('B')])).toEqual(late);
  expect(kinds([...told(1_600), ...asleep('A', 601)])).toEqual(late);
});

test('after a deadline during sleep, a nested hold that was requested before may last longer', () => {
  const told = (at: number, askedAt = 140, leaseTime = 900) => [
    ...held('a', { from: 100, validUntil: 600, until: 'never' }),
    ...history(
      { type: 'acquire-invoke', at: askedAt, call: 'b', lock: 'x', leaseTime },
      { type: 'slept', from: 150, at: 1_150 },
      { type: 'acquire-ok', at: 1_160, call: 'b', hold: 'b', owner: 'a', parent: 'a', validUntil: 1_160 },
      { type: 'loss-signal', at, hold: 'a', cause: 'gone' },
      { type: 'loss-signal', at, hold: 'b', cause: 'gone' },
    ),
    { ...history({ type: 'stalled', from: 150, at: 1_150 })[0]!, process: 'A' },
  ];
  expect(kinds(told(140 + 900 + 1_000 + 249))).toEqual([]);
  const late = ['loss signal too late'];
  expect(kinds(told(140 + 900 + 1_000 + 251))).toEqual(late);
  expect(kinds(told(140 + 900 + 1_000, 140, 300))).toEqual(late);
  expect(kinds(told(140 + 900 + 1_000, 601))).toEqual([...late, 'success after the loss']);
});

test('a doubt that ends with a confirmation is no loss, and the hold is not valid during the doubt', () => {
  const doubted = [
    ...held('a', { from: 100, validUntil: 500, until: 400 }),
    ...history({ type: 'valid', at: 200, hold: 'a', until: 200 }, { type: 'valid', at: 300, hold: 'a', until: 500 }),
  ];
  expect(kinds(doubted)).toEqual([]);
  const nobodySure = history(
    { type: 'acquire-invoke', at: 99, call: 'b', lock: 'x' },
    { type: 'acquire-ok', at: 101, call: 'b', hold: 'b', owner: 'b', validUntil: 100 },
    { type: 'release-invoke', at: 150, hold: 'b', validUntil: 400 },
    { type: 'release-ok', at: 151, hold: 'b' },
  );
  expect(kinds(nobodySure)).toEqual([]);
});

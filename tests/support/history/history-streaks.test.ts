import { describe, expect, test } from '@jest/globals';
import type { Confirmed, HistoryEvent } from './history-events.js';
import { check, type CheckOptions } from './history.js';
import { held, history } from './told-history.js';

/* A client with `local` 200 and `keep` 100. It has the lock as c:1 from 100 on, and Redis has confirmed that until 1300. */

const LOCAL_MS = 200;
const KEEP_MS = 100;
const TAKEN = 100;
const CONFIRMED: readonly Confirmed[] = [{ at: TAKEN, until: 1_300 }];

interface Section {
  readonly from: number;
  readonly until: number;
  readonly validUntil?: number;
  readonly owner?: string;
}

/** Sections with the events of their client. The call of each came at 90. */
function sections(...all: Section[]): HistoryEvent[] {
  return all.flatMap(({ from, until, validUntil = 1_200, owner = 'c:1' }, at) => [
    ...held(`s${from}.${at}`, { from, until, validUntil, owner }).map((event) =>
      event.type === 'acquire-invoke' ? { ...event, at: 90 } : event,
    ),
    ...history(
      { type: 'began', at: from, lock: 'x', owner, holds: 1 },
      { type: 'ended', at: until, lock: 'x', owner, holds: 0 },
    ),
  ]);
}

const client = history({ type: 'client', at: 0, client: 'c', local: LOCAL_MS, keep: KEEP_MS });
const atServer = (at: number, owner = 'c:1', from = TAKEN): HistoryEvent[] => {
  const confirmed = owner === 'c:1' ? CONFIRMED : [{ at: from, until: from + 1_200 }];
  return history({ type: 'held', process: 'server', lock: 'x', owner, from, at, confirmed });
};
const deleted = (at: number): HistoryEvent[] => history({ type: 'broken', from: at, at, locks: ['x'] });
const found = (events: HistoryEvent[], options: CheckOptions = {}): string[] =>
  check([...client, ...events], options).map(({ kind }) => kind);

const first: Section = { from: 110, until: 150 };

describe('sections that follow one another without a request', () => {
  test('may begin for `local` ms after the grant, also after the lock was deleted and another client has it', () => {
    const streak = sections(first, { from: 151, until: 290 }, { from: 291, until: 600 });
    expect(found([...streak, ...atServer(601)])).toEqual([]);
    const other = held('o', { process: 'B', from: 200, until: 400, owner: 'd:1' });
    const lost = [...atServer(160), ...deleted(160), ...atServer(401, 'd:1', 190)];
    expect(found([...streak, ...lost, ...other])).toEqual([]);
  });

  test('must not begin later, whether the lock was deleted or not', () => {
    const late = sections(first, { from: 151, until: 399 }, { from: 400, until: 500 });
    expect(found([...late, ...atServer(501)])).toEqual(['streak longer than allowed']);
    expect(found([...late, ...atServer(160), ...deleted(160)])).toEqual(['streak longer than allowed']);
  });

  test('may tell of their begin late if the process stood', () => {
    const late = sections(first, { from: 151, until: 399 }, { from: 400, until: 500 });
    const stood = history({ type: 'stalled', from: 280, at: 401 });
    expect(found([...late, ...atServer(501), ...stood])).toEqual([]);
  });

  test('must not count on more than Redis has confirmed, also after the lock was deleted', () => {
    const longer = sections(first, { from: 151, until: 250, validUntil: 1_310 });
    expect(found([...longer, ...atServer(251)])).toEqual(['lease that Redis has not confirmed']);
    expect(found([...longer, ...atServer(160), ...deleted(160)])).toEqual(['lease that Redis has not confirmed']);
  });

  test('need the lock in Redis if nothing has deleted it', () => {
    const streak = sections(first, { from: 151, until: 290 });
    expect(found([...streak, ...atServer(200)])).toEqual(['valid without the lock']);
  });

  test('must not exist without the option, or for a kind that asks Redis each time', () => {
    const streak = [...sections(first, { from: 151, until: 290 }), ...atServer(291)];
    expect(found(streak, { mayFollow: () => false })).toEqual(['followed without a request']);
    expect(check(streak).map(({ kind }) => kind)).toEqual(['followed without a request']);
  });

  test('end with a forced unlock of their client, from the moment of its call', () => {
    const streak = [...sections(first, { from: 180, until: 290 }), ...atServer(175)];
    const forced = (from: number, at: number, of: string, freed = true): HistoryEvent[] =>
      history({ type: 'forced', from, at, lock: 'x', client: of, freed }, { type: 'broken', from, at, locks: ['x'] });
    expect(found([...streak, ...forced(170, 185, 'd')])).toEqual([]);
    expect(found([...streak, ...forced(170, 185, 'c')])).toEqual(['streak after a forced unlock']);
    expect(found([...streak, ...forced(170, 178, 'c')])).toEqual(['streak after a forced unlock']);
    expect(found([...streak, ...forced(170, 178, 'c', false)])).toEqual([]);
  });

  test('end when Redis gives the lock to another owner of their client', () => {
    const other = sections({ from: 165, until: 175, owner: 'c:2' });
    const lost = [...atServer(155), ...deleted(155), ...atServer(176, 'c:2', 164)];
    expect(found([...sections(first, { from: 180, until: 290 }), ...other, ...lost])).toEqual([
      'streak after another grant',
    ]);
    expect(found([...sections(first, { from: 151, until: 163 }), ...other, ...lost])).toEqual([]);
  });
});

test('no read follows another one', () => {
  const reads = sections(first, { from: 160, until: 200 }).map((event) =>
    event.type === 'acquire-ok' || event.type === 'began' ? { ...event, shared: true } : event,
  );
  const held = { type: 'held', process: 'server', lock: 'x', owner: 'c:1', half: 'read' } as const;
  const reader = history({ ...held, from: TAKEN, at: 201, confirmed: CONFIRMED });
  expect(found([...reads, ...reader])).toEqual(['followed without a request']);
});

describe('a kept lock', () => {
  const told: CheckOptions = { allFaultsTold: true };

  test('may be entered and has to be released within `keep` ms', () => {
    expect(found([...sections(first, { from: 240, until: 260 }), ...atServer(360)], told)).toEqual([]);
    expect(found([...sections(first), ...atServer(1_100)], told)).toEqual(['kept too long']);
    const disturbed = history({ type: 'disturbed', from: 200, at: 1_000, whom: 'A', by: 'stall' });
    expect(found([...sections(first), ...atServer(1_100), ...disturbed], told)).toEqual([]);
    expect(found([...sections(first), ...atServer(1_100), ...history({ type: 'died', at: 200 })], told)).toEqual([]);
  });

  test('is not entered later', () => {
    const streak = sections({ from: 105, until: 110 }, { from: 295, until: 296 });
    expect(found([...streak, ...atServer(297)])).toEqual(['kept too long']);
  });
});

describe('hand-overs inside a process while a call of another one waits', () => {
  const waits = history(
    { type: 'acquire-invoke', process: 'B', at: 0, call: 'w', lock: 'x' },
    { type: 'acquire-ok', process: 'B', at: 2_000, call: 'w', hold: 'w', owner: 'd:1', validUntil: 9_000 },
    { type: 'release-invoke', process: 'B', at: 2_100, hold: 'w', validUntil: 9_000 },
    { type: 'release-ok', process: 'B', at: 2_101, hold: 'w' },
  );
  const series = (...times: number[]): HistoryEvent[] =>
    times.flatMap((from, at) =>
      history({
        type: 'held',
        process: 'server',
        lock: 'x',
        owner: `c:${at}`,
        from,
        at: times[at + 1] ?? 1_990,
        handedOver: at > 0,
      }),
    );
  const end = history({ type: 'held', process: 'server', lock: 'x', owner: 'd:1', from: 1_995, at: 2_101 });
  const shares: CheckOptions = { allFaultsTold: true, shareMs: 100 };

  test('end with the share of the client', () => {
    expect(found([...series(500, 520, 700, 800), ...waits, ...end], shares)).toEqual([]);
    expect(found([...series(500, 520, 700, 900), ...waits, ...end], shares)).toEqual([]);
    expect(found([...series(500, 520, 700, 1_000), ...waits, ...end], shares)).toEqual(['more than a fair share']);
  });
});

import { expect, test } from '@jest/globals';
import { effectsOf, takeBy, type Take } from './takes.js';
import type { HistoryEvent } from '../../support/history/history-events.js';
import { check } from '../../support/history/history.js';
import { history, type Bare } from '../../support/history/told-history.js';

const WATCHED_MS = 3_000;

/** The requests of one process with the clients `x` and `y`, and the commands of the servers for them. */
const violations = (events: HistoryEvent[], ...takes: Omit<Take, 'script'>[]): string[] =>
  violationsWith(0, events, takes);

/** The same, if the client asks for so much more than the lease of a call. */
const violationsWith = (extraMs: number, events: HistoryEvent[], takes: readonly Omit<Take, 'script'>[]): string[] => {
  const ran = takes.map((take) => ({ script: 'lock/acquire', ...take }));
  const effects = effectsOf(
    ran,
    events,
    () => 'A',
    () => WATCHED_MS,
    () => extraMs,
  );
  return check([...events, ...effects]).map(({ kind }) => kind);
};

/** Requested at 100, granted at 110, released from 500 to 510. */
function granted(lock: string, owner: string, leaseTime?: number): HistoryEvent[] {
  const terms = { joint: true, ...(leaseTime !== undefined && { leaseTime }) };
  const events: Bare<HistoryEvent>[] = [
    { type: 'acquire-invoke', at: 100, call: 'c', lock, ...terms },
    { type: 'acquire-ok', at: 110, call: 'c', hold: 'h', owner, validUntil: 900 },
    { type: 'release-invoke', at: 500, hold: 'h', validUntil: 900 },
    { type: 'release-ok', at: 510, hold: 'h' },
  ];
  return history(...events);
}

/** Requested at 200, refused at 210. */
const refused = (lock: string, leaseTime?: number): HistoryEvent[] =>
  history(
    { type: 'acquire-invoke', at: 200, call: 'd', lock, joint: true, ...(leaseTime !== undefined && { leaseTime }) },
    { type: 'acquire-fail', at: 210, call: 'd', reason: 'busy' },
  );

test('a late grant of a RedLock is an effect of the call that holds it and not of a refused call', () => {
  const late = { at: 300, lock: 'red:1', owner: 'y:7', leaseTime: WATCHED_MS };
  expect(violations([...granted('red:1', 'x:1'), ...refused('red:1')], late)).toEqual([]);
  expect(violations([...granted('red:1', 'x:1'), ...refused('red:1', 500)], late)).toEqual([]);
  expect(violations([...granted('red:1', 'x:1'), ...refused('red:1')], { ...late, at: 600 })).toEqual([]);
  // Its process has died with it, and a released hold acquires nothing more.
  expect(violations([...granted('red:1', 'x:1').slice(0, 2), ...refused('red:1')], late)).toEqual([]);
  expect(violations([...granted('red:1', 'x:1'), ...refused('red:1')], { ...late, at: 1_300 })).toEqual([
    'effect after the rejection',
  ]);
  expect(violations(refused('red:1'), late)).toEqual(['effect after the rejection']);
  expect(violations([...granted('red:1', 'x:1'), ...refused('red:1', 500)], { ...late, leaseTime: 500 })).toEqual([
    'effect after the rejection',
  ]);
});

test('a member of several locks asks for its lease alone, and every other call for `local` ms more', () => {
  const take = { at: 105, lock: 'lock:1', owner: 'x:1', leaseTime: 500 };
  expect(violationsWith(20, granted('lock:1', 'x:1', 500), [take])).toEqual([]);
  expect(violationsWith(20, granted('lock:1', 'x:1', 500), [{ ...take, leaseTime: 520 }])).toEqual(['left behind']);
  const alone = granted('lock:1', 'x:1', 500).map((event) =>
    event.type === 'acquire-invoke' ? { ...event, joint: false } : event,
  );
  expect(violationsWith(20, alone, [{ ...take, leaseTime: 520 }])).toEqual([]);
  expect(violationsWith(20, alone, [take])).toEqual(['left behind']);
});

test('an effect without a call is reported as left behind', () => {
  expect(violations([], { at: 300, lock: 'lock:1', owner: 'x:1', leaseTime: 77 })).toEqual(['left behind']);
});

test('owner and lease of a request are read from the arguments that the script header names', () => {
  const by = (script: string, ...args: string[]): unknown => {
    const { owner, leaseTime } = takeBy({ script, keys: ['x'], args }, 0, 'x') ?? {};
    return [owner, leaseTime];
  };
  expect(by('lock/acquire', 'x:1', '77', '0')).toEqual(['x:1', 77]);
  expect(by('read-write-lock/acquire-read', '{x}', 'x:1', '77', '0')).toEqual(['x:1', 77]);
  expect(by('read-write-lock/nest-write', 'x:1:write', '2', '77', '0')).toEqual(['x:1', 77]);
  expect(by('read-write-lock/hand-off', '{x}', 'x:1', 'x:2:write', '77', 'PUBLISH')).toEqual(['x:2', 77]);
});

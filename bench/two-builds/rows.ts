import type { ClientOptions } from 'holdfast';
import type { Shape } from './tasks.js';

/** One row of the comparison of two builds. */
export interface BuildRow {
  readonly name: string;
  readonly processes: number;
  readonly work:
    | { readonly is: 'sections'; readonly shape: Shape }
    | { readonly is: 'hand-off'; readonly waiters: number; readonly isFair: boolean }
    | { readonly is: 'renewals'; readonly locks: number }
    | { readonly is: 'waiters'; readonly waiters: number };
  /** A build that does not know these leaves the row out. */
  readonly options?: ClientOptions;
  readonly pairs: { readonly full: number; readonly quick: number };
}

const PAIRS = { full: 15, quick: 5 };

const sections = (name: string, processes: number, shape: Shape, options: ClientOptions = {}): BuildRow => ({
  name,
  processes,
  work: { is: 'sections', shape },
  options,
  pairs: PAIRS,
});

const handOff = (name: string, waiters: number, isFair = false): BuildRow => ({
  name,
  processes: 2,
  work: { is: 'hand-off', waiters, isFair },
  pairs: PAIRS,
});

export const BUILD_ROWS: readonly BuildRow[] = [
  sections('1 flow', 1, { kind: 'lock', flows: 1, holdMs: 0, isDistinct: true }),
  sections('100 flows, distinct keys', 1, { kind: 'lock', flows: 100, holdMs: 0, isDistinct: true }),
  sections('1 x 50, hold 0', 1, { kind: 'lock', flows: 50, holdMs: 0 }),
  sections('1 x 50, hold 1 ms', 1, { kind: 'lock', flows: 50, holdMs: 1 }),
  sections('1 x 500, hold 0', 1, { kind: 'lock', flows: 500, holdMs: 0 }),
  sections('4 x 10, hold 0', 4, { kind: 'lock', flows: 10, holdMs: 0 }),
  sections('4 x 10, hold 1 ms', 4, { kind: 'lock', flows: 10, holdMs: 1 }),
  sections('fair lock, 1 x 20, hold 1 ms', 1, { kind: 'fair', flows: 20, holdMs: 1 }),
  sections('fair lock, 4 x 10, hold 1 ms', 4, { kind: 'fair', flows: 10, holdMs: 1 }),
  sections('read-write lock, 95 % reads, 1 x 50, hold 1 ms', 1, { kind: 'read-write', flows: 50, holdMs: 1 }),
  sections('permits, 1 x 50, hold 1 ms', 1, { kind: 'permits', flows: 50, holdMs: 1 }),
  sections('permits, 4 x 10, hold 1 ms', 4, { kind: 'permits', flows: 10, holdMs: 1 }),
  sections('permits with leases, 1 x 50, hold 1 ms', 1, { kind: 'leased permits', flows: 50, holdMs: 1 }),
  sections('permits with leases, 4 x 10, hold 1 ms', 4, { kind: 'leased permits', flows: 10, holdMs: 1 }),
  sections('RedLock, 3 servers, 1 flow', 1, { kind: 'red', flows: 1, holdMs: 0 }),
  sections('RedLock, 3 servers, 4 x 10, hold 1 ms', 4, { kind: 'red', flows: 10, holdMs: 1 }),
  handOff('hand-off, 1 waiter', 1),
  handOff('hand-off, 50 waiters', 50),
  handOff('fair hand-off, 1 waiter', 1, true),
  {
    name: '10,000 locks held',
    processes: 1,
    work: { is: 'renewals', locks: 10_000 },
    options: { lockWatchdogTimeout: 6_000 },
    pairs: { full: 4, quick: 2 },
  },
  { name: '1,000 wait', processes: 1, work: { is: 'waiters', waiters: 1_000 }, pairs: { full: 5, quick: 2 } },
  sections('local: 20, 1 x 50, hold 0', 1, { kind: 'lock', flows: 50, holdMs: 0 }, { handOff: { local: 20 } }),
  sections('release in the background, 1 flow', 1, { kind: 'lock', flows: 1, holdMs: 0 }, { release: 'background' }),
];

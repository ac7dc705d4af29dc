import { isCeiling, type Row } from './workloads/workload.js';

/** What has to be reached, as ratios between subjects of the same run or, for latencies, in milliseconds. */
interface Bar {
  readonly workload: string;
  readonly subject: string;
  readonly figure: string;
  readonly is: 'at least' | 'at most' | 'below' | 'exactly';
  readonly limit: number;
}

const scoped = 'holdfast withLock';
const fair = 'holdfast fair lock';
const bare = 'holdfast lock/unlock';

/**
 * A crowd that waits. For the sustained rows there is no bar: a peer whose releasing flow enters again past everybody
 * that waits does without hand-offs, and comes as near to the ceiling as anybody, at the price of its longest wait.
 */
const crowd = (shape: string, limit: number): Bar => ({
  workload: `burst, ${shape}`,
  subject: scoped,
  figure: 'x best peer',
  is: 'at least',
  limit,
});

const besideRedisson = (shape: string, limit: number): Bar => ({
  workload: `beside Redisson: ${shape}`,
  subject: 'holdfast',
  figure: 'x Redisson',
  is: 'at least',
  limit,
});

/** Less than Redisson takes itself. */
const quicker = (shape: string): Bar[] =>
  ['p50', 'p95'].map((part) => ({
    workload: `beside Redisson: ${shape}`,
    subject: 'holdfast',
    figure: `${part} of Redisson`,
    is: 'below',
    limit: 1,
  }));

/** Ten may be inside at once. */
const permits = (shape: string): Bar[] => {
  const workload = `semaphore, 10 permits, ${shape}, hold 1 ms`;
  return ['holdfast withPermits', 'holdfast withPermit'].flatMap((subject): Bar[] => [
    { workload, subject, figure: 'x best peer', is: 'at least', limit: 1.3 },
    { workload, subject, figure: 'requests/section', is: 'at most', limit: subject.endsWith('s') ? 5 : 1 },
  ]);
};

/** The options that save requests (docs/hot-locks.md). */
const hot = (shape: string, subject: string, figure: string, is: Bar['is'], limit: number): Bar => ({
  workload: `hot lock, ${shape}`,
  subject: `holdfast, ${subject}`,
  figure,
  is,
  limit,
});

const HOT: readonly Bar[] = [
  hot('1 x 50, hold 0', 'local: 20', 'x best Node peer', 'at least', 20),
  hot('1 x 50, hold 0', 'local: 20', 'x Redisson', 'at least', 10),
  hot('1 x 50, hold 0', 'local: 20', 'requests/section', 'at most', 0.1),
  hot('1 x 50, hold 1 ms', 'local: 20', 'of no lock', 'at least', 0.95),
  hot('1 x 50, hold 1 ms, network 1 ms', 'local: 20', 'x default', 'at least', 2.5),
  // A waiter of another process waits at most `local` longer than without the option.
  ...['4 x 10, hold 0', '4 x 10, hold 1 ms'].map((shape) =>
    hot(shape, 'local: 20', 'longest wait beyond default ms', 'at most', 20),
  ),
  hot('1 flow', 'keep: 500', 'x bare scripts', 'at least', 20),
  hot('1 flow, network 1 ms', 'release in the background', 'p50 of default', 'at most', 0.55),
];

const BARS: readonly Bar[] = [
  ...HOT,
  ...permits('50 flows'),
  ...permits('4 processes x 10'),
  { workload: '1 flow', subject: scoped, figure: 'of raw', is: 'at least', limit: 0.97 },
  { workload: '1 flow', subject: bare, figure: 'of raw', is: 'at least', limit: 0.9 },
  { workload: '1 flow, all on one core', subject: scoped, figure: 'of raw', is: 'at least', limit: 0.97 },
  { workload: '1 flow, all on one core', subject: bare, figure: 'of raw', is: 'at least', limit: 0.9 },
  { workload: '100 flows, distinct keys', subject: scoped, figure: 'of raw', is: 'at least', limit: 0.9 },
  { workload: '100 flows, distinct keys', subject: bare, figure: 'of raw', is: 'at least', limit: 0.65 },
  crowd('50 flows, hold 1 ms', 2),
  crowd('50 flows, hold 0', 2),
  crowd('500 flows, hold 1 ms', 3),
  crowd('500 flows, hold 0', 2),
  crowd('4 processes x 10, hold 1 ms', 1.3),
  ...['1 flow', '100 flows, distinct keys', '1 x 50 flows on one key', '4 x 10 flows on one key'].map((work): Bar => ({
    workload: `cluster: ${work}`,
    subject: 'cluster of 3, acks 0',
    figure: 'of one server',
    is: 'at least',
    limit: 0.9,
  })),
  { workload: 'hand-off, 1 waiter', subject: scoped, figure: 'p50 ms', is: 'below', limit: 1.2 },
  { workload: 'hand-off, 50 waiters', subject: scoped, figure: 'p95 ms', is: 'below', limit: 4 },
  { workload: 'RedLock, 3 servers, 1 flow', subject: 'holdfast', figure: 'of redlock p50', is: 'at most', limit: 1.5 },
  {
    workload: 'RedLock, 3 servers, 4 processes x 10, hold 1 ms',
    subject: 'holdfast',
    figure: 'x best peer',
    is: 'at least',
    limit: 2,
  },
  { workload: 'RedLock, one of 3 servers hangs', subject: 'holdfast', figure: 'longest ms', is: 'below', limit: 100 },
  {
    workload: 'RedLock, one of 3 servers hangs, 2 processes, hold 1 ms',
    subject: 'holdfast',
    figure: 'of all 3',
    is: 'at least',
    limit: 0.7,
  },
  { workload: 'fair lock, 4 processes x 10, hold 1 ms', subject: fair, figure: 'of plain', is: 'at least', limit: 0.5 },
  ...Object.entries({ 'requests/section': 4, 'commands/section': 20 }).map(([figure, limit]): Bar => ({
    workload: 'fair lock, 4 processes x 10, hold 1 ms',
    subject: fair,
    figure,
    is: 'at most',
    limit,
  })),
  { workload: '100,000 locks held for a minute', subject: scoped, figure: 'client CPU s', is: 'at most', limit: 2.5 },
  // Six renewals with two calls for each lock, and those of their requests.
  { workload: '100,000 locks held for a minute', subject: scoped, figure: 'commands/lock', is: 'at most', limit: 12.2 },
  { workload: '1,000 wait on a held key', subject: scoped, figure: 'requests/s', is: 'exactly', limit: 0 },
  { workload: '1,000 wait on a held key', subject: scoped, figure: 'bytes/waiter', is: 'at most', limit: 2_048 },
  besideRedisson('1 flow', 2),
  besideRedisson('100 flows, distinct keys', 3),
  besideRedisson('1 x 50, hold 1 ms', 1.15),
  besideRedisson('1 x 50, hold 0', 1.5),
  besideRedisson('1 x 500, hold 1 ms', 1.5),
  besideRedisson('1 x 500, hold 0', 1.5),
  besideRedisson('4 x 10, hold 1 ms', 2),
  besideRedisson('4 x 10, hold 0', 2),
  besideRedisson('fair, 1 x 20', 1.4),
  besideRedisson('fair, 4 x 10', 3),
  besideRedisson('read-write, 95 % reads, 1 x 50', 1.5),
  ...quicker('hand-off, 1 waiter'),
  ...quicker('hand-off, 50 waiters'),
  ...quicker('fair hand-off, 1 waiter'),
];

export interface Verdict extends Bar {
  readonly measured: number;
  readonly met: boolean;
  /** The same figure without any lock, if that does not reach the bar either. */
  readonly ceiling: number | undefined;
}

/** Only of what was measured. */
export function judge(rows: readonly Row[]): Verdict[] {
  return BARS.flatMap((bar) => {
    const row = rows.find(({ workload, subject }) => workload === bar.workload && subject === bar.subject);
    const measured = row?.figures[bar.figure];
    if (measured === undefined) return [];
    const without = rows.find((each) => each.workload === bar.workload && isCeiling(each))?.figures[bar.figure];
    const ceiling = without === undefined || reaches(without, bar) ? undefined : without;
    return [{ ...bar, measured, met: reaches(measured, bar), ceiling }];
  });
}

function reaches(measured: number, { is, limit }: Bar): boolean {
  switch (is) {
    case 'at least':
      return measured >= limit;
    case 'at most':
      return measured <= limit;
    case 'below':
      return measured < limit;
    case 'exactly':
      return measured === limit;
  }
}

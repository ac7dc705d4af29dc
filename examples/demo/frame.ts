import { seconds, type HoldBar, type Timeline, type WorkerStatus } from './timeline.js';

export interface FrameOptions {
  readonly columns: number;
  readonly color: boolean;
}

/** A piece of a line, in a colour of the 256 or in one of the terminal's renditions. */
type Piece = readonly [text: string, style?: string | undefined];

const BOLD = '1';
const DIM = '2';
const ALARM = '1;38;5;203';
const WORKER_STYLES = ['38;5;39', '38;5;214', '38;5;42', '38;5;141'];
const WIDEST = 132;
const LAST_MARKS = 6;

/** The state of the demo as lines of a terminal, none of them wider than it. */
export function frame(timeline: Timeline, now: number, { columns, color }: FrameOptions): string[] {
  const width = Math.min(columns, WIDEST) - 1;
  const styles = new Map(
    [...timeline.workers.keys()].map((name, at) => [name, WORKER_STYLES[at % WORKER_STYLES.length]!]),
  );
  const lines: Piece[][] = [
    [
      ['holdfast demo', BOLD],
      [`  ${timeline.workers.size} processes contend for ${timeline.orders.length} orders  `],
      [
        `${seconds(Math.min(now, timeline.endsAt) - timeline.startedAt)} s of ${seconds(timeline.endsAt - timeline.startedAt)} s`,
        DIM,
      ],
    ],
    [['█ held   ╳ its process is dead, its lease is not over   ░ lost, and not noticed yet   · free', DIM]],
    [],
    ...timeline.orders.flatMap((order) => orderLines(timeline, order, now, width, styles)),
    ...[...timeline.workers.values()].map((worker) => workerLine(timeline, worker, styles)),
    [],
    ...markLines(timeline),
  ];
  return lines.map((pieces) => clip(pieces, width, color));
}

function orderLines(
  timeline: Timeline,
  order: string,
  now: number,
  width: number,
  styles: ReadonlyMap<string, string>,
): Piece[][] {
  const bar = timeline.holderOf(order);
  const waiting = timeline.waiting.filter((wait) => wait.order === order);
  const holder: Piece[] = bar ? holderPieces(bar, now, styles) : [['free'.padEnd(48), DIM]];
  const waiters = waiting.flatMap(({ worker, flow }): Piece[] => [[` ${worker}/${flow}`, styles.get(worker)]]);
  return [
    [[`${order}  `, BOLD], ...holder, [`${waiting.length} waiting`], ...waiters],
    strip(timeline, order, now, width, styles),
    [],
  ];
}

function holderPieces(bar: HoldBar, now: number, styles: ReadonlyMap<string, string>): Piece[] {
  const { worker, flow = '-', holdCount, until } = bar;
  const left = until === undefined ? '' : `lease ${seconds(Math.max(0, until - now))} s`;
  return [
    [`${worker}/${flow}  `, styles.get(worker)],
    [`hold count ${holdCount}  `.padEnd(15)],
    [left.padEnd(14), DIM],
    [bar.ended === 'killed' ? 'dead    ' : '        ', ALARM],
  ];
}

/** The whole run as one line: who held the order for most of each cell. */
function strip(
  timeline: Timeline,
  order: string,
  now: number,
  width: number,
  styles: ReadonlyMap<string, string>,
): Piece[] {
  const { startedAt, endsAt } = timeline;
  const cell = (Math.max(now, endsAt) - startedAt) / width;
  const cells = Array.from({ length: width }, (_, at): { piece: Piece; share: number } => ({
    piece: startedAt + at * cell < now ? ['·', DIM] : [' '],
    share: 0,
  }));
  for (const bar of timeline.bars) {
    if (bar.order !== order) continue;
    const { diedAt } = timeline.workers.get(bar.worker)!;
    const to = bar.to ?? now;
    for (let at = Math.floor((bar.from - startedAt) / cell); at < width && startedAt + at * cell < to; at++) {
      const [begins, ends] = [startedAt + at * cell, startedAt + (at + 1) * cell];
      const share = Math.min(to, ends) - Math.max(bar.from, begins);
      const there = cells[at];
      // One that was lost goes on beside the next one, who is the holder.
      const overrun = bar.ended === 'lost' && begins > (bar.until ?? to);
      if (!there || share <= there.share || (overrun && there.share > 0)) continue;
      const dead = bar.ended === 'killed' && diedAt !== undefined && begins >= diedAt;
      there.share = share;
      there.piece = [dead ? '╳' : overrun ? '░' : '█', styles.get(bar.worker)];
    }
  }
  return cells.map(({ piece }) => piece);
}

function workerLine(timeline: Timeline, worker: WorkerStatus, styles: ReadonlyMap<string, string>): Piece[] {
  const waiting = timeline.waiting.filter((wait) => wait.worker === worker.name).length;
  const figures = [
    `${worker.sections} sections`,
    `${waiting} waiting`,
    `${worker.renewals} renewals`,
    `${worker.handOffs} hand-offs`,
    `${worker.losses} lost`,
  ];
  return [
    [`${worker.name}  `, styles.get(worker.name)],
    [`pid ${worker.pid}  `.padEnd(14), DIM],
    [worker.state.padEnd(9), worker.state === 'blocked' || worker.state === 'killed' ? ALARM : undefined],
    [figures.map((figure) => figure.padStart(13)).join('')],
  ];
}

function markLines(timeline: Timeline): Piece[][] {
  const marks = timeline.marks.slice(-LAST_MARKS);
  return Array.from({ length: LAST_MARKS }, (_, at): Piece[] => {
    const mark = marks[at];
    if (!mark) return [];
    const time = `${seconds(mark.at - timeline.startedAt).padStart(6)} s  `;
    return [
      [time, DIM],
      [mark.text, mark.kind === 'taken over' ? undefined : ALARM],
    ];
  });
}

function clip(pieces: readonly Piece[], width: number, color: boolean): string {
  let left = width;
  let line = '';
  for (const [text, style] of pieces) {
    const shown = text.slice(0, left);
    left -= shown.length;
    line += color && style !== undefined && shown !== '' ? `\x1b[${style}m${shown}\x1b[0m` : shown;
  }
  return line;
}

import { stamp } from './messages.js';
import { seconds, type Timeline } from './timeline.js';

const EVERY_MS = 1_000;
const LOOK_EVERY_MS = 50;

/** The timeline where it cannot be redrawn: a line per order and second, and one for everything remarkable. */
export class PlainLines {
  readonly #timer: NodeJS.Timeout;
  #ticks = 0;

  constructor(
    private readonly timeline: Timeline,
    private readonly print: (line: string) => void,
  ) {
    timeline.onMark = ({ at, text }) => this.#line(at, text);
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = stamp();
    const ticks = Math.floor((now - this.timeline.startedAt) / EVERY_MS);
    if (this.timeline.startedAt === 0 || ticks <= this.#ticks) return;
    this.#ticks = ticks;
    this.#status(now);
  }

  #status(now: number): void {
    for (const order of this.timeline.orders) {
      const bar = this.timeline.holderOf(order);
      const waiters = this.timeline.waiting.filter((wait) => wait.order === order).length;
      const holder = bar
        ? `${bar.worker}${bar.flow === undefined ? '' : `/${bar.flow}`}${bar.ended === 'killed' ? ' (dead)' : ''}, hold count ${bar.holdCount}`
        : 'free';
      this.#line(now, `${order}: ${holder}, ${waiters} waiting`);
    }
    const workers = [...this.timeline.workers.values()];
    const total = (of: 'sections' | 'renewals' | 'handOffs' | 'losses'): number =>
      workers.reduce((sum, worker) => sum + worker[of], 0);
    this.#line(
      now,
      `so far: ${total('sections')} sections, ${total('renewals')} renewals, ` +
        `${total('handOffs')} hand-offs inside a process, ${total('losses')} lost`,
    );
  }

  #line(at: number, text: string): void {
    this.print(`${seconds(at - this.timeline.startedAt).padStart(6)} s  ${text}`);
  }
}

import type { WriteStream } from 'node:tty';
import { frame } from './frame.js';
import { stamp } from './messages.js';
import type { Timeline } from './timeline.js';

const EVERY_MS = 100;
const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
const CLEAR_LINE = '\x1b[K';

/** Redraws the timeline in place, below what the terminal shows already. */
export class LiveScreen {
  readonly #timer: NodeJS.Timeout;
  #lines = 0;

  constructor(
    private readonly timeline: Timeline,
    private readonly out: Pick<WriteStream, 'write'> & { columns?: number },
    private readonly color = process.env.NO_COLOR === undefined,
  ) {
    out.write(HIDE_CURSOR);
    this.#timer = setInterval(() => this.#draw(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#draw();
    this.out.write(SHOW_CURSOR);
  }

  #draw(): void {
    if (this.timeline.startedAt === 0) return;
    const lines = frame(this.timeline, stamp(), { columns: this.out.columns ?? 100, color: this.color });
    const up = this.#lines > 0 ? `\x1b[${this.#lines}A` : '';
    this.out.write(up + lines.map((line) => `${line}${CLEAR_LINE}\n`).join(''));
    this.#lines = lines.length;
  }
}

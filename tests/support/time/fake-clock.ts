import type { Clock, Timer } from '../../../src/clock.js';

interface Waiting {
  readonly at: number;
  readonly fn: () => void;
}

const TOO_MANY = 1_000_000;
const immediate = setImmediate;

/** A clock that a test moves. Timers fire in the order of their times, each at its own time. */
export class FakeClock implements Clock {
  #monotonic = 5_000;
  #wall = 1_700_000_000_000;
  /** In the order in which they were set. */
  readonly #timers = new Set<Waiting>();

  monotonic(): number {
    return this.#monotonic;
  }

  wall(): number {
    return this.#wall;
  }

  setTimer(ms: number, fn: () => void): Timer {
    // As Node does it: whole milliseconds, and never at once.
    const timer = { at: this.#monotonic + Math.max(1, Math.ceil(ms)), fn };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Timers that are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** ms until the next timer, or Infinity. */
  get nextIn(): number {
    const next = this.#next();
    return next ? Math.max(0, next.at - this.#monotonic) : Infinity;
  }

  /** Moves forward by `ms` and runs the timers that are due on the way, with the promises that they resolve. */
  async advance(ms: number): Promise<void> {
    await settle();
    for (const timer of this.#due(ms)) {
      timer.fn();
      await settle();
    }
  }

  /** The same without letting promises run in between. */
  advanceSync(ms: number): void {
    for (const timer of this.#due(ms)) timer.fn();
  }

  /** Blocks the event loop: time passes and no timer runs. Due timers run at the next advance, also by 0. */
  block(ms: number): void {
    this.#monotonic += ms;
    this.#wall += ms;
  }

  /** Moves the wall clock alone: it was set, or the machine slept. */
  jumpWall(ms: number): void {
    this.#wall += ms;
  }

  *#due(ms: number): Iterable<Waiting> {
    const end = this.#monotonic + ms;
    let run = 0;
    for (let next = this.#next(); next && next.at <= end; next = this.#next()) {
      if (++run > TOO_MANY) throw new Error(`timers go on for ever at ${this.#monotonic} ms`);
      this.#timers.delete(next);
      this.block(Math.max(0, next.at - this.#monotonic));
      yield next;
    }
    // A callback may itself have moved the clock.
    this.block(Math.max(0, end - this.#monotonic));
  }

  #next(): Waiting | undefined {
    let next: Waiting | undefined;
    for (const timer of this.#timers) if (next === undefined || timer.at < next.at) next = timer;
    return next;
  }
}

/** Lets everything run that promises have already set off. */
function settle(): Promise<void> {
  return new Promise((resolve) => immediate(() => resolve()));
}

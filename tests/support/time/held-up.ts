/*
 * Limits in ms are for our code. On a machine that others use there is time in which this process wants to run and is
 * not let; it has no bound, and says nothing about our code.
 */

const TICK_MS = 10;
/** By so much a timer may be late on a machine that has nothing else to do. */
const LATE_MS = 10;

interface Stretch {
  readonly from: number;
  readonly until: number;
  readonly ms: number;
}

/** Measures, until it is stopped, when this process is held up. Time that the process itself uses does not count. */
export class HeldUp {
  readonly #stretches: Stretch[] = [];
  #looked = performance.now();
  #used = process.cpuUsage();
  readonly #ticks = setInterval(() => this.#look(), TICK_MS).unref();

  stop(): void {
    clearInterval(this.#ticks);
  }

  /** From one `performance.now()` to another, less the time in which the process was held up. */
  elapsed(from: number, until = performance.now()): number {
    this.#look();
    let ms = until - from;
    for (const held of this.#stretches) {
      const within = Math.min(until, held.until) - Math.max(from, held.from);
      if (within > 0) ms -= Math.min(held.ms, within);
    }
    return ms;
  }

  /** Since the last look a tick should have passed, and time in which the process worked. */
  #look(): void {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#used);
    const from = this.#looked + TICK_MS;
    const ms = now - from - (user + system) / 1_000;
    if (ms > LATE_MS) this.#stretches.push({ from, until: now, ms });
    this.#looked = now;
    this.#used = process.cpuUsage();
  }
}

import type { JumpedMs, LeaseClock, LeaseClockMs, Timer } from '../../clock.js';

/** A call that waits for a limited time. */
export interface LimitedCall {
  /** When the wait ends. */
  readonly until: LeaseClockMs;
  timeIsUp(): void;
}

/**
 * The time limits of the calls of one client, behind one timer. A timer for each call takes 0.9 KiB of heap, and an
 * element of this list takes 8 bytes.
 */
export class TimeLimits {
  /** In the order of their times. */
  readonly #calls: LimitedCall[] = [];
  #timer: Timer | undefined;
  #armedAtJump: JumpedMs = 0;

  constructor(private readonly clock: LeaseClock) {}

  add(call: LimitedCall): void {
    const at = this.#placeAt(call.until);
    this.#calls.splice(at, 0, call);
    // A timer that was set before a jump of the clock fires too late.
    if (at === 0 || this.clock.jumped !== this.#armedAtJump) this.#arm();
  }

  delete(call: LimitedCall): void {
    const calls = this.#calls;
    // Several calls may have the same time.
    for (let at = this.#placeAt(call.until) - 1; calls[at]?.until === call.until; at -= 1) {
      if (calls[at] !== call) continue;
      calls.splice(at, 1);
      // The timer of an earlier call may fire once more. Most calls leave long before their time limit.
      if (calls.length === 0) this.#stop();
      return;
    }
  }

  /** The number of calls whose time limit is not later. */
  #placeAt(until: LeaseClockMs): number {
    const calls = this.#calls;
    let from = 0;
    let to = calls.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((calls[middle] as LimitedCall).until <= until) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  #arm(): void {
    this.#stop();
    const [first] = this.#calls;
    if (first === undefined) return;
    this.#armedAtJump = this.clock.jumped;
    this.#timer = this.clock.setTimer(first.until, () => this.#fire());
  }

  #stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #fire(): void {
    const now = this.clock.now();
    // A call that leaves may end the wait of other calls, so look at the list again after each of them.
    for (let [first] = this.#calls; first !== undefined && first.until <= now; [first] = this.#calls) {
      this.#calls.shift();
      first.timeIsUp();
    }
    this.#arm();
  }
}

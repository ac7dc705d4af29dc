import type { JumpedMs, LeaseClock, LeaseClockMs, Timer } from '../../clock.js';

/** A call that waits for a limited time. */
export interface LimitedCall {
  /** When the wait ends. */
  readonly until: LeaseClockMs;
  /** Where the call stands in the time limits of its client. */
  place: number;
  timeIsUp(): void;
}

/**
 * The time limits of the calls of one client, behind one timer. A timer for each call takes 0.9 KiB of memory, and a place
 * in this list takes 16 bytes.
 */
export class TimeLimits {
  /** A binary heap: no call ends later than the two calls at `2 * place + 1` and `2 * place + 2`. */
  readonly #calls: LimitedCall[] = [];
  #timer: Timer | undefined;
  #armedAtJump: JumpedMs = 0;

  constructor(private readonly clock: LeaseClock) {}

  add(call: LimitedCall): void {
    this.#rise(call, this.#calls.length);
    // A timer that was set before a jump of the clock fires too late.
    if (call.place === 0 || this.clock.jumped !== this.#armedAtJump) this.#arm();
  }

  delete(call: LimitedCall): void {
    const { place } = call;
    if (this.#calls[place] !== call) return;
    const last = this.#calls.pop() as LimitedCall;
    if (last !== call) this.#sink(last, this.#rise(last, place));
    // The timer of an earlier call may fire once more. Most calls leave long before their time limit.
    if (this.#calls.length === 0) this.#stop();
  }

  /** Puts the call where no call above it ends later, at `place` or above. Returns its place. */
  #rise(call: LimitedCall, place: number): number {
    while (place > 0) {
      const above = this.#calls[(place - 1) >>> 1] as LimitedCall;
      if (above.until <= call.until) break;
      this.#put(above, place);
      place = (place - 1) >>> 1;
    }
    return this.#put(call, place);
  }

  /** Puts the call where no call below it ends sooner, at `place` or below. */
  #sink(call: LimitedCall, place: number): void {
    const calls = this.#calls;
    for (;;) {
      const at = 2 * place + 1;
      const [left, right] = [calls[at], calls[at + 1]];
      const sooner = left !== undefined && right !== undefined && right.until < left.until ? right : left;
      if (sooner === undefined || sooner.until >= call.until) break;
      const below = sooner.place;
      this.#put(sooner, place);
      place = below;
    }
    this.#put(call, place);
  }

  #put(call: LimitedCall, place: number): number {
    this.#calls[place] = call;
    return (call.place = place);
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
    // A call that leaves may end the wait of other calls, so look at the first one again after each of them.
    for (let [first] = this.#calls; first !== undefined && first.until <= now; [first] = this.#calls) {
      this.delete(first);
      first.timeIsUp();
    }
    this.#arm();
  }
}

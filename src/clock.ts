/** Time, behind one interface so that tests can move it. All values are milliseconds. */
export interface Clock {
  /** Never goes back; stands still while the machine sleeps. */
  monotonic(): number;
  /** Epoch time; may be set by hand. */
  wall(): number;
  /**
   * The callback runs outside of every hold. The timer does not keep the process alive, unless `keepsAlive` is true: a
   * call that waits for it, while no connection is open, would otherwise never settle because the process ends.
   */
  setTimer(ms: number, fn: () => void, keepsAlive?: boolean): Timer;
}

export interface Timer {
  cancel(): void;
}

/** Resolves when the work is over, after so many ms at the latest; then it goes on by itself. */
export async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  let timer: Timer | undefined;
  await Promise.race([work, new Promise<void>((over) => (timer = clock.setTimer(ms, over, true)))]);
  timer?.cancel();
}

const MAX_TIMER_MS = 2 ** 31 - 1;

export function systemClock(outside: (fn: () => void) => void): Clock {
  return {
    monotonic: () => performance.now(),
    wall: () => Date.now(),
    setTimer(ms, fn, keepsAlive = false) {
      // A longer wait fires early.
      let handle: NodeJS.Timeout | undefined;
      outside(() => {
        handle = setTimeout(fn, Math.min(Math.max(Math.ceil(ms), 0), MAX_TIMER_MS));
        if (!keepsAlive) handle.unref();
      });
      return { cancel: () => clearTimeout(handle) };
    },
  };
}

/** A jump of the wall clock beyond this is a sleep or a correction, not the rounding of two clocks read in turn. */
const JUMP_MS = 50;

/**
 * The time that leases are counted in: the monotonic or the wall clock, whichever has moved further. A machine that
 * slept must not believe in a lease that ended meanwhile.
 */
export class LeaseClock {
  #base: number;
  #jumped = 0;

  constructor(readonly clock: Clock) {
    const monotonic = clock.monotonic(); // first: time lost in between must not look like a jump later
    this.#base = clock.wall() - monotonic;
  }

  now(): number {
    let monotonic = this.clock.monotonic();
    let drift = this.clock.wall() - monotonic - this.#base;
    if (drift > JUMP_MS) {
      // The process may have stood between the two looks; a clock that was set is ahead at the next ones too.
      monotonic = this.clock.monotonic();
      drift = this.clock.wall() - monotonic - this.#base;
    }
    if (drift > JUMP_MS) {
      this.#jumped += drift;
      this.#base += drift;
    } else if (drift < -JUMP_MS) {
      this.#base += drift;
    }
    return monotonic + this.#jumped;
  }

  /** How far the wall clock has run ahead in all; a hold confirmed at a smaller value is unconfirmed. */
  get jumped(): number {
    return this.#jumped;
  }

  /** Runs `fn` once this clock has reached `at`. A timer goes by the monotonic clock alone, and may fire early. */
  setTimer(at: number, fn: () => void, keepsAlive?: boolean): Timer {
    let timer: Timer;
    const wait = (): void => {
      timer = this.clock.setTimer(at - this.now(), () => (this.now() < at ? wait() : fn()), keepsAlive);
    };
    wait();
    return { cancel: () => timer.cancel() };
  }
}

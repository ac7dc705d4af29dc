/** The clocks and timers of a client, behind one interface so that tests can move time. All values are milliseconds. */
export interface Clock {
  /** Monotonic time: it never goes backwards, and it stands still while the machine sleeps. */
  monotonic(): number;
  /** Epoch time. An administrator or NTP may set it. */
  wall(): number;
  /**
   * Runs `fn` outside of every hold. The timer keeps the process alive only if `keepsAlive` is true. A timer that a
   * pending call depends on needs that: without an open connection the process would exit before the call settles.
   */
  setTimer(ms: number, fn: () => void, keepsAlive?: boolean): Timer;
}

/** A pending timer. */
export interface Timer {
  cancel(): void;
}

/** Resolves when `work` settles, or after `ms` milliseconds. The work continues in the background after that. */
export async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  let timer: Timer | undefined;
  await Promise.race([work, new Promise<void>((over) => (timer = clock.setTimer(ms, over, true)))]);
  timer?.cancel();
}

const MAX_TIMER_MS = 2 ** 31 - 1;

/** The clocks and timers of the process. */
export function systemClock(outside: (fn: () => void) => void): Clock {
  return {
    monotonic: () => performance.now(),
    wall: () => Date.now(),
    setTimer(ms, fn, keepsAlive = false) {
      // setTimeout cannot wait longer, so a longer timer fires early.
      let handle: NodeJS.Timeout | undefined;
      outside(() => {
        handle = setTimeout(fn, Math.min(Math.max(Math.ceil(ms), 0), MAX_TIMER_MS));
        if (!keepsAlive) handle.unref();
      });
      return { cancel: () => clearTimeout(handle) };
    },
  };
}

/**
 * A larger difference between the two clocks, in milliseconds, is a sleep of the machine or a correction of the wall
 * clock. A smaller one comes from reading the clocks one after the other.
 */
const JUMP_MS = 50;

/**
 * The clock that leases are counted in: the monotonic or the wall clock, whichever has moved further. A machine that
 * slept must not trust a lease that ended during the sleep.
 */
export class LeaseClock {
  #base: number;
  #jumped = 0;

  constructor(readonly clock: Clock) {
    // Read the monotonic clock first: a pause between the two reads must not look like a jump later.
    const monotonic = clock.monotonic();
    this.#base = clock.wall() - monotonic;
  }

  now(): number {
    let monotonic = this.clock.monotonic();
    let drift = this.clock.wall() - monotonic - this.#base;
    if (drift > JUMP_MS) {
      // The process may have paused between the two reads. If the wall clock was set, a second read shows it again.
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

  /** Sum of all forward jumps, in milliseconds. A hold that was confirmed at a smaller value is unconfirmed. */
  get jumped(): number {
    return this.#jumped;
  }

  /** Runs `fn` when this clock has reached `at`. A system timer counts by the monotonic clock and may fire early. */
  setTimer(at: number, fn: () => void, keepsAlive?: boolean): Timer {
    let timer: Timer;
    const wait = (): void => {
      timer = this.clock.setTimer(at - this.now(), () => (this.now() < at ? wait() : fn()), keepsAlive);
    };
    wait();
    return { cancel: () => timer.cancel() };
  }
}

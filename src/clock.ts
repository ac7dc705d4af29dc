import { CLOCK_JUMP_MS } from './timing.js';

/**
 * A moment in milliseconds of the monotonic clock. The property is never set: it keeps moments of the two clocks apart.
 * A plain number, such as a sum, counts as a moment of either clock.
 */
export type MonotonicMs = number & { readonly clock?: 'monotonic' };

/** A moment in milliseconds of the {@link LeaseClock}. */
export type LeaseClockMs = number & { readonly clock?: 'lease' };

/** The forward jumps of the lease clock up to some moment, in milliseconds: its difference from the monotonic clock. */
export type JumpedMs = number & { readonly clock?: 'difference' };

/** The clocks and timers of a client, behind one interface so that tests can move time. All values are milliseconds. */
export interface Clock {
  /** Monotonic time: it never goes backwards, and it stands still while the machine sleeps. */
  monotonic(): MonotonicMs;
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

  now(): LeaseClockMs {
    let monotonic: number = this.clock.monotonic();
    let drift = this.clock.wall() - monotonic - this.#base;
    if (drift > CLOCK_JUMP_MS) {
      // The process may have paused between the two reads. If the wall clock was set, a second read shows it again.
      monotonic = this.clock.monotonic();
      drift = this.clock.wall() - monotonic - this.#base;
    }
    if (drift > CLOCK_JUMP_MS) {
      this.#jumped += drift;
      this.#base += drift;
    } else if (drift < -CLOCK_JUMP_MS) {
      this.#base += drift;
    }
    return monotonic + this.#jumped;
  }

  /** A hold that was confirmed at a smaller value is unconfirmed. */
  get jumped(): JumpedMs {
    return this.#jumped;
  }

  /** The jumps up to now. With them, {@link at} gives the lease-clock time of a request that is sent next. */
  jumpedByNow(): JumpedMs {
    this.now();
    return this.#jumped;
  }

  /** The lease-clock time of a moment at which the clock had jumped by `jumped`. */
  at(moment: MonotonicMs, jumped: JumpedMs): LeaseClockMs {
    return moment + jumped;
  }

  /** The monotonic time of a moment since the last jump. */
  monotonicAt(moment: LeaseClockMs): MonotonicMs {
    return moment - this.#jumped;
  }

  /** How far the clock has jumped since it had jumped by `jumped`, in milliseconds. */
  jumpedSince(jumped: JumpedMs, until: JumpedMs = this.#jumped): number {
    return until - jumped;
  }

  /** Runs `fn` when this clock has reached `at`. A system timer counts by the monotonic clock and may fire early. */
  setTimer(at: LeaseClockMs, fn: () => void, keepsAlive?: boolean): Timer {
    let timer: Timer;
    const wait = (): void => {
      timer = this.clock.setTimer(at - this.now(), () => (this.now() < at ? wait() : fn()), keepsAlive);
    };
    wait();
    return { cancel: () => timer.cancel() };
  }
}

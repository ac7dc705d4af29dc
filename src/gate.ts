import type { Clock, MonotonicMs } from './clock.js';

/** The end of a wait at a gate. */
interface GateWait {
  /** When the wait ends. */
  readonly until: MonotonicMs;
  /** The error that the wait rejects with at `until`. Absent: the wait resolves. */
  readonly late?: () => Error;
  /** The wait also ends when this promise settles. */
  readonly or?: Promise<void> | undefined;
  /** Whether the wait keeps the process alive, because a pending call depends on it. */
  readonly keepsAlive: boolean;
}

/** Lets callers wait for an event, each until its own deadline. */
export class Gate {
  readonly #waiting = new Set<(error?: Error) => void>();

  constructor(private readonly clock: Clock) {}

  wait({ until, late, or, keepsAlive }: GateWait): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = (error?: Error): void => {
        timer.cancel();
        this.#waiting.delete(over);
        if (error === undefined) resolve();
        else reject(error);
      };
      const timer = this.clock.setTimer(until - this.clock.monotonic(), () => over(late?.()), keepsAlive);
      this.#waiting.add(over);
      or?.then(
        () => over(),
        (error: unknown) => over(error as Error),
      );
    });
  }

  /** The event has happened. With an error, all waits reject. */
  open(error?: Error): void {
    for (const over of [...this.#waiting]) over(error);
  }
}

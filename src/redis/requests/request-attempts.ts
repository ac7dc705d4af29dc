import type { Clock } from '../../clock.js';

/** What is left to know of a request, whatever its reply meant: which of its attempts may still take effect. */
export abstract class RequestAttempts {
  /** Monotonic ms until which an attempt that was not answered may still take effect; 0 if there is none. */
  openUntil = 0;
  /** Attempts that were written and not answered. */
  #unanswered = 0;
  /** It ran, and must be taken back although every attempt was answered. */
  #undone = false;
  #quiet: (() => void) | undefined;

  constructor(private readonly clock: Clock) {}

  /** Some attempt was written and has not been answered, so its effect is not known. */
  get inDoubt(): boolean {
    return this.#unanswered > 0 || this.#undone;
  }

  /** Resolves when no attempt can take effect any more: all are answered, or the not-after of the rest has passed. */
  async whenQuiet(): Promise<void> {
    const { clock } = this;
    while (this.#unanswered > 0 && clock.monotonic() <= this.openUntil) {
      await new Promise<void>((resolve) => {
        const timer = clock.setTimer(this.openUntil - clock.monotonic() + 1, resolve, true);
        const quiet = (): void => (timer.cancel(), resolve());
        this.#quiet = quiet;
      });
      this.#quiet = undefined;
    }
  }

  /** Sends nothing any more; what is under way is still read. */
  abstract abandon(): void;

  protected attemptWritten(openUntil: number): void {
    this.#unanswered += 1;
    this.openUntil = Math.max(this.openUntil, openUntil);
  }

  protected attemptAnswered(): void {
    this.#unanswered -= 1;
    if (this.#unanswered === 0) {
      this.openUntil = 0;
      this.#quiet?.();
    }
  }

  protected mustBeUndone(): void {
    this.#undone = true;
  }
}

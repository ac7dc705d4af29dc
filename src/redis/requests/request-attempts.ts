import type { Clock } from '../../clock.js';
import { Gate } from '../../gate.js';

/** Tracks which attempts of a request may still take effect, regardless of what the reply means. */
export abstract class RequestAttempts {
  /** Monotonic time, in ms, until which an unanswered attempt may still take effect; 0 if every attempt is answered. */
  openUntil = 0;
  /** Number of attempts that were written and are unanswered. */
  #unanswered = 0;
  /** The request took effect and must be undone, even though every attempt is answered. */
  #undone = false;
  #quiet: Gate | undefined;

  constructor(private readonly clock: Clock) {}

  /** The effect of the request is unknown, or must be undone. */
  get inDoubt(): boolean {
    return this.#unanswered > 0 || this.#undone;
  }

  /** Resolves when no attempt can still take effect: each is answered, or its not-after time has passed. */
  async whenQuiet(): Promise<void> {
    const { clock } = this;
    while (this.#unanswered > 0 && clock.monotonic() <= this.openUntil) {
      this.#quiet ??= new Gate(clock);
      await this.#quiet.wait({ until: this.openUntil + 1, keepsAlive: true });
    }
  }

  /** Stops sending attempts. Replies to pending attempts are still read. */
  abstract abandon(): void;

  protected attemptWritten(openUntil: number): void {
    this.#unanswered += 1;
    this.openUntil = Math.max(this.openUntil, openUntil);
  }

  protected attemptAnswered(): void {
    this.#unanswered -= 1;
    if (this.#unanswered === 0) {
      this.openUntil = 0;
      this.#quiet?.open();
    }
  }

  protected mustBeUndone(): void {
    this.#undone = true;
  }
}

import type { Clock, MonotonicMs } from '../../clock.js';
import { Gate } from '../../gate.js';

/**
 * The doubt about the effect of a request: an unanswered attempt may still run in Redis, or Redis has run an attempt
 * whose effect must be undone. The reply to another attempt does not end the doubt.
 */
export class Doubt {
  /** When the last attempt can run. A past time: none can. */
  until: MonotonicMs = 0;
  /** Number of attempts that were written and are unanswered. */
  #unanswered = 0;
  /** The request took effect and must be undone, even though every attempt is answered. */
  #undone = false;
  #settled: Gate | undefined;

  constructor(private readonly clock: Clock) {}

  get isOpen(): boolean {
    return this.#unanswered > 0 || this.#undone;
  }

  /** Resolves when no attempt can still run: each is answered, or its not-after time has passed. */
  async settled(): Promise<void> {
    const { clock } = this;
    while (this.#unanswered > 0 && clock.monotonic() <= this.until) {
      this.#settled ??= new Gate(clock);
      await this.#settled.wait({ until: this.until + 1, keepsAlive: true });
    }
  }

  attemptWritten(doubtUntil: MonotonicMs): void {
    this.#unanswered += 1;
    this.until = Math.max(this.until, doubtUntil);
  }

  attemptAnswered(): void {
    this.#unanswered -= 1;
    if (this.#unanswered === 0) {
      this.until = 0;
      this.#settled?.open();
    }
  }

  mustBeUndone(): void {
    this.#undone = true;
  }
}

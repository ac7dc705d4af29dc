import type { CommandConnection } from './command-connection.js';

/** One sending of a request. Its bytes may lie anywhere until it is answered or its not-after has passed. */
export interface Attempt {
  readonly connection: CommandConnection;
  /** Monotonic ms, before the bytes were written. */
  readonly sentAt: number;
  /** Monotonic ms after which we do not wait for the answer. */
  readonly deadline: number;
  /** Monotonic ms after which the server cannot act on it any more, by the lower bound of its clock that we have. */
  readonly openUntil: number;
  answered(raw: unknown): void;
  failed(error: Error): void;
  /** Nothing came before `deadline`; an answer may still follow. */
  timedOut(): void;
}

/**
 * The deadlines of all attempts of a connection behind one timer. A timer for each would cost more than the rest of
 * an uncontended acquire; here the timer is armed once and looks at what is still pending when it fires.
 */
export class AttemptDeadlines {
  readonly #pending = new Set<Attempt>();
  #timer: { cancel(): void } | undefined;
  #firesAt = Infinity;

  constructor(private readonly clock: { monotonic(): number; setTimer(ms: number, fn: () => void): { cancel(): void } }) {}

  get size(): number {
    return this.#pending.size;
  }

  add(attempt: Attempt): void {
    this.#pending.add(attempt);
    if (attempt.deadline < this.#firesAt) this.#arm(attempt.deadline);
  }

  delete(attempt: Attempt): boolean {
    return this.#pending.delete(attempt);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#firesAt = Infinity;
    this.#pending.clear();
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#firesAt = at;
    this.#timer = this.clock.setTimer(at - this.clock.monotonic(), () => this.#look());
  }

  #look(): void {
    this.#firesAt = Infinity;
    this.#timer = undefined;
    const now = this.clock.monotonic();
    let next = Infinity;
    for (const attempt of [...this.#pending]) {
      if (attempt.deadline > now) next = Math.min(next, attempt.deadline);
      else if (this.#pending.delete(attempt)) attempt.timedOut();
    }
    if (next < this.#firesAt) this.#arm(next);
  }
}

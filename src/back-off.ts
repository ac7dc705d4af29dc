/** Pauses between repeated attempts, in ms: the first one, the longest one, and the growth from one to the next. */
export interface Pauses {
  readonly first: number;
  readonly longest: number;
  readonly factor: number;
}

/** The pause after the n-th failure in a row, counted from 1. */
export const pauseAfter = ({ first, longest, factor }: Pauses, failures: number): number =>
  Math.min(first * factor ** (failures - 1), longest);

/** The pauses of one loop. Each is longer than the one before, up to a limit. */
export class BackOff {
  #failures = 0;

  constructor(private readonly pauses: Pauses) {}

  /** The next pause, in ms. */
  next(): number {
    return pauseAfter(this.pauses, ++this.#failures);
  }

  /** An attempt has succeeded: the next pause is the first one again. */
  reset(): void {
    this.#failures = 0;
  }
}

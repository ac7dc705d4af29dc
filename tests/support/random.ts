/**
 * A repeatable source of random numbers. The run's seed is printed when it starts; the label keeps two tests, or two
 * processes of one test, from drawing the same numbers.
 */
export class Random {
  #state: number;

  constructor(label: string, seed: string = process.env.HOLDFAST_SEED ?? '0') {
    this.#state = 2_166_136_261;
    for (const character of `${seed}/${label}`) {
      this.#state = Math.imul(this.#state ^ (character.codePointAt(0) ?? 0), 16_777_619);
    }
  }

  /** In [0, 1), by mulberry32. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer in [0, below). */
  below(below: number): number {
    return Math.floor(this.fraction() * below);
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[this.below(from.length)];
    if (picked === undefined) throw new Error('nothing to pick from');
    return picked;
  }
}

/**
 * The locks of one hold of several locks that stay with their owners after its release (`handOff.keep`). They may belong to
 * several clients. The release of one of them releases the others: a part of such a hold is of no use, and would keep
 * other clients out.
 */
export class KeptTogether {
  readonly #releases = new Set<() => void>();

  constructor(
    /** Equal for all locks over the same members. Only a call with the same identity enters these locks. */
    readonly identity: string,
  ) {}

  get size(): number {
    return this.#releases.size;
  }

  /** `release`: releases the added lock. */
  add(release: () => void): void {
    this.#releases.add(release);
  }

  delete(release: () => void): void {
    this.#releases.delete(release);
  }

  /** Releases all locks that are still kept. */
  release(): void {
    const releases = [...this.#releases];
    this.#releases.clear();
    for (const release of releases) release();
  }
}

/** Whether a lock may be kept after a hold: alone, or with the other members of a hold of several locks. */
export type MayBeKept = 'never' | 'alone' | KeptTogether;

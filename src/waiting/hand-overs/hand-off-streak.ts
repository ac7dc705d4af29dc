import type { LeaseClock } from '../../clock.js';
import type { ResolvedOptions } from '../../options.js';

/**
 * Limits of every streak. In a cluster without sharded pub/sub, the script does not see subscribers at other nodes.
 * Without these limits, a streak could then last forever.
 */
const HARD_LIMIT = { sections: 256, ms: 1_000 };

/** Counts the sections, and the time, for which hand-overs keep the lock in this process. */
export class HandOffStreak {
  #sections = 0;
  #startedAt: number | undefined;

  constructor(
    private readonly limit: ResolvedOptions['handOff'],
    private readonly clock: LeaseClock,
  ) {}

  /** Ends the streak: the client acquired the lock in Redis, or released the lock there. */
  reset(): void {
    this.#sections = 0;
    this.#startedAt = undefined;
  }

  /** Starts the time of the streak at its first hand-over. */
  start(): void {
    this.#startedAt ??= this.clock.now();
  }

  count(): void {
    this.#sections += 1;
  }

  /** Whether the streak may continue at all. */
  withinHardLimit(): boolean {
    if (this.limit === undefined) return false;
    return this.#sections < HARD_LIMIT.sections && this.#lastedMs() < HARD_LIMIT.ms;
  }

  /** Whether the streak may continue only if no other client waits: it has had the option's share of the lock. */
  pastFairShare(): boolean {
    if (this.limit === undefined) return true;
    return this.#sections >= this.limit.maxSections || this.#lastedMs() >= this.limit.maxTimeMs;
  }

  #lastedMs(): number {
    return this.#startedAt === undefined ? 0 : this.clock.now() - this.#startedAt;
  }
}

import type { LeaseClock } from '../../clock.js';
import type { ResolvedOptions } from '../../options.js';
import { STREAK_MS } from '../../timing.js';

/** Sections of every streak at most: see {@link STREAK_MS}. */
const STREAK_SECTIONS = 256;

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
    return this.#sections < STREAK_SECTIONS && this.#lastedMs() < STREAK_MS;
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

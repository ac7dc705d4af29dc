import type { LeaseClock } from '../clock.js';
import type { ResolvedOptions } from '../options.js';

/** In a cluster without sharded pub/sub, subscribers at other nodes are not seen: no streak may go on for ever. */
const HARD_LIMIT = { sections: 256, ms: 1_000 };

/** How long the lock has been going from hand to hand inside this process. */
export class HandOffStreak {
  #sections = 0;
  #startedAt: number | undefined;

  constructor(
    private readonly limit: ResolvedOptions['handOff'],
    private readonly clock: LeaseClock,
  ) {}

  /** The lock came from Redis, or went back there. */
  reset(): void {
    this.#sections = 0;
    this.#startedAt = undefined;
  }

  /** Its time counts from the first release that a local waiter was there for. */
  begin(): void {
    this.#startedAt ??= this.clock.now();
  }

  count(): void {
    this.#sections += 1;
  }

  mayGoOn(): boolean {
    if (this.limit === undefined) return false;
    return this.#sections < HARD_LIMIT.sections && this.#lastedMs() < HARD_LIMIT.ms;
  }

  /** From here on it goes on only if nobody else waits. */
  asksForOthers(): boolean {
    if (this.limit === undefined) return true;
    return this.#sections >= this.limit.maxSections || this.#lastedMs() >= this.limit.maxTimeMs;
  }

  #lastedMs(): number {
    return this.#startedAt === undefined ? 0 : this.clock.now() - this.#startedAt;
  }
}

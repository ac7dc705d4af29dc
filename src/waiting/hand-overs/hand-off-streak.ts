import type { LeaseClock, LeaseClockMs } from '../../clock.js';
import type { ResolvedHandOff } from '../../options.js';
import { STREAK_MS } from '../../timing.js';

/** Scripts that hand over in one streak, at most: see {@link STREAK_MS}. */
const STREAK_REQUESTS = 256;

/** Counts the sections, and the time, for which hand-overs keep the lock in this process. */
export class HandOffStreak {
  /** Sections since the client acquired the lock in Redis, or since Redis last knew of no other waiting client. */
  #sections = 0;
  #startedAt: number | undefined;
  /** The requests of the streak, and when the first one was sent. */
  #requests = 0;
  #firstAt: number | undefined;

  constructor(
    private readonly limit: ResolvedHandOff | undefined,
    private readonly clock: LeaseClock,
  ) {}

  /** Whether the lock may be kept, and sections of this process have followed one another. */
  get hasStayed(): boolean {
    return (this.limit?.keepMs ?? 0) > 0 && this.#sections > 0;
  }

  /** When the time for sections without a request ends. */
  get endsAt(): LeaseClockMs {
    return (this.#startedAt ?? this.clock.now()) + (this.limit?.maxTimeMs ?? 0);
  }

  /** Ends the streak: the client acquired the lock in Redis, or released the lock there. */
  reset(): void {
    this.#requests = 0;
    this.#firstAt = undefined;
    this.noOthers();
  }

  /** Redis knew of no other waiting client. */
  noOthers(): void {
    this.#sections = 0;
    this.#startedAt = undefined;
  }

  /** Starts the time of the streak at its first hand-over. */
  start(): void {
    this.#startedAt ??= this.clock.now();
    this.#firstAt ??= this.#startedAt;
  }

  /** A section was handed over by a request. */
  count(): void {
    this.#sections += 1;
    this.#requests += 1;
  }

  /** A section followed without a request. */
  countLocal(): void {
    this.#sections += 1;
  }

  /** Whether another section may follow without a request. */
  withinLocalLimit(): boolean {
    if (this.limit === undefined) return false;
    return this.#sections < this.limit.maxLocalSections && this.#lastedMs() < this.limit.maxTimeMs;
  }

  /** Whether the streak may continue at all. */
  withinHardLimit(): boolean {
    if (this.limit === undefined) return false;
    return this.#requests < STREAK_REQUESTS && this.#since(this.#firstAt) < STREAK_MS;
  }

  /** Whether the streak may continue only if no other client waits: it has had the option's share of the lock. */
  pastFairShare(): boolean {
    if (this.limit === undefined) return true;
    return this.#sections >= this.limit.maxSections || this.#lastedMs() >= this.limit.maxTimeMs;
  }

  #lastedMs(): number {
    return this.#since(this.#startedAt);
  }

  #since(moment: number | undefined): number {
    return moment === undefined ? 0 : this.clock.now() - moment;
  }
}

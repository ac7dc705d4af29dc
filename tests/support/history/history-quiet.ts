import { isOf, type HistoryFacts } from './history-facts.js';

interface Span {
  readonly from: number;
  readonly at: number;
  readonly renews?: boolean;
}

/** The times without faults, in which only the library can delay a process. */
export class QuietTimes {
  constructor(private readonly facts: HistoryFacts) {}

  /**
   * ms in which the process ran, in the longest stretch between `from` and `until` without a fault that concerns it and
   * this lock. `othersMs`: without one anywhere, and for so much longer, because processes wait for one another.
   */
  longest(process: string, lock: string, from: number, until: number, othersMs?: number): number {
    let longest = 0;
    let start = from;
    const spans = this.#disturbances(othersMs === undefined ? process : 'all', lock).map((span) => ({
      from: span.from,
      at: span.at + (othersMs ?? 0),
    }));
    for (const span of [...spans, { from: until, at: until }]) {
      if (span.at <= start) continue;
      if (span.from > start)
        longest = Math.max(longest, this.facts.ranBetween(process, start, Math.min(span.from, until)));
      start = span.at;
      if (start >= until) break;
    }
    return longest;
  }

  isQuiet(whom: string, lock: string, from: number, until: number): boolean {
    return !this.#disturbances(whom, lock).some((span) => span.from < until && span.at > from);
  }

  /** Nothing keeps a hold from being renewed. `lock`: absent for a hold of several locks. */
  letsRenew(whom: string, lock: string | undefined, from: number, until: number): boolean {
    const spans = this.#disturbances(whom, lock).filter(({ renews }) => !renews);
    return !spans.some((span) => span.from < until && span.at > from);
  }

  #disturbances(whom: string, lock: string | undefined): Span[] {
    const faults = this.facts.disturbed.filter((each) => whom === 'all' || each.whom === 'all' || each.whom === whom);
    return [...faults, ...this.facts.broken.filter(({ locks }) => lock === undefined || isOf(locks, lock))].sort(
      (a, b) => a.from - b.from,
    );
  }
}

import { CLOCK_SLACK_MS } from './history-events.js';
import { ms, named, type HeldLock, type HistoryFacts } from './history-facts.js';
import type { Violate } from './history-violations.js';

/**
 * `validFor()` returns whole ms, and the timer that ends a hold may fire 1 ms early by the clock of the histories. A
 * smaller difference than these two together is no fault.
 */
const ROUNDED_MS = 1;
const TIMER_MS = 1;

/** Checks that no holder counts on a lock that another owner has or that is free. */
export class ExclusionCheck {
  constructor(
    private readonly facts: HistoryFacts,
    private readonly violate: Violate,
  ) {}

  checkExclusion(holds: readonly HeldLock[]): void {
    const spans = holds
      .map((hold) => ({ hold, from: hold.ok.at, until: this.facts.validUntil(hold) }))
      .filter(({ from, until }) => until > from)
      .sort((a, b) => a.from - b.from);
    let inside: typeof spans = [];
    for (const span of spans) {
      inside = inside.filter(({ until }) => until > span.from);
      for (const other of inside) {
        if (this.#mayOverlap(other.hold, span.hold)) continue;
        const overlap = Math.min(other.until, span.until) - span.from;
        const message = `${named(other.hold)} and ${named(span.hold)} were both valid for ${ms(overlap)}`;
        this.violate('two valid holds at once', message, other.hold.ok, span.hold.ok);
      }
      inside.push(span);
    }
  }

  /** Checks that each holder that may count on the lock has it at the server for all of that time. */
  checkHeld(hold: HeldLock): void {
    const until = this.facts.validUntil(hold) - CLOCK_SLACK_MS - ROUNDED_MS - TIMER_MS;
    let sure = hold.ok.at + CLOCK_SLACK_MS;
    for (const { from, at, half } of this.facts.held.get(`${hold.lock} ${hold.ok.owner}`) ?? []) {
      // A writer may also read. A reader may not write.
      if (half === 'read' && hold.ok.shared !== true) continue;
      if (from <= sure) sure = Math.max(sure, at);
    }
    if (sure >= until) return;
    const message = `${named(hold)} counted as valid until ${ms(until - sure)} after the server had freed it`;
    this.violate('valid without the lock', message, hold.ok);
  }

  #mayOverlap(a: HeldLock, b: HeldLock): boolean {
    return (a.ok.shared === true && b.ok.shared === true) || this.facts.isInside(a, b) || this.facts.isInside(b, a);
  }
}

import type { EventOf, HistoryEvent } from './history-events.js';
import { groupBy, type HeldLock, type HistoryFacts } from './history-facts.js';
import type { Violate } from './history-violations.js';

/** A killed process also loses the permits that it was still recovering. */
const IN_BACKGROUND_MS = 10_000;

/** Checks the number of permits, which have no owner. */
export class PermitCheck {
  constructor(
    private readonly facts: HistoryFacts,
    private readonly violate: Violate,
  ) {}

  checkPermits(holds: readonly HeldLock[]): void {
    for (const epoch of groupBy(holds, ({ lock, invoke }) => String(this.#setBefore(lock, invoke.at))))
      this.#checkEpoch(epoch);
  }

  #checkEpoch(holds: readonly HeldLock[]): void {
    const { lock = '', invoke } = holds[0] ?? {};
    const broken = this.facts.brokenAt(lock, this.#setBefore(lock, invoke?.at ?? 0));
    const spans = holds
      .map((hold) => ({ hold, from: hold.ok.at, until: Math.min(this.facts.validUntil(hold), broken) }))
      .filter(({ from, until }) => until > from)
      .sort((a, b) => a.from - b.from);
    let inside: typeof spans = [];
    for (const span of spans) {
      inside = [...inside.filter(({ until }) => until > span.from), span];
      const taken = inside.reduce((sum, { hold }) => sum + (hold.ok.permits?.taken ?? 0), 0);
      const of = span.hold.ok.permits?.of ?? 0;
      if (taken <= of) continue;
      const message = `${taken} permits of ${span.hold.lock} were taken at once, of ${of}`;
      this.violate('more permits than there are', message, ...inside.map(({ hold }) => hold.ok));
    }
  }

  /** All are back in the end, but for those that went down with a process. */
  checkFree(event: EventOf<'permits-free'>): void {
    const { lock, free, of } = event;
    const since = this.#setBefore(lock, event.at - 1);
    if (this.facts.brokenAt(lock, since) < event.at) return;
    let gone = 0;
    for (const { invoke, outcome } of this.facts.calls.values()) {
      const died = this.facts.died.get(invoke.process);
      if (died === undefined || invoke.lock !== lock || invoke.at < since || invoke.at > event.at) continue;
      const hold = outcome?.type === 'acquire-ok' ? this.facts.holds.get(outcome.hold) : undefined;
      const settled = hold?.releaseOutcome?.type === 'release-ok' || (outcome && hold === undefined);
      const last = hold?.releaseOutcome?.at ?? outcome?.at ?? Infinity;
      // Shortly before, something may have been on its way in the background.
      if (!settled || died - last < IN_BACKGROUND_MS) gone += invoke.permits ?? 0;
    }
    const message = `${free} permits of ${lock} are free in the end, of ${of}, and ${gone} may have died`;
    if (free > of) this.violate('more permits than there are', message, event);
    if (free < of - gone) this.violate('permits lost', message, event, ...this.#unsettledOf(lock, since));
  }

  /** Time of the last new count of the permits. */
  #setBefore(lock: string, at: number): number {
    return this.facts.permitsSet.get(lock)?.findLast((set) => set <= at) ?? -Infinity;
  }

  /** Calls that may have acquired permits and not released them. */
  #unsettledOf(lock: string, since: number): HistoryEvent[] {
    return [...this.facts.calls.values()].flatMap(({ invoke, outcome }): HistoryEvent[] => {
      if (invoke.lock !== lock || invoke.at < since || outcome === undefined) return [];
      if (outcome.type !== 'acquire-ok') return outcome.reason === 'busy' ? [] : [invoke, outcome];
      const { releaseInvoke, releaseOutcome } = this.facts.holds.get(outcome.hold) ?? {};
      if (releaseOutcome?.type === 'release-ok') return [];
      return [invoke, outcome, ...(releaseInvoke ? [releaseInvoke] : []), ...(releaseOutcome ? [releaseOutcome] : [])];
    });
  }
}

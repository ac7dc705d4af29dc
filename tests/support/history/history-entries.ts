import { ms, type Call, type HistoryFacts } from './history-facts.js';
import type { QuietTimes } from './history-quiet.js';
import type { Violate } from './history-violations.js';

/** A message and a round trip, at the end of a lease a look. Most of it is for a busy machine. */
const ENTERED_WITHIN_MS = 700;
/** Where a fair lock has no message: the next sign of life, one second later at most. */
const ENTERED_IN_ORDER_WITHIN_MS = 1_500;

/**
 * A fault elsewhere may leave a dead waiter at the head of a fair queue for 5 s, and `disturbed` counts 3 s of that.
 */
const DEAD_IN_LINE_MS = 2_500;

/** Checks that no call waits for a lock that is free in Redis. */
export class EntryCheck {
  constructor(
    private readonly facts: HistoryFacts,
    private readonly quiet: QuietTimes,
    private readonly violate: Violate,
  ) {}

  /** `calls`: those of one lock; `inOrder`: they wait for one another. */
  checkEntered(calls: readonly Call[], inOrder: boolean): void {
    const lock = calls[0]?.invoke.lock ?? '';
    // A call for several values of a group may wait for another value.
    if (!this.facts.watched.has(lock) || lock.includes('/')) return;
    const free = this.#freeTimes(lock);
    const limitMs = inOrder ? ENTERED_IN_ORDER_WITHIN_MS : ENTERED_WITHIN_MS;
    for (const { invoke, outcome } of calls) {
      // One of several locks may have to wait for the others.
      if (invoke.joint || invoke.permits !== undefined) continue;
      const { process } = invoke;
      const waitedUntil = outcome?.at ?? this.facts.died.get(process) ?? this.facts.end;
      for (const gap of free) {
        const [from, until] = [Math.max(gap.from, invoke.at), Math.min(gap.until, waitedUntil)];
        if (until - from <= limitMs) continue;
        const waited = this.quiet.longest(process, lock, from, until, inOrder ? DEAD_IN_LINE_MS : undefined);
        if (waited <= limitMs) continue;
        const message = `call ${invoke.call} waited for ${ms(waited)} while Redis had ${lock} free, undisturbed`;
        this.violate('left outside a free lock', message, invoke, ...(outcome ? [outcome] : []));
      }
    }
  }

  /** Between the times in which the server was seen to have an owner for it. */
  #freeTimes(lock: string): { from: number; until: number }[] {
    const free: { from: number; until: number }[] = [];
    let from = Infinity;
    for (const held of this.facts.heldOf(lock)) {
      if (held.from > from) free.push({ from, until: held.from });
      from = from === Infinity ? held.at : Math.max(from, held.at);
    }
    if (from < this.facts.end) free.push({ from, until: this.facts.end });
    return free;
  }
}

import type { EventOf } from './history-events.js';
import { ms, type Call, type HistoryFacts } from './history-facts.js';
import type { QuietTimes } from './history-quiet.js';
import type { Violate } from './history-violations.js';

/** From a call until it stands in the queue, on a busy machine. */
const QUEUED_WITHIN_MS = 500;

type Granted = Call & { readonly outcome: EventOf<'acquire-ok'> };

/** Checks that a fair lock is granted in the order of the requests, over all processes. */
export class OrderCheck {
  constructor(
    private readonly facts: HistoryFacts,
    private readonly quiet: QuietTimes,
    private readonly violate: Violate,
  ) {}

  /** `calls`: those of one lock. */
  checkOrder(calls: readonly Call[]): void {
    // A multi-lock requests one member after the other.
    const alone = calls.filter(({ invoke }) => !invoke.joint).sort((a, b) => a.invoke.at - b.invoke.at);
    for (const call of alone) {
      const { outcome } = call;
      if (outcome?.type !== 'acquire-ok' || outcome.parent !== undefined) continue;
      const before = alone.find((other) => other !== call && this.#overtook({ ...call, outcome }, other));
      if (!before) continue;
      const asked = call.invoke.at - before.invoke.at;
      const message = `call ${call.invoke.call} was granted ${call.invoke.lock} before call ${before.invoke.call}, which had asked ${ms(asked)} earlier`;
      this.violate('overtaken in a fair queue', message, before.invoke, call.invoke, outcome);
    }
  }

  /** A waiter that fails, times out, dies or is struck by a fault may lose its place. Nested calls need no place. */
  #overtook({ invoke, outcome }: Granted, before: Call): boolean {
    if (before.outcome?.type === 'acquire-ok' && before.outcome.parent !== undefined) return false;
    const { process, at } = before.invoke;
    const waitedUntil = Math.min(before.outcome?.at ?? Infinity, this.facts.died.get(process) ?? Infinity);
    return (
      this.facts.ranBetween(process, at, invoke.at) > QUEUED_WITHIN_MS &&
      this.facts.ranBetween(process, outcome.at, Math.min(waitedUntil, this.facts.end)) > QUEUED_WITHIN_MS &&
      this.quiet.isQuiet('all', invoke.lock, at, outcome.at)
    );
  }
}

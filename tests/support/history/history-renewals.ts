import { ms, named, type HeldLock, type HistoryFacts } from './history-facts.js';
import type { QuietTimes } from './history-quiet.js';
import type { Violate } from './history-violations.js';

/** A third of the nemesis's 3 s between two renewals, and one that goes unanswered for its deadline and is repeated. */
const RENEWED_WITHIN_MS = 2_500;

/** Checks that a hold without its own lease lasts as long as Redis replies. */
export class RenewalCheck {
  constructor(
    private readonly facts: HistoryFacts,
    private readonly quiet: QuietTimes,
    private readonly violate: Violate,
  ) {}

  checkKept(hold: HeldLock): void {
    const { lock, invoke, ok, loss, releaseInvoke } = hold;
    if (invoke.leaseTime !== undefined || ok.parent !== undefined || !loss) return;
    if (releaseInvoke && releaseInvoke.at <= loss.at) return;
    // A section that follows another one without a request learns late of what happened before it began. So does a hold
    // of several locks, of which the first ones came earlier.
    const asked = this.facts.askedAt(hold);
    const since = invoke.joint === true || asked < invoke.at ? asked : ok.at;
    const from = Math.max(since, loss.at - RENEWED_WITHIN_MS);
    // A hold of several locks is lost with each of them.
    if (!this.quiet.letsRenew(ok.process, invoke.joint === true ? undefined : lock, from, loss.at)) return;
    // A process that stood still could not renew anything.
    if (this.facts.ranBetween(ok.process, from, loss.at) < (loss.at - from) * 0.8) return;
    const message = `${named(hold)} was lost (${loss.cause}) ${ms(loss.at - ok.at)} after its grant, and nothing had kept it from being renewed`;
    this.violate('lost while Redis answered', message, ok, loss);
  }
}

import type { EventOf, HistoryEvent } from './history-events.js';
import { ms, named, type HeldLock, type HistoryFacts } from './history-facts.js';
import type { Violate } from './history-violations.js';

/** `validFor()` returns whole ms. */
const WHOLE_MS = 1;

/** Checks that each holder learns of the end of its hold, and that calls settle in time. */
export class LossCheck {
  constructor(
    private readonly facts: HistoryFacts,
    private readonly violate: Violate,
    private readonly graceMs: number,
  ) {}

  /** Checks that the end of a lease is reported by its deadline, and that the hold is not valid after that. */
  checkLoss(hold: HeldLock): void {
    const { ok, confirmedUntil: deadline, releaseInvoke, releaseOutcome, loss } = hold;
    if (releaseInvoke && releaseOutcome?.type === 'release-ok') {
      const until = loss ? Math.min(loss.at, deadline) : deadline;
      if (
        releaseInvoke.at > until + (loss ? 0 : WHOLE_MS) &&
        !(until === deadline && this.facts.keptAsleep(hold, releaseInvoke.at))
      ) {
        const message = `${named(hold)} was released as if held, ${ms(releaseInvoke.at - until)} after it had been lost`;
        this.violate('success after the loss', message, ok, releaseInvoke, releaseOutcome);
      }
    }
    // The release reports the loss to its caller.
    const watchedUntil = Math.min(releaseInvoke?.at ?? Infinity, this.facts.died.get(ok.process) ?? Infinity);
    const toldAt = loss?.at ?? Infinity;
    const due = this.facts.doubtfulUntil(hold);
    const late = this.facts.ranBetween(ok.process, due, Math.min(toldAt, watchedUntil, this.facts.end));
    if (late <= this.graceMs) return;
    if (toldAt <= Math.min(watchedUntil, this.facts.end)) {
      this.violate(
        'loss signal too late',
        `${named(hold)} was reported ${ms(late)} after its deadline`,
        ok,
        ...(loss ? [loss] : []),
      );
    } else {
      this.violate(
        'lease ended without a loss signal',
        `${named(hold)} had ended ${ms(late)} before without a report`,
        ok,
      );
    }
  }

  /** No call made inside a lost hold takes the lock once more. */
  checkInside(hold: HeldLock): void {
    const parent = this.facts.parentOf(hold);
    if (!parent) return;
    const { ok, invoke } = hold;
    const lostAt = Math.min(parent.loss?.at ?? Infinity, parent.confirmedUntil);
    // The parent may have been released in between. Its nested hold keeps the lock, and the deadline of the parent is
    // not watched.
    const watched = parent.releaseInvoke === undefined || parent.releaseInvoke.at > lostAt;
    if (watched && lostAt < invoke.at) {
      const message = `${named(hold)} was granted inside hold ${parent.ok.hold}, lost ${ms(invoke.at - lostAt)} before`;
      this.violate('success after the loss', message, parent.ok, invoke, ok);
    }
  }

  checkSettled(invoke: EventOf<'acquire-invoke' | 'release-invoke'>, outcome: HistoryEvent | undefined): void {
    const what = invoke.type === 'acquire-invoke' ? `call ${invoke.call}` : `the release of hold ${invoke.hold}`;
    if (!outcome) {
      if (!this.facts.died.has(invoke.process)) this.violate('never settled', `${what} never settled`, invoke);
    } else if (invoke.settlesWithin !== undefined) {
      const took = this.facts.ranBetween(invoke.process, invoke.at, outcome.at);
      if (took > invoke.settlesWithin + this.graceMs) {
        this.violate('settled too late', `${what} took ${ms(took)}, not ${ms(invoke.settlesWithin)}`, invoke, outcome);
      }
    }
  }

  checkEffect(event: EventOf<'effect'>): void {
    const call = this.facts.calls.get(event.call);
    if (!call) return this.violate('malformed history', `call ${event.call} was never made`, event);
    const { outcome } = call;
    if (outcome === undefined || outcome.type === 'acquire-ok' || outcome.at > event.at) return;
    const message = `${event.effect} of call ${event.call} on ${call.invoke.lock} ran ${ms(event.at - outcome.at)} after it had been rejected`;
    this.violate('effect after the rejection', message, call.invoke, outcome, event);
  }
}

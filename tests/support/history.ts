import type { HistoryEvent } from './history-events.js';
import { ExclusionCheck } from './history-exclusion.js';
import { groupBy, HistoryFacts } from './history-facts.js';
import { LatchCheck } from './history-latches.js';
import { LossCheck } from './history-losses.js';
import { PermitCheck } from './history-permits.js';
import { TokenCheck } from './history-tokens.js';
import type { Violate, Violation } from './history-violations.js';

export interface CheckOptions {
  /** How much later than due a busy machine may run a timer or settle a call. */
  graceMs?: number;
}

/** Everything in a history that must not be. */
export function check(history: readonly HistoryEvent[], { graceMs = 250 }: CheckOptions = {}): Violation[] {
  const violations: Violation[] = [];
  const violate: Violate = (kind, message, ...events) => void violations.push({ kind, message, events });
  const facts = new HistoryFacts(history, violate);
  const losses = new LossCheck(facts, violate, graceMs);
  const exclusion = new ExclusionCheck(facts, violate);
  const tokens = new TokenCheck(facts, violate);
  const permits = new PermitCheck(facts, violate);
  const latches = new LatchCheck(facts, violate);

  for (const event of facts.events) {
    if (event.type === 'effect') losses.checkEffect(event);
    else if (event.type === 'latch-opened') latches.checkOpened(event);
    else if (event.type === 'latch-closed') latches.checkClosed(event);
    else if (event.type === 'permits-free') permits.checkFree(event);
    else if (event.type === 'left') violate('left behind', `a ${event.what} was left: ${event.name}`, event);
  }
  for (const { invoke, outcome } of facts.calls.values()) losses.checkSettled(invoke, outcome);
  for (const hold of facts.holds.values()) {
    if (hold.releaseInvoke) losses.checkSettled(hold.releaseInvoke, hold.releaseOutcome);
    if (hold.ok.permits) continue;
    losses.checkLoss(hold);
    losses.checkInside(hold);
    if (facts.watched.has(hold.lock)) exclusion.checkHeld(hold);
  }
  for (const holds of groupBy([...facts.holds.values()], ({ lock }) => lock)) {
    if (holds.some(({ ok }) => ok.permits)) {
      permits.checkPermits(holds);
    } else {
      exclusion.checkExclusion(holds);
      tokens.checkTokens(holds);
    }
  }
  return violations;
}

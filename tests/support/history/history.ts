import type { HistoryEvent } from './history-events.js';
import { EntryCheck } from './history-entries.js';
import { ExclusionCheck } from './history-exclusion.js';
import { groupBy, HistoryFacts } from './history-facts.js';
import { checkDrill, checkHeap } from './history-heaps.js';
import { LatchCheck } from './history-latches.js';
import { LossCheck } from './history-losses.js';
import { OrderCheck } from './history-order.js';
import { PermitCheck } from './history-permits.js';
import { QuietTimes } from './history-quiet.js';
import { RenewalCheck } from './history-renewals.js';
import { ShareCheck } from './history-shares.js';
import { StreakCheck } from './history-streaks.js';
import { TokenCheck } from './history-tokens.js';
import type { Violate, Violation } from './history-violations.js';

export interface CheckOptions {
  /** How much later than due a busy machine may run a timer or settle a call. */
  graceMs?: number;
  /** Whether the history has every fault: then every deviation needs a fault. */
  allFaultsTold?: boolean;
  /** Whether a lock is granted in the order of the requests. */
  inOrder?: (lock: string) => boolean;
  /** Whether sections of this lock may follow one another without a request. */
  mayFollow?: (lock: string) => boolean;
  /** How long a client may pass an exclusive lock on inside its process while others wait. Absent: not checked. */
  shareMs?: number;
  /** Whether this lock has one owner at a time. */
  isExclusive?: (lock: string) => boolean;
}

/** Everything in a history that must not be. */
export function check(
  history: readonly HistoryEvent[],
  {
    graceMs = 250,
    allFaultsTold = false,
    inOrder = () => false,
    mayFollow = () => true,
    shareMs,
    isExclusive = () => true,
  }: CheckOptions = {},
): Violation[] {
  const violations: Violation[] = [];
  const violate: Violate = (kind, message, ...events) => void violations.push({ kind, message, events });
  const facts = new HistoryFacts(history, violate);
  const losses = new LossCheck(facts, violate, graceMs);
  const exclusion = new ExclusionCheck(facts, violate);
  const tokens = new TokenCheck(facts, violate);
  const permits = new PermitCheck(facts, violate);
  const latches = new LatchCheck(facts, violate);
  const quiet = new QuietTimes(facts);
  const entries = new EntryCheck(facts, quiet, violate);
  const orders = new OrderCheck(facts, quiet, violate);
  const renewals = new RenewalCheck(facts, quiet, violate);
  const shares = shareMs === undefined ? undefined : new ShareCheck(facts, quiet, violate, shareMs);
  const streaks = new StreakCheck(facts, quiet, violate, mayFollow);

  for (const event of facts.events) {
    if (event.type === 'effect') losses.checkEffect(event);
    else if (event.type === 'latch-opened') latches.checkOpened(event);
    else if (event.type === 'latch-closed') latches.checkClosed(event);
    else if (event.type === 'permits-free') permits.checkFree(event);
    else if (event.type === 'drilled') checkDrill(event, violate);
    else if (event.type === 'wrong') violate('wrong answer', event.what, event);
    else if (event.type === 'left') violate('left behind', `a ${event.what} was left: ${event.name}`, event);
  }
  for (const { invoke, outcome } of facts.calls.values()) losses.checkSettled(invoke, outcome);
  for (const hold of facts.holds.values()) {
    if (hold.releaseInvoke) losses.checkSettled(hold.releaseInvoke, hold.releaseOutcome);
    if (hold.ok.permits) continue;
    losses.checkLoss(hold);
    losses.checkInside(hold);
    if (allFaultsTold) renewals.checkKept(hold);
    if (facts.watched.has(hold.lock)) exclusion.checkHeld(hold);
  }
  for (const holds of groupBy([...facts.holds.values()], ({ lock }) => lock)) {
    if (holds.some(({ ok }) => ok.permits)) {
      permits.checkPermits(holds);
    } else {
      exclusion.checkExclusion(holds);
      streaks.checkStreaks(holds);
      tokens.checkTokens(holds);
    }
  }
  if (allFaultsTold) streaks.checkKept();
  for (const calls of allFaultsTold ? groupBy([...facts.calls.values()], ({ invoke }) => invoke.lock) : []) {
    const ordered = inOrder(calls[0]?.invoke.lock ?? '');
    entries.checkEntered(calls, ordered);
    if (ordered) orders.checkOrder(calls);
    else if (shares && isExclusive(calls[0]?.invoke.lock ?? '')) shares.checkShare(calls);
  }
  for (const heaps of facts.heaps.values()) checkHeap(heaps, violate);
  return violations;
}

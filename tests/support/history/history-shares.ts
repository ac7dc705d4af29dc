import type { EventOf } from './history-events.js';
import { ms, type Call, type HistoryFacts } from './history-facts.js';
import type { QuietTimes } from './history-quiet.js';
import type { Violate } from './history-violations.js';

/** From a call until its process is subscribed, on a busy machine. */
const SUBSCRIBED_WITHIN_MS = 500;
/** From the decision of a client to hand over until the script runs, on a busy machine. */
const SENT_WITHIN_MS = 250;

/** Checks that a client does not pass a lock on inside its process for longer than its share while others wait. */
export class ShareCheck {
  constructor(
    private readonly facts: HistoryFacts,
    private readonly quiet: QuietTimes,
    private readonly violate: Violate,
    /** For a client without a longer `local`. */
    private readonly shareMs: number,
  ) {}

  /** `calls`: those of one lock, which all processes may have in any order. */
  checkShare(calls: readonly Call[]): void {
    const lock = calls[0]?.invoke.lock ?? '';
    const waiting = calls.filter(({ invoke }) => invoke.joint !== true && invoke.permits === undefined);
    let started: number | undefined;
    let before: EventOf<'held'> | undefined;
    for (const held of this.facts.heldOf(lock)) {
      const isHandedOver =
        held.handedOver === true && before !== undefined && clientOf(before.owner) === clientOf(held.owner);
      before = held;
      if (!isHandedOver) started = undefined;
      else if (started === undefined) started = held.from;
      else this.#checkHandOver(held, started, waiting);
    }
  }

  /** `started`: when the series of hand-overs began that this one belongs to. */
  #checkHandOver(held: EventOf<'held'>, started: number, calls: readonly Call[]): void {
    const client = this.facts.clients.get(clientOf(held.owner));
    if (client === undefined) return;
    const { process } = client;
    // The default of `maxTime` is `local`, if that is longer.
    const shareMs = Math.max(this.shareMs, client.local);
    if (held.from - started <= shareMs + SENT_WITHIN_MS) return;
    for (const { invoke, outcome } of calls) {
      const waitedUntil = outcome?.at ?? this.facts.died.get(invoke.process) ?? this.facts.end;
      // Before that, a hand-over may have found that no other client waits, and a new share began.
      const since = Math.max(started, invoke.at + SUBSCRIBED_WITHIN_MS);
      if (invoke.process === process || waitedUntil <= held.from) continue;
      if (this.facts.ranBetween(invoke.process, since, held.from) <= shareMs + SENT_WITHIN_MS) continue;
      if (!this.quiet.isQuiet('all', invoke.lock, invoke.at, held.from)) continue;
      const message = `${process} passed ${invoke.lock} on inside for ${ms(held.from - since)}, not ${ms(shareMs)}, while call ${invoke.call} waited elsewhere`;
      return this.violate('more than a fair share', message, invoke, held);
    }
  }
}

const clientOf = (owner: string): string => owner.slice(0, owner.lastIndexOf(':'));

import { CLOCK_SLACK_MS, type EventOf } from './history-events.js';
import { groupBy, ms, named, type HeldLock, type HistoryFacts } from './history-facts.js';
import type { QuietTimes } from './history-quiet.js';
import type { Violate } from './history-violations.js';

/**
 * A client decides that a section may begin, and then tells that it began. The process may stand in between. The history
 * has every stop of the process from this length on.
 */
const UNSEEN_STOP_MS = 40;
/** The timer that ends the time of a kept lock may be as late as the process may stand unseen. */
const LATE_TIMER_MS = UNSEEN_STOP_MS;
/** A timer, a round trip and the script, on a busy machine. */
const RELEASED_WITHIN_MS = 700;

/**
 * Checks the sections that follow one another under the same owner, without a request (`handOff.local` and
 * `handOff.keep`). After a forced unlock elsewhere, DEL, a restart or a failover, such sections may still begin for
 * `local` ms after Redis has confirmed their owner. None lasts beyond the lease that Redis has confirmed.
 */
export class StreakCheck {
  constructor(
    private readonly facts: HistoryFacts,
    private readonly quiet: QuietTimes,
    private readonly violate: Violate,
    private readonly mayFollow: (lock: string) => boolean,
  ) {}

  /** `holds`: those of one lock. */
  checkStreaks(holds: readonly HeldLock[]): void {
    if (!this.facts.watched.has(holds[0]?.lock ?? '')) return;
    const outermost = holds.filter((hold) => this.facts.parentOf(hold) === undefined);
    for (const streak of groupBy(outermost, ({ ok }) => ok.owner)) {
      if (streak.length === 1) continue;
      streak.sort((a, b) => a.ok.at - b.ok.at);
      const [first, ...others] = streak as [HeldLock, ...HeldLock[]];
      for (const hold of others) this.#checkFollower(first, hold);
    }
  }

  #checkFollower(first: HeldLock, hold: HeldLock): void {
    const { lock, ok } = hold;
    const client = this.#clientOf(ok.owner);
    // No read follows another one: `local` and `keep` are for one exclusive lock.
    if (ok.shared === true || client.local === 0 || !this.mayFollow(lock)) {
      const message = `${named(hold)} followed hold ${first.ok.hold} under its owner, which its client and its kind forbid`;
      return this.violate('followed without a request', message, first.ok, ok);
    }
    const begun = this.#begun(hold);
    if (begun === undefined)
      return this.violate('malformed history', `the client did not tell that ${named(hold)} began`, ok);
    this.#checkBegin(first, hold, begun, client);
    this.#checkLease(hold);
    this.#checkForced(first, hold, begun);
    this.#checkGranted(first, hold, begun);
  }

  /** The section began in time: after the confirmation, and after the section before it. */
  #checkBegin(first: HeldLock, hold: HeldLock, begun: EventOf<'began'>, { local, keep }: EventOf<'client'>): void {
    const decided = this.#decidedAt(begun);
    const held = this.#heldBy(hold);
    const taken = Math.min(...held.map(({ from }) => from));
    const late = decided - (taken + local + CLOCK_SLACK_MS);
    if (held.length > 0 && late > 0) {
      const message = `${named(hold)} began ${ms(late)} later than the ${local} ms that may follow the grant by Redis`;
      this.violate('streak longer than allowed', message, first.ok, hold.ok);
    }
    const before = this.#endBefore(hold, begun);
    if (before === undefined) return;
    const kept = decided - before.at - keep - LATE_TIMER_MS;
    if (kept <= 0) return;
    const message = `${named(hold)} began ${ms(kept)} later than the ${keep} ms for which its client keeps the lock`;
    this.violate('kept too long', message, before, hold.ok);
  }

  /** The holder counts on no more than Redis has confirmed by then. */
  #checkLease(hold: HeldLock): void {
    const confirmed = this.#heldBy(hold).flatMap((held) => held.confirmed ?? []);
    if (confirmed.length === 0) return;
    const then = confirmed.filter(({ at }) => at <= hold.ok.at + CLOCK_SLACK_MS);
    const until = Math.max(-Infinity, ...then.map((each) => each.until));
    const beyond = hold.ok.validUntil - until - CLOCK_SLACK_MS;
    if (beyond <= 0 || hold.ok.validUntil <= hold.ok.at) return;
    const message = `${named(hold)} counted on the lock for ${ms(beyond)} more than Redis had confirmed`;
    this.violate('lease that Redis has not confirmed', message, hold.ok);
  }

  /** The events of one process are in the order in which they happened, so this needs no allowance for clocks. */
  #checkForced(first: HeldLock, hold: HeldLock, begun: EventOf<'began'>): void {
    const client = clientOf(hold.ok.owner);
    const firstBegun = this.#begun(first)?.at ?? first.ok.at;
    for (const forced of this.facts.forced) {
      if (forced.lock !== hold.lock || forced.client !== client) continue;
      if (firstBegun > forced.from || begun.at < forced.from) continue;
      const isOver = begun.at > forced.at;
      if (isOver && !(forced.freed && this.#endedDuring(hold, forced))) continue;
      const message = `${named(hold)} began ${ms(begun.at - forced.from)} after its own client had forced the release`;
      this.violate('streak after a forced unlock', message, forced, hold.ok);
    }
  }

  /** A grant to another owner of the same client tells the client that the owner before has lost the lock. */
  #checkGranted(first: HeldLock, hold: HeldLock, begun: EventOf<'began'>): void {
    const firstBegun = this.#begun(first)?.at ?? first.ok.at;
    const taken = Math.min(...this.#heldBy(hold).map(({ from }) => from));
    const all = this.facts.beganOf(hold.lock);
    for (let at = all.indexOf(begun) - 1; at >= 0; at -= 1) {
      const other = all[at] as EventOf<'began'>;
      if (other.at < firstBegun) return;
      if (other.owner === begun.owner || clientOf(other.owner) !== clientOf(begun.owner)) continue;
      // A late reply may tell of a grant before this one.
      const since = this.facts.held.get(`${other.lock} ${other.owner}`) ?? [];
      if (!since.some(({ from }) => from > taken)) continue;
      const message = `${named(hold)} began ${ms(begun.at - other.at)} after Redis had given the lock to ${other.owner} of its client`;
      return this.violate('streak after another grant', message, other, hold.ok);
    }
  }

  #endedDuring(hold: HeldLock, { from, at }: EventOf<'forced'>): boolean {
    return this.#heldBy(hold).some((held) => held.at >= from - CLOCK_SLACK_MS && held.at <= at + CLOCK_SLACK_MS);
  }

  /** A lock that its client has kept after the last section is released when its time is over. */
  checkKept(): void {
    for (const [key, sections] of this.facts.sections) {
      const last = sections.at(-1);
      if (last?.type !== 'ended' || last.holds > 0) continue;
      const { keep } = this.#clientOf(last.owner);
      for (const held of this.facts.held.get(key) ?? []) {
        if (held.from > last.at) continue;
        // The lease ends the lock of a process that was killed.
        const until = Math.min(held.at, this.facts.died.get(last.process) ?? Infinity);
        const over = this.quiet.longest(last.process, last.lock, last.at + keep, until);
        if (over <= RELEASED_WITHIN_MS) continue;
        const message = `${last.owner} had ${last.lock} in Redis for ${ms(over)} more than the ${keep} ms for which its client keeps it`;
        this.violate('kept too long', message, last, held);
      }
    }
  }

  /** The latest moment before the begin at which the client surely had not yet decided on it. */
  #decidedAt({ process, at }: EventOf<'began'>): number {
    const stop = this.facts.stalls.get(process)?.find((stall) => stall.from <= at && stall.at >= at);
    return stop?.from ?? at - UNSEEN_STOP_MS;
  }

  #begun({ lock, ok }: HeldLock): EventOf<'began'> | undefined {
    const sections = this.facts.sections.get(`${lock} ${ok.owner}`) ?? [];
    return sections.findLast(
      (each): each is EventOf<'began'> => each.type === 'began' && each.holds === 1 && each.at <= ok.at,
    );
  }

  #endBefore({ lock, ok }: HeldLock, begun: EventOf<'began'>): EventOf<'began' | 'ended'> | undefined {
    const sections = this.facts.sections.get(`${lock} ${ok.owner}`) ?? [];
    return sections.findLast((each) => each.type === 'ended' && each.at <= begun.at);
  }

  #heldBy({ lock, ok }: HeldLock): EventOf<'held'>[] {
    return (this.facts.held.get(`${lock} ${ok.owner}`) ?? []).filter(({ half }) => half !== 'read');
  }

  #clientOf(owner: string): { readonly local: number; readonly keep: number } & EventOf<'client'> {
    return (
      this.facts.clients.get(clientOf(owner)) ?? { type: 'client', client: '', process: '', at: 0, local: 0, keep: 0 }
    );
  }
}

const clientOf = (owner: string): string => owner.slice(0, owner.lastIndexOf(':'));

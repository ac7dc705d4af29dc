import type { EventOf, HistoryEvent } from './history-events.js';
import { sharesOwner } from './history-recorder.mjs';
import type { Violate } from './history-violations.js';

export interface Call {
  readonly invoke: EventOf<'acquire-invoke'>;
  outcome?: EventOf<'acquire-ok' | 'acquire-fail' | 'acquire-unknown'>;
}

export interface HeldLock {
  readonly lock: string;
  readonly invoke: EventOf<'acquire-invoke'>;
  readonly ok: EventOf<'acquire-ok'>;
  /** Time until which the holder counts on the lock, by its last report. */
  deadline: number;
  /** The same without the times of doubt: a doubt may end with a confirmation. */
  confirmedUntil: number;
  /** When that was said. */
  confirmedAt: number;
  releaseInvoke?: EventOf<'release-invoke'>;
  releaseOutcome?: EventOf<'release-ok' | 'release-fail'>;
  loss?: EventOf<'loss-signal'>;
}

/** The facts of a history, in the order in which they happened, and their consequences. */
export class HistoryFacts {
  readonly events: readonly HistoryEvent[];
  readonly end: number;
  readonly calls = new Map<string, Call>();
  readonly holds = new Map<string, HeldLock>();
  readonly stalls = new Map<string, EventOf<'stalled'>[]>();
  readonly slept: EventOf<'slept'>[] = [];
  /** Nested holds that Redis has not confirmed, as when the machine slept between request and answer. */
  readonly #grantedInDoubt: HeldLock[] = [];
  readonly died = new Map<string, number>();
  readonly broken: EventOf<'broken'>[] = [];
  readonly disturbed: EventOf<'disturbed'>[] = [];
  /** By lock. */
  readonly permitsSet = new Map<string, number[]>();
  /** By process. */
  readonly heaps = new Map<string, EventOf<'heap'>[]>();
  /** By lock and owner. */
  readonly held = new Map<string, EventOf<'held'>[]>();
  readonly #heldOf = new Map<string, EventOf<'held'>[]>();
  /** Locks that were seen at the server. */
  readonly watched = new Set<string>();

  readonly latches = new Map<string, EventOf<'latch-set'>>();
  /** By id. */
  readonly clients = new Map<string, EventOf<'client'>>();
  readonly forced: EventOf<'forced'>[] = [];
  /** Begins and ends of holds by lock and owner, in their order. */
  readonly sections = new Map<string, EventOf<'began' | 'ended'>[]>();
  readonly #beganOf = new Map<string, EventOf<'began'>[]>();
  /** When the first call of an owner came, by lock and owner. Sections of a streak share their owner. */
  readonly #firstAsked = new Map<string, number>();

  /** `violate` receives the reasons why a history is impossible. */
  constructor(
    history: readonly HistoryEvent[],
    private readonly violate: Violate,
  ) {
    this.events = [...history].sort((a, b) => a.at - b.at);
    this.end = this.events.at(-1)?.at ?? 0;
    for (const event of this.events) this.#read(event);
  }

  #read(event: HistoryEvent): void {
    switch (event.type) {
      case 'acquire-invoke':
        if (this.calls.has(event.call)) this.#malformed(`call ${event.call} is made twice`, event);
        else this.calls.set(event.call, { invoke: event });
        return;
      case 'acquire-ok':
      case 'acquire-fail':
      case 'acquire-unknown':
        return this.#settle(event);
      case 'valid':
        return this.#withHold(event, (hold) => believe(hold, event.at, event.until));
      case 'release-invoke':
        return this.#withHold(event, (hold) => {
          hold.releaseInvoke = event;
          believe(hold, event.at, event.validUntil);
        });
      case 'release-ok':
      case 'release-fail':
        return this.#withHold(event, (hold) => {
          if (!hold.releaseInvoke) this.#malformed(`hold ${event.hold} was never being released`, event);
          hold.releaseOutcome = event;
        });
      case 'loss-signal':
        return this.#withHold(event, (hold) => {
          if (hold.loss) this.violate('loss signal twice', `${named(hold)} was reported twice`, hold.loss, event);
          else hold.loss = event;
        });
      case 'stalled':
        this.stalls.set(event.process, [...(this.stalls.get(event.process) ?? []), event]);
        return;
      case 'slept':
        this.slept.push(event);
        return;
      case 'died':
        this.died.set(event.process, event.at);
        return;
      case 'broken':
        this.broken.push(event);
        return;
      case 'held': {
        const key = `${event.lock} ${event.owner}`;
        this.held.set(key, [...(this.held.get(key) ?? []), event]);
        const ofLock = this.#heldOf.get(event.lock);
        if (ofLock) ofLock.push(event);
        else this.#heldOf.set(event.lock, [event]);
        this.watched.add(event.lock);
        return;
      }
      case 'client':
        this.clients.set(event.client, event);
        return;
      case 'forced':
        this.forced.push(event);
        return;
      case 'began':
      case 'ended':
        pushTo(this.sections, `${event.lock} ${event.owner}`, event);
        if (event.type === 'began') pushTo(this.#beganOf, event.lock, event);
        return;
      case 'latch-set':
        this.latches.set(event.latch, event);
        return;
      case 'disturbed':
        this.disturbed.push(event);
        return;
      case 'permits-set':
        this.permitsSet.set(event.lock, [...(this.permitsSet.get(event.lock) ?? []), event.at]);
        return;
      case 'heap':
        this.heaps.set(event.process, [...(this.heaps.get(event.process) ?? []), event]);
        return;
      case 'latch-opened':
      case 'latch-closed':
      case 'permits-free':
      case 'effect':
      case 'left':
      case 'drilled':
      case 'wrong':
        return; // looked at one by one, when all is known
    }
  }

  #settle(event: EventOf<'acquire-ok' | 'acquire-fail' | 'acquire-unknown'>): void {
    const call = this.calls.get(event.call);
    if (!call) return this.#malformed(`call ${event.call} was never made`, event);
    if (call.outcome) return this.#malformed(`call ${event.call} has settled twice`, call.outcome, event);
    call.outcome = event;
    if (event.type !== 'acquire-ok') return;
    if (this.holds.has(event.hold)) return this.#malformed(`hold ${event.hold} is granted twice`, event);
    const { invoke } = call;
    const { at, validUntil } = event;
    const confirmedUntil = validUntil > at ? validUntil : Infinity;
    const until = { deadline: validUntil, confirmedUntil, confirmedAt: at };
    const hold = { lock: invoke.lock, invoke, ok: event, ...until };
    this.holds.set(event.hold, hold);
    const streak = `${invoke.lock} ${event.owner}`;
    this.#firstAsked.set(streak, Math.min(invoke.at, this.#firstAsked.get(streak) ?? Infinity));
    if (confirmedUntil === Infinity && event.parent !== undefined) this.#grantedInDoubt.push(hold);
  }

  #withHold(event: HistoryEvent & { hold: string }, then: (hold: HeldLock) => void): void {
    const hold = this.holds.get(event.hold);
    if (hold) then(hold);
    else this.#malformed(`hold ${event.hold} was never granted`, event);
  }

  /** A permit that was deleted without the library has no holder, and its release adds one too many. */
  brokenAt(lock: string, since = -Infinity): number {
    const broken = this.broken.filter(({ locks, at }) => isOf(locks, lock) && at >= since);
    return Math.min(Infinity, ...broken.map(({ from }) => from));
  }

  /** The begins of the sections of a lock, by its client's events. */
  beganOf(lock: string): EventOf<'began'>[] {
    return this.#beganOf.get(lock) ?? [];
  }

  /** The owners that had the lock at the server, by the time of their acquisition. */
  heldOf(lock: string): EventOf<'held'>[] {
    return [...(this.#heldOf.get(lock) ?? [])].sort((a, b) => a.from - b.from);
  }

  /**
   * When the call came that the owner of this hold is from. A section that followed another one under its owner has the
   * lock from the call of the first section. It may look nested in a hold that had been released by then.
   */
  askedAt(hold: HeldLock): number {
    const { lock, invoke, ok } = hold;
    const around = this.parentOf(hold);
    const isNested = around !== undefined && !(around.releaseInvoke && around.releaseInvoke.at < ok.at);
    return isNested ? invoke.at : (this.#firstAsked.get(`${lock} ${ok.owner}`) ?? invoke.at);
  }

  validUntil(hold: HeldLock): number {
    const ends = [hold.deadline, hold.releaseInvoke?.at ?? Infinity, hold.loss?.at ?? Infinity];
    for (const { from, at, locks } of this.broken) {
      if (!isOf(locks, hold.lock)) continue;
      // Granted before or after? Unless that is sure, it proves nothing.
      if (this.askedAt(hold) < at) ends.push(hold.ok.at <= from ? from : -Infinity);
    }
    return Math.min(...ends);
  }

  /**
   * Whether the deadline passed while the machine of the holder slept, and Redis still had the owner until `at`. Only
   * Redis can decide such a case, and a request for a longer lease may have been pending.
   */
  keptAsleep({ lock, ok, confirmedUntil }: HeldLock, at: number): boolean {
    const slept = this.slept.some(
      (sleep) => sleep.process === ok.process && sleep.from <= confirmedUntil && confirmedUntil <= sleep.at,
    );
    const held = this.held.get(`${lock} ${ok.owner}`) ?? [];
    return slept && held.some((seen) => seen.from <= ok.at && seen.at >= at);
  }

  /**
   * Time at which the lease would have ended without the sleep. Until then the holder may wait for the reply of Redis
   * without a loss report. A hold that was granted inside it in the same doubt may last longer.
   */
  doubtfulUntil(hold: HeldLock): number {
    const { ok, confirmedAt, confirmedUntil } = hold;
    let until = confirmedUntil;
    for (const inner of this.#grantedInDoubt) {
      const { at, leaseTime = Infinity } = inner.invoke;
      if (at <= until && this.isInside(inner, hold)) until = Math.max(until, at + leaseTime);
    }
    for (const { process, from, at } of this.slept) {
      if (process === ok.process && from >= confirmedAt && from <= until) until += at - from;
    }
    return until;
  }

  isInside(inner: HeldLock, outer: HeldLock): boolean {
    for (let parent = this.parentOf(inner); parent; parent = this.parentOf(parent)) if (parent === outer) return true;
    return false;
  }

  /** A call that had to contend as a stranger after all is inside of nothing: its owner is another. */
  parentOf(hold: HeldLock): HeldLock | undefined {
    const parent = hold.ok.parent === undefined ? undefined : this.holds.get(hold.ok.parent);
    return parent?.lock === hold.lock && sharesOwner(parent.ok.owner, hold.ok.owner) ? parent : undefined;
  }

  /** ms between two moments in which the process could run. */
  ranBetween(process: string, from: number, until: number): number {
    if (until <= from) return 0;
    let stood = 0;
    for (const stall of this.stalls.get(process) ?? []) {
      stood += Math.max(0, Math.min(stall.at, until) - Math.max(stall.from, from));
    }
    return until - from - stood;
  }

  #malformed(message: string, ...events: HistoryEvent[]): void {
    this.violate('malformed history', message, ...events);
  }
}

/** A report that arrives after the end of the lease by the last report changes nothing. */
function believe(hold: HeldLock, at: number, until: number): void {
  hold.deadline = until > at ? until : Math.min(hold.deadline, at);
  if (until <= at) return;
  hold.confirmedUntil = until;
  hold.confirmedAt = at;
}

function pushTo<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const known = map.get(key);
  if (known) known.push(value);
  else map.set(key, [value]);
}

export const isOf = (locks: readonly string[] | 'all', lock: string): boolean =>
  locks === 'all' || locks.includes(lock);

export function groupBy<T>(all: readonly T[], keyOf: (each: T) => string | bigint): T[][] {
  const groups = new Map<string | bigint, T[]>();
  for (const each of all) {
    const group = groups.get(keyOf(each));
    if (group) group.push(each);
    else groups.set(keyOf(each), [each]);
  }
  return [...groups.values()];
}

export const ms = (duration: number): string => `${duration.toFixed(1)} ms`;
export const named = ({ lock, ok }: HeldLock): string =>
  `hold ${ok.hold} of ${lock} (owner ${ok.owner}, process ${ok.process})`;

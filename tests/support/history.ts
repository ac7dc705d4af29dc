import type { EventOf, HistoryEvent } from './history-events.js';

export type ViolationKind =
  | 'two valid holds at once'
  | 'more permits than there are'
  | 'permits lost'
  | 'latch opened too early'
  | 'latch not opened'
  | 'valid without the lock'
  | 'lease ended without a loss signal'
  | 'loss signal too late'
  | 'loss signal twice'
  | 'success after the loss'
  | 'effect after the rejection'
  | 'fencing token went back'
  | 'left behind'
  | 'never settled'
  | 'settled too late'
  | 'malformed history';

export interface Violation {
  readonly kind: ViolationKind;
  readonly message: string;
  readonly events: readonly HistoryEvent[];
}

export interface CheckOptions {
  /** How much later than due a busy machine may run a timer or settle a call. */
  graceMs?: number;
}

/** What the server's stamps, turned into ours, may be off. */
const CLOCK_SLACK_MS = 2;
/** A process that is killed takes with it what it was still taking back. */
const IN_BACKGROUND_MS = 10_000;

interface Call {
  readonly invoke: EventOf<'acquire-invoke'>;
  outcome?: EventOf<'acquire-ok' | 'acquire-fail' | 'acquire-unknown'>;
}

interface HeldLock {
  readonly lock: string;
  readonly invoke: EventOf<'acquire-invoke'>;
  readonly ok: EventOf<'acquire-ok'>;
  /** Until when the holder believes to hold the lock, by the last it was told. */
  deadline: number;
  /** The same without the times at which nobody could say: a doubt may end well. */
  confirmedUntil: number;
  releaseInvoke?: EventOf<'release-invoke'>;
  releaseOutcome?: EventOf<'release-ok' | 'release-fail'>;
  loss?: EventOf<'loss-signal'>;
}

export function check(history: readonly HistoryEvent[], options: CheckOptions = {}): Violation[] {
  return new HistoryCheck(history, options.graceMs ?? 250).run();
}

class HistoryCheck {
  readonly #events: readonly HistoryEvent[];
  readonly #end: number;
  readonly #violations: Violation[] = [];
  readonly #calls = new Map<string, Call>();
  readonly #holds = new Map<string, HeldLock>();
  readonly #stalls = new Map<string, EventOf<'stalled'>[]>();
  readonly #died = new Map<string, number>();
  readonly #broken: EventOf<'broken'>[] = [];
  /** By lock and owner. */
  readonly #held = new Map<string, EventOf<'held'>[]>();
  /** Locks that were seen at the server. */
  readonly #watched = new Set<string>();
  readonly #latches = new Map<string, number>();

  constructor(
    history: readonly HistoryEvent[],
    private readonly graceMs: number,
  ) {
    this.#events = [...history].sort((a, b) => a.at - b.at);
    this.#end = this.#events.at(-1)?.at ?? 0;
  }

  run(): Violation[] {
    for (const event of this.#events) this.#read(event);
    for (const call of this.#calls.values()) this.#checkSettled(call.invoke, call.outcome);
    for (const hold of this.#holds.values()) {
      if (hold.releaseInvoke) this.#checkSettled(hold.releaseInvoke, hold.releaseOutcome);
      if (hold.ok.permits) continue;
      this.#checkLoss(hold);
      this.#checkInside(hold);
      if (this.#watched.has(hold.lock)) this.#checkHeld(hold);
    }
    for (const holds of groupBy([...this.#holds.values()], ({ lock }) => lock)) {
      if (holds.some(({ ok }) => ok.permits)) {
        this.#checkPermits(holds);
        continue;
      }
      this.#checkExclusion(holds);
      for (const sameCounter of groupBy(holds, (hold) => this.#tokenEpoch(hold))) this.#checkTokens(sameCounter);
    }
    return this.#violations;
  }

  #read(event: HistoryEvent): void {
    switch (event.type) {
      case 'acquire-invoke':
        if (this.#calls.has(event.call)) this.#malformed(`call ${event.call} is made twice`, event);
        else this.#calls.set(event.call, { invoke: event });
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
          if (hold.loss) this.#violate('loss signal twice', `${named(hold)} was told twice`, hold.loss, event);
          else hold.loss = event;
        });
      case 'effect':
        return this.#checkEffect(event);
      case 'stalled':
        this.#stalls.set(event.process, [...(this.#stalls.get(event.process) ?? []), event]);
        return;
      case 'died':
        this.#died.set(event.process, event.at);
        return;
      case 'broken':
        this.#broken.push(event);
        return;
      case 'held': {
        const key = `${event.lock} ${event.owner}`;
        this.#held.set(key, [...(this.#held.get(key) ?? []), event]);
        this.#watched.add(event.lock);
        return;
      }
      case 'latch-set':
        this.#latches.set(event.latch, event.at);
        return;
      case 'latch-opened':
      case 'latch-closed':
        return this.#checkLatch(event);
      case 'permits-free':
        return this.#checkFree(event);
      case 'left':
        this.#violate('left behind', `a ${event.what} was left: ${event.name}`, event);
    }
  }

  #settle(event: EventOf<'acquire-ok' | 'acquire-fail' | 'acquire-unknown'>): void {
    const call = this.#calls.get(event.call);
    if (!call) return this.#malformed(`call ${event.call} was never made`, event);
    if (call.outcome) return this.#malformed(`call ${event.call} has settled twice`, call.outcome, event);
    call.outcome = event;
    if (event.type !== 'acquire-ok') return;
    if (this.#holds.has(event.hold)) return this.#malformed(`hold ${event.hold} is granted twice`, event);
    const { invoke } = call;
    const { at, validUntil } = event;
    const confirmedUntil = validUntil > at ? validUntil : Infinity;
    this.#holds.set(event.hold, { lock: invoke.lock, invoke, ok: event, deadline: validUntil, confirmedUntil });
  }

  #withHold(event: HistoryEvent & { hold: string }, then: (hold: HeldLock) => void): void {
    const hold = this.#holds.get(event.hold);
    if (hold) then(hold);
    else this.#malformed(`hold ${event.hold} was never granted`, event);
  }

  #checkEffect(event: EventOf<'effect'>): void {
    const call = this.#calls.get(event.call);
    if (!call) return this.#malformed(`call ${event.call} was never made`, event);
    const { outcome } = call;
    if (outcome === undefined || outcome.type === 'acquire-ok') return;
    const message = `${event.effect} of call ${event.call} on ${call.invoke.lock} ran ${ms(event.at - outcome.at)} after it had been rejected`;
    this.#violate('effect after the rejection', message, call.invoke, outcome, event);
  }

  #checkSettled(invoke: EventOf<'acquire-invoke' | 'release-invoke'>, outcome: HistoryEvent | undefined): void {
    const what = invoke.type === 'acquire-invoke' ? `call ${invoke.call}` : `the release of hold ${invoke.hold}`;
    if (!outcome) {
      if (!this.#died.has(invoke.process)) this.#violate('never settled', `${what} never settled`, invoke);
    } else if (invoke.settlesWithin !== undefined) {
      const took = this.#ranBetween(invoke.process, invoke.at, outcome.at);
      if (took > invoke.settlesWithin + this.graceMs) {
        this.#violate('settled too late', `${what} took ${ms(took)}, not ${ms(invoke.settlesWithin)}`, invoke, outcome);
      }
    }
  }

  /** A hold whose lease has ended is told so, by its deadline, and gives its holder nothing any more. */
  #checkLoss(hold: HeldLock): void {
    const { ok, confirmedUntil: deadline, releaseInvoke, releaseOutcome, loss } = hold;
    if (releaseInvoke && releaseOutcome?.type === 'release-ok') {
      const until = loss ? Math.min(loss.at, deadline) : deadline;
      if (releaseInvoke.at > until) {
        const message = `${named(hold)} was released as if held, ${ms(releaseInvoke.at - until)} after it had been lost`;
        this.#violate('success after the loss', message, ok, releaseInvoke, releaseOutcome);
      }
    }
    // Whoever gives the hold back is told of its loss by the release.
    const watchedUntil = Math.min(releaseInvoke?.at ?? Infinity, this.#died.get(ok.process) ?? Infinity);
    const toldAt = loss?.at ?? Infinity;
    const late = this.#ranBetween(ok.process, deadline, Math.min(toldAt, watchedUntil, this.#end));
    if (late <= this.graceMs) return;
    if (toldAt <= Math.min(watchedUntil, this.#end)) {
      this.#violate(
        'loss signal too late',
        `${named(hold)} was told ${ms(late)} after its deadline`,
        ok,
        ...(loss ? [loss] : []),
      );
    } else {
      this.#violate(
        'lease ended without a loss signal',
        `${named(hold)} had ended ${ms(late)} before and nobody said so`,
        ok,
      );
    }
  }

  /** No call made inside a lost hold takes the lock once more. */
  #checkInside(hold: HeldLock): void {
    const parent = this.#parentOf(hold);
    if (!parent) return;
    const { ok, invoke } = hold;
    const lostAt = Math.min(parent.loss?.at ?? Infinity, parent.confirmedUntil);
    // The parent may have been given back meanwhile: it keeps the lock for its child and nobody watches its deadline.
    const watched = parent.releaseInvoke === undefined || parent.releaseInvoke.at > lostAt;
    if (watched && lostAt < invoke.at) {
      const message = `${named(hold)} was granted inside hold ${parent.ok.hold}, lost ${ms(invoke.at - lostAt)} before`;
      this.#violate('success after the loss', message, parent.ok, invoke, ok);
    }
  }

  #checkExclusion(holds: readonly HeldLock[]): void {
    const spans = holds
      .map((hold) => ({ hold, from: hold.ok.at, until: this.#validUntil(hold) }))
      .filter(({ from, until }) => until > from)
      .sort((a, b) => a.from - b.from);
    let inside: typeof spans = [];
    for (const span of spans) {
      inside = inside.filter(({ until }) => until > span.from);
      for (const other of inside) {
        if (this.#mayOverlap(other.hold, span.hold)) continue;
        const overlap = Math.min(other.until, span.until) - span.from;
        const message = `${named(other.hold)} and ${named(span.hold)} were both valid for ${ms(overlap)}`;
        this.#violate('two valid holds at once', message, other.hold.ok, span.hold.ok);
      }
      inside.push(span);
    }
  }

  /** What was taken away behind the library's back is nobody's any more, and given back it is too much. */
  #brokenAt(lock: string): number {
    return Math.min(Infinity, ...this.#broken.filter(({ locks }) => isOf(locks, lock)).map(({ from }) => from));
  }

  #checkPermits(holds: readonly HeldLock[]): void {
    const broken = this.#brokenAt(holds[0]?.lock ?? '');
    const spans = holds
      .map((hold) => ({ hold, from: hold.ok.at, until: Math.min(this.#validUntil(hold), broken) }))
      .filter(({ from, until }) => until > from)
      .sort((a, b) => a.from - b.from);
    let inside: typeof spans = [];
    for (const span of spans) {
      inside = [...inside.filter(({ until }) => until > span.from), span];
      const taken = inside.reduce((sum, { hold }) => sum + (hold.ok.permits?.taken ?? 0), 0);
      const of = span.hold.ok.permits?.of ?? 0;
      if (taken <= of) continue;
      const message = `${taken} permits of ${span.hold.lock} were taken at once, of ${of}`;
      this.#violate('more permits than there are', message, ...inside.map(({ hold }) => hold.ok));
    }
  }

  /** All are back in the end, but for those that went down with a process. */
  #checkFree(event: EventOf<'permits-free'>): void {
    const { lock, free, of } = event;
    if (this.#brokenAt(lock) < event.at) return;
    let gone = 0;
    for (const { invoke, outcome } of this.#calls.values()) {
      const died = this.#died.get(invoke.process);
      if (died === undefined || invoke.lock !== lock) continue;
      const hold = outcome?.type === 'acquire-ok' ? this.#holds.get(outcome.hold) : undefined;
      const settled = hold?.releaseOutcome?.type === 'release-ok' || (outcome && hold === undefined);
      const last = hold?.releaseOutcome?.at ?? outcome?.at ?? Infinity;
      // Shortly before, something may have been on its way in the background.
      if (!settled || died - last < IN_BACKGROUND_MS) gone += invoke.permits ?? 0;
    }
    const message = `${free} permits of ${lock} are free in the end, of ${of}, and ${gone} may have died`;
    if (free > of) this.#violate('more permits than there are', message, event);
    if (free < of - gone) this.#violate('permits lost', message, event, ...this.#unsettledOf(lock));
  }

  /** What may have taken something that did not come back. */
  #unsettledOf(lock: string): HistoryEvent[] {
    return [...this.#calls.values()].flatMap(({ invoke, outcome }): HistoryEvent[] => {
      if (invoke.lock !== lock || outcome === undefined) return [];
      if (outcome.type !== 'acquire-ok') return outcome.reason === 'busy' ? [] : [invoke, outcome];
      const { releaseInvoke, releaseOutcome } = this.#holds.get(outcome.hold) ?? {};
      if (releaseOutcome?.type === 'release-ok') return [];
      return [invoke, outcome, ...(releaseInvoke ? [releaseInvoke] : []), ...(releaseOutcome ? [releaseOutcome] : [])];
    });
  }

  #checkLatch(event: EventOf<'latch-opened' | 'latch-closed'>): void {
    const { type, latch, of, asked, counted } = event;
    const set = this.#latches.get(latch) ?? Infinity;
    const opened = type === 'latch-opened';
    if (opened && asked < of && !this.#broken.some(({ locks, at }) => isOf(locks, latch) && at >= set)) {
      this.#violate('latch opened too early', `${latch} opened after ${asked} of ${of} count-downs`, event);
    }
    if (!opened && counted >= of) {
      this.#violate('latch not opened', `${latch} is closed after all of ${of} count-downs`, event);
    }
  }

  /** Whoever may believe to hold the lock has it at the server all the while. */
  #checkHeld(hold: HeldLock): void {
    const until = this.#validUntil(hold) - CLOCK_SLACK_MS;
    let sure = hold.ok.at + CLOCK_SLACK_MS;
    for (const { from, at } of this.#held.get(`${hold.lock} ${hold.ok.owner}`) ?? []) {
      if (from <= sure) sure = Math.max(sure, at);
    }
    if (sure >= until) return;
    const message = `${named(hold)} counted as valid until ${ms(until - sure)} after the server had freed it`;
    this.#violate('valid without the lock', message, hold.ok);
  }

  #validUntil(hold: HeldLock): number {
    const ends = [hold.deadline, hold.releaseInvoke?.at ?? Infinity, hold.loss?.at ?? Infinity];
    for (const { from, at, locks } of this.#broken) {
      if (!isOf(locks, hold.lock)) continue;
      // Granted before or after? Unless that is sure, it proves nothing.
      if (hold.invoke.at < at) ends.push(hold.ok.at <= from ? from : -Infinity);
    }
    return Math.min(...ends);
  }

  #mayOverlap(a: HeldLock, b: HeldLock): boolean {
    return (a.ok.shared === true && b.ok.shared === true) || this.#isInside(a, b) || this.#isInside(b, a);
  }

  #isInside(inner: HeldLock, outer: HeldLock): boolean {
    for (let parent = this.#parentOf(inner); parent; parent = this.#parentOf(parent)) if (parent === outer) return true;
    return false;
  }

  /** A call that had to contend as a stranger after all is inside of nothing: its owner is another. */
  #parentOf(hold: HeldLock): HeldLock | undefined {
    const parent = hold.ok.parent === undefined ? undefined : this.#holds.get(hold.ok.parent);
    return parent?.ok.owner === hold.ok.owner && parent.lock === hold.lock ? parent : undefined;
  }

  /** How often the counter had been lost; apart from the others where nobody can say. */
  #tokenEpoch({ lock, invoke, ok }: HeldLock): string {
    const losses = this.#broken.filter(({ tokensLost, locks }) => tokensLost && isOf(locks, lock));
    const unsure = losses.some(({ from, at }) => invoke.at < at && ok.at > from);
    return unsure ? ok.hold : String(losses.filter(({ at }) => at <= invoke.at).length);
  }

  /** Whoever asked after somebody else had been granted has the larger token. */
  #checkTokens(holds: readonly HeldLock[]): void {
    const fenced = holds.flatMap((hold) =>
      hold.ok.token === undefined ? [] : [{ hold, token: BigInt(hold.ok.token) }],
    );
    const granted = [...fenced].sort((a, b) => a.hold.ok.at - b.hold.ok.at);
    let largest: (typeof fenced)[number] | undefined;
    let next = 0;
    for (const each of [...fenced].sort((a, b) => a.hold.invoke.at - b.hold.invoke.at)) {
      for (let grant = granted[next]; grant && grant.hold.ok.at <= each.hold.invoke.at; grant = granted[++next]) {
        if (largest === undefined || grant.token > largest.token) largest = grant;
      }
      if (largest) this.#checkTokenPair(largest, each);
    }
    for (const same of groupBy(fenced, ({ token }) => token)) {
      const [first, ...others] = same;
      const other = others.find(({ hold }) => hold.ok.owner !== first?.hold.ok.owner);
      if (first && other && !this.#ordered(first.hold, other.hold)) this.#tokenWentBack(first, other);
    }
  }

  #ordered(a: HeldLock, b: HeldLock): boolean {
    return a.ok.at <= b.invoke.at || b.ok.at <= a.invoke.at;
  }

  #checkTokenPair(before: { hold: HeldLock; token: bigint }, after: { hold: HeldLock; token: bigint }): void {
    const sameOwner = before.hold.ok.owner === after.hold.ok.owner;
    if (after.token < before.token || (after.token === before.token && !sameOwner)) this.#tokenWentBack(before, after);
  }

  #tokenWentBack(before: { hold: HeldLock; token: bigint }, after: { hold: HeldLock; token: bigint }): void {
    const message = `${named(after.hold)} has token ${String(after.token)}, ${named(before.hold)} had ${String(before.token)}`;
    this.#violate('fencing token went back', message, before.hold.ok, after.hold.invoke, after.hold.ok);
  }

  /** ms between two moments in which the process could run. */
  #ranBetween(process: string, from: number, until: number): number {
    if (until <= from) return 0;
    let stood = 0;
    for (const stall of this.#stalls.get(process) ?? []) {
      stood += Math.max(0, Math.min(stall.at, until) - Math.max(stall.from, from));
    }
    return until - from - stood;
  }

  #malformed(message: string, ...events: HistoryEvent[]): void {
    this.#violate('malformed history', message, ...events);
  }

  #violate(kind: ViolationKind, message: string, ...events: HistoryEvent[]): void {
    this.#violations.push({ kind, message, events });
  }
}

/** A word that comes when the lease is over by the last one changes nothing. */
function believe(hold: HeldLock, at: number, until: number): void {
  hold.deadline = until > at ? until : Math.min(hold.deadline, at);
  if (until > at) hold.confirmedUntil = until;
}

const isOf = (locks: readonly string[] | 'all', lock: string): boolean => locks === 'all' || locks.includes(lock);

function groupBy<T>(all: readonly T[], keyOf: (each: T) => string | bigint): T[][] {
  const groups = new Map<string | bigint, T[]>();
  for (const each of all) {
    const group = groups.get(keyOf(each));
    if (group) group.push(each);
    else groups.set(keyOf(each), [each]);
  }
  return [...groups.values()];
}

const ms = (duration: number): string => `${duration.toFixed(1)} ms`;
const named = ({ lock, ok }: HeldLock): string =>
  `hold ${ok.hold} of ${lock} (owner ${ok.owner}, process ${ok.process})`;

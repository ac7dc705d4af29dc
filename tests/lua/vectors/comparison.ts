import { isDeepStrictEqual, inspect } from 'node:util';
import type { Reason } from '../../support/java/deviation-reasons.js';
import type { Message } from '../../support/clients/published.js';
import type { KeyState } from '../../support/redis-state.js';
import type { Pace, Scenario, Step } from './recording.js';

/** Where we do something else than Redisson on purpose. */
export interface Deviation {
  readonly scenario: string;
  /** The steps it shows in, as `i` of the recording. */
  readonly steps: readonly number[];
  /** Absent: in our scripts and in the client. */
  readonly in?: 'scripts' | 'client';
  readonly why: Reason | readonly Reason[];
  /** The lease of each key ends `ms` after the call of step `after`, instead of when it was recorded to end. */
  readonly leaseEnd?: Readonly<Record<string, { readonly after: number; readonly ms: number }>>;
  /** When the leases end is not compared: a hold keeps its own, and they were recorded shorter or longer than that. */
  readonly ownLease?: true;
  /** The result of the call. */
  readonly result?: unknown;
  /** Values of keys that differ in Holdfast. `undefined`: there is no such key. */
  readonly state?: Readonly<Record<string, unknown>>;
  readonly published?: readonly Message[];
  /** Another message that may be published instead, depending on timing. */
  readonly orPublished?: readonly Message[];
  /** Scores of a sorted set that are this many ms later, by member. */
  readonly scoresLater?: Readonly<Record<string, number>>;
  /** The rejection of the call. */
  readonly code?: string;
  /** The calls that end in this step, if they are not those of the recording. */
  readonly completed?: Step['completed'];
  /**
   * Its order relative to another step depends on timing, so the state of the server is not compared at that moment.
   */
  readonly anyState?: true;
  /** The call was recorded to wait, and does not. */
  readonly doesNotWait?: true;
  /** The actor first releases its lost holds: a lost hold stays around its flow until then. */
  readonly unlocksFirst?: true;
}

/** When a watchdog ticks is not exact. */
const TICK_MS = 1_000;
/** Delay between the read of the clock of a JVM for an end and the run of its script. */
const CLOCK_MS = 150;
const NO_EXPIRY = 922337203685477;

/** Compares a replay with its recording. Times are compared as the moment they stand for, since the beginning. */
export class Comparison {
  readonly differences: string[] = [];
  /** When we made the call of each step. */
  readonly #calledAt = new Map<number, number>();
  readonly #deviations: readonly Deviation[];
  #renewed = false;

  constructor(
    private readonly scenario: Scenario,
    deviations: readonly Deviation[],
    replay: 'scripts' | 'client',
    private readonly pace: Pace,
  ) {
    this.#deviations = deviations.filter((each) => each.scenario === scenario.name && (each.in ?? replay) === replay);
  }

  called(step: Step): void {
    this.#calledAt.set(step.i, this.pace.now());
  }

  deviation({ i }: { readonly i: number }): Deviation {
    const all = this.#deviations.filter(({ steps }) => steps.includes(i));
    return Object.assign({ scenario: '', steps: [], why: [] }, ...all) as Deviation;
  }

  /** A reply or result that was read since `from`. A time to live is one of `key`. */
  value(
    step: Step,
    what: string,
    recorded: unknown,
    recordedAt: number,
    ours: unknown,
    key: string,
    from: number,
  ): void {
    if (isTime(recorded) && typeof ours === 'number') {
      this.#time(step, what, key, recorded + recordedAt, ours, from);
    } else {
      this.#same(step, what, recorded, ours);
    }
  }

  /** Whether the server has the expected state, except times: background work may still be pending. */
  hasContent(step: Step, ours: Readonly<Record<string, KeyState>>): boolean {
    if (this.deviation(step).anyState) return true;
    return isDeepStrictEqual(contentOf(this.#expected(step)), contentOf(ours));
  }

  #expected(step: Step): Record<string, KeyState> {
    return withDeviation(step.state, this.deviation(step).state);
  }

  /** The state of the server, read since `from`. */
  state(step: Step, ours: Readonly<Record<string, KeyState>>, from: number): void {
    if (this.deviation(step).anyState) return;
    const recorded = this.#expected(step);
    this.#same(step, 'state', contentOf(recorded), contentOf(ours));
    for (const [key, { type, value }] of Object.entries(recorded)) {
      const mine = ours[key];
      if (type === 'zset' && mine?.type === 'zset') this.#scores(step, value as Score[], mine.value as Score[]);
    }
    for (const [key, { pttl }] of Object.entries(recorded)) {
      const left = ours[key]?.pttl ?? -2;
      if (pttl >= 0 && left >= 0) this.#time(step, `PTTL of ${key}`, key, pttl + step.stateAt, left, from);
      for (const [field, end] of endsIn(recorded[key]?.value)) {
        const own = new Map(endsIn(ours[key]?.value)).get(field);
        if (own !== undefined)
          this.#time(step, `end of ${field}`, key, end, own - this.pace.epoch - from, from, CLOCK_MS);
      }
    }
  }

  /** Moments, as scores of members of the same name; where that is missing `state` has said so. */
  #scores(step: Step, recorded: readonly Score[], ours: readonly Score[]): void {
    for (const [member, score] of recorded) {
      const end = momentOf(score);
      const own = momentOf(ours.find(([name]) => name === member)?.[1] ?? '');
      if (end === undefined || own === undefined) continue;
      const tolerance = this.scenario.settings.toleranceMs + this.pace.lateMs;
      const off = own - this.pace.epoch - end - (this.deviation(step).scoresLater?.[member] ?? 0);
      if (Math.abs(off) > tolerance) {
        this.differs(step, `score of ${member} is ${Math.round(off)} ms off, within ${Math.round(tolerance)}`);
      }
    }
  }

  published(step: Step, ours: readonly Message[]): void {
    const recorded = step.published.map(({ channel, payload }) => ({ channel, payload }));
    // Over several connections at once, they come in any order.
    const inOrder = (messages: readonly Message[]): readonly Message[] =>
      step.call.object.startsWith('red(') ? [...messages].sort((a, b) => (a.channel < b.channel ? -1 : 1)) : messages;
    const { published = recorded, orPublished } = this.deviation(step);
    if (orPublished !== undefined && isDeepStrictEqual(orPublished, ours)) return;
    this.#same(step, 'messages', inOrder(published), inOrder(ours));
  }

  differs(step: Step, what: string): void {
    this.differences.push(`step ${step.i} (${step.call.object}.${step.call.method}): ${what}`);
  }

  #time(step: Step, what: string, key: string, recordedEnd: number, left: number, from: number, slack = 0): void {
    this.#renewed ||= step.scripts.some(({ reply }) => Array.isArray(reply));
    if (this.deviation(step).ownLease) return;
    const own = this.deviation(step).leaseEnd?.[key];
    const end = own === undefined ? recordedEnd : (this.#calledAt.get(own.after) ?? NaN) + own.ms;
    const tolerance = this.scenario.settings.toleranceMs + (this.#renewed ? TICK_MS : 0) + this.pace.lateMs + slack;
    const least = left + from - tolerance;
    const most = left + this.pace.now() + tolerance;
    if (!(least <= end && end <= most)) {
      const [ours, theirs] = [left + from - end, tolerance].map(Math.round);
      this.differs(step, `${what} is ${left}: ends ${String(ours)} ms after it should, within ${String(theirs)}`);
    }
  }

  #same(step: Step, what: string, recorded: unknown, ours: unknown): void {
    if (isDeepStrictEqual(recorded, ours)) return;
    this.differs(step, `${what}: ${inspect(ours, { depth: 5 })}, recorded ${inspect(recorded, { depth: 5 })}`);
  }
}

/** Without times. */
function contentOf(state: Readonly<Record<string, KeyState>>): unknown {
  return Object.fromEntries(
    Object.entries(state).map(([key, { type, value, pttl }]) => {
      const content = type === 'zset' ? withoutTimes(value as readonly Score[]) : withoutEnds(value);
      return [key, { type, value: content, expires: pttl >= 0 }];
    }),
  );
}

function withDeviation(
  recorded: Readonly<Record<string, KeyState>>,
  deviation: Readonly<Record<string, unknown>> = {},
): Record<string, KeyState> {
  const state = new Map(Object.entries(recorded));
  for (const [key, own] of Object.entries(deviation)) {
    if (own === undefined) state.delete(key);
    else
      state.set(key, { ...(state.get(key) ?? { type: 'string', value: '', pttl: -1 }), ...(own as Partial<KeyState>) });
  }
  return Object.fromEntries(state);
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 200 && value !== NO_EXPIRY;
}

const END = ':expire_time';

/** Fields whose value is a time: epoch ms, or ms since the recording began. */
function endsIn(value: unknown): [string, number][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  const fields = Object.entries(value as Record<string, string>).filter(([field]) => field.endsWith(END));
  return fields.map(([field, text]) => [field, Number(/^<T\+(\d+)>$/.exec(text)?.[1] ?? text)]);
}

function withoutEnds(value: unknown): unknown {
  if (endsIn(value).length === 0) return value;
  return Object.fromEntries(
    Object.entries(value as object).map(([field, text]) => [field, field.endsWith(END) ? 'an end' : (text as unknown)]),
  );
}

type Score = readonly [member: string, score: string];

/** `<T+1234>` or `<T-1234>` of a recording, or epoch ms; undefined: no moment. */
function momentOf(score: string): number | undefined {
  const recorded = /^<T([+-]\d+)>$/.exec(score)?.[1];
  if (recorded !== undefined) return Number(recorded);
  return Number(score) > 1e12 && Number(score) !== NO_EXPIRY ? Number(score) : undefined;
}

/** Members of one score are in the order of their bytes, which are random. */
const withoutTimes = (scores: readonly Score[]): unknown =>
  scores
    .map(([member, score]): Score => [member, momentOf(score) === undefined ? score : '<T>'])
    .sort(([a], [b]) => (a < b ? -1 : 1));

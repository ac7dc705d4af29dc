import type {
  Contended,
  Doctor,
  Hello,
  Own,
  Problem,
  Row,
  RowsChange,
  Selected,
  ServerEvents,
  Summary,
  TimelineBar,
  TimelineChange,
  TimelineEntry,
  WaitEdge,
} from '../../messages.js';

/** One event of the stream. */
export type ServerEvent = {
  [Name in keyof ServerEvents]: { readonly name: Name; readonly payload: ServerEvents[Name] };
}[keyof ServerEvents];

/** A value and when it was true, on the clock of `performance.now()`. */
export interface Read<Value> {
  readonly value: Value;
  readonly at: number;
}

/** How many clients waited for the selected lock, from a moment on. */
export interface WaiterStep {
  readonly at: number;
  readonly waiters: number;
}

/** When the times on the page stopped, on the clock of `performance.now()`: nothing was read since. */
let stoppedAt: number | undefined;

/** Stops the times on the page, or lets them go on. */
export const stopTimes = (isStopped: boolean): void =>
  void (stoppedAt = isStopped ? (stoppedAt ?? performance.now()) : undefined);

const shownNow = (): number => stoppedAt ?? performance.now();

/** Time, in ms, since something was read, as the page shows it. */
export const sinceRead = (at: number): number => Math.max(0, shownNow() - at);

const MAX_STEPS = 500;
const MAX_BARS = 100;
const MAX_ENTRIES = 200;

/** What the page knows: the last value of each event. */
export class Model {
  hello: Hello | undefined;
  /** By id. */
  rows = new Map<string, Read<Row>>();
  summary: Summary | undefined;
  selected: Read<Selected> | undefined;
  readonly bars = new Map<number, TimelineBar>();
  entries: TimelineEntry[] = [];
  waiterSteps: WaiterStep[] = [];
  own: Read<Own> | undefined;
  waits: Read<readonly WaitEdge[]> = { value: [], at: 0 };
  contended: readonly Contended[] = [];
  doctor: Doctor | undefined;
  problems: readonly Problem[] = [];

  /** Since when Redis has been unavailable, in epoch ms of the server. The doctor alone says nothing about the rows. */
  get outageSince(): number | undefined {
    const outages = this.problems.filter(({ what, isOutage }) => isOutage && what !== 'doctor');
    return outages.length === 0 ? undefined : Math.min(...outages.map(({ since }) => since));
  }

  /** Epoch ms of the server minus `performance.now()`. */
  #serverTime = Date.now() - performance.now();
  /** The rows of the stream before, which stay until the first rows of the new one. */
  #isOutdated = false;

  /** The time of the server, in epoch ms. */
  serverNow(): number {
    return shownNow() + this.#serverTime;
  }

  take(event: ServerEvent): void {
    const at = performance.now();
    switch (event.name) {
      case 'hello':
        this.#begin(event.payload, at);
        break;
      case 'rows':
        this.#takeRows(event.payload, at);
        break;
      case 'selected':
        this.#select(event.payload, at);
        break;
      case 'timeline':
        this.#extend(event.payload);
        break;
      case 'summary':
        this.#dropOutdated();
        this.summary = event.payload;
        break;
      case 'own':
        this.own = { value: event.payload, at };
        break;
      case 'waits':
        this.waits = { value: event.payload, at };
        break;
      case 'contended':
        this.contended = event.payload;
        break;
      case 'doctor':
        this.doctor = event.payload;
        break;
      case 'problems':
        this.problems = event.payload;
        break;
      case 'bye':
        break;
    }
  }

  /** Forgets the details of the lock that was selected. */
  deselect(): void {
    this.selected = undefined;
    this.bars.clear();
    this.entries = [];
    this.waiterSteps = [];
  }

  #begin(hello: Hello, at: number): void {
    this.hello = hello;
    this.#serverTime = hello.now - at;
    this.#isOutdated = true;
    // The server sends its whole timeline again.
    this.bars.clear();
    this.entries = [];
  }

  #dropOutdated(): void {
    if (this.#isOutdated) this.rows.clear();
    this.#isOutdated = false;
  }

  #takeRows({ changed, removed }: RowsChange, at: number): void {
    this.#dropOutdated();
    for (const row of changed) this.rows.set(row.id, { value: row, at: at - row.readAgo });
    for (const id of removed) this.rows.delete(id);
  }

  #select(selected: Selected | null, at: number): void {
    if (selected === null) return this.deselect();
    this.selected = { value: selected, at: at - selected.row.readAgo };
    const waiters = selected.row.waiters ?? 0;
    if (this.waiterSteps.at(-1)?.waiters === waiters) return;
    this.waiterSteps.push({ at: this.serverNow(), waiters });
    if (this.waiterSteps.length > MAX_STEPS) this.waiterSteps.shift();
  }

  #extend({ bars, entries }: TimelineChange): void {
    for (const bar of bars) this.bars.set(bar.id, bar);
    for (const id of [...this.bars.keys()].slice(0, -MAX_BARS)) this.bars.delete(id);
    this.entries = [...this.entries, ...entries].slice(-MAX_ENTRIES);
  }
}

/** The rest of a lease that was read before, in ms, or -1 for no end and -2 for no key. */
export function restOf(remaining: number, readAt: number): number {
  return remaining < 0 ? remaining : Math.max(0, remaining - sinceRead(readAt));
}

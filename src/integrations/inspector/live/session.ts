import { setTimeout as pause } from 'node:timers/promises';
import { ClientClosedError, type Finding, type LockClient } from '../../../index.js';
import type { Doctor, ProcessView, Selected, Summary } from '../contract/messages.js';
import { Budget } from './budget.js';
import { Contention } from './contention.js';
import { cut, idOf } from './named.js';
import type { Entry, Overview } from './overview.js';
import { Problems } from './problems.js';
import { MAX_CHARACTERS, MAX_NAMES, Table, type TableRow } from './table.js';
import { EVENTS, Timeline } from './timeline.js';
import type { PageView } from './view.js';
import { VisibleRows } from './visible.js';

const LIST_PAUSE_MS = 1_000;
const ROWS_EVERY_MS = 1_000;
const SELECTED_EVERY_MS = 250;
const DOCTOR_EVERY_MS = 60_000;
/** The doctor leaves the first commands of a page to the first rows. In ms. */
const DOCTOR_AFTER_MS = 1_500;
/** Number of names that are read again in one turn, those that were read longest ago first. */
const MAX_TURN = 1_000;
/** Number of names that an event of the client mentioned and that are read in the next turn. */
const MAX_MENTIONED = 100;
/** Number of findings of the doctor that a page shows. */
const MAX_FINDINGS = 200;

/**
 * What all pages of an inspector show. While it runs, it lists Redis again and again, reads the rows on the screens once
 * a second and the selected locks four times a second, all within one budget of commands.
 */
export class Session {
  readonly table: Table;
  readonly visible: VisibleRows;
  readonly contention = new Contention();
  readonly problems = new Problems();
  readonly overview: Overview;
  /** The whole names of the own holds and waits that the pages show, by their ids. A listing may not have found them. */
  readonly ownById = new Map<string, string>();
  doctor: Doctor = { at: null, findings: [] };
  listed: Pick<Summary, 'isTruncated' | 'listedAt' | 'listedIn'> = {
    isTruncated: false,
    listedAt: null,
    listedIn: null,
  };
  readonly #budget = new Budget();
  readonly #timelines = new Map<string, Timeline>();
  readonly #selected = new Map<string, TableRow>();
  /** The names whose ids a view selects: a name that is free is not in the table. */
  #namesById = new Map<string, string>();
  readonly #mentioned = new Set<string>();
  #running: { readonly abort: AbortController; readonly stopListening: readonly (() => void)[] } | undefined;

  constructor(
    private readonly client: LockClient,
    readonly process: ProcessView,
    private readonly views: () => readonly PageView[],
    private readonly onClosed: () => void,
    maxNames = MAX_NAMES,
  ) {
    this.overview = client.overview(() => this.#budget.take());
    this.table = new Table(client.id, maxNames);
    this.visible = new VisibleRows(this.table);
  }

  start(): void {
    this.#budget.start();
    const abort = new AbortController();
    this.#running = { abort, stopListening: this.#listen() };
    const { signal } = abort;
    void this.#repeat('list', LIST_PAUSE_MS, signal, () => this.#list(signal));
    void this.#repeat('rows', ROWS_EVERY_MS, signal, () => this.#readRows());
    void this.#repeat('selected', SELECTED_EVERY_MS, signal, () => this.#readSelected());
    void pause(DOCTOR_AFTER_MS, undefined, { signal, ref: false }).then(
      () => this.#repeat('doctor', DOCTOR_EVERY_MS, signal, () => this.#examine()),
      () => undefined,
    );
  }

  /** After this, the session sends no command, and has no timer and no listener. */
  stop(): void {
    const running = this.#running;
    this.#running = undefined;
    for (const stop of running?.stopListening ?? []) stop();
    const reason = new Error('no page is open');
    running?.abort.abort(reason);
    this.#budget.stop(reason);
  }

  /** The whole name with an id that a page shows. */
  nameOf(id: string): string | undefined {
    return this.#namesById.get(id) ?? this.table.byId(id)?.name ?? this.ownById.get(id);
  }

  /** The name that a view selects. `undefined`: none, or the id is not known. */
  selectedBy({ select, id }: PageView): string | undefined {
    return id === null ? (select ?? undefined) : this.nameOf(id);
  }

  /** The row of a selected name; `undefined` before it was read. */
  selected(name: string): TableRow | undefined {
    return this.#selected.get(name);
  }

  timeline(name: string): Timeline {
    let timeline = this.#timelines.get(name);
    if (timeline === undefined) {
      const own = { clientId: this.client.id, process: this.process };
      timeline = new Timeline(own, this.table.processOf);
      this.#timelines.set(name, timeline);
    }
    return timeline;
  }

  async #repeat(
    what: 'list' | 'rows' | 'selected' | 'doctor',
    everyMs: number,
    signal: AbortSignal,
    step: () => Promise<void>,
  ): Promise<void> {
    while (!signal.aborted) {
      const startedAt = performance.now();
      try {
        await step();
        this.problems.worked(what);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ClientClosedError || this.overview.isClosed) return this.onClosed();
        this.problems.failed(what, error);
      }
      const rest = what === 'list' ? everyMs : Math.max(0, everyMs - (performance.now() - startedAt));
      await pause(rest, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    let [found, characters, isTruncated] = [0, 0, false];
    for await (const entry of this.overview.list(signal)) {
      this.#note(entry.name, entry, false);
      found += 1;
      characters += entry.name.length;
      isTruncated = found >= this.table.maxNames || characters >= MAX_CHARACTERS;
      if (isTruncated) break;
    }
    const asked = new Set(this.views().map(({ search }) => idOf(search)));
    for (const name of this.table.keepReadSince(startedAt, asked)) this.contention.look(name, 0, performance.now());
    const listedIn = Math.round(performance.now() - startedAt);
    this.listed = { isTruncated, listedAt: Date.now(), listedIn };
  }

  async #readRows(): Promise<void> {
    const staleBefore = performance.now() - 0.9 * ROWS_EVERY_MS;
    const names = new Map<string, number>();
    for (const view of this.views()) {
      for (const { name, readAt } of this.visible.of(view).rows) if (readAt < staleBefore) names.set(name, readAt);
      // A name that somebody types whole is shown before the next listing finds it.
      if (view.search !== '' && this.table.get(view.search) === undefined) names.set(view.search, 0);
    }
    for (const name of this.#mentioned) names.set(name, 0);
    this.#mentioned.clear();
    const oldest = [...names].sort(([, a], [, b]) => a - b).slice(0, MAX_TURN);
    await this.#read(oldest.map(([name]) => name));
  }

  async #readSelected(): Promise<void> {
    const views = this.views();
    const names = views.flatMap(({ id }) => (id === null ? [] : [[id, this.nameOf(id)] as const]));
    this.#namesById = new Map(names.filter((each): each is [string, string] => each[1] !== undefined));
    const wanted = new Set(views.flatMap((view) => this.selectedBy(view) ?? []));
    for (const name of this.#selected.keys()) if (!wanted.has(name)) this.#selected.delete(name);
    for (const name of this.#timelines.keys()) if (!wanted.has(name)) this.#timelines.delete(name);
    const read = await this.#read([...wanted]);
    const at = performance.now();
    for (const [name, entry] of read) {
      const shown = entry ?? freeEntry(name);
      const inTable = entry === null ? undefined : this.table.get(name);
      this.#selected.set(name, inTable ?? this.table.rowOf(shown, at, this.#selected.get(name)));
      this.timeline(name).look(shown, at);
    }
  }

  async #examine(): Promise<void> {
    const findings = await this.overview.examine((commands) => this.#budget.take(commands));
    this.doctor = { at: Date.now(), findings: findings.slice(0, MAX_FINDINGS).map(shownFinding) };
  }

  async #read(names: readonly string[]): Promise<ReadonlyMap<string, Entry | null>> {
    if (names.length === 0) return new Map();
    const read = await this.overview.read(names);
    for (const [name, entry] of read) this.#note(name, entry, true);
    return read;
  }

  #note(name: string, entry: Entry | null, isAskedFor: boolean): void {
    this.table.set(name, entry, isAskedFor);
    this.contention.look(name, entry?.waiters ?? 0, performance.now());
  }

  #listen(): (() => void)[] {
    const { events } = this.client;
    return EVENTS.map((type) =>
      events.on(type, (event) => {
        const { lockName } = event;
        this.#timelines.get(lockName)?.heard(type, event);
        const isNews = type === 'waiting' || type === 'leaseLost' || type === 'forceUnlocked';
        if (isNews && this.#mentioned.size < MAX_MENTIONED) this.#mentioned.add(lockName);
        if ('waited' in event) this.contention.ended(lockName, event.waited);
      }),
    );
  }
}

/** The row of an id without a name in use. */
export const unknownRow = (id: string): Selected['row'] => ({
  ...{ id, name: '', length: 0, kind: 'free', owners: [], ownerCount: 0, queue: [], waiters: 0 },
  ...{ remaining: -2, lease: 0, readAgo: 0, value: null, permits: [], permitCount: 0 },
});

const freeEntry = (name: string): Entry => ({
  ...{ name, kind: 'free', type: 'none', owners: [], queue: [], permits: [] },
  ...{ remaining: -2, value: undefined, waiters: 0 },
});

const shownFinding = ({ check, level, message, server = '', advice = '' }: Finding): Doctor['findings'][number] => ({
  ...{ check, level, message: cut(message) },
  server: server === '' ? null : cut(server),
  advice: advice === '' ? null : cut(advice),
});

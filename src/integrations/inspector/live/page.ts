import type { Hello, Summary } from '../contract/messages.js';
import type { EventStream } from './event-stream.js';
import type { Session } from './session.js';
import type { SharedPayloads } from './shared-payloads.js';
import { sent, type TableRow } from './table.js';
import type { TimelineCursor } from './timeline.js';
import type { PageView } from './view.js';

/** One open page: what it shows, and what it has got. */
export class Page {
  /** The version of each row that the page has. */
  readonly #rows = new Map<string, number>();
  /** The JSON or the version of each other payload that the page has. */
  readonly #has = new Map<string, string | number>();
  #timeline: TimelineCursor | undefined;

  constructor(
    readonly stream: EventStream,
    readonly view: PageView,
    /** Whether the user may still see the page. */
    readonly isAllowed: () => Promise<boolean>,
    hello: Hello,
  ) {
    stream.send('hello', hello);
  }

  /** Sends what the page lacks. */
  update(session: Session, payloads: SharedPayloads): void {
    const { stream } = this;
    if (stream.isBlocked) return;
    const { rows, matching } = session.visible.of(this.view);
    this.#updateRows(rows);
    const summary = summaryOf(session, matching, rows.length);
    if (this.#isNew('summary', JSON.stringify(summary))) stream.send('summary', summary);
    this.#updateSelected(session);
    const { own, waits, contended } = payloads;
    const [ownNow, waitsNow, contendedNow] = [own.value, waits.value, contended.value];
    if (this.#isNew('own', own.version)) stream.send('own', ownNow);
    if (this.#isNew('waits', waits.version)) stream.send('waits', waitsNow);
    if (this.#isNew('contended', contended.version)) stream.send('contended', contendedNow);
    if (this.#isNew('doctor', session.doctor.at ?? 0)) stream.send('doctor', session.doctor);
    if (this.#isNew('problems', session.problems.version)) stream.send('problems', session.problems.list);
    stream.keepAlive();
  }

  #updateRows(rows: readonly TableRow[]): void {
    const changed = rows.filter(({ row, version }) => this.#rows.get(row.name) !== version);
    const names = new Set(rows.map(({ row }) => row.name));
    const removed = [...this.#rows.keys()].filter((name) => !names.has(name));
    if (changed.length === 0 && removed.length === 0) return;
    for (const { row, version } of changed) this.#rows.set(row.name, version);
    for (const name of removed) this.#rows.delete(name);
    this.stream.send('rows', { changed: changed.map(sent), removed });
  }

  #updateSelected(session: Session): void {
    const name = this.view.select;
    if (name === null) {
      if (this.#isNew('selected', 'nothing')) this.stream.send('selected', null);
      return;
    }
    const row = session.selected(name);
    if (row === undefined) return;
    if (this.#isNew('selected', row.version)) this.stream.send('selected', { name, row: sent(row) });
    const { change, cursor } = session.timeline(name).since(this.#timeline);
    if (change.bars.length > 0 || change.entries.length > 0) this.stream.send('timeline', change);
    this.#timeline = cursor;
  }

  #isNew(what: string, value: string | number): boolean {
    if (this.#has.get(what) === value) return false;
    this.#has.set(what, value);
    return true;
  }
}

function summaryOf({ table, listed }: Session, matching: number, shown: number): Summary {
  let waitedFor = 0;
  for (const { row } of table) if ((row.waiters ?? 0) > 0) waitedFor += 1;
  return { total: table.size, matching, shown, waitedFor, ...listed };
}

import type { Hello, ServerEvents, Summary } from '../contract/messages.js';
import type { EventStream } from './event-stream.js';
import { unknownRow, type Session } from './session.js';
import type { Payload, SharedPayloads } from './shared-payloads.js';
import { sent, type TableRow } from './table.js';
import type { TimelineCursor } from './timeline.js';
import type { PageView } from './view.js';

/** The most bytes of one update. The next one goes on with what it lacks. */
const MAX_UPDATE = 1_000_000;
/** The most bytes of the rows of one update, so that there is room for every other event. */
const MAX_ROWS = 500_000;

/** One open page: what it shows, and what it has got. */
export class Page {
  /** The version of each row that the page has, by the id of the row. */
  readonly #rows = new Map<string, number>();
  /** The JSON or the version of each other payload that the page has. */
  readonly #has = new Map<string, string | number>();
  #timeline: TimelineCursor | undefined;
  /** Number of bytes that the present update may still have. */
  #left = 0;

  constructor(
    readonly stream: EventStream,
    readonly view: PageView,
    /** Whether the user may still see the page. */
    readonly isAllowed: () => Promise<boolean>,
    private readonly hello: Hello,
  ) {}

  /** Sends what the page lacks, as far as it fits into one update. */
  update(session: Session, payloads: SharedPayloads): void {
    const { stream } = this;
    if (stream.isBlocked) return;
    this.#left = MAX_UPDATE;
    this.#send('hello', 0, () => this.hello);
    const { rows, matching } = session.visible.of(this.view);
    this.#updateRows(rows);
    const summary = JSON.stringify(summaryOf(session, matching, rows.length));
    this.#sendJson('summary', summary, () => summary);
    this.#updateSelected(session);
    for (const name of ['own', 'waits', 'contended'] as const) this.#sendShared(name, payloads[name]);
    this.#send('doctor', session.doctor.at ?? 0, () => session.doctor);
    this.#send('problems', session.problems.version, () => session.problems.list);
    stream.keepAlive();
  }

  #updateRows(rows: readonly TableRow[]): void {
    const ids = new Set(rows.map(({ row }) => row.id));
    const removed = [...this.#rows.keys()].filter((id) => !ids.has(id));
    for (const id of removed) this.#rows.delete(id);
    const changed: string[] = [];
    let size = 0;
    for (const found of rows) {
      const { row, version } = found;
      if (this.#rows.get(row.id) === version) continue;
      const json = JSON.stringify(sent(found));
      size += Buffer.byteLength(json);
      if (size > MAX_ROWS) break;
      this.#rows.set(row.id, version);
      changed.push(json);
    }
    if (changed.length === 0 && removed.length === 0) return;
    this.#write('rows', `{"changed":[${changed.join()}],"removed":${JSON.stringify(removed)}}`);
  }

  #updateSelected(session: Session): void {
    const { select, id } = this.view;
    const asked = id ?? select;
    if (asked === null) return this.#send('selected', 'nothing', () => null);
    const name = session.selectedBy(this.view);
    if (name === undefined) {
      // The first listing may still find the name.
      if (session.listed.listedAt !== null) {
        this.#send('selected', 'unknown', () => ({ asked, row: unknownRow(asked) }));
      }
      return;
    }
    const row = session.selected(name);
    if (row === undefined) return;
    this.#send('selected', row.version, () => ({ asked, row: sent(row) }));
    const { change, cursor } = session.timeline(name).since(this.#timeline);
    if (change.bars.length > 0 || change.entries.length > 0) {
      if (!this.#write('timeline', JSON.stringify(change))) return;
    }
    this.#timeline = cursor;
  }

  #sendShared(name: 'own' | 'waits' | 'contended', payload: Payload): void {
    // Reading the JSON brings the version up to date.
    const { json } = payload;
    this.#sendJson(name, payload.version, () => json);
  }

  #send<Name extends keyof ServerEvents>(
    name: Name,
    version: string | number,
    payload: () => ServerEvents[Name],
  ): void {
    this.#sendJson(name, version, () => JSON.stringify(payload()));
  }

  /** Sends a payload that the page does not have in this version. */
  #sendJson(name: keyof ServerEvents, version: string | number, json: () => string): void {
    if (this.#has.get(name) !== version && this.#write(name, json())) this.#has.set(name, version);
  }

  /** Returns `false` if the event has to wait for the next update. */
  #write(name: keyof ServerEvents, json: string): boolean {
    const size = Buffer.byteLength(json);
    if (size > this.#left) return false;
    this.#left -= size;
    this.stream.sendJson(name, json);
    return true;
  }
}

function summaryOf({ table, listed }: Session, matching: number, shown: number): Summary {
  return { total: table.size, matching, shown, waitedFor: table.waitedFor, ...listed };
}

import type { ListEntry } from '../../../index.js';
import { clientIdOf } from '../../shared/inspection-words.js';
import type { OwnerView, PermitView, QueuedView, Row } from '../contract/messages.js';

/** Number of names that one listing reads. */
export const MAX_NAMES = 20_000;
/** Number of permits of one semaphore that a page shows. */
const MAX_PERMITS = 100;
/** A move of the end of a lease, in ms, that is not more than the inaccuracy of the readings. */
const SAME_END_MS = 300;

/** What was read under one name. */
export interface TableRow {
  readonly row: Omit<Row, 'readAgo'>;
  /** When the row was read, on the clock of `performance.now()`. */
  readonly readAt: number;
  /** Changes with every change of the row other than the passing of time. */
  readonly version: number;
  /** When the owner that has been seen for the longest time was seen first; `Infinity` without owners. */
  readonly since: number;
  /** What a search looks into, in lower case. */
  readonly haystack: string;
}

/** The process of an owner id. */
export type ProcessOf = (owner: string) => OwnerView['process'];

/** The names in use, as they were read last. */
export class Table {
  readonly #rows = new Map<string, TableRow>();
  /** The processes of the client ids that owners had. */
  readonly #processes = new Map<string, NonNullable<OwnerView['process']>>();
  #versions = 0;
  /** Changes with every change of any row. */
  version = 0;

  constructor(
    private readonly clientId: string,
    readonly maxNames: number,
  ) {}

  get size(): number {
    return this.#rows.size;
  }

  get isFull(): boolean {
    return this.#rows.size >= this.maxNames;
  }

  get(name: string): TableRow | undefined {
    return this.#rows.get(name);
  }

  [Symbol.iterator](): IterableIterator<TableRow> {
    return this.#rows.values();
  }

  /**
   * Notes what was read under a name; `null`: the name is not in use. A full table takes no name that a listing found. It
   * takes one that was asked for, such as the name in a search: the next complete listing removes it if the page no longer
   * asks.
   */
  set(name: string, entry: ListEntry | null, isAskedFor = false, readAt = performance.now()): void {
    const before = this.#rows.get(name);
    if (entry === null) {
      if (this.#rows.delete(name)) this.version += 1;
      return;
    }
    if (before === undefined && this.isFull && !isAskedFor) return;
    if (before !== undefined && before.readAt > readAt) return;
    const next = this.rowOf(entry, readAt, before);
    this.#rows.set(name, next);
    if (next.version !== before?.version) this.version += 1;
  }

  /**
   * Removes the names that a complete listing did not find and that were not read since it began, and forgets the
   * processes that no row mentions. Returns these names.
   */
  keepReadSince(startedAt: number): string[] {
    const gone = [...this.#rows.values()].filter(({ readAt }) => readAt < startedAt).map(({ row }) => row.name);
    for (const name of gone) this.set(name, null);
    const mentioned = new Set<string>();
    for (const { row } of this.#rows.values()) {
      for (const { owner } of [...row.owners, ...row.queue]) mentioned.add(clientIdOf(owner));
    }
    for (const id of this.#processes.keys()) if (!mentioned.has(id)) this.#processes.delete(id);
    return gone;
  }

  /** The process of an owner, as it was seen last. */
  readonly processOf: ProcessOf = (owner) => this.#processes.get(clientIdOf(owner)) ?? null;

  /** Builds the row of an entry. `before`: the row of the same name that it replaces. */
  rowOf(entry: ListEntry, readAt: number, before?: TableRow): TableRow {
    const { name, kind, remaining } = entry;
    const now = Date.now();
    const known = new Map(before?.row.owners.map(({ owner, mode, since }) => [`${mode} ${owner}`, since]));
    const owners = entry.owners.map(({ owner, holdCount, mode, isThisClient, process }): OwnerView => {
      if (process !== undefined) this.#processes.set(clientIdOf(owner), process);
      const since = known.get(`${mode} ${owner}`) ?? now;
      return { owner, holdCount, mode, isThisClient, process: process ?? null, since };
    });
    const isSame = before !== undefined && owners.every(({ since }) => since !== now) && owners.length === known.size;
    const queue = entry.queue.map((owner): QueuedView => ({
      owner,
      isThisClient: clientIdOf(owner) === this.clientId,
      process: this.processOf(owner),
    }));
    const row: TableRow['row'] = {
      name,
      kind,
      owners,
      queue,
      waiters: entry.waiters ?? null,
      remaining,
      lease: Math.max(remaining, isSame ? before.row.lease : 0),
      value: entry.value ?? null,
      permits: entry.permits
        .slice(0, MAX_PERMITS)
        .map(({ id, remaining: left }): PermitView => ({ id, remaining: left })),
      permitCount: entry.permits.length,
    };
    const version = before !== undefined && isUnchanged(before, row, readAt) ? before.version : (this.#versions += 1);
    const since = Math.min(...owners.map((owner) => owner.since));
    return { row, readAt, version, since, haystack: haystackOf(row) };
  }
}

/** The row as a page gets it now. */
export const sent = ({ row, readAt }: TableRow): Row => ({
  ...row,
  readAgo: Math.max(0, Math.round(performance.now() - readAt)),
});

function haystackOf({ name, owners }: TableRow['row']): string {
  const processes = owners.map(({ owner, process }) =>
    process === null ? owner : `${owner} ${process.clientName} ${process.host}:${process.pid}`,
  );
  return [name, ...processes].join('\n').toLowerCase();
}

/** Whether a new reading says no more than that time has passed. */
function isUnchanged(before: TableRow, row: TableRow['row'], readAt: number): boolean {
  const facts = ({ remaining: _, lease: __, permits, ...rest }: TableRow['row']): string =>
    JSON.stringify([rest, permits.map(({ id }) => id)]);
  const [old, passed] = [before.row, readAt - before.readAt];
  const isAsExpected = (from: number, to: number): boolean =>
    from < 0 || to < 0 ? from === to : Math.abs(Math.max(0, from - passed) - to) <= SAME_END_MS;
  return (
    facts(old) === facts(row) &&
    isAsExpected(old.remaining, row.remaining) &&
    old.permits.every(({ remaining }, at) => isAsExpected(remaining, row.permits[at]?.remaining ?? -1))
  );
}

import { clientIdOf } from '../../shared/inspection-words.js';
import type { OwnerView, PermitView, ProcessView, QueuedView, Row } from '../contract/messages.js';
import { cutLabel, cutProcess, idOf, namedOf } from './named.js';
import type { Entry } from './overview.js';

/** Number of names that one listing reads. */
export const MAX_NAMES = 20_000;
/** Number of characters of these names: a full table, or one listing, takes no further name. */
export const MAX_CHARACTERS = 32_000_000;
/** Number of owners, and of waiters in a queue, that a row has. */
const MAX_OWNERS = 20;
/** Number of permits that a row has. */
const MAX_PERMITS = 50;
/** Number of characters that a search looks into. */
const MAX_HAYSTACK = 4_096;
/** A move of the end of a lease, in ms, that is not more than the inaccuracy of the readings. */
const SAME_END_MS = 300;

/** Whether all owners were read. */
export const isWhole = ({ owners, counts }: Entry): boolean => counts === undefined || counts.owners === owners.length;

/** What was read under one name. */
export interface TableRow {
  /** The whole name. */
  readonly name: string;
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
  /** By the ids of the names. */
  readonly #rows = new Map<string, TableRow>();
  /** The processes of the client ids that owners had, and when such an owner was read last. */
  readonly #processes = new Map<string, { process: NonNullable<OwnerView['process']>; readAt: number }>();
  #versions = 0;
  #characters = 0;
  #waitedFor = { version: -1, count: 0 };
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
    return this.#rows.size >= this.maxNames || this.#characters >= MAX_CHARACTERS;
  }

  /** Number of names that a client waits for. */
  get waitedFor(): number {
    if (this.#waitedFor.version !== this.version) {
      let count = 0;
      for (const { row } of this.#rows.values()) if ((row.waiters ?? 0) > 0) count += 1;
      this.#waitedFor = { version: this.version, count };
    }
    return this.#waitedFor.count;
  }

  get(name: string): TableRow | undefined {
    return this.#rows.get(idOf(name));
  }

  byId(id: string): TableRow | undefined {
    return this.#rows.get(id);
  }

  [Symbol.iterator](): IterableIterator<TableRow> {
    return this.#rows.values();
  }

  /**
   * Notes what was read under a name; `null`: the name is not in use. A full table takes no name that a listing found. It
   * takes one that was asked for, such as the name in a search: the next complete listing removes it if the page no longer
   * asks.
   */
  set(name: string, entry: Entry | null, isAskedFor = false, readAt = performance.now()): void {
    const before = this.get(name);
    if (entry === null) {
      if (before !== undefined) this.#delete(before);
      return;
    }
    if (before === undefined && this.isFull && !isAskedFor) return;
    if (before !== undefined && before.readAt > readAt) return;
    const next = this.rowOf(entry, readAt, before);
    if (before === undefined) this.#characters += name.length;
    this.#rows.set(next.row.id, next);
    if (next.version !== before?.version) this.version += 1;
  }

  /**
   * Removes the names that a complete listing did not find and that were not read since it began, and forgets the
   * processes whose owners were not read since then. Returns these names. `asked`: the ids of names that pages ask for. They
   * are read again in any case, and a listing of too many names does not find them.
   */
  keepReadSince(startedAt: number, asked: ReadonlySet<string> = new Set()): string[] {
    const gone = [...this.#rows.values()].filter(({ row, readAt }) => readAt < startedAt && !asked.has(row.id));
    for (const row of gone) this.#delete(row);
    for (const [id, { readAt }] of this.#processes) if (readAt < startedAt) this.#processes.delete(id);
    return gone.map(({ name }) => name);
  }

  #delete({ name, row }: TableRow): void {
    if (!this.#rows.delete(row.id)) return;
    this.#characters -= name.length;
    this.version += 1;
  }

  /** The process of an owner, as it was seen last. */
  readonly processOf: ProcessOf = (owner) => this.#processes.get(clientIdOf(owner))?.process ?? null;

  /** Builds the row of an entry. `before`: the row of the same name that it replaces. */
  rowOf(entry: Entry, readAt: number, before?: TableRow): TableRow {
    const { name, kind, remaining, counts } = entry;
    const now = Date.now();
    const known = new Map(before?.row.owners.map(({ owner, mode, since }) => [`${mode} ${owner}`, since]));
    const owners = entry.owners
      .slice(0, MAX_OWNERS)
      .map(({ owner: id, holdCount, mode, isThisClient, process }): OwnerView => {
        const owner = cutLabel(id);
        const shown = process === undefined ? null : this.#note(owner, process, readAt);
        const since = known.get(`${mode} ${owner}`) ?? now;
        return { owner, holdCount, mode, isThisClient, process: shown, since };
      });
    const isSame = before !== undefined && owners.every(({ since }) => since !== now) && owners.length === known.size;
    const queue = entry.queue.slice(0, MAX_OWNERS).map((id): QueuedView => {
      const owner = cutLabel(id);
      return { owner, isThisClient: clientIdOf(owner) === this.clientId, process: this.#processIn(owner, readAt) };
    });
    const named = before?.name === name ? before.row : namedOf(name);
    const row: TableRow['row'] = {
      ...{ id: named.id, name: named.name, length: named.length },
      kind,
      owners,
      ownerCount: counts === undefined ? entry.owners.length : (counts.owners ?? null),
      queue,
      waiters: entry.waiters ?? null,
      remaining,
      lease: Math.max(remaining, isSame ? before.row.lease : 0),
      value: entry.value ?? null,
      permits: entry.permits
        .slice(0, MAX_PERMITS)
        .map(({ id, remaining: left }): PermitView => ({ id, remaining: left })),
      permitCount: counts?.permits ?? entry.permits.length,
    };
    const version = before !== undefined && isUnchanged(before, row, readAt) ? before.version : (this.#versions += 1);
    const since = Math.min(...owners.map((owner) => owner.since));
    return { name, row, readAt, version, since, haystack: haystackOf(row) };
  }

  /** Notes the process of an owner. The same process is one object for all its owners. */
  #note(owner: string, process: ProcessView, readAt: number): ProcessView {
    const id = clientIdOf(owner);
    const known = this.#processes.get(id)?.process;
    const { clientName, host, pid, address } = cutProcess(process);
    const isKnown = known?.clientName === clientName && known.host === host && known.pid === pid;
    const shown = isKnown && known.address === address ? known : { clientName, host, pid, address };
    this.#processes.set(id, { process: shown, readAt });
    return shown;
  }

  /** The process of a waiter in a queue, if it was seen as that of an owner. */
  #processIn(owner: string, readAt: number): ProcessView | null {
    const known = this.#processes.get(clientIdOf(owner));
    if (known !== undefined) known.readAt = readAt;
    return known?.process ?? null;
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
  return [name, ...processes].join('\n').toLowerCase().slice(0, MAX_HAYSTACK);
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

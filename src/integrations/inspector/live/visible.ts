import type { Table, TableRow } from './table.js';
import type { PageView } from './view.js';

/** The rows of one view: the most waited for first, and then those that were seen for the longest time. */
export interface Visible {
  readonly rows: readonly TableRow[];
  /** Number of rows that match the search. */
  readonly matching: number;
}

/** Number of searches whose rows are kept until the table changes. */
const MAX_SEARCHES = 32;

/** Finds the rows of views. Views with the same search share the work. */
export class VisibleRows {
  #version = -1;
  #all: readonly TableRow[] = [];
  readonly #bySearch = new Map<string, readonly TableRow[]>();

  constructor(private readonly table: Table) {}

  of({ search, rows }: PageView): Visible {
    if (this.#version !== this.table.version) {
      this.#all = [...this.table].sort(byImportance);
      this.#bySearch.clear();
    }
    this.#version = this.table.version;
    if (this.#bySearch.size >= MAX_SEARCHES) this.#bySearch.clear();
    const wanted = search.trim().toLowerCase();
    let found = this.#bySearch.get(wanted);
    if (found === undefined) {
      found = wanted === '' ? this.#all : this.#all.filter(({ haystack }) => haystack.includes(wanted));
      this.#bySearch.set(wanted, found);
    }
    return { rows: found.slice(0, rows), matching: found.length };
  }
}

const byImportance = (a: TableRow, b: TableRow): number =>
  (b.row.waiters ?? 0) - (a.row.waiters ?? 0) ||
  compare(a.since, b.since) ||
  compare(a.row.name, b.row.name) ||
  compare(a.row.id, b.row.id);

/** Rows without an owner have `Infinity`, whose difference is not a number. */
const compare = <T extends number | string>(a: T, b: T): number => (a === b ? 0 : a < b ? -1 : 1);

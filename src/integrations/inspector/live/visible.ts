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
  readonly #bySearch = new Map<string, readonly TableRow[]>();

  constructor(private readonly table: Table) {}

  of({ search, rows }: PageView): Visible {
    if (this.#version !== this.table.version || this.#bySearch.size >= MAX_SEARCHES) this.#bySearch.clear();
    this.#version = this.table.version;
    const wanted = search.trim().toLowerCase();
    let found = this.#bySearch.get(wanted);
    if (found === undefined) {
      found = [...this.table].filter(({ haystack }) => haystack.includes(wanted)).sort(byImportance);
      this.#bySearch.set(wanted, found);
    }
    return { rows: found.slice(0, rows), matching: found.length };
  }
}

const byImportance = (a: TableRow, b: TableRow): number =>
  (b.row.waiters ?? 0) - (a.row.waiters ?? 0) ||
  compare(a.since, b.since) ||
  (a.row.name < b.row.name ? -1 : a.row.name > b.row.name ? 1 : 0);

/** Rows without an owner have `Infinity`, whose difference is not a number. */
const compare = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);

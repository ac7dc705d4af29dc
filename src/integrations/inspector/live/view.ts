const DEFAULT_ROWS = 200;
const MAX_ROWS = 1_000;
/** Number of characters of a search or a name. Longer names are selected by their ids. */
const MAX_TEXT = 4_096;
const ID = /^[\w-]{1,64}$/;

/** What one page shows. */
export interface PageView {
  readonly search: string;
  /** The name that is selected. */
  readonly select: string | null;
  /** The id of the name that is selected, instead of `select`. */
  readonly id: string | null;
  readonly rows: number;
}

/** Reads the query of `./events`. `undefined`: the query is no view. */
export function readView(query: URLSearchParams): PageView | undefined {
  const [search, select, id] = [query.get('search') ?? '', query.get('select'), query.get('id')];
  const rows = Number(query.get('rows') ?? DEFAULT_ROWS);
  const isText = [search, select ?? ''].every((text) => text.length <= MAX_TEXT);
  if (!isText || !Number.isSafeInteger(rows) || rows < 0 || (id !== null && !ID.test(id))) return undefined;
  return { search, select: select === '' || id !== null ? null : select, id, rows: Math.min(rows, MAX_ROWS) };
}

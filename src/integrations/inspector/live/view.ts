const DEFAULT_ROWS = 200;
const MAX_ROWS = 1_000;
/** Number of characters of a search or a name. Redis allows more, and such names are shown. */
const MAX_TEXT = 4_096;

/** What one page shows. */
export interface PageView {
  readonly search: string;
  readonly select: string | null;
  readonly rows: number;
}

/** Reads the query of `./events`. `undefined`: the query is no view. */
export function readView(query: URLSearchParams): PageView | undefined {
  const [search, select] = [query.get('search') ?? '', query.get('select')];
  const rows = Number(query.get('rows') ?? DEFAULT_ROWS);
  const isText = [search, select ?? ''].every((text) => text.length <= MAX_TEXT);
  if (!isText || !Number.isSafeInteger(rows) || rows < 0) return undefined;
  return { search, select: select === '' ? null : select, rows: Math.min(rows, MAX_ROWS) };
}

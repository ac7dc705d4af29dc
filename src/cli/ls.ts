import type { ListEntry } from '../index.js';
import { numberOption } from './arguments.js';
import { EXIT, type Session } from './session.js';
import { holdersText, leaseText, shown, table, waitersText } from './words.js';

/** Rows that are sorted, and whose widths decide those of the columns. Later rows come as another such part. */
const PAGE = 500;

const HEAD = ['NAME', 'KIND', 'LEASE', 'WAITERS', 'HELD BY'];

/** `holdfast ls [pattern]`. */
export async function ls({ args, client, terminal, signal }: Session): Promise<number> {
  const limit = numberOption(args, 'limit', Infinity, 1);
  const options = { match: args.operand ?? '*', signal, ...(limit !== Infinity && { limit }) };
  let page: ListEntry[] = [];
  let count = 0;
  const flush = async (): Promise<void> => {
    page.sort((a, b) => (a.name < b.name ? -1 : 1));
    const rows = page.map((entry) => [
      shown(entry.name),
      entry.kind,
      leaseText(entry.remaining),
      waitersText(entry),
      holdersText(entry),
    ]);
    const [head, ...lines] = table(HEAD, rows, terminal.columns);
    if (count === page.length && head !== undefined) await terminal.lines(terminal.style('bold', head));
    await terminal.lines(...lines);
    page = [];
  };
  try {
    for await (const entry of client.list(options)) {
      count += 1;
      if (terminal.json) await terminal.object(entry);
      else page.push(entry);
      if (page.length === PAGE) await flush();
    }
  } finally {
    // A cluster may reply in part.
    if (page.length > 0) await flush();
  }
  if (count === 0 && !terminal.json) await terminal.lines('nothing is locked');
  return EXIT.ok;
}

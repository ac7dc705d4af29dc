/* How the commands put entries into words. */
import { hostname, userInfo } from 'node:os';
import type { ListedOwner, ListEntry } from '../index.js';
import type { Change } from '../integrations/shared/changes.js';
import { duration, shortened, visible } from '../integrations/shared/inspection-words.js';

/** The largest number of characters that a text from Redis has on the screen. `--json` has the whole text. */
const LONGEST = 1_000;

/** A text from Redis, on one line and of a limited length. */
export const shown = (text: string): string => shortened(visible(text), LONGEST);

/** The user of the command, for the event `forceUnlocked`: `alice@web-1`. */
export function userText(): string {
  try {
    return `${userInfo().username}@${hostname()}`.slice(0, 200);
  } catch {
    // A container may run as a user without a name.
    return `user ${process.getuid?.() ?? ''}@${hostname()}`.slice(0, 200);
  }
}

/** The rest of a lease. */
export function leaseText(remaining: number): string {
  if (remaining === -2) return '-';
  return remaining === -1 ? 'no end' : duration(remaining);
}

/** The process of an owner, and its id. */
export function ownerText({ owner, process, mode, holdCount }: ListedOwner): string {
  const who = process === undefined ? owner : `${processText(process)} ${owner.slice(0, 8)}:${owner.slice(37)}`;
  const extra = [mode === 'exclusive' ? '' : mode, holdCount > 1 ? `${holdCount} holds` : ''].filter(
    (each) => each !== '',
  );
  return shown(extra.length === 0 ? who : `${who} (${extra.join(', ')})`);
}

export function processText({ clientName, host, pid }: NonNullable<ListedOwner['process']>): string {
  return shown(`${clientName === '' ? '' : `${clientName} `}${host}:${pid}`);
}

/** A change of the entry that was read last. */
export function changeText(change: Change, { remaining }: ListEntry): string {
  switch (change.what) {
    case 'handed over':
      return `${ownerText(change.from)} -> ${ownerText(change.to)}`;
    case 'acquired':
      return `${ownerText(change.owner)}, lease ${leaseText(remaining)}`;
    case 'released':
    case 'expired':
      return ownerText(change.owner);
    case 'hold count':
      return `${change.from} -> ${change.owner.holdCount} of ${ownerText(change.owner)}`;
    case 'waiters':
      return `${change.from ?? '?'} -> ${change.to ?? '?'}`;
    case 'value':
      return `${change.from ?? 'none'} -> ${change.to ?? 'none'}`;
  }
}

/** Who has it, in one cell: owners of a lock, or what a counter stands at. */
export function holdersText({ kind, owners, value, permits }: ListEntry): string {
  const [first, ...others] = owners;
  if (first !== undefined)
    return others.length === 0 ? ownerText(first) : `${ownerText(first)} and ${others.length} more`;
  if (kind === 'permits') return `${permits.length} taken, ${shown(value ?? '0')} free`;
  if (kind === 'counter') return `stands at ${shown(value ?? '0')}`;
  return '-';
}

export const waitersText = ({ waiters }: ListEntry): string => (waiters === undefined ? '?' : String(waiters));

/** Widths below which a column gives way no further on a narrow terminal. */
const LEAST = { first: 16, last: 16 };
/** The largest width of a column without a terminal, where each row would be padded to it. Longer cells stick out. */
const WIDEST = 100;

/** Rows as lines, each column as wide as its widest cell. On a narrow terminal the first column gives way, and then the last. */
export function table(head: readonly string[], rows: readonly (readonly string[])[], columns: number): string[] {
  const all = [head, ...rows].map((row) => row.map((cell) => Array.from(cell)));
  const isTerminal = columns !== Infinity;
  const widths = head.map((_, at) => all.reduce((width, row) => Math.max(width, row[at]?.length ?? 0), 0));
  for (const [at, least] of [
    [0, LEAST.first],
    [widths.length - 1, LEAST.last],
  ] as const) {
    const excess = widths.reduce((sum, width) => sum + width + 2, -2) - columns;
    const width = widths[at] as number;
    if (excess > 0) widths[at] = Math.max(Math.min(width, least), width - excess);
  }
  return all.map((row) =>
    row
      .map((cell, at) =>
        fit(cell, isTerminal ? (widths[at] as number) : Math.min(widths[at] as number, WIDEST), isTerminal, at === 0),
      )
      .join('  ')
      .trimEnd(),
  );
}

/** Names often begin alike and differ at their ends, so a name is cut in its middle. */
function fit(chars: readonly string[], width: number, mayCut: boolean, isName: boolean): string {
  if (chars.length > width && mayCut) {
    const tail = isName ? Math.floor((width - 1) / 2) : 0;
    return `${chars.slice(0, width - 1 - tail).join('')}…${tail === 0 ? '' : chars.slice(-tail).join('')}`;
  }
  return chars.join('') + ' '.repeat(Math.max(0, width - chars.length));
}

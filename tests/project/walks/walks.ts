import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** The functions that a walk enters, by file of `src`. */
export type Entered = Readonly<Record<string, readonly string[]>>;

/** How many functions of each file a walk enters. */
export type Walk = Readonly<Record<string, number>>;

/** Each walk by its letter. */
export type Walks = Readonly<Record<string, Walk>>;

export const TITLES: Readonly<Record<string, string>> = {
  A: 'tryLock(5_000, 30_000) on a free lock, to Redis and back',
  B: 'unlock() with a waiter of this client, until that call has the lock',
  C: 'one renewal',
  D: 'a lost reply: the call fails, and the client releases what Redis has acquired',
};

export const RECORD = fileURLToPath(new URL('./walks.json', import.meta.url));
export const TOUR = fileURLToPath(new URL('../../../src/README.md', import.meta.url));

export const recorded = (): Walks => JSON.parse(readFileSync(RECORD, 'utf8')) as Walks;

/** Runs the walks in a process of their own, on the source of this checkout or of another. */
export async function measured(
  redisUrl: string,
  root: readonly string[] = [],
): Promise<Readonly<Record<string, Entered>>> {
  const walker = fileURLToPath(new URL('./walker.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', walker, redisUrl, ...root], {
    env: { ...process.env, NODE_OPTIONS: '' },
    maxBuffer: 16 * 1024 * 1024,
  });
  return JSON.parse(stdout) as Readonly<Record<string, Entered>>;
}

export const counted = (entered: Readonly<Record<string, Entered>>): Walks =>
  Object.fromEntries(
    Object.entries(entered).map(([letter, files]) => [
      letter,
      Object.fromEntries(Object.entries(files).map(([file, functions]) => [file, functions.length])),
    ]),
  );

export const functionsOf = (walk: Walk): number => Object.values(walk).reduce((sum, count) => sum + count, 0);

const BEGIN = '<!-- walks: written by npm run suite -- walks -->';
const END = '<!-- walks: end -->';

/** The table of src/README.md. */
function table(walks: Walks): string {
  const letters = Object.keys(walks);
  const files = [...new Set(letters.flatMap((letter) => Object.keys(walks[letter]!)))].sort();
  const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
  return [
    BEGIN,
    row(['File', ...letters]),
    row(['---', ...letters.map(() => '---')]),
    row(['files', ...letters.map((letter) => Object.keys(walks[letter]!).length)]),
    row(['functions', ...letters.map((letter) => functionsOf(walks[letter]!))]),
    ...files.map((file) => row([`\`${file}\``, ...letters.map((letter) => walks[letter]![file] ?? '')])),
    END,
  ].join('\n');
}

/** The tour with this table in place of the one it has. */
export function withTable(tour: string, walks: Walks): string {
  const [before, rest] = tour.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined)
    throw new Error(`src/README.md has no place "${BEGIN}" ... "${END}"`);
  return `${before}${table(walks)}${after}`;
}

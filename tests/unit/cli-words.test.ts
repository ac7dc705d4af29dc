import { expect, test } from '@jest/globals';
import { readArguments, UsageError } from '../../src/cli/arguments.js';
import { changesBetween } from '../../src/integrations/shared/changes.js';
import { duration, visible } from '../../src/integrations/shared/inspection-words.js';
import { Terminal } from '../../src/cli/terminal.js';
import { Sightings } from '../../src/cli/top.js';
import { leaseText, table } from '../../src/cli/words.js';
import type { ListEntry } from '../../src/inspection/describe.js';

const CLIENT = '8743c9c0-0795-4907-87fd-6c719a6b4586';

function entry(owners: readonly number[], given: Partial<ListEntry> = {}, holdCount = 1): ListEntry {
  const mode = given.kind === 'read-write' ? ('read' as const) : ('exclusive' as const);
  return {
    ...{
      name: 'a',
      kind: 'lock',
      type: 'hash',
      queue: [],
      remaining: 30_000,
      value: undefined,
      permits: [],
      waiters: 0,
    },
    owners: owners.map((n) => ({ owner: `${CLIENT}:${n}`, holdCount, mode, isThisClient: false, process: undefined })),
    ...given,
  };
}

/** A read-write lock whose owner has one write hold, and so many read holds. */
function bothHalves(reads: number): ListEntry {
  const [read] = entry([1], { kind: 'read-write' }, reads).owners;
  const [write] = entry([1]).owners;
  return entry([], { kind: 'read-write', owners: [{ ...write!, mode: 'write' }, read!] });
}

test.each<[string, ListEntry, ListEntry, string[]]>([
  ['nothing', entry([1]), entry([1]), []],
  ['a lock that was free', entry([]), entry([1]), ['acquired']],
  ['an owner that left in time', entry([1]), entry([]), ['released']],
  ['an owner whose lease ended between the looks', entry([1], { remaining: 200 }), entry([]), ['expired']],
  ['another owner', entry([1]), entry([2]), ['handed over']],
  ['another owner after the end of the lease', entry([1], { remaining: 200 }), entry([2]), ['expired', 'acquired']],
  [
    'other readers',
    entry([1, 2], { kind: 'read-write' }),
    entry([2, 3], { kind: 'read-write' }),
    ['released', 'acquired'],
  ],
  ['a nested hold', entry([1]), entry([1], {}, 2), ['hold count']],
  ['nothing while one owner has both halves', bothHalves(2), bothHalves(2), []],
  ['a read hold beside a write hold of the same owner', bothHalves(1), bothHalves(2), ['hold count']],
  ['a waiter', entry([1]), entry([1], { waiters: 2 }), ['waiters']],
  ['a count', entry([], { value: '3' }), entry([], { value: '1' }), ['value']],
])('watch tells of %s', (_what, before, after, expected) => {
  expect(changesBetween(before, after, 250).map(({ what }) => what)).toEqual(expected);
});

test('top shows what is waited for most first, and then what has had its owner longest', () => {
  const sightings = new Sightings();
  const [busy, old] = [entry([1], { name: 'busy', waiters: 3 }), entry([1], { name: 'old' })];
  sightings.rows([old], 0);
  const rows = sightings.rows([entry([1], { name: 'new' }), old, busy], 1_000);
  expect(rows.map(({ entry: { name }, heldMs }) => [name, heldMs])).toEqual([
    ['busy', 0],
    ['old', 1_000],
    ['new', 0],
  ]);
  expect(sightings.rows([entry([2], { name: 'old' })], 2_000)[0]!.heldMs).toBe(0);
});

test.each([
  ['\x1b[2Jx', '\\u{1b}[2Jx'],
  ['a\u202eb', 'a\\u{202e}b'],
  ['\x9b31m', '\\u{9b}31m'],
  ['two\nlines\t', 'two\\nlines\\t'],
  ['名前 ☃', '名前 ☃'],
])('the name %j is shown as %j', (name, shown) => {
  expect(visible(name)).toBe(shown);
});

test('JSON escapes what changes the terminal, and stays the same JSON', async () => {
  let text = '';
  const out = { isTTY: false, write: (chunk: string) => ((text += chunk), true) } as unknown as NodeJS.WriteStream;
  const value = { name: 'a\x1b\x9b\u202e\u{e0001}b\n' };
  await new Terminal(true, out).object(value);
  expect(text).toMatch(/^[\x20-\x7e]*\n$/);
  expect(JSON.parse(text)).toEqual(value);
});

test.each([
  [0, '0 ms'],
  [850, '850 ms'],
  [12_430, '12.4 s'],
  [59_960, '59.9 s'],
  [185_000, '3 min 5 s'],
  [7_800_000, '2 h 10 min'],
])('%d ms are %s', (ms, text) => expect(duration(ms)).toBe(text));

test('a lease may have no end, or not exist', () => {
  expect([leaseText(-1), leaseText(-2), leaseText(1_000)]).toEqual(['no end', '-', '1.0 s']);
});

test('a table fits the terminal: names are cut in the middle first, and then the last column', () => {
  const rows = [['n'.repeat(29) + 'N', '1', 'o'.repeat(40)]];
  expect(table(['NAME', 'N', 'OWNER'], rows, Infinity)[1]).toBe(`${'n'.repeat(29)}N  1  ${'o'.repeat(40)}`);
  expect(table(['NAME', 'N', 'OWNER'], rows, 66)[1]).toBe(`${'n'.repeat(10)}…${'n'.repeat(9)}N  1  ${'o'.repeat(40)}`);
  expect(table(['NAME', 'N', 'OWNER'], rows, 60)[1]).toBe(`${'n'.repeat(8)}…${'n'.repeat(6)}N  1  ${'o'.repeat(38)}…`);
  for (const line of table(['NAME', 'N', 'OWNER'], rows, 40)) expect(Array.from(line).length).toBeLessThanOrEqual(40);
});

test.each([
  [['lss'], 'unknown command "lss"'],
  [['inspect'], 'inspect needs a name'],
  [['ls', 'a', 'b'], 'unexpected argument "b"'],
  [['doctor', 'a'], 'unexpected argument "a"'],
  [['ls', '--owner', 'x'], 'ls has no option --owner'],
  [['ls', '--nope'], "Unknown option '--nope'"],
  [['ls', '--limit'], '--limit'],
])('%j is a usage error', (args, message) => {
  expect(() => readArguments(args)).toThrow(UsageError);
  expect(() => readArguments(args)).toThrow(message);
});

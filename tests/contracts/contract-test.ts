import { describe as jestDescribe, expect, test as jestTest } from '@jest/globals';

/*
 * The `describe` and `test` of the lock contract. They are those of jest without the exceptions of a kind of lock. An
 * exception is the title of a group or of a test in its file. Every exception has a reason and must match a title.
 */

export type Exceptions = Readonly<Record<string, string>>;

let exceptions: Exceptions = {};
let met = new Set<string>();

/** Registers a contract but for the exceptions, and a test that each of them names something. */
export function registerWithout(left: Exceptions, register: () => void): void {
  exceptions = left;
  met = new Set();
  register();
  const unmet = Object.keys(left).filter((title) => !met.has(title));
  exceptions = {};
  jestTest('each exception from the contract names a group or a test of it', () => {
    expect(unmet).toEqual([]);
  });
}

function excepted(title: string): boolean {
  if (!Object.hasOwn(exceptions, title)) return false;
  met.add(title);
  return true;
}

export function describe(title: string, fn: () => void): void {
  if (!excepted(title)) jestDescribe(title, fn);
}

function contractTest(title: string, fn: () => Promise<void> | void): void {
  if (!excepted(title)) jestTest(title, fn);
}

type Each = typeof jestTest.each;

export const test: typeof contractTest & { each: Each } = Object.assign(contractTest, {
  // A row has its title from its first column.
  each: ((table: readonly unknown[]) => (title: string, fn: never) => {
    if (excepted(title)) return;
    const rows = table.filter((row) => !excepted(title.replace('%s', String(Array.isArray(row) ? row[0] : row))));
    (jestTest.each(rows as never) as (title: string, fn: never) => void)(title, fn);
  }) as unknown as Each,
});

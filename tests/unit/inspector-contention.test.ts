import { expect, test } from '@jest/globals';
import type { ListEntry } from '../../src/inspection/describe.js';
import { Contention } from '../../src/integrations/inspector/live/contention.js';
import { Table } from '../../src/integrations/inspector/live/table.js';

/** What a page knows of locks, each with a number of waiting clients that stays for a time. */
function start() {
  const [contention, table] = [new Contention(), new Table('me', 100)];
  const look = (name: string, waiters: number | undefined, at: number): void => {
    const owner = {
      owner: 'other:1',
      holdCount: 1,
      mode: 'exclusive' as const,
      isThisClient: false,
      process: undefined,
    };
    const facts = { kind: 'lock' as const, type: 'hash', remaining: 30_000, value: undefined, queue: [], permits: [] };
    table.set(name, { name, ...facts, waiters, owners: [owner] } satisfies ListEntry);
    contention.look(name, waiters ?? 0, at);
  };
  const vanish = (name: string, at: number): void => {
    table.set(name, null);
    contention.look(name, 0, at);
  };
  const order = (): string[] => contention.most(table).map(({ name }) => name);
  return { contention, table, look, vanish, order };
}

test('of twelve names the ten with the most waiting clients are listed, most first', () => {
  const { contention, table, look, order } = start();
  const numbers = [5, 12, 1, 9, 3, 7, 11, 2, 8, 4, 10, 6];
  for (const number of numbers) look(`n${number}`, number, 0);
  expect(order()).toEqual(['n12', 'n11', 'n10', 'n9', 'n8', 'n7', 'n6', 'n5', 'n4', 'n3']);
  look('n3', 20, 1_000);
  expect(order().slice(0, 2)).toEqual(['n3', 'n12']);
  expect(contention.most(table)[0]).toMatchObject({ name: 'n3', kind: 'lock', waiters: 20, mostWaiters: 20 });
});

test('of names with equally many waiting clients the longest wait comes first, and then the name decides', () => {
  const { contention, look, order } = start();
  for (const name of ['d', 'b', 'c', 'a']) look(name, 2, 0);
  expect(order()).toEqual(['a', 'b', 'c', 'd']);
  look('c', 2, 500);
  expect(order()).toEqual(['c', 'a', 'b', 'd']);
  contention.ended('d', 800);
  contention.ended('b', 9);
  expect(order()).toEqual(['d', 'c', 'a', 'b']);
});

test('a name that is gone stays in the list with its wait, which no longer grows, below those that are waited for', () => {
  const { contention, table, look, vanish, order } = start();
  look('gone', 9, 0);
  look('here', 1, 0);
  vanish('gone', 3_000);
  look('here', 1, 4_000);
  expect(order()).toEqual(['here', 'gone']);
  const found = contention.most(table)[1];
  expect(found).toMatchObject({ name: 'gone', kind: 'free', waiters: 0, mostWaiters: 9, waitedForMs: 3_000 });
  look('gone', 2, 60_000);
  look('gone', 2, 61_000);
  expect(contention.most(table)[0]).toMatchObject({ name: 'gone', waiters: 2, waitedForMs: 4_000 });
});

test('a name whose waiters Redis does not tell stands with those that no client waits for', () => {
  const { contention, table, look, order } = start();
  look('hidden', 3, 0);
  look('hidden', undefined, 1_000);
  look('waited', 1, 1_000);
  expect(order()).toEqual(['waited', 'hidden']);
  expect(contention.most(table)[1]).toMatchObject({ waiters: null, mostWaiters: 3, waitedForMs: 1_000 });
});

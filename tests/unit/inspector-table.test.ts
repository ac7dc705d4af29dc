import { expect, test } from '@jest/globals';
import type { ListEntry } from '../../src/inspection/describe.js';
import { Table } from '../../src/integrations/inspector/live/table.js';

const process = { clientName: 'shop', host: 'a', pid: 1, address: '' };

function lockOf(name: string, clientId: string): ListEntry {
  const owner = { owner: `${clientId}:1`, holdCount: 1, mode: 'exclusive' as const, isThisClient: false, process };
  const facts = { kind: 'lock' as const, type: 'hash', remaining: 30_000, value: undefined, waiters: 0 };
  return { name, ...facts, owners: [owner], queue: [], permits: [] };
}

test('a listing removes and names what it did not find, and forgets the processes of these owners', () => {
  const table = new Table('me', 100);
  table.set('old', lockOf('old', 'gone'), false, 1);
  table.set('new', lockOf('new', 'here'), false, 3);
  expect(table.processOf('gone:1')).toEqual(process);
  expect(table.keepReadSince(2)).toEqual(['old']);
  expect([...table].map(({ row }) => row.name)).toEqual(['new']);
  expect([table.processOf('gone:1'), table.processOf('here:7')]).toEqual([null, process]);
});

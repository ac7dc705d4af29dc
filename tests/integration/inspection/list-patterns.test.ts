import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LockClient } from '../../../src/client/create-client.js';
import { closeClients, openClient } from '../../support/clients/lock-clients.js';
import { Random } from '../../support/random.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';

let server: RedisServer;
/** Another database, whose keys are the names themselves, so that KEYS tells which of them a pattern matches. */
let plain: Redis;
beforeAll(async () => {
  server = await startServer();
  plain = new Redis({ ...server.address, db: 1 });
});
afterEach(async () => {
  await closeClients();
  await server.command('FLUSHALL');
});
afterAll(async () => {
  await plain.quit();
  await server.stop();
});

/** A fair lock that only waiters know: its name is a part of the keys, so the client itself compares it with patterns. */
async function awaited(name: string): Promise<void> {
  await server.command('RPUSH', `redisson_lock_queue:{${name}}`, '8743c9c0-0795-4907-87fd-6c719a6b4586:52');
  await server.command('ZADD', `redisson_lock_timeout:{${name}}`, 1, '8743c9c0-0795-4907-87fd-6c719a6b4586:52');
}

async function listed(client: LockClient, match: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of client.list({ match })) names.push(name);
  return names.sort();
}

test('random patterns match the names that Redis finds with KEYS', async () => {
  const random = new Random('patterns');
  const text = (alphabet: readonly string[], atMost: number): string =>
    Array.from({ length: 1 + random.below(atMost) }, () => random.pick(alphabet)).join('');
  const names = new Set(['a', 'abc', '[', ']', '\\', '^', '-', 'é', '☃', 'a-c', '[a', 'two\nlines']);
  while (names.size < 60) names.add(text(['a', 'b', 'c', 'd', '-', ']', '[', '^', '\\', '*', '?', 'é'], 5));
  for (const name of names) await awaited(name);
  await plain.mset(...[...names].flatMap((name) => [name, 'x']));
  const client = await openClient({ url: server.url });
  const alphabets = [
    ['a', 'b', 'c', 'd', '-', '[', '[', ']', '^', '\\', '*', '?'],
    ['a', 'b', 'é', '☃', '[', '[', ']', '^', '\\', '*', '?'],
    // Which bytes a range of ASCII and others has depends on the machine of the server. The client compares as on x86.
    ...(process.arch === 'x64' ? [['a', 'c', 'é', '☃', '-', '-', '[', '[', ']', '^', '*']] : []),
  ];
  let matching = 0;
  for (let round = 0; round < 50; round++) {
    const patterns = Array.from({ length: 40 }, () => text(random.pick(alphabets), 8));
    const found = await Promise.all(patterns.map((pattern) => listed(client, pattern)));
    const expected = await Promise.all(patterns.map(async (pattern) => (await plain.keys(pattern)).sort()));
    for (const [at, pattern] of patterns.entries()) {
      expect({ pattern, names: found[at] }).toEqual({ pattern, names: expected[at] });
      matching += expected[at]!.length;
    }
  }
  expect(matching).toBeGreaterThan(2_000);
}, 60_000);

test('a pattern with many stars costs little, whatever the names are', async () => {
  const client = await openClient({ url: server.url });
  const timed = async (match: string): Promise<string[]> => {
    const start = performance.now();
    const names = await listed(client, match);
    expect(performance.now() - start).toBeLessThan(1_000);
    return names;
  };
  await awaited('checkout:orders:of-the-customer:2024-06-01');
  expect(await timed(`${'*'.repeat(7)}X`)).toEqual([]);
  const long = 'a'.repeat(1_000);
  await awaited(long);
  expect(await timed(`${'*a'.repeat(50)}*X`)).toEqual([]);
  expect(await timed(`${'*a'.repeat(400)}*`)).toEqual([long]);
}, 30_000);

test.each([
  ['characters', 'a'.repeat(998)],
  ['characters and any bytes', 'aaa?'.repeat(249)],
  ['classes', '[ab]'.repeat(249)],
])(
  'a pattern of the greatest length with a run of %s costs little with long names',
  async (_what, run) => {
    // Redis compares the pattern with keys that begin otherwise, so only the client has work with the names.
    const client = await openClient({ url: server.url, keyPrefix: 'app:' });
    const long = 'a'.repeat(200_000);
    await awaited(`app:${long}`);
    await listed(client, 'warm*');
    const start = process.cpuUsage();
    expect(await listed(client, `*${run}X`)).toEqual([]);
    expect(await listed(client, `*${run}`)).toEqual([long]);
    expect(await listed(client, `*${run}*`)).toEqual([long]);
    const { user, system } = process.cpuUsage(start);
    expect((user + system) / 1_000).toBeLessThan(1_000);
  },
  60_000,
);

import { setMaxListeners } from 'node:events';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { fairAliveKey, fairQueueKey, fairTimeoutsKey } from '../../src/redis/keys.js';
import { acquire, release } from '../../src/redis/scripts/fair-lock.js';
import { closeClients, holdElsewhere, inFlow, openClient, outcome } from '../support/clients/lock-clients.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';

const FEW = 250;
const TIMES = 8;
const LINEAR_AT_MOST = 3 * TIMES;

let server: RedisServer;

beforeEach(async () => {
  server = await startServer();
});
afterEach(async () => {
  await closeClients();
  await server.stop();
});

const queueLength = async (name: string): Promise<number> => Number(await server.command('LLEN', fairQueueKey(name)));

async function queued(client: LockClient, name: string, count: number, signal: AbortSignal): Promise<unknown[]> {
  const before = await queueLength(name);
  const waits = Array.from({ length: count }, () =>
    inFlow(() => outcome(client.getFairLock(name).acquire({ signal }))),
  );
  await until(async () => (await queueLength(name)) === before + count, `${count} more are queued`, 20_000);
  return waits;
}

/** Microseconds of CPU time that the server has used. */
async function cpuMicros(): Promise<number> {
  const info = String(await server.command('INFO', 'cpu'));
  const seconds = [...info.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].map(([, used]) => Number(used));
  return 1_000_000 * seconds.reduce((sum, each) => sum + each, 0);
}

/** Measures the cost for the server when many waiters of one client leave together, with a Redisson waiter behind. */
async function costOfLeaving(client: LockClient, name: string, count: number): Promise<number> {
  const leaves = new AbortController();
  setMaxListeners(0, leaves.signal);
  const hold = await holdElsewhere(client.getFairLock(name));
  const waits = await queued(client, name, count, leaves.signal);
  const [seconds] = (await server.command('TIME')) as [string, string];
  await server.command('RPUSH', fairQueueKey(name), 'jvm:1');
  await server.command('ZADD', fairTimeoutsKey(name), (Number(seconds) + 10_000_000) * 1_000, 'jvm:1');
  await server.resetCommandStats();
  const before = await cpuMicros();
  leaves.abort();
  expect(new Set(await Promise.all(waits))).toEqual(new Set(['ERR_LOCK_ABORTED']));
  await until(async () => (await queueLength(name)) === 1, 'all have left');
  const micros = (await cpuMicros()) - before;
  // One for all of them, and now and then the refresh of the line.
  expect((await server.commandStats()).get('evalsha') ?? 0).toBeLessThan(count / 10);
  expect(await server.command('LRANGE', fairQueueKey(name), 0, -1)).toEqual(['jvm:1']);
  const score = Number(await server.command('ZSCORE', fairTimeoutsKey(name), 'jvm:1'));
  expect(score).toBe((Number(seconds) + 10_000_000 - count * 300) * 1_000);
  expect(await server.command('EXISTS', fairAliveKey(name))).toBe(0);
  await hold.release();
  await server.command('DEL', fairQueueKey(name), fairTimeoutsKey(name));
  return micros;
}

test('n waiters that leave a fair lock together cost the server O(n)', async () => {
  for (const { script } of [acquire, release]) await server.command('SCRIPT', 'LOAD', script!.source);
  const client = await openClient({ url: server.url });
  const few: number[] = [];
  for (let round = 0; round < 3; round += 1) few.push(await costOfLeaving(client, `few ${round}`, FEW));
  const many: number[] = [];
  for (let round = 0; round < 4; round += 1) many.push(await costOfLeaving(client, `many ${round}`, FEW * TIMES));
  expect(Math.min(...many) / Math.min(...few)).toBeLessThan(LINEAR_AT_MOST);
});

test('more waiters than fit into one request leave together and leave nothing behind', async () => {
  const client = await openClient({ url: server.url });
  const name = 'crowd';
  const leaves = new AbortController();
  setMaxListeners(0, leaves.signal);
  const hold = await holdElsewhere(client.getFairLock(name));
  const waits = await queued(client, name, 4_500, leaves.signal);
  leaves.abort();
  expect(new Set(await Promise.all(waits))).toEqual(new Set(['ERR_LOCK_ABORTED']));
  await until(async () => (await queueLength(name)) === 0, 'all have left');
  await hold.release();
  expect(await server.keys()).toEqual([]);
});

import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client.js';
import { inFlow } from '../support/lock-clients.js';
import { codeIn, tableUnder } from '../support/readme.js';
import { startServer, type RedisServer } from '../support/servers.js';
import { until } from '../support/until.js';

/** How a section is entered; it gives back what ends it. */
type Enter = (client: LockClient, name: string) => Promise<() => Promise<unknown>>;
const giving = (hold: { release(): Promise<void> }) => () => hold.release();

/** The rows of README's table of costs: a section, and who has to leave for it if that is somebody else. */
const ROWS: Record<string, { section: Enter; holder?: Enter }> = {
  '`getLock`': { section: async (client, name) => giving(await client.getLock(name).acquire()) },
  '`getNonReentrantLock`': {
    section: async (client, name) => giving(await client.getNonReentrantLock(name).acquire()),
  },
  '`getFencedLock`': { section: async (client, name) => giving(await client.getFencedLock(name).acquire()) },
  '`getReadWriteLock` readers': {
    section: async (client, name) => giving(await client.getReadWriteLock(name).readLock().acquire()),
    holder: async (client, name) => giving(await client.getReadWriteLock(name).writeLock().acquire()),
  },
  '`getReadWriteLock` writer': {
    section: async (client, name) => giving(await client.getReadWriteLock(name).writeLock().acquire()),
  },
  '`getSpinLock`': { section: async (client, name) => giving(await client.getSpinLock(name).acquire()) },
  '`getSemaphore`': {
    async section(client, name) {
      const semaphore = client.getSemaphore(name);
      await semaphore.acquire();
      return () => semaphore.release();
    },
  },
  '`getPermitExpirableSemaphore`': {
    section: async (client, name) => giving(await client.getPermitExpirableSemaphore(name).acquirePermit()),
  },
};

let server: RedisServer;
const clients: LockClient[] = [];
beforeAll(async () => {
  server = await startServer();
});
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));
afterAll(() => server.stop());

/** Scripts that were run: everything that a section sends beside its subscription. */
async function requests(): Promise<number> {
  const stats = String(await server.command('INFO', 'commandstats'));
  const count = (name: string): number => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  const rejected = Number(/cmdstat_evalsha:.*failed_calls=(\d+)/.exec(stats)?.[1] ?? 0);
  return count('evalsha') - rejected + count('eval');
}

async function open(): Promise<LockClient> {
  const client = createClient({ url: server.url });
  clients.push(client);
  await client.ready();
  return client;
}

const rows = tableUnder('Primitive');
test('the table has the primitives that are measured', () => {
  expect(rows.map(([name]) => name)).toEqual(Object.keys(ROWS));
  expect(rows.every(([name]) => codeIn(name!).length === 1)).toBe(true);
});

test.each(Object.entries(ROWS))('a section of %s sends as many commands as README says', async (name, row) => {
  const [, free, more] = rows.find(([cell]) => cell === name)!;
  const { section, holder = section } = row;
  const [mine, other] = [await open(), await open()];
  const key = `cost:${name}`;
  if (name.includes('Semaphore')) {
    // Both kinds keep what is free in the same way.
    await mine.getSemaphore(key).trySetPermits(1);
  }
  const inside = (client: LockClient, enter: Enter) => inFlow(() => enter(client, key));
  await (
    await inside(mine, section)
  )();
  await (
    await inside(mine, holder)
  )();
  const before = await requests();
  for (let at = 0; at < 5; at += 1) await (await inside(mine, section))();
  expect((await requests()) - before).toBe(5 * Number(free));
  if (more === 'polls') return;

  let waits = false;
  mine.events.on('waiting', () => (waits = true));
  const leave = await inside(other, holder);
  const began = await requests();
  const entered = inside(mine, section);
  await until(() => waits, 'it waits');
  // One try, and one more when the subscription stands.
  await until(async () => (await requests()) - began >= 2, 'it has tried again');
  await leave();
  await (
    await entered
  )();
  expect((await requests()) - began).toBe(Number(more) + 1 + Number(free));
});

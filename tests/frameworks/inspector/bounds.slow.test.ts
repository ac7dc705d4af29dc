import { afterEach, expect, jest, test } from '@jest/globals';
import { once } from 'node:events';
import type { LockClient } from '../../../src/client/create-client.js';
import { createInspector } from '../../../src/integrations/inspector/index.js';
import { closeClients, inFlow, openClient, outcome } from '../../support/clients/lock-clients.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { admin, freshName, leavesKeys } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

/* What an open page costs the process that serves it, for any number of owners, waiters and names, and for any sizes. */

leavesKeys('keys that no client made are shown, too');

afterEach(async () => {
  await closeServers();
  await closeClients();
});

const CLIENT = '8743c9c0-0795-4907-87fd-6c719a6b4586';
const owners = (count: number): string[] => Array.from({ length: count }, (_, at) => `${CLIENT}:${at}`);
const select = (name: string): string => `?select=${encodeURIComponent(name)}`;
/** In ms. A megabyte of names counts as a command of the budget; a busy machine may need three times its time. */
const LISTED_MS = 180_000;

/** Serves the page of a client, and notes the most bytes that one update of a page had. */
async function start(client: LockClient): Promise<{ base: string; most: () => number }> {
  const inspector = createInspector({ client, authorize: () => true });
  let most = 0;
  const base = await serve((request, response) => {
    let bytes = 0;
    const write = response.write.bind(response) as (chunk: string) => boolean;
    response.write = ((chunk: string) => {
      if (bytes === 0) setImmediate(() => (bytes = 0));
      bytes += Buffer.byteLength(chunk);
      most = Math.max(most, bytes);
      return write(chunk);
    }) as typeof response.write;
    inspector(request, response);
  });
  return { base, most: () => most };
}

/** The part of a processor that this process takes while a page is open. */
async function shareOf(page: OpenPage): Promise<number> {
  const [before, startedAt] = [process.cpuUsage(), performance.now()];
  // The page gets its own holds again every five seconds. A loop that looks for a fact would take a processor itself.
  while (performance.now() - startedAt < 4_000) await once(page.response, 'data');
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / (performance.now() - startedAt);
}

const MOST_BYTES = 1_010_000;
const MOST_SHARE = 0.4;

test('16,000 readers and 200 waiting calls: a row has 20 owners and their number, and the updates are small', async () => {
  const client = await openClient();
  const name = freshName();
  const readers = owners(16_000);
  await admin().hset(name, { mode: 'read', ...Object.fromEntries(readers.map((owner) => [owner, '1'])) });
  await admin().pexpire(name, 600_000);
  const abort = new AbortController();
  const lock = client.getReadWriteLock(name).writeLock();
  const calls = Array.from({ length: 200 }, () => outcome(inFlow(() => lock.acquire({ signal: abort.signal }))));
  const { base, most } = await start(client);
  const page = await OpenPage.open(base, select(name));
  await page.shows((shown) => shown.rows.has(name) && shown.last('selected') != null, 'the row', LISTED_MS);
  await page.shows((shown) => shown.last('waits')?.length === 200, 'the calls', LISTED_MS);
  expect(page.rows.get(name)).toMatchObject({ kind: 'read-write', ownerCount: 16_000 });
  expect(page.rows.get(name)!.owners).toHaveLength(20);
  await page.shows((shown) => shown.last('waits')?.[0]?.holderCount === 16_000, 'the holders of the edges');
  expect(page.last('own')).toMatchObject({ waitCount: 200 });
  expect(page.last('own')!.waits).toHaveLength(100);
  expect(await shareOf(page)).toBeLessThan(MOST_SHARE);
  expect(most()).toBeLessThan(MOST_BYTES);
  // Of these owners, only some are read: who is missing there has not released the lock.
  await admin().hdel(name, ...page.rows.get(name)!.owners.map(({ owner }) => owner));
  await page.shows(({ rows }) => rows.get(name)?.ownerCount === 15_980, 'fewer owners');
  const told = page.all('timeline').flatMap(({ entries }) => entries.map(({ what }) => what));
  expect(told.filter((what) => what === 'acquired' || what === 'released')).toEqual([]);
  page.close();
  abort.abort();
  await Promise.all(calls);
}, 480_000);

test('3,000 readers of the process that serves the page: its own holds are 100 and their number', async () => {
  const client = await openClient();
  const name = freshName();
  const lock = client.getReadWriteLock(name).readLock();
  const holds = await Promise.all(Array.from({ length: 3_000 }, () => inFlow(() => lock.acquire())));
  const { base, most } = await start(client);
  const page = await OpenPage.open(base, select(name));
  await page.shows((shown) => shown.rows.get(name)?.ownerCount === 3_000, 'the row', LISTED_MS);
  expect(page.last('own')).toMatchObject({ holdCount: 3_000 });
  expect(page.last('own')!.holds).toHaveLength(100);
  expect(await shareOf(page)).toBeLessThan(MOST_SHARE);
  expect(most()).toBeLessThan(MOST_BYTES);
  page.close();
  for (const hold of holds) await hold.release();
}, 480_000);

test('50,000 places in the queue of a fair lock: the row has the first 20 and their number', async () => {
  const client = await openClient();
  const name = freshName();
  const [holder, ...queue] = owners(50_001);
  await admin().hset(name, holder!, '1');
  for (let at = 0; at < queue.length; at += 5_000) {
    await admin().rpush(`redisson_lock_queue:{${name}}`, ...queue.slice(at, at + 5_000));
  }
  const { base, most } = await start(client);
  const page = await OpenPage.open(base, select(name));
  await page.shows(({ rows }) => rows.has(name), 'the row', LISTED_MS);
  expect(page.rows.get(name)).toMatchObject({ kind: 'fair', waiters: 50_000 });
  expect(page.rows.get(name)!.queue.map(({ owner }) => owner)).toEqual(queue.slice(0, 20));
  await page.shows((shown) => shown.last('waits')?.length === 21, 'the edges');
  expect(page.last('waits')!.at(-1)).toMatchObject({ waiter: 'others', count: 49_980 });
  expect(await shareOf(page)).toBeLessThan(MOST_SHARE);
  expect(most()).toBeLessThan(MOST_BYTES);
  page.close();
}, 480_000);

test('names of 1 MB: a row has the beginning of the name, and the page opens and frees the lock by its id', async () => {
  const client = await openClient();
  const names = Array.from({ length: 20 }, (_, at) => freshName(`${at}`).padEnd(1_000_000, 'x'));
  for (const name of names) await admin().hset(name, `${CLIENT}:1`, '1');
  const inspector = createInspector({ client, authorize: () => true, actions: true });
  const base = await serve(inspector);
  const page = await OpenPage.open(base);
  await page.shows(({ rows }) => rows.size === names.length, 'the rows', LISTED_MS);
  const sizes = page.received.map(({ payload }) => Buffer.byteLength(JSON.stringify(payload)));
  expect(Math.max(...sizes)).toBeLessThan(MOST_BYTES);
  for (const row of page.rows.values()) {
    expect([row.length, Buffer.byteLength(row.name) <= 1_024]).toEqual([1_000_000, true]);
  }
  expect(await shareOf(page)).toBeLessThan(MOST_SHARE);
  const { id } = [...page.rows.values()][7]!;
  const one = await OpenPage.open(base, `?id=${id}`);
  await one.shows((shown) => shown.last('selected')?.row.owners.length === 1, 'the selected lock', LISTED_MS);
  expect(one.last('selected')).toMatchObject({ asked: id, row: { id, length: 1_000_000 } });
  expect(await one.unlock({ id }, `${CLIENT}:1`)).toEqual([200, { freed: true }]);
  expect(await admin().dbsize()).toBeLessThanOrEqual(names.length);
  expect((await Promise.all(names.map((name) => admin().exists(name)))).filter((found) => found === 0)).toHaveLength(1);
  one.close();
  page.close();
}, 600_000);

test('40 names of 1 MB, which this process holds: the page shows them, and the process goes on', async () => {
  const client = await openClient();
  const names = Array.from({ length: 40 }, (_, at) => freshName(`${at}`).padEnd(1_000_000, 'x'));
  const holds = [];
  for (const name of names) holds.push(await inFlow(() => client.getLock(name).acquire({ leaseTime: 600_000 })));
  const { base, most } = await start(client);
  const page = await OpenPage.open(base);
  await page.shows((shown) => shown.last('own')?.holds.length === 40, 'the own holds', LISTED_MS);
  await page.shows((shown) => shown.rows.size > 20, 'some of the rows', LISTED_MS);
  await page.shows((shown) => shown.last('summary')?.isTruncated === true, 'a listing has ended', 2 * LISTED_MS);
  expect(await shareOf(page)).toBeLessThan(MOST_SHARE);
  expect(most()).toBeLessThan(MOST_BYTES);
  page.close();
  await until(() => page.isEnded, 'the page is closed');
  for (const hold of holds) await hold.release();
}, 900_000);

test('1,000 rows with 20 owners and long names come in several updates of at most 1 MB', async () => {
  const client = await openClient();
  const hash = Object.fromEntries(owners(20).map((owner) => [owner, '1']));
  const loading = admin().pipeline();
  for (let at = 0; at < 1_000; at++)
    loading.hset(freshName(`${at}`).padEnd(2_000, '\u0001'), { mode: 'read', ...hash });
  await loading.exec();
  const { base, most } = await start(client);
  const page = await OpenPage.open(base, '?rows=1000');
  await page.shows(({ rows }) => rows.size === 1_000, 'all rows', LISTED_MS);
  for (const { owners: shown, length } of page.rows.values()) expect([shown.length, length]).toEqual([20, 2_000]);
  expect(page.all('rows').length).toBeGreaterThan(3);
  expect(await shareOf(page)).toBeLessThan(MOST_SHARE);
  expect(most()).toBeLessThan(MOST_BYTES);
  page.close();
}, 600_000);

test('an update that fails ends its page with a warning, and takes no place from others', async () => {
  const client = await openClient();
  const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  try {
    const { base } = await start(client);
    const open = await OpenPage.open(base);
    await open.shows((shown) => shown.last('own') !== undefined, 'a page');
    const stats = jest.spyOn(client, 'stats').mockImplementation(() => {
      throw new Error('no stats');
    });
    await open.shows(({ isEnded }) => isEnded, 'the stream has ended');
    expect(open.last('bye')).toEqual({ reason: 'failed' });
    for (let count = 0; count < 25; count++) {
      const page = await OpenPage.open(base);
      await page.shows(({ isEnded }) => isEnded, 'the stream has ended');
      expect([page.last('hello') !== undefined, page.last('bye')]).toEqual([true, { reason: 'failed' }]);
    }
    const told = warned.mock.calls.filter(([warning]) => String(warning).includes('no stats'));
    expect(told).toHaveLength(26);
    stats.mockRestore();
    const next = await OpenPage.open(base);
    await next.shows((shown) => shown.last('own') !== undefined, 'another page');
    next.close();
  } finally {
    warned.mockRestore();
  }
});

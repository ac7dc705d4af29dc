import { afterEach, expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import type { EventSource } from '../../../src/events.js';
import { createInspector } from '../../../src/integrations/inspector/index.js';
import { closeClients, openClient, openProxy } from '../../support/clients/lock-clients.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { admin, freshName, leavesKeys } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

leavesKeys('keys that no client made are shown, too');

afterEach(async () => {
  await closeServers();
  await closeClients();
});

const JVM = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';
/** Number of locks: so many that one listing takes about a hundred commands. */
const LOCKS = 4_000;
/** In ms. The budget allows the listing 15 s beside the rows of three pages; a busy machine may need many times that. */
const LISTED_MS = 120_000;
const EVENTS = ['acquired', 'notAcquired', 'released', 'waiting', 'renewed', 'leaseLost', 'forceUnlocked'] as const;

test('with three pages open on thousands of locks, no second has more than 20 commands; with all closed, none is sent', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const names = Array.from({ length: LOCKS }, () => freshName());
  const loading = admin().pipeline();
  for (const name of names) loading.hset(name, JVM, '1').pexpire(name, 600_000);
  await loading.exec();
  const heard = (): boolean => EVENTS.some((type) => (client.events as EventSource).hasListener(type));
  const listeners = heard();
  const base = await serve(createInspector({ client, authorize: () => true }));
  const openedAt = performance.now();
  const before = proxy.log.length;
  const queries = ['', `?select=${encodeURIComponent(names[0]!)}`, '?rows=1000&search=cost'];
  const pages = await Promise.all(queries.map((query) => OpenPage.open(base, query)));
  await until(
    () => pages.every((page) => (page.last('summary')?.listedAt ?? null) !== null),
    'everything is listed',
    LISTED_MS,
  );
  expect(pages.map((page) => page.last('summary')?.total)).toEqual([LOCKS, LOCKS, LOCKS]);
  expect(pages.map((page) => page.rows.size)).toEqual([200, 200, 1_000]);
  const sentAt = proxy.log.slice(before).map(({ at }) => at);
  const most = Math.max(...sentAt.map((at) => sentAt.filter((other) => other >= at && other < at + 1_000).length));
  expect(most).toBeLessThanOrEqual(20);
  const perSecond = sentAt.length / ((performance.now() - openedAt) / 1_000);
  expect(perSecond).toBeLessThanOrEqual(20);
  expect(sentAt.length).toBeGreaterThan(60);

  for (const page of pages) page.close();
  await until(() => heard() === listeners, 'the inspector has no listener');
  const after = (): number => proxy.log.filter(({ name }) => name !== 'PING').length;
  const closed = after();
  const quietFrom = performance.now();
  await until(() => performance.now() - quietFrom > 1_500, 'some time has passed');
  // One command may have been under way.
  expect(after() - closed).toBeLessThanOrEqual(1);
}, 240_000);

test('a page that does not read gets no more than what fits its connection, and does not delay other pages', async () => {
  const client = await openClient();
  const loading = admin().pipeline();
  for (let at = 0; at < 1_000; at++) loading.hset(freshName('x'.repeat(500)), JVM, '1');
  await loading.exec();
  let buffered = 0;
  const responses: ServerResponse[] = [];
  const inspector = createInspector({ client, authorize: () => true });
  const base = await serve((request, response) => {
    inspector(request, response);
    responses.push(response);
    setInterval(() => (buffered = Math.max(buffered, response.writableLength)), 20).unref();
  });
  const slow = await OpenPage.open(base, '?rows=1000');
  slow.response.pause();
  const other = await OpenPage.open(base, '?rows=1000');
  await other.shows(({ rows }) => rows.size === 1_000, 'all rows', 30_000);
  for (let count = 2; count < 12; count++) {
    const changes = admin().pipeline();
    for (const [name] of other.rows) changes.hset(name, JVM, String(count));
    await changes.exec();
    const isNew = ({ rows }: OpenPage): boolean =>
      [...rows.values()].every(({ owners }) => owners[0]?.holdCount === count);
    await other.shows(isNew, `change ${count}`, 30_000);
  }
  other.close();
  // One update of 1,000 rows with such names is about one million bytes.
  expect(buffered).toBeLessThan(2_500_000);
  // A last event would wait for the reader, and the server could not close.
  inspector.close();
  expect(responses[0]!.destroyed).toBe(true);
  slow.close();
}, 120_000);

test('a closed client ends the streams, and a further page is refused', async () => {
  const client = await openClient();
  const base = await serve(createInspector({ client, authorize: () => true }));
  const page = await OpenPage.open(base);
  await page.shows((shown) => shown.last('summary') !== undefined, 'the page is open');
  await client.close();
  await page.shows(({ isEnded }) => isEnded, 'the stream has ended');
  expect(page.last('bye')).toEqual({ reason: 'client closed' });
  const next = await fetch(`${base}/events`);
  expect([next.status, await next.json()]).toMatchObject([503, { error: { code: 'closed' } }]);
});

test('the handler closes its streams, refuses the page above 20, and shows what a closed page has seen to the next', async () => {
  const client = await openClient();
  const inspector = createInspector({ client, authorize: () => true });
  const base = await serve(inspector);
  const name = freshName();
  await admin().hset(name, JVM, '1');
  const pages = await Promise.all(Array.from({ length: 20 }, () => OpenPage.open(base)));
  expect(await (await fetch(`${base}/events`)).json()).toMatchObject({ error: { code: 'too many pages' } });
  await pages[0]!.shows(({ rows }) => rows.has(name), 'the row');
  inspector.close();
  for (const page of pages) await page.shows(({ isEnded }) => isEnded, 'the stream has ended');
  expect(pages[0]!.last('bye')).toEqual({ reason: 'server closed' });
  const next = await OpenPage.open(base);
  await next.shows(({ received }) => received.length > 1, 'the first events');
  expect([...next.rows.keys()]).toEqual([name]);
  next.close();
});

test('an unavailable Redis is a problem that ends with it', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 500 });
  const base = await serve(createInspector({ client, authorize: () => true }));
  const page = await OpenPage.open(base);
  await page.shows((shown) => shown.last('summary')?.listedAt != null, 'the first listing');
  proxy.stall();
  await page.shows(
    (shown) => (shown.last('problems') ?? []).some(({ what }) => what === 'list'),
    'the problem',
    20_000,
  );
  proxy.lift();
  await page.shows((shown) => shown.last('problems')?.length === 0, 'the problem has ended', 20_000);
  page.close();
});

import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { createHook } from 'node:async_hooks';
import { Hash } from 'node:crypto';
import type { LockClient } from '../../../src/client/create-client.js';
import type { EventSource } from '../../../src/events.js';
import type { Hello } from '../../../src/integrations/inspector/messages.js';
import { createInspector } from '../../../src/integrations/inspector/index.js';
import { EventStream } from '../../../src/integrations/inspector/live/event-stream.js';
import { Hub } from '../../../src/integrations/inspector/live/hub.js';
import { EVENTS } from '../../../src/integrations/inspector/live/timeline.js';
import { readView } from '../../../src/integrations/inspector/live/view.js';
import { closeClients, holdElsewhere, inFlow, openClient, openProxy } from '../../support/clients/lock-clients.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { admin, freshName, leavesKeys } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

/* What the page does at its limits, which are lower here than for users. */

leavesKeys('keys that no client made are shown, too');

afterEach(async () => {
  await closeServers();
  await closeClients();
});

const JVM = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';
const HELLO = { now: 0, version: '', actions: false, csrf: null, user: null } as unknown as Hello;

interface Limits {
  readonly maxNames?: number;
  readonly quietMs?: number;
}

/** Serves the events of one client. Returns the address. */
async function serveEvents(client: LockClient, { maxNames, quietMs }: Limits): Promise<string> {
  const hub = new Hub(client, undefined, maxNames);
  return serve(({ url = '' }, response) => {
    const view = readView(new URL(url, 'http://page').searchParams)!;
    response.once(
      'close',
      hub.open(new EventStream(response, quietMs), view, () => Promise.resolve(true), HELLO),
    );
  });
}

describe('more names than the server lists', () => {
  test('the page says so, and shows a name beyond the limit to a search for it', async () => {
    const client = await openClient();
    const names = Array.from({ length: 40 }, () => freshName());
    for (const name of names) await admin().hset(name, JVM, '1');
    const base = await serveEvents(client, { maxNames: 20 });
    const page = await OpenPage.open(base);
    await page.shows((shown) => shown.last('summary')?.listedAt != null, 'the first listing');
    expect(page.last('summary')).toMatchObject({ isTruncated: true, total: 20, matching: 20, shown: 20 });
    const beyond = names.find((name) => !page.rows.has(name))!;
    const search = await OpenPage.open(base, `?search=${encodeURIComponent(beyond)}`);
    await search.shows(({ rows }) => rows.has(beyond), 'the name of the search');
    // It stays, although the listings that end meanwhile do not find it.
    const listed = new Set<unknown>();
    await search.shows((shown) => listed.add(shown.last('summary')?.listedAt).size > 2, 'two more listings');
    expect([...search.rows.keys()]).toContain(beyond);
    for (const name of names.slice(15)) await admin().del(name);
    // A listing that went on during the deletions found fewer.
    const listsAll = (shown: OpenPage): boolean =>
      shown.last('summary')?.isTruncated === false && shown.last('summary')?.total === 15;
    await page.shows(listsAll, 'the names that are left');
    expect(page.last('summary')).toMatchObject({ matching: 15 });
    page.close();
    search.close();
  });
});

test('own holds beyond the listing are known by their ids, and pages with unknown ids hash no name more often', async () => {
  const client = await openClient();
  const names = Array.from({ length: 50 }, () => freshName());
  const holds = [];
  for (const name of names) holds.push(await inFlow(() => client.getLock(name).acquire()));
  const base = await serveEvents(client, { maxNames: 1 });
  const page = await OpenPage.open(base);
  await page.shows((shown) => shown.last('summary')?.isTruncated === true, 'the first listing');
  await page.shows((shown) => shown.last('own')?.holds.length === 50, 'the own holds');
  const { id, name } = page.last('own')!.holds.find((hold) => !page.rows.has(hold.name))!;
  const one = await OpenPage.open(base, `?id=${id}`);
  await one.shows((shown) => shown.last('selected')?.row.owners.length === 1, 'the own hold');
  expect(one.last('selected')).toMatchObject({ asked: id, row: { id, name } });
  one.close();
  const queries = Array.from({ length: 10 }, (_, at) => `?id=${`${at}`.padEnd(22, 'A')}`);
  const unknown = await Promise.all(queries.map((query) => OpenPage.open(base, query)));
  for (const each of unknown) await each.shows((shown) => shown.last('selected')?.row.name === '', 'an unknown id');
  const hashing = jest.spyOn(Hash.prototype, 'update');
  try {
    const startedAt = performance.now();
    await until(() => performance.now() - startedAt > 2_500, 'ten updates');
    const seconds = (performance.now() - startedAt) / 1_000;
    const own = new Set<unknown>(names);
    const perName = hashing.mock.calls.filter(([text]) => own.has(text)).length / names.length;
    // Once a second for the list of own holds, whatever the pages ask for.
    expect(perName).toBeLessThanOrEqual(2 * (seconds + 1));
  } finally {
    hashing.mockRestore();
  }
  for (const open of [page, ...unknown]) open.close();
  for (const hold of holds) await hold.release();
});

test('a stream without news gets a comment, so that no proxy closes it', async () => {
  const page = await OpenPage.open(await serveEvents(await openClient(), { quietMs: 300 }));
  let text = '';
  page.response.on('data', (part: string) => (text += part));
  await page.shows((shown) => shown.last('doctor')?.at != null, 'the last of the first events');
  await until(() => text.endsWith('\n\n:\n\n'), 'a comment is the last that was sent');
  expect(page.isEnded).toBe(false);
  page.close();
});

/** Counts the timers of Node.js that code of the inspector sets, also those that do not keep the process alive. */
function countTimers(): { live(): number; end(): void } {
  const timers = new Set<{ readonly _destroyed: boolean }>();
  const hook = createHook({
    init(_id, type, _trigger, resource) {
      if (type !== 'Timeout') return;
      if (/integrations\/inspector\/live\//.test(new Error().stack ?? '')) timers.add(resource as never);
    },
  }).enable();
  const live = (): number => [...timers].filter(({ _destroyed }) => !_destroyed).length;
  return { live, end: () => hook.disable() };
}

test('after the last page has closed there is no timer, no listener and no further command', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const hold = await holdElsewhere(client.getLock(freshName()));
  const heard = (): string[] => EVENTS.filter((type) => (client.events as EventSource).hasListener(type));
  const before = heard();
  const timers = countTimers();
  try {
    const base = await serve(createInspector({ client, authorize: () => true }));
    const pages = [await OpenPage.open(base, `?select=${hold.lockName}`), await OpenPage.open(base)];
    for (const page of pages) await page.shows((shown) => shown.last('doctor')?.at != null, 'everything was read once');
    expect(timers.live()).toBeGreaterThanOrEqual(4);
    expect(heard()).toEqual(EVENTS);
    pages[0]!.close();
    await pages[1]!.shows((shown) => shown.all('summary').length > 1, 'the other page goes on');
    pages[1]!.close();
    await until(() => heard().length === before.length, 'no listener is left');
    await until(() => timers.live() === 0, 'no timer is left');
    const sent = (): number => proxy.log.filter(({ name }) => name !== 'PING').length;
    const closed = sent();
    const closedAt = performance.now();
    await until(() => performance.now() - closedAt > 1_200, 'an open page would have read its rows again');
    // One command may have been under way.
    expect(sent() - closed).toBeLessThanOrEqual(1);
    expect([timers.live(), heard()]).toEqual([0, before]);
  } finally {
    timers.end();
  }
  await hold.release();
});

test.each([
  ['5,000 characters', 'x'.repeat(5_000)],
  ['2,000 control characters', '\u0001'.repeat(2_000)],
])('a lock whose name has %s is opened and freed by its id', async (_, text) => {
  const [client, other] = [await openClient(), await openClient()];
  const base = await serve(createInspector({ client, authorize: () => 'ada', actions: true }));
  const hold = await holdElsewhere(other.getLock(freshName(text)));
  const page = await OpenPage.open(base);
  await page.shows(({ rows }) => rows.size === 1, 'the row');
  const { id, name, length } = [...page.rows.values()][0]!;
  expect([hold.lockName.startsWith(name), name.length < length, length]).toEqual([true, true, hold.lockName.length]);
  const one = await OpenPage.open(base, `?id=${id}`);
  await one.shows((shown) => shown.last('selected')?.row.owners[0]?.owner === hold.owner, 'the owner');
  expect(await page.unlock({ id: 'unknown' }, hold.owner)).toMatchObject([404, { error: { code: 'not found' } }]);
  expect(await page.unlock({ id }, hold.owner)).toEqual([200, { freed: true }]);
  await one.shows((shown) => shown.last('selected')?.row.kind === 'free', 'the lock is free');
  for (const open of [page, one]) open.close();
  await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
});

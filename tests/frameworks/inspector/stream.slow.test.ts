import { afterEach, expect, test } from '@jest/globals';
import { hostname } from 'node:os';
import { createInspector, type InspectorOptions } from '../../../src/integrations/inspector/index.js';
import { closeClients, holdElsewhere, inFlow, openClient } from '../../support/clients/lock-clients.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { admin, freshName, leavesKeys } from '../../support/redis.js';

leavesKeys('keys that no client made are shown, too');

const pages: OpenPage[] = [];

afterEach(async () => {
  for (const page of pages.splice(0)) page.close();
  await closeServers();
  await closeClients();
});

const JVM = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';

async function openPage(given: Partial<InspectorOptions> = {}, query = ''): Promise<OpenPage> {
  const client = given.client ?? (await openClient({ clientName: 'inspector' }));
  const page = await OpenPage.open(await serve(createInspector({ client, authorize: () => true, ...given })), query);
  pages.push(page);
  return page;
}

const select = (name: string): string => `?select=${encodeURIComponent(name)}`;

test('a row has its owner with the process, its lease and its waiters, and goes with the release', async () => {
  const [shop, other] = [await openClient({ clientName: 'shop' }), await openClient()];
  const page = await openPage();
  const name = freshName();
  const hold = await holdElsewhere(shop.getLock(name), 20_000);
  await page.shows(({ rows }) => rows.has(name), 'the row');
  expect(page.rows.get(name)).toMatchObject({
    ...{ kind: 'lock', waiters: 0, queue: [], value: null, permits: [], permitCount: 0 },
    owners: [
      {
        ...{ owner: hold.owner, holdCount: 1, mode: 'exclusive', isThisClient: false },
        process: { clientName: 'shop', host: hostname(), pid: process.pid, address: expect.stringMatching(/:\d+$/) },
        since: expect.any(Number),
      },
    ],
  });
  const { remaining, lease, readAgo } = page.rows.get(name)!;
  expect([remaining > 15_000, lease >= remaining, readAgo >= 0]).toEqual([true, true, true]);
  const waiting = inFlow(() => other.getLock(name).acquire());
  await page.shows(({ rows }) => rows.get(name)?.waiters === 1, 'the waiter is counted');
  await page.shows(
    (shown) =>
      shown.last('waits')?.some((edge) => edge.name === name && edge.holders[0]?.owner === hold.owner) === true,
    'the call waits for the holder',
  );
  await hold.release();
  const next = await waiting;
  await page.shows(({ rows }) => rows.get(name)?.owners[0]?.owner === next.owner, 'the next owner');
  await next.release();
  await page.shows(({ rows }) => !rows.has(name), 'the row is gone');
  expect(page.last('summary')).toMatchObject({ isTruncated: false, listedAt: expect.any(Number) });
});

test('semaphores have their permits, fair locks their queue, and an owner of a JVM its id', async () => {
  const [client, other] = [await openClient({ clientName: 'shop' }), await openClient({ clientName: 'queued' })];
  const [permits, fair, jvm] = [freshName('permits'), freshName('fair'), freshName('jvm')];
  await client.getPermitExpirableSemaphore(permits, { permits: 3 }).acquire(30_000);
  const hold = await holdElsewhere(client.getFairLock(fair));
  const queued = inFlow(() => other.getFairLock(fair).acquire());
  await admin().hset(jvm, JVM, '2');
  await admin().pexpire(jvm, 20_000);
  const page = await openPage();
  await page.shows(({ rows }) => rows.get(fair)?.queue.length === 1 && rows.has(jvm) && rows.has(permits), 'the rows');
  expect(page.rows.get(permits)).toMatchObject({ kind: 'permits', value: '2', permitCount: 1, owners: [] });
  expect(page.rows.get(permits)!.permits[0]!.remaining).toBeGreaterThan(10_000);
  expect(page.rows.get(jvm)).toMatchObject({ owners: [{ owner: JVM, holdCount: 2, process: null }] });
  const edge = { name: fair, waiter: 'queued', count: 1, holders: [{ owner: hold.owner }] };
  await page.shows((shown) => (shown.last('waits') ?? []).length > 0, 'an edge');
  expect(page.last('waits')).toMatchObject([edge]);
  await hold.release();
  await (await queued).release();
});

test('the selected lock has a timeline: this client at each moment, others as the looks see them', async () => {
  const client = await openClient({ clientName: 'inspector' });
  const other = await openClient({ clientName: 'shop' });
  const name = freshName();
  const page = await openPage({ client }, select(name));
  await page.shows((shown) => shown.last('selected')?.row.kind === 'free', 'a free lock');
  const own = await holdElsewhere(client.getLock(name));
  const entries = () => page.all('timeline').flatMap((change) => change.entries);
  const bars = () => new Map(page.all('timeline').flatMap((change) => change.bars.map((bar) => [bar.id, bar])));
  await page.shows(() => entries().some(({ what }) => what === 'acquired'), 'the own acquisition');
  await own.release();
  await page.shows(() => entries().some(({ what }) => what === 'released'), 'the own release');
  const hold = await holdElsewhere(other.getLock(name));
  await page.shows(() => [...bars().values()].some(({ owner }) => owner === hold.owner), 'the other owner');
  await hold.release();
  await page.shows(() => [...bars().values()].every(({ to }) => to !== null), 'both ended');
  expect([...bars().values()]).toMatchObject([
    {
      owner: own.owner,
      isThisClient: true,
      isFromStart: true,
      ended: 'released',
      process: { clientName: 'inspector' },
    },
    { owner: hold.owner, isThisClient: false, isFromStart: true, ended: 'released', process: { clientName: 'shop' } },
  ]);
  expect(entries().map(({ what, source }) => `${what} ${source}`)).toEqual([
    ...['acquired client', 'released client', 'acquired seen', 'released seen'],
  ]);
  expect(new Set(entries().map(({ id }) => id)).size).toBe(4);
});

test('the holds and waits of this client have their call sites, and its waits are edges', async () => {
  const client = await openClient();
  const page = await openPage({ client });
  const name = freshName();
  const hold = await holdElsewhere(client.getLock(name));
  const waiting = inFlow(() => client.getLock(name).acquire());
  await page.shows((shown) => shown.last('own')?.waitCount === 1 && shown.last('waits')?.length === 1, 'the wait');
  const site = expect.stringContaining('.ts:');
  expect(page.last('own')).toMatchObject({
    holds: [{ name, kind: 'lock', owner: hold.owner, holdCount: 1, isRenewed: true, callSite: site }],
    waits: [{ name, kind: 'lock', callSite: site }],
    ...{ holdCount: 1, waitCount: 1, stats: { waits: 1 } },
  });
  expect(page.last('own')!.holds[0]!.remaining).toBeGreaterThan(20_000);
  await page.shows((shown) => shown.last('waits')?.[0]?.holders.length === 1, 'the holder is known');
  expect(page.last('waits')).toMatchObject([
    { name, waiter: 'this client', count: 1, callSite: site, holders: [{ owner: hold.owner, isThisClient: true }] },
  ]);
  await hold.release();
  await (await waiting).release();
  await page.shows((shown) => shown.last('contended')?.[0]?.own.count === 1, 'the wait is counted');
  expect(page.last('contended')).toMatchObject([{ name, mostWaiters: 1, own: { count: 1 } }]);
});

test('the doctor looks without its probes, and a page that opens later gets what was found', async () => {
  const client = await openClient();
  const base = await serve(createInspector({ client, authorize: () => true }));
  for (let at = 0; at < 2; at++) {
    const page = await OpenPage.open(base);
    pages.push(page);
    await page.shows((shown) => (shown.last('doctor')?.findings.length ?? 0) > 5, 'findings');
    expect(page.last('doctor')!.findings.map(({ check }) => check)).not.toContain('permissions');
    expect(page.last('doctor')!.findings.map(({ check }) => check)).toContain('version');
  }
});

test('a view shows the rows that match its search, by name, process or owner, up to its number of rows', async () => {
  const shop = await openClient({ clientName: 'shop' });
  const client = await openClient({ clientName: 'inspector' });
  const names = ['one', 'two', 'three'].map((label) => freshName(label));
  const holds = await Promise.all(names.map((name) => holdElsewhere(shop.getLock(name))));
  holds.push(await holdElsewhere(client.getLock(freshName('mine'))));
  const seen = async (query: string, count: number): Promise<string[]> => {
    const page = await openPage({ client }, query);
    await page.shows((shown) => shown.last('summary')?.total === 4 && shown.rows.size === count, `rows of ${query}`);
    expect(page.last('summary')!.shown).toBe(count);
    return [...page.rows.keys()].sort();
  };
  expect(await seen('?search=TWO', 1)).toEqual([names[1]]);
  expect(await seen('?search=shop', 3)).toEqual([...names].sort());
  expect(await seen(`?search=${holds[0]!.owner}`, 1)).toEqual([names[0]]);
  await seen('?rows=2', 2);
  await Promise.all(holds.map((hold) => hold.release()));
});

test('hostile names come as they are, and are selected and searched as they are', async () => {
  const client = await openClient();
  const names = ['<img src=x onerror=alert(1)>', 'event: bye\ndata: {}\n\n', '"quoted" & \u202e \u2028', '名前'].map(
    (label) => freshName(label),
  );
  const holds = await Promise.all(names.map((name) => holdElsewhere(client.getLock(name))));
  for (const name of names) {
    const page = await openPage({ client }, `${select(name)}&search=${encodeURIComponent(name)}`);
    await page.shows((shown) => shown.rows.has(name) && shown.last('selected')?.asked === name, name);
    expect([...page.rows.keys()]).toEqual([name]);
    expect(page.last('bye')).toBeUndefined();
  }
  await Promise.all(holds.map((hold) => hold.release()));
});

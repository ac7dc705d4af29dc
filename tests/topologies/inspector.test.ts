import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { createInspector } from '../../src/integrations/inspector/index.js';
import { ClusterClients } from '../support/clients/cluster-clients.js';
import { holdElsewhere, inFlow, outcome } from '../support/clients/lock-clients.js';
import { OpenPage } from '../support/http/event-stream.js';
import { closeServers, serve } from '../support/http/http-server.js';
import { SentinelSetup } from '../support/servers/sentinel.js';

const bench = new ClusterClients();

let sentinel: SentinelSetup;
const clients: LockClient[] = [];
beforeAll(async () => {
  sentinel = await SentinelSetup.start();
}, 60_000);
afterEach(async () => {
  await closeServers();
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
});
afterAll(() => sentinel.stop());

const openPage = async (client: LockClient, query = ''): Promise<OpenPage> =>
  OpenPage.open(await serve(createInspector({ client, authorize: () => 'ada', actions: true })), query);

async function openThroughSentinel(clientName: string): Promise<LockClient> {
  const client = createClient({ redis: sentinel.connection(), clientName, lockWatchdogTimeout: 3_000 });
  clients.push(client);
  await client.ready();
  return client;
}

test('in a cluster, the page shows the locks of every master with their processes and waiters, and doctor rows for each', async () => {
  const [holder, waiter] = [await bench.open({ clientName: 'shop' }), await bench.open({ clientName: 'page' })];
  const names = Array.from({ length: 30 }, (_, at) => bench.freshName(`shown-${at}`));
  const holds = await Promise.all(names.map((name) => holdElsewhere(holder.getLock(name))));
  const waiting = inFlow(() => waiter.getLock(names[0]!).acquire());
  const page = await openPage(waiter);
  await page.shows(({ rows }) => names.every((name) => rows.has(name)), 'all rows', 30_000);
  for (const { owners } of page.rows.values()) {
    expect(owners).toMatchObject([{ isThisClient: false, process: { clientName: 'shop', pid: process.pid } }]);
  }
  await page.shows(({ rows }) => rows.get(names[0]!)?.waiters === 1, 'the waiter is counted', 30_000);
  await page.shows((shown) => (shown.last('doctor')?.findings.length ?? 0) > 0, 'the doctor', 30_000);
  const servers = new Set(page.last('doctor')!.findings.map(({ server }) => server));
  expect(servers.size).toBe((await bench.cluster.masters()).length);
  await Promise.all(holds.map((hold) => hold.release()));
  await (await waiting).release();
  await page.shows(({ rows }) => rows.size === 0, 'all rows are gone', 30_000);
  expect(page.last('problems')).toEqual([]);
  page.close();
}, 90_000);

test('with Sentinel, the page shows what the master has', async () => {
  const client = await openThroughSentinel('page');
  const hold = await holdElsewhere(client.getLock('shown'));
  const page = await openPage(client);
  await page.shows(({ rows }) => rows.get('shown')?.owners[0]?.owner === hold.owner, 'the row');
  expect(page.rows.get('shown')).toMatchObject({ owners: [{ isThisClient: true, process: { clientName: 'page' } }] });
  await hold.release();
  await page.shows(({ rows }) => rows.size === 0, 'the row is gone');
  page.close();
}, 60_000);

describe.each([
  [
    'in a cluster',
    (clientName: string) => bench.open({ clientName }),
    async (name: string) => bench.cluster.failover((await bench.cluster.shardOf(name)).master),
  ],
  ['through Sentinel', openThroughSentinel, () => sentinel.failover()],
])('%s', (_where, open, failover) => {
  const name = bench.freshName('page');

  test('the page frees the lock of the owner that it shows, and its timeline tells of both clients', async () => {
    const [client, shop] = [await open('page'), await open('shop')];
    const events: unknown[] = [];
    client.events.on('forceUnlocked', (event) => events.push(event));
    const page = await openPage(client, `?select=${name}`);
    await page.shows((shown) => shown.last('selected')?.row.kind === 'free', 'the name is free');
    const own = await holdElsewhere(client.getLock(name));
    await own.release();
    const hold = await holdElsewhere(shop.getLock(name));
    await page.shows((shown) => shown.last('selected')?.row.owners[0]?.owner === hold.owner, 'the owner');
    expect(await page.unlock(name, own.owner)).toEqual([200, { freed: false }]);
    expect(await page.unlock(name, hold.owner)).toEqual([200, { freed: true }]);
    expect((await shop.inspect(name)).kind).toBe('free');
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    const told = { lockName: name, by: 'ada' };
    expect(events).toMatchObject([
      { ...told, owner: own.owner, result: 'not the owner' },
      { ...told, owner: hold.owner, result: 'freed' },
    ]);
    const bars = (): unknown[] => page.all('timeline').flatMap((change) => change.bars);
    const ended = (shown: OpenPage): boolean =>
      shown
        .all('timeline')
        .some((change) => change.bars.some(({ owner, ended }) => owner === hold.owner && ended !== null));
    await page.shows(ended, 'the hold of the other client has ended');
    const process = expect.objectContaining({ clientName: 'shop' });
    expect(bars()).toContainEqual(expect.objectContaining({ owner: own.owner, isThisClient: true, ended: 'released' }));
    expect(bars()).toContainEqual(expect.objectContaining({ owner: hold.owner, process, ended: 'freed' }));
    const entries = page.all('timeline').flatMap((change) => change.entries);
    expect(entries).toContainEqual(
      expect.objectContaining({ what: 'freed', text: expect.stringContaining('ada: freed') }),
    );
    page.close();
  }, 60_000);

  test('a page that is open during a failover shows the new master, and its stream goes on', async () => {
    const [client, shop] = [await open('page'), await open('shop')];
    const page = await openPage(client, `?select=${name}`);
    await page.shows((shown) => shown.last('summary')?.listedAt != null, 'the first listing', 30_000);
    await failover(name);
    const hold = await inFlow(async () => {
      for (;;) {
        const got = await shop
          .getLock(name)
          .acquire()
          .catch(() => undefined);
        if (got !== undefined) return { got };
      }
    });
    const isShown = ({ rows }: OpenPage): boolean => rows.get(name)?.owners[0]?.owner === hold.got.owner;
    await page.shows(isShown, 'the row on the new master', 30_000);
    await page.shows((shown) => shown.last('selected')?.row.owners[0]?.owner === hold.got.owner, 'its details', 30_000);
    await page.shows((shown) => shown.last('problems')?.length === 0, 'no problem is left', 30_000);
    await page.shows(({ rows }) => rows.get(name)?.owners[0]?.process?.clientName === 'shop', 'its process', 30_000);
    expect(page.isEnded).toBe(false);
    await hold.got.release();
    await page.shows(({ rows }) => !rows.has(name), 'the row is gone', 30_000);
    page.close();
  }, 90_000);
});

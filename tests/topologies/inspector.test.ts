import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { createInspector } from '../../src/integrations/inspector/index.js';
import { ClusterClients } from '../support/clients/cluster-clients.js';
import { holdElsewhere, inFlow } from '../support/clients/lock-clients.js';
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

const openPage = async (client: LockClient): Promise<OpenPage> =>
  OpenPage.open(await serve(createInspector({ client, authorize: () => true })));

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
  const client = createClient({ redis: sentinel.connection(), clientName: 'page' });
  clients.push(client);
  await client.ready();
  const hold = await holdElsewhere(client.getLock('shown'));
  const page = await openPage(client);
  await page.shows(({ rows }) => rows.get('shown')?.owners[0]?.owner === hold.owner, 'the row');
  expect(page.rows.get('shown')).toMatchObject({ owners: [{ isThisClient: true, process: { clientName: 'page' } }] });
  await hold.release();
  await page.shows(({ rows }) => rows.size === 0, 'the row is gone');
  page.close();
}, 60_000);

import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { ListEntry } from '../../src/inspection/describe.js';
import { ClusterClients } from '../support/clients/cluster-clients.js';
import { holdElsewhere, inFlow } from '../support/clients/lock-clients.js';
import { SentinelSetup } from '../support/servers/sentinel.js';
import { serverMajor } from '../support/servers/server-version.js';
import { keySlot } from '../../src/redis/cluster-slots.js';
import { until } from '../support/time/until.js';

const bench = new ClusterClients();

let sentinel: SentinelSetup;
const clients: LockClient[] = [];
beforeAll(async () => {
  sentinel = await SentinelSetup.start();
}, 60_000);
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
});
afterAll(() => sentinel.stop());

async function listed(client: LockClient): Promise<ReadonlyMap<string, ListEntry>> {
  const entries = new Map<string, ListEntry>();
  for await (const entry of client.list()) entries.set(entry.name, entry);
  return entries;
}

test.each([[false], ...(serverMajor() >= 7 ? [[true]] : [])])(
  'in a cluster the locks of every master are listed, with processes and waiters (sharded channels: %j)',
  async (shardedSubscriptions) => {
    const options = { shardedSubscriptions, clientName: 'shop' };
    const [holder, waiter] = [await bench.open(options), await bench.open(options)];
    const names = Array.from({ length: 30 }, (_, at) => bench.freshName(`listed-${at}`));
    const holds = await Promise.all(names.map((name) => holdElsewhere(holder.getLock(name))));
    const masters = await bench.cluster.masters();
    const keys = await Promise.all(masters.map((server) => bench.cluster.keysOn(server)));
    expect(keys.filter((each) => each.length > 0)).toHaveLength(masters.length);
    const waiting = names.slice(0, 10).map((name) => inFlow(() => waiter.getLock(name).acquire()));
    await until(
      async () => [...(await listed(waiter)).values()].filter((entry) => entry.waiters === 1).length === 10,
      'the waiters are counted',
    );
    const entries = await listed(waiter);
    expect([...entries.keys()].sort()).toEqual([...names].sort());
    for (const { owners } of entries.values()) {
      expect(owners).toMatchObject([{ isThisClient: false, process: { clientName: 'shop', pid: process.pid } }]);
    }
    for (const [at, hold] of holds.entries()) {
      if (at < 10) expect(await waiter.forceUnlock(names[at]!, { ifOwner: hold.owner })).toBe(true);
      else await hold.release();
    }
    for (const got of await Promise.all(waiting)) await got.release();
    await Promise.allSettled(holds.map((hold) => hold.release()));
  },
  60_000,
);

test('locks are listed after a slot has moved to another master', async () => {
  const client = await bench.open();
  const names = Array.from({ length: 12 }, (_, at) => bench.freshName(`moved-${at}`));
  const holds = await Promise.all(names.map((name) => holdElsewhere(client.getLock(name))));
  const { master } = await bench.cluster.shardOf(names[0]!);
  await bench.cluster.moveSlot(keySlot(names[0]!), await bench.otherMaster(master));
  expect([...(await listed(client)).keys()].sort()).toEqual([...names].sort());
  await Promise.all(holds.map((hold) => hold.release()));
}, 60_000);

test('through Sentinel the locks of the master are listed, also after a failover', async () => {
  const client = createClient({ redis: sentinel.connection(), clientName: 'shop' });
  clients.push(client);
  await client.ready();
  const hold = await holdElsewhere(client.getLock('kept'));
  const shown = { kind: 'lock', owners: [{ owner: hold.owner, process: { clientName: 'shop', pid: process.pid } }] };
  expect((await listed(client)).get('kept')).toMatchObject(shown);
  await (await sentinel.master()).command('WAIT', 2, 1_000);
  await sentinel.failover();
  await until(
    async () => {
      const entries = await listed(client).catch(() => new Map<string, ListEntry>());
      return entries.get('kept')?.owners[0]?.process?.pid === process.pid;
    },
    'the new master lists the lock and its process',
    20_000,
  );
  await hold.release();
}, 60_000);

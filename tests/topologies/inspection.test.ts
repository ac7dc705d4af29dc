import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { doctor } from '../../src/client/doctor.js';
import type { ListEntry } from '../../src/inspection/describe.js';
import { runCommand } from '../support/processes/command.js';
import { ClusterClients } from '../support/clients/cluster-clients.js';
import { holdElsewhere, inFlow } from '../support/clients/lock-clients.js';
import { nameOn, RedisCluster } from '../support/servers/cluster.js';
import { MASTER_NAME, SentinelSetup } from '../support/servers/sentinel.js';
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

test('in a cluster that lacks slots and a server, the rest is shown, and what is missing is named', async () => {
  const cluster = await RedisCluster.start({ masters: 3, replicas: 0 });
  const open = (): LockClient => {
    const client = createClient({ redis: cluster.connection(), commandTimeout: 1_500 });
    clients.push(client);
    return client;
  };
  const client = open();
  const masters = await cluster.masters();
  const names = await Promise.all(masters.map((server, at) => nameOn(cluster, server, `part-${at}`)));
  for (const name of names) await holdElsewhere(client.getLock(name), 60_000);
  /** Checks the list and the doctor of a new client, which has no older map of the slots. */
  const lacks = async (what: string, shown: readonly string[]): Promise<void> => {
    const other = open();
    const listed: string[] = [];
    const list = async (): Promise<void> => {
      for await (const { name } of other.list()) listed.push(name);
    };
    await expect(list()).rejects.toMatchObject({
      code: 'ERR_LOCK_REDIS_UNAVAILABLE',
      message: expect.stringContaining(what),
    });
    expect(listed.sort()).toEqual([...shown].sort());
    const findings = await doctor(other, { probes: false });
    const named = { check: 'cluster', level: 'error', message: expect.stringContaining(what) };
    expect(findings).toContainEqual(expect.objectContaining(named));
    expect(findings.filter(({ check }) => check === 'version')).toHaveLength(shown.length);
  };

  const slot = [1, 2, 3, 4].find((each) => !names.map(keySlot).includes(each))!;
  for (const server of masters) await server.command('CLUSTER', 'DELSLOTS', slot);
  await lacks(`slots ${slot}`, names);
  const env = { HOLDFAST_CLUSTER: `${masters[0]!.host}:${masters[0]!.port}` };
  const shown = await runCommand(['ls', '--timeout', '2000'], { env });
  for (const name of names) expect(shown.out).toContain(name);
  expect([shown.code, shown.err]).toEqual([3, expect.stringContaining(`slots ${slot}`)]);

  await masters[2]!.kill9();
  await lacks(`server 127.0.0.1:${masters[2]!.port}`, names.slice(0, 2));
  await Promise.all(clients.splice(0).map((each) => each.close()));
  await cluster.stop();
}, 90_000);

test('the command works on a cluster: ls, top and doctor', async () => {
  const client = await bench.open({ clientName: 'shop' });
  const names = Array.from({ length: 12 }, (_, at) => bench.freshName(`command-${at}`));
  const holds = await Promise.all(names.map((name) => holdElsewhere(client.getLock(name))));
  const [first] = await bench.cluster.masters();
  const env = { HOLDFAST_CLUSTER: `${first!.host}:${first!.port}` };
  const { out } = await runCommand(['ls', '--json'], { env });
  const entries = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as ListEntry);
  expect(entries.map(({ name }) => name).sort()).toEqual([...names].sort());
  for (const { owners } of entries) expect(owners).toMatchObject([{ process: { clientName: 'shop' } }]);
  expect((await runCommand(['top', '--count', '1'], { env })).out).toMatch(/^12 in use/);
  const doctor = await runCommand(['doctor'], { env });
  expect(doctor.out.match(/ok {7}version/g)).toHaveLength((await bench.cluster.masters()).length);
  expect(doctor).toMatchObject({ code: 0, err: '' });
  await Promise.all(holds.map((hold) => hold.release()));
  // The request lanes of the doctor's semaphores last for an hour.
  for (const server of await bench.cluster.masters()) await server.command('FLUSHALL');
}, 60_000);

test('the command works through Sentinel', async () => {
  const client = createClient({ redis: sentinel.connection() });
  clients.push(client);
  const hold = await holdElsewhere(client.getLock('by-command'));
  const addresses = sentinel.sentinels.map(({ host, port }) => `${host}:${port}`).join();
  const { out } = await runCommand(['inspect', 'by-command', '--sentinel', `${MASTER_NAME}@${addresses}`]);
  expect(out).toContain(`owner     ${hold.owner}, 1 hold`);
  await hold.release();
}, 60_000);

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

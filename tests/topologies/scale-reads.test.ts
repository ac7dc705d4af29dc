import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { ClusterOptions, Redis } from 'ioredis';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { RedisCluster } from '../support/servers/cluster.js';
import { contend } from '../support/clients/contention.js';
import { inFlow } from '../support/clients/lock-clients.js';
import { natMapOf } from '../support/proxy/nat-map.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { until } from '../support/time/until.js';
import { expectNoOverlap } from '../support/serious.js';

/** Every node is behind a proxy that shows the requests to replicas: MONITOR would also show the replication. */
let cluster: RedisCluster;
const proxies: FaultProxy[] = [];
const clients: LockClient[] = [];
beforeAll(async () => {
  cluster = await RedisCluster.start({ masters: 3, replicas: 1 });
  for (const server of cluster.servers) proxies.push(await FaultProxy.start(server.address));
}, 60_000);
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
});
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await cluster.stop();
});

/** Commands without a lock: the handshake, the map of the cluster, the kinds of channels. */
const HARMLESS = new Set(['HELLO', 'AUTH', 'CLIENT', 'INFO', 'CLUSTER', 'PUBSUB', 'PING', 'QUIT']);

async function open(scaleReads: ClusterOptions['scaleReads']): Promise<LockClient> {
  const natMap = natMapOf(cluster.servers, proxies);
  const client = createClient({ redis: cluster.connection({ natMap, scaleReads }), lockWatchdogTimeout: 1_500 });
  clients.push(client);
  await client.ready();
  return client;
}

test.each<[string, ClusterOptions['scaleReads']]>([
  ['slave', 'slave'],
  ['all', 'all'],
  ['a function', (nodes: readonly Redis[]) => nodes.at(-1)],
])('R34: scaleReads %s: no lock is read or written at a replica', async (label, scaleReads) => {
  const both = [await open(scaleReads), await open(scaleReads)];
  const names = Array.from({ length: 6 }, (_, at) => `scaled-${label}:${at}`);
  const result = await contend({ clients: both, names, flows: 12, sections: 5 });
  expectNoOverlap(result.overlaps);
  expect(result.values).toEqual(result.entered);
  const [client] = both as [LockClient];
  for (const name of names) {
    const lock = client.getLock(name);
    // Reads the newest write, which a replica may not have yet.
    await lock.withLock(async (hold) => {
      expect(await lock.isLocked()).toBe(true);
      expect(await lock.getHoldCount()).toBe(1);
      expect(await lock.isHeldBy(hold.owner)).toBe(true);
      expect(await lock.remainTimeToLive()).toBeGreaterThan(0);
      expect((await client.inspect(name)).owners).toMatchObject([{ owner: hold.owner }]);
    });
    expect(await lock.isLocked()).toBe(false);
    const fenced = client.getFencedLock(`${name}:fenced`);
    expect(await fenced.withLock(({ token }) => token)).toBe(await fenced.getToken());
    const semaphore = client.getSemaphore(`${name}:semaphore`);
    await semaphore.addPermits(2);
    expect(await semaphore.availablePermits()).toBe(2);
    const latch = client.getCountDownLatch(`${name}:latch`);
    await latch.trySetCount(1);
    expect(await latch.getCount()).toBe(1);
    await latch.delete();
  }
  let renewed = false;
  client.events.on('renewed', () => (renewed = true));
  const hold = await inFlow(() => client.getLock(names[0]!).acquire());
  await until(() => renewed, 'the watchdog has renewed it');
  await hold.release();

  const masters = await cluster.masters();
  const asked = (master: boolean): string[] =>
    proxies
      .filter((_, at) => masters.includes(cluster.servers[at]!) === master)
      .flatMap(({ log }) => log.map(({ name }) => name));
  expect(asked(true)).toEqual(expect.arrayContaining(['EVALSHA', 'GET']));
  expect([...new Set(asked(false))].filter((name) => !HARMLESS.has(name))).toEqual([]);
});

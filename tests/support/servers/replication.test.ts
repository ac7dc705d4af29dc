import { afterEach, expect, test } from '@jest/globals';
import { FaultProxy } from '../proxy/proxy.js';
import { hasCaughtUp, replicationOf } from './replication.js';
import { startServer, type RedisServer, type ServerOptions } from './servers.js';
import { until } from '../time/until.js';

const servers: RedisServer[] = [];
const proxies: FaultProxy[] = [];

async function start(options: ServerOptions): Promise<RedisServer> {
  const server = await startServer({ loneMaster: false, ...options });
  servers.push(server);
  return server;
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

test('a replica is in sync when it has the writes of its master, and not when its link is up', async () => {
  const master = await start({});
  const proxy = await FaultProxy.start(master.address, { opaque: true });
  proxies.push(proxy);
  const replica = await start({ replicaOf: { host: proxy.host, port: proxy.port } });
  await until(() => hasCaughtUp(replica, master), 'the replica has been filled');
  expect(await replicationOf(replica)).toMatchObject({ linked: true, masterPort: proxy.port });
  expect(await replicationOf(master)).toMatchObject({ masterPort: undefined });

  const silence = proxy.stall({ direction: 'to-client' });
  await master.command('SET', 'told', 'by the master alone');
  expect(await replicationOf(replica)).toMatchObject({ linked: true });
  expect(await replica.command('GET', 'told')).toBeNull();
  expect(await hasCaughtUp(replica, master)).toBe(false);

  silence.lift();
  await until(() => hasCaughtUp(replica, master), 'it has caught up');
  expect(await replica.command('GET', 'told')).toBe('by the master alone');
});

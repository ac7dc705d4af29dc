import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Cluster } from 'ioredis';
import { now } from '../../bench/monotonic.js';
import { createClient, type LockClient } from '../../src/client.js';
import { RedisCluster } from '../support/cluster.js';
import { pause } from '../support/lock-clients.js';
import { startServer, type RedisServer } from '../support/servers.js';
import { Jvm, REDISSON_VERSIONS, type JvmObject } from './jvm.js';
import { WAKE_MS } from './limits.js';
import { HoldfastActor } from './wire/holdfast-actor.js';

/* Settings that have to agree on both sides (README, "Sharing locks with Java"), with each kind of channel. */

const version = process.env.HOLDFAST_REDISSON ?? REDISSON_VERSIONS[0];
const KINDS = [
  { kind: 'lock', take: 'lock', leave: 'unlock' },
  { kind: 'fair', take: 'lock', leave: 'unlock' },
  { kind: 'write', take: 'lock', leave: 'unlock' },
  { kind: 'semaphore', take: 'acquire', leave: 'release' },
];

let jvm: Jvm;
let names = 0;

beforeAll(async () => {
  jvm = await Jvm.start();
});

afterAll(() => jvm.close());

/** One holds, the other waits and is woken; then the other way round. */
async function passToAndFro(client: LockClient, kind: string, take: string, leave: string): Promise<void> {
  const name = `settings:${++names}`;
  const object: JvmObject = { kind, name };
  const node = new HoldfastActor(new Map([['N', client]]), 'N.1', '');
  const thread = jvm.thread(name);
  if (kind === 'semaphore') await node.call(object, 'trySetPermits', [1]);
  await node.call(object, take, []);
  for (let i = 0; i < 4; i += 1) {
    const jvmWaits = thread.call(object, take);
    await pause(150);
    const freedAt = now();
    await node.call(object, leave, []);
    expect((await jvmWaits).until - freedAt).toBeLessThan(WAKE_MS);
    const nodeWaits = node.call(object, take, []).then(() => now());
    await pause(150);
    const { from } = await thread.call(object, leave);
    expect((await nodeWaits) - from).toBeLessThan(WAKE_MS);
  }
  await node.call(object, leave, []);
  if (kind === 'semaphore') await node.call(object, 'drainPermits', []);
}

describe(`a name mapper that prefixes, and keyPrefix, with Redisson ${version}`, () => {
  let server: RedisServer;
  let client: LockClient;

  beforeAll(async () => {
    server = await startServer();
    await jvm.createClient({ addresses: [server.url], keyPrefix: 'app:' });
    client = createClient({ url: server.url, keyPrefix: 'app:' });
  });

  afterAll(async () => {
    await client.close();
    await jvm.closeClient();
    await server.stop();
  });

  test.each(KINDS)('$kind', async ({ kind, take, leave }) => {
    await passToAndFro(client, kind, take, leave);
    const keys = await server.admin.keys('*');
    expect(keys.filter((key) => !key.includes('app:'))).toEqual([]);
  });
});

describe(`a cluster with sharded channels, with Redisson ${version}`, () => {
  let cluster: RedisCluster;
  let redis: Cluster;
  let client: LockClient;

  beforeAll(async () => {
    cluster = await RedisCluster.start({ replicas: 0 });
    const nodes = cluster.servers.map(({ address }) => address);
    await jvm.createClient({ mode: 'cluster', addresses: cluster.servers.map(({ url }) => url) });
    redis = new Cluster(nodes, { lazyConnect: true });
    client = createClient({ redis });
    await client.ready();
  });

  afterAll(async () => {
    await client.close();
    redis.disconnect();
    await jvm.closeClient();
    await cluster.stop();
  });

  test.each(KINDS)('$kind', async ({ kind, take, leave }) => {
    // Names in all shards.
    for (let i = 0; i < 3; i += 1) await passToAndFro(client, kind, take, leave);
  });
});

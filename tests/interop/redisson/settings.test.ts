import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Cluster } from 'ioredis';
import { now } from '../../../bench/monotonic.js';
import { createClient, type LockClient } from '../../../src/client/create-client.js';
import { RedisCluster } from '../../support/servers/cluster.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';
import { Jvm, REDISSON_VERSIONS, type JvmObject } from './jvm.js';
import { expectWoken } from './limits.js';
import { HoldfastActor } from './wire/holdfast-actor.js';

/* Settings that have to agree on both sides (docs/java.md), with each kind of channel. */

interface Kind {
  readonly kind: string;
  readonly take: string;
  readonly leave: string;
}

const version = process.env.HOLDFAST_REDISSON ?? REDISSON_VERSIONS[0];
const KINDS: readonly Kind[] = [
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

interface Side {
  readonly client: LockClient;
  /** The subscribed channels with such a name. */
  channels(pattern: string): Promise<string[]>;
}

/** One holds, the other waits and is woken; then the other way round. Returns how long that took, in ms. */
async function passToAndFro({ client, channels }: Side, { kind, take, leave }: Kind): Promise<number[]> {
  const name = `settings:${++names}`;
  const object: JvmObject = { kind, name };
  const node = new HoldfastActor(new Map([['N', client]]), 'N.1', '');
  const thread = jvm.thread(name);
  if (kind === 'semaphore') await node.call(object, 'trySetPermits', [1]);
  await node.call(object, take, []);
  const took: number[] = [];
  for (let i = 0; i < 4; i += 1) {
    const jvmWaits = thread.call(object, take);
    await thread.parked();
    const freedAt = now();
    await node.call(object, leave, []);
    took.push((await jvmWaits).until - freedAt);
    await until(async () => (await channels(`*${name}*`)).length === 0, 'the JVM has unsubscribed');
    const nodeWaits = node.call(object, take, []).then(() => now());
    await until(async () => (await channels(`*${name}*`)).length === 1, 'our waiter has subscribed');
    const { from } = await thread.call(object, leave);
    took.push((await nodeWaits) - from);
  }
  await node.call(object, leave, []);
  if (kind === 'semaphore') await node.call(object, 'drainPermits', []);
  return took;
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

  test.each(KINDS)('$kind', async (kind) => {
    const channels = (pattern: string) => server.admin.pubsub('CHANNELS', pattern) as Promise<string[]>;
    expectWoken(await passToAndFro({ client, channels }, kind));
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

  test.each(KINDS)('$kind', async (kind) => {
    const channels = async (pattern: string): Promise<string[]> => {
      const each = cluster.servers.map(({ admin }) => admin.pubsub('SHARDCHANNELS', pattern) as Promise<string[]>);
      return (await Promise.all(each)).flat();
    };
    // Names in all shards.
    const took = [];
    for (let i = 0; i < 3; i += 1) took.push(...(await passToAndFro({ client, channels }, kind)));
    expectWoken(took);
  });
});

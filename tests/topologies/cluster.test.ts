import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/client.js';
import { RedisCluster } from '../support/cluster.js';

let cluster: RedisCluster;
const clients: LockClient[] = [];
beforeAll(async () => {
  cluster = await RedisCluster.start();
}, 60_000);
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
});
afterAll(() => cluster.stop());

async function open(options: Partial<CreateClientOptions> = {}): Promise<LockClient> {
  const client = createClient({
    redis: cluster.connection(),
    lockWatchdogTimeout: 3_000,
    ...options,
  } as CreateClientOptions);
  clients.push(client);
  await client.ready();
  return client;
}

test('locks on all shards', async () => {
  const client = await open();
  for (let i = 0; i < 30; i++) {
    const lock = client.getLock(`try:${i}`);
    expect(await lock.tryLock()).toBe(true);
    expect(await lock.isLocked()).toBe(true);
    await lock.unlock();
  }
  expect((await cluster.leftovers()).keys).toEqual([]);
});

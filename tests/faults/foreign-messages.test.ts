import { afterEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import * as keys from '../../src/redis/keys.js';
import { answered, closeClients, inFlow, openClient, openProxy } from '../support/clients/lock-clients.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { until } from '../support/time/until.js';

/*
 * Databases share channels, and any client may publish. A foreign message only makes a waiter try, and only the reply
 * to the try grants the lock.
 */

const LEASE_MS = 60_000;
/** Payloads that Redisson publishes, and payloads that it never publishes. */
const PAYLOADS = ['0', '1', '9999', '-1', 'not a number', ''];

interface Kind {
  readonly channel: (name: string) => string;
  /** Occupies the object and returns the function that frees it. */
  block(client: LockClient, name: string): Promise<() => Promise<unknown>>;
  wait(client: LockClient, name: string): Promise<unknown>;
}
const release = (hold: { release(): Promise<void> }) => () => hold.release();
const locks = (
  channel: Kind['channel'],
  lock: (client: LockClient, name: string) => Lock,
  blocking: (client: LockClient, name: string) => Lock = lock,
): Kind => ({
  channel,
  block: async (client, name) => release(await inFlow(() => blocking(client, name).acquire({ leaseTime: LEASE_MS }))),
  wait: (client, name) => inFlow(() => lock(client, name).acquire({ leaseTime: LEASE_MS })),
});

const KINDS: Record<string, Kind> = {
  'a latch': {
    channel: keys.latchChannel,
    async block(client, name) {
      await client.getCountDownLatch(name).trySetCount(3);
      return () => client.getCountDownLatch(name).delete();
    },
    wait: (client, name) => client.getCountDownLatch(name).await(),
  },
  'a semaphore': {
    channel: keys.semaphoreChannel,
    async block(client, name) {
      await client.getSemaphore(name).trySetPermits(0);
      return () => client.getSemaphore(name).release();
    },
    wait: (client, name) => client.getSemaphore(name).acquire(),
  },
  'permits with a lease': {
    channel: keys.semaphoreChannel,
    async block(client, name) {
      await client.getPermitExpirableSemaphore(name).trySetPermits(0);
      return () => client.getPermitExpirableSemaphore(name).addPermits(1);
    },
    wait: (client, name) => client.getPermitExpirableSemaphore(name).acquirePermit({ leaseTime: LEASE_MS }),
  },
  'a lock': locks(keys.lockChannel, (client, name) => client.getLock(name)),
  'a fenced lock': locks(keys.lockChannel, (client, name) => client.getFencedLock(name)),
  'values of a group': locks(keys.lockChannel, (client, name) => client.getMultiLock(name, ['a', 'b'])),
  'a reader': locks(
    keys.readWriteChannel,
    (client, name) => client.getReadWriteLock(name).readLock(),
    (client, name) => client.getReadWriteLock(name).writeLock(),
  ),
  'a writer': locks(
    keys.readWriteChannel,
    (client, name) => client.getReadWriteLock(name).writeLock(),
    (client, name) => client.getReadWriteLock(name).readLock(),
  ),
};

const used: string[] = [];
afterEach(async () => {
  await closeClients();
  if (used.length > 0) await admin().del(...used.splice(0));
});

/** The waiter is subscribed, and Redis has answered every request that it sent because of that. */
async function parked(client: LockClient, channel: string): Promise<void> {
  // A script can name the channel as well, so only Redis itself can say that the subscription is there.
  await until(async () => (await admin().pubsub('NUMSUB', channel))[1] === 1, 'it is subscribed');
  await answered(client);
  await answered(client);
}

test.each(Object.entries(KINDS))('a foreign message grants no waiter: %s', async (_, kind) => {
  const { proxy, url } = await openProxy();
  const [client, other] = [await openClient({ url }), await openClient()];
  const name = freshName();
  used.push(name);
  const clear = await kind.block(other, name);
  const channel = kind.channel(name);
  let inside = false;
  const waiting = kind.wait(client, name).then((hold) => {
    inside = true;
    return hold;
  });
  await parked(client, channel);
  for (const payload of PAYLOADS) {
    const before = proxy.log.length;
    expect(await admin().publish(channel, payload)).toBe(1);
    await until(() => proxy.log.slice(before).some(({ args }) => args.includes(name)), `${payload}: it looks`);
    await answered(client);
    expect([payload, inside]).toEqual([payload, false]);
  }
  await clear();
  const hold = await waiting;
  if (typeof hold === 'object') await (hold as { release(): Promise<void> }).release();
});

test('a foreign message grants no fair waiter', async () => {
  const { proxy, url } = await openProxy();
  const [client, other] = [await openClient({ url }), await openClient()];
  const name = freshName();
  const hold = await inFlow(() => other.getFairLock(name).acquire({ leaseTime: LEASE_MS }));
  let inside = false;
  const waiting = inFlow(async () => {
    const own = await client.getFairLock(name).acquire({ leaseTime: LEASE_MS });
    inside = true;
    await own.release();
  });
  await until(async () => (await client.inspect(name)).queue.length === 1, 'it is in line');
  const [owner] = (await client.inspect(name)).queue;
  await parked(client, keys.fairChannel(name, owner!));
  for (const payload of PAYLOADS) {
    const before = proxy.log.length;
    expect(await admin().publish(keys.fairChannel(name, owner!), payload)).toBe(1);
    await until(() => proxy.log.slice(before).some(({ args }) => args.includes(owner!)), `${payload}: it looks`);
    await answered(client);
    expect([payload, inside]).toEqual([payload, false]);
  }
  await hold.release();
  await waiting;
});

test('a latch that opens in another database opens no latch of the same name here', async () => {
  const { proxy, url } = await openProxy();
  const elsewhere = new URL(testRedisUrl());
  elsewhere.pathname = '/15';
  const name = freshName('latch');
  const [client, stranger] = [await openClient({ url }), await openClient({ url: elsewhere.href })];
  const [latch, namesake] = [client.getCountDownLatch(name), stranger.getCountDownLatch(name)];
  await latch.trySetCount(3);
  await namesake.trySetCount(1);
  let inside = false;
  const waiting = latch.await().then(() => (inside = true));
  await parked(client, keys.latchChannel(name));
  const before = proxy.log.length;
  await namesake.countDown();
  await until(() => proxy.log.slice(before).some(({ args }) => args.includes(name)), 'it looks');
  await answered(client);
  expect([inside, await latch.getCount()]).toEqual([false, 3]);
  await latch.delete();
  expect(await waiting).toBe(true);
  const there = new Redis(elsewhere.href);
  const left = await there.keys(`*${name}*`);
  await there.del(...left);
  await there.quit();
});

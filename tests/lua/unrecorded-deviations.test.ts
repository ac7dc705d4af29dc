import { afterEach, expect, test } from '@jest/globals';
import { fairQueueKey, fairTimeoutsKey, lockChannel, semaphoreChannel } from '../../src/redis/keys.js';
import { type Reason, REASONS } from '../support/java/deviation-reasons.js';
import { closeClients, inFlow, openClient, outcome } from '../support/clients/lock-clients.js';
import { Published } from '../support/clients/published.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

/*
 * Intended differences from Redisson that no recording covers. docs/decisions/10-differences-from-redisson.md has the
 * same rows.
 */

let published: Published | undefined;
afterEach(async () => {
  await published?.close();
  published = undefined;
  await closeClients();
});

const deviation = (reason: Reason, run: () => Promise<void>): void => test(`${reason}: ${REASONS[reason]}`, run);

deviation('releasedAsTaken', async () => {
  const [client, other] = [await openClient(), await openClient()];
  const name = freshName();
  let waiting: Promise<unknown> | undefined;
  await inFlow(async () => {
    await client.getFairLock(name).lock();
    waiting = inFlow(() => other.getFairLock(name).withLock(() => undefined));
    await until(async () => (await admin().llen(fairQueueKey(name))) === 1, 'one waits');
    published = await Published.on(name);
    const [head] = await admin().lrange(fairQueueKey(name), 0, 0);
    await client.getLock(name).unlock();
    const messages = await published.take();
    expect(messages).toEqual([{ channel: `${lockChannel(name)}:${head}`, payload: '0' }]);
  });
  await waiting;
});

deviation('forceFree', async () => {
  const client = await openClient();
  const name = freshName();
  await admin().rpush(fairQueueKey(name), 'a JVM:1');
  await admin().zadd(fairTimeoutsKey(name), Date.now() - 1_000, 'a JVM:1');
  const lock = client.getFairLock(name);
  expect(await lock.forceUnlock()).toBe(false);
  expect(await admin().lrange(fairQueueKey(name), 0, -1)).toEqual(['a JVM:1']);
  // The next one to come removes it.
  expect(await inFlow(() => lock.withLock(() => admin().exists(fairQueueKey(name), fairTimeoutsKey(name))))).toBe(0);
});

deviation('forceType', async () => {
  const client = await openClient();
  const name = freshName();
  await admin().set(name, '3');
  const locks = [client.getLock(name), client.getFairLock(name), client.getSpinLock(name), client.getFencedLock(name)];
  const { readLock, writeLock } = {
    readLock: client.getReadWriteLock(name).readLock(),
    writeLock: client.getReadWriteLock(name).writeLock(),
  };
  for (const lock of [...locks, readLock, writeLock, client.getMultiLock(name, ['value'])]) {
    expect(await outcome(lock.forceUnlock())).toBe('ERR_LOCK_REFUSED');
  }
  expect(await admin().get(name)).toBe('3');
  await admin().del(name);
});

deviation('zeroCount', async () => {
  const client = await openClient();
  const name = freshName();
  for (const count of [0, -1]) {
    expect(await outcome(client.getCountDownLatch(name).trySetCount(count))).toBe('ERR_LOCK_INVALID_ARGUMENT');
  }
  expect(await admin().exists(name)).toBe(0);
});

deviation('readMembers', async () => {
  const client = await openClient();
  const name = freshName();
  const members = [client.getLock(`${name}:1`), client.getReadWriteLock(`${name}:2`).readLock()];
  await inFlow(async () => {
    const hold = await client.getMultiLock(...members).acquire({ waitTime: 1_000, leaseTime: 9_000 });
    const keys = await admin().keys(`*${name}*`);
    expect(keys).toHaveLength(3);
    for (const key of keys) expect(await admin().pttl(key)).toBeGreaterThan(4_000);
    await hold.release();
  });
});

deviation('reapedAtOnce', async () => {
  const client = await openClient();
  const name = freshName();
  const semaphore = client.getPermitExpirableSemaphore(name);
  await semaphore.trySetPermits(3);
  await semaphore.acquireMany(3, 10);
  published = await Published.on(name);
  let id: string | null = null;
  await until(async () => (id = await semaphore.tryAcquire()) !== null, 'the leases have ended');
  expect(await published.take()).toEqual([{ channel: semaphoreChannel(name), payload: '3' }]);
  expect(await admin().get(name)).toBe('2');
  await semaphore.release(id!);
  await admin().del(name);
});

deviation('servesAll', async () => {
  const [client, other] = [await openClient(), await openClient()];
  const name = freshName();
  await client.getSemaphore(name).trySetPermits(2);
  await client.getSemaphore(name).acquire(2);
  let served = 0;
  const waits = Array.from({ length: 2 }, () =>
    other
      .getSemaphore(name)
      .acquire()
      .then(() => (served += 1)),
  );
  await until(async () => (await admin().pubsub('NUMSUB', semaphoreChannel(name)))[1] === 1, 'they listen');
  published = await Published.on(name);
  await client.getSemaphore(name).release(2);
  await Promise.all(waits);
  // Served by one message.
  expect([served, await published.take()]).toEqual([2, [{ channel: semaphoreChannel(name), payload: '2' }]]);
  await admin().del(name);
});

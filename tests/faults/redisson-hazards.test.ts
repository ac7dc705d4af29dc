import { afterEach, expect, test } from '@jest/globals';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
} from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

/* Hazards of the wire document that no other suite names. */

afterEach(() => closeClients());

test.each([
  ['getNonReentrantLock', 'cutAfter'],
  ['getNonReentrantLock', 'swallow'],
  ['getNonReentrantFairLock', 'cutAfter'],
  ['getNonReentrantFairLock', 'swallow'],
] as const)('hazard 13: %s, %s: a repeat of a successful request is no second acquisition', async (factory, loss) => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 900 });
  const lock = client[factory](freshName());
  await lock.withLock(() => undefined);
  const lost = proxy[loss]({ command: 'EVALSHA', contains: lock.name });
  const hold = await inFlow(async () => lock.acquire({ waitTime: 5_000 }));
  expect(lost.count).toBe(1);
  expect(await admin().hgetall(lock.name)).toEqual({ [hold.owner]: '1' });
  // The other way around: a hold of the owner is refused after any repeat.
  expect(await hold.run(() => outcome(lock.lock()))).toBe('ERR_LOCK_NON_REENTRANT');
  await hold.release();
});

test('hazard 7: the release of a deleted read-write lock reports the loss, repeated or not', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 900, lockWatchdogTimeout: 600 });
  const lock = client.getReadWriteLock(freshName());
  for (const half of [lock.readLock(), lock.writeLock()]) {
    const hold = await inFlow(async () => half.acquire());
    const told = new Promise((lost) => hold.signal.addEventListener('abort', lost));
    await admin().del(lock.name);
    await told;
    proxy.cutAfter({ command: 'EVALSHA', contains: lock.name });
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    proxy.lift();
    await until(async () => (await admin().keys(`*${lock.name}*`)).length === 0, 'the read hold has no key any more');
  }
});

test('hazards 44 and 45: a multi-lock gives every member its full lease, also a read lock and after a long wait', async () => {
  const [a, b, c] = [freshName('a'), freshName('b'), freshName('c')];
  const [client, other] = [await openClient({ lockWatchdogTimeout: 1_000 }), await openClient()];
  const members = [
    client.getReadWriteLock(a).readLock(),
    client.getFencedLock(b),
    client.getReadWriteLock(c).writeLock(),
  ];
  const busy = await holdElsewhere(other.getFencedLock(b));
  const waits = inFlow(async () => client.getMultiLock(...members).acquire({ waitTime: 20_000, leaseTime: 5_000 }));
  await until(async () => (await admin().exists(a)) === 1, 'the first member is held');
  await pause(1_200);
  await busy.release();
  const hold = await waits;
  const readHold = `{${a}}:${hold.owner}:rwlock_timeout:1`;
  for (const key of [a, b, c, readHold]) {
    const left = await admin().pttl(key);
    expect(left).toBeGreaterThan(4_000);
    expect(left).toBeLessThanOrEqual(5_000);
  }
  expect(hold.validFor()).toBeGreaterThan(4_000);
  await hold.extend(6_000);
  expect(await admin().pttl(readHold)).toBeGreaterThanOrEqual(5_900);
  await hold.release();
});

test.each(['gone before', 'cut with its messages'] as const)(
  'hazard 22: a release of a semaphore or latch while the subscriber connection is %s reaches the waiters',
  async (how) => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const [semaphore, latch] = [freshName('semaphore'), freshName('latch')];
    await other.getSemaphore(semaphore).trySetPermits(0);
    await other.getCountDownLatch(latch).trySetCount(1);
    const inside = [client.getSemaphore(semaphore).acquire(), client.getCountDownLatch(latch).await()];
    const subscribers = async (): Promise<number> =>
      ((await admin().pubsub('CHANNELS', '*')) as string[]).filter(
        (channel) => channel.includes(semaphore) || channel.includes(latch),
      ).length;
    await until(async () => (await subscribers()) === 2, 'both wait');
    const open = async (): Promise<void> => {
      await other.getSemaphore(semaphore).release();
      await other.getCountDownLatch(latch).countDown();
    };
    if (how === 'gone before') {
      proxy.refuse('reset', { times: 1 });
      expect(proxy.cut({ kind: 'subscriber' })).toBe(1);
      await open();
    } else {
      const lost = proxy.dropMessages({ times: 2 });
      await open();
      await lost.appliedTimes(2);
      expect(proxy.cut({ kind: 'subscriber' })).toBe(1);
    }
    await Promise.all(inside);
    await admin().del(semaphore);
  },
);

test.each([0, 1])(
  'hazard 37: the unlock of a fair lock whose lease has ended reports the loss, with %i waiters',
  async (waiters) => {
    const [client, other] = [await openClient(), await openClient()];
    const lock = client.getFairLock(freshName());
    const lost: unknown[] = [];
    client.events.on('leaseLost', ({ reason }) => lost.push(reason));
    await inFlow(async () => {
      await lock.lock(20_000);
      const inside = Array.from({ length: waiters }, () => inFlow(() => other.getFairLock(lock.name).acquire()));
      await until(async () => (await client.inspect(lock.name)).queue.length === waiters, 'they are in line');
      await admin().del(lock.name);
      expect(await outcome(lock.unlock())).toBe('ERR_LOCK_LOST');
      expect(lost).toHaveLength(1);
      for (const hold of await Promise.all(inside)) await hold.release();
    });
  },
);

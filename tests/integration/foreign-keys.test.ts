import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { closeClients, inFlow, openClient, outcome } from '../support/clients/lock-clients.js';
import { admin, expectNothingLeft, freshName } from '../support/redis.js';

const REFUSED = 'ERR_LOCK_REFUSED';
const JVM = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';
/** Some fields are like those of a lock, though none names a client. */
const OF_THE_USER = { name: 'alice', 'visits:2024': '17', 'a:b:lock_count': '1' };

afterEach(async () => {
  await closeClients();
  await expectNothingLeft();
});

const LOCKS: Readonly<Record<string, (client: LockClient, name: string) => Lock>> = {
  plain: (client, name) => client.getLock(name),
  'non-reentrant': (client, name) => client.getNonReentrantLock(name),
  spin: (client, name) => client.getSpinLock(name),
  fenced: (client, name) => client.getFencedLock(name),
  fair: (client, name) => client.getFairLock(name),
  'non-reentrant fair': (client, name) => client.getNonReentrantFairLock(name),
  read: (client, name) => client.getReadWriteLock(name).readLock(),
  write: (client, name) => client.getReadWriteLock(name).writeLock(),
  group: (client, name) => client.getMultiLock(name, ['a', 'b']),
  'multi-lock': (client, name) => client.getMultiLock(client.getLock(name)),
};

const ACQUIRING: Readonly<Record<string, (lock: Lock) => Promise<unknown>>> = {
  tryLock: (lock) => lock.tryLock(),
  'tryLock that waits': (lock) => lock.tryLock(60_000),
  lock: (lock) => lock.lock(),
  tryAcquire: (lock) => lock.tryAcquire(),
  acquire: (lock) => lock.acquire(),
  withLock: (lock) => lock.withLock(() => undefined),
};

describe.each(Object.entries(LOCKS))('a %s lock of a name whose key is a hash of the user', (kind, get) => {
  test.each(Object.entries(ACQUIRING))('%s is refused at once, and writes nothing', async (_, call) => {
    const name = freshName();
    const lock = get(await openClient(), name);
    await admin().hset(name, OF_THE_USER);
    expect(await outcome(inFlow(() => call(lock)))).toBe(REFUSED);
    await expect(inFlow(() => call(lock))).rejects.toThrow(/not a lock.*use another name/);
    await closeClients();
    expect(await admin().hgetall(name)).toEqual(OF_THE_USER);
    expect(await admin().pttl(name)).toBe(-1);
    expect(await admin().keys('*')).toEqual([name]);
    await admin().del(name);
  });

  test("a user's hash with a field named mode is refused, too", async () => {
    const name = freshName();
    const lock = get(await openClient(), name);
    const settings = { mode: 'dark', size: '12' };
    await admin().hset(name, settings);
    expect(await outcome(inFlow(() => lock.tryLock()))).toBe(REFUSED);
    expect(await outcome(inFlow(() => lock.forceUnlock()))).toBe(REFUSED);
    expect(await admin().hgetall(name)).toEqual(settings);
    await admin().del(name);
  });

  test.each([
    ['for ever', -1],
    ['for a while', 60_000],
  ])('forceUnlock() leaves a hash that lasts %s', async (_, ttl) => {
    const name = freshName();
    const lock = get(await openClient(), name);
    await admin().hset(name, OF_THE_USER);
    if (ttl > 0) await admin().pexpire(name, ttl);
    expect(await outcome(inFlow(() => lock.forceUnlock()))).toBe(REFUSED);
    expect(await admin().hgetall(name)).toEqual(OF_THE_USER);
    await admin().del(name);
  });

  test('a lock that Redisson holds without a lease is busy and not refused', async () => {
    const name = freshName();
    const lock = get(await openClient(), name);
    await admin().hset(
      name,
      ['read', 'write'].includes(kind) ? { mode: 'write', [`${JVM}:write`]: '1' } : { [JVM]: '1' },
    );
    // A group looks at its own values alone, as Redisson's does.
    expect(await inFlow(() => lock.tryLock())).toBe(kind === 'group');
    await admin().del(name);
  });
});

test('inspect() names the type of a key that is not an object of this package', async () => {
  const client = await openClient();
  const name = freshName();
  await admin().hset(name, OF_THE_USER);
  expect(await client.inspect(name)).toMatchObject({ kind: 'unknown', type: 'hash', owners: [], remaining: -1 });
  await admin().hset(name, { [JVM]: '2' });
  // Beside an owner, fields of others are no owners.
  expect(await client.inspect(name)).toMatchObject({ kind: 'lock', owners: [{ owner: JVM, holdCount: 2 }] });
  await admin().del(name);
  await admin().set(name, 'hello');
  expect(await client.inspect(name)).toMatchObject({ kind: 'unknown', type: 'string', value: undefined });
  await admin().set(name, '-3');
  expect(await client.inspect(name)).toMatchObject({ kind: 'counter', type: 'string', value: '-3' });
  await admin().del(name);
  expect(await client.inspect(name)).toMatchObject({ kind: 'free', type: 'none' });
});

const CALLS: Readonly<Record<string, (client: LockClient, name: string) => Promise<unknown>>> = {
  'semaphore.tryAcquire()': (client, name) => client.getSemaphore(name).tryAcquire(),
  'semaphore.acquire()': (client, name) => client.getSemaphore(name).acquire(),
  'semaphore.drainPermits()': (client, name) => client.getSemaphore(name).drainPermits(),
  'semaphore.addPermits()': (client, name) => client.getSemaphore(name).addPermits(1),
  'semaphore.availablePermits()': (client, name) => client.getSemaphore(name).availablePermits(),
  'permits.tryAcquire()': (client, name) => client.getPermitExpirableSemaphore(name).tryAcquire(),
  'permits.acquire()': (client, name) => client.getPermitExpirableSemaphore(name).acquire(),
  'latch.await()': (client, name) => client.getCountDownLatch(name).await(),
  'latch.getCount()': (client, name) => client.getCountDownLatch(name).getCount(),
  'latch.countDown()': (client, name) => client.getCountDownLatch(name).countDown(),
  'latch.trySetCount()': (client, name) => client.getCountDownLatch(name).trySetCount(1),
  'latch.delete()': (client, name) => client.getCountDownLatch(name).delete(),
};

describe.each(Object.entries(CALLS))('%s', (what, call) => {
  test('refuses a string of the user that is not a number, and leaves it as it is', async () => {
    const client = await openClient();
    const name = freshName();
    await admin().set(name, 'hello');
    expect(await outcome(inFlow(() => call(client, name)))).toBe(REFUSED);
    expect(await admin().get(name)).toBe('hello');
    await admin().del(name);
  });

  test('refuses a hash of the user, and leaves it as it is', async () => {
    const client = await openClient();
    const name = freshName();
    await admin().hset(name, OF_THE_USER);
    // MGET, with which a call looks at a latch, answers nil for another type: that is an open latch.
    const looks = what === 'latch.await()';
    expect(await outcome(inFlow(() => call(client, name)))).toBe(looks ? 'ok' : REFUSED);
    expect(await admin().hgetall(name)).toEqual(OF_THE_USER);
    await admin().del(name);
  });
});

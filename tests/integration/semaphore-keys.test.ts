import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { SemaphoreOptions } from '../../src/index.js';
import { closeClients, openClient, openProxy, outcome } from '../support/clients/lock-clients.js';
import { admin, freshName, leavesKeys } from '../support/redis.js';
import { until } from '../support/time/until.js';

const KINDS = {
  getSemaphore: (client: LockClient, name: string, options?: SemaphoreOptions) => {
    const semaphore = client.getSemaphore(name, options);
    return { semaphore, acquire: () => semaphore.acquirePermits() };
  },
  getPermitExpirableSemaphore: (client: LockClient, name: string, options?: SemaphoreOptions) => {
    const semaphore = client.getPermitExpirableSemaphore(name, options);
    return { semaphore, acquire: () => semaphore.acquirePermit() };
  },
};

afterEach(closeClients);
leavesKeys('semaphores stay until they are deleted');

const keysOf = (name: string): [string, string] => [name, `{${name}}:timeout`];
const parked = (name: string, clients = 1) =>
  until(async () => (await admin().pubsub('NUMSUB', `redisson_sc:{${name}}`))[1] === clients, 'it waits');

describe.each(Object.entries(KINDS))('%s', (kind, make) => {
  test('delete() removes every key of the semaphore, and says whether there was one', async () => {
    const client = await openClient();
    const name = freshName('permits');
    const { semaphore, acquire } = make(client, name);
    expect([await semaphore.isExists(), await semaphore.delete()]).toEqual([false, false]);
    await semaphore.trySetPermits(1);
    await acquire();
    expect(await semaphore.isExists()).toBe(true);
    expect([await semaphore.delete(), await semaphore.isExists(), await semaphore.delete()]).toEqual([
      true,
      false,
      false,
    ]);
    expect(await admin().exists(...keysOf(name))).toBe(0);
    expect(await semaphore.trySetPermits(2)).toBe(true);
    expect(await semaphore.availablePermits()).toBe(2);
  });

  test('a waiting call of a handle with permits creates a deleted semaphore again, in every client', async () => {
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName('permits');
    const { semaphore, acquire } = make(client, name, { permits: 2 });
    await Promise.all([acquire(), acquire()]);
    const waiting = [acquire(), make(other, name, { permits: 2 }).acquire()];
    await parked(name, 2);
    expect(await semaphore.delete()).toBe(true);
    await Promise.all(waiting);
    expect(await semaphore.availablePermits()).toBe(0);
  });

  test('a waiting call of a handle without permits waits until the semaphore is set up', async () => {
    const client = await openClient();
    const name = freshName('permits');
    const { semaphore, acquire } = make(client, name);
    await semaphore.trySetPermits(1);
    await acquire();
    const waiting = acquire();
    await parked(name);
    await semaphore.delete();
    await semaphore.trySetPermits(1);
    await waiting;
    expect(await semaphore.availablePermits()).toBe(0);
  });

  test('expire() sets the time to live of every key, and remainTimeToLive() reads it', async () => {
    const client = await openClient();
    const name = freshName('permits');
    const { semaphore, acquire } = make(client, name);
    expect([await semaphore.expire(60_000), await semaphore.remainTimeToLive()]).toEqual([false, -2]);
    await semaphore.trySetPermits(2);
    await acquire();
    expect(await semaphore.remainTimeToLive()).toBe(-1);
    expect(await semaphore.expire(60_000)).toBe(true);
    const left = await semaphore.remainTimeToLive();
    expect(left).toBeGreaterThan(50_000);
    expect(left).toBeLessThanOrEqual(60_000);
    if (kind === 'getPermitExpirableSemaphore') expect(await admin().pttl(keysOf(name)[1])).toBeGreaterThan(50_000);
    expect(await semaphore.expire(1)).toBe(true);
    await until(async () => (await admin().exists(...keysOf(name))) === 0, 'both keys have expired');
    expect(await semaphore.isExists()).toBe(false);
  });

  test.each([0, -1, 1.5, NaN, '5', undefined])('expire(%p) is refused before any command', async (timeToLive) => {
    const client = await openClient();
    const { semaphore } = make(client, freshName('permits'));
    expect(await outcome(semaphore.expire(timeToLive as number))).toBe('ERR_LOCK_INVALID_ARGUMENT');
  });

  test('a repeated delete() removes no semaphore that was created since', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const name = freshName('permits');
    const { semaphore } = make(client, name);
    await semaphore.trySetPermits(1);
    const cut = proxy.cutAfter({ contains: name });
    const deleted = semaphore.delete();
    await cut.executed;
    await admin().set(name, 5);
    expect(await deleted).toBe(true);
    expect(await admin().get(name)).toBe('5');
  });

  test('delete() leaves a key of another type', async () => {
    const client = await openClient();
    const name = freshName('permits');
    await admin().hset(name, 'a', 'b');
    expect(await outcome(make(client, name).semaphore.delete())).toBe('ERR_LOCK_REFUSED');
    expect(await admin().hget(name, 'a')).toBe('b');
    await admin().del(name);
  });
});

import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { fairAliveKey, fairQueueKey, fairTimeoutsKey } from '../../src/redis/keys.js';
import { closeClients, holdElsewhere, inFlow, openClient, outcome, useUser } from '../support/clients/lock-clients.js';
import { limitedUser } from '../support/servers/limited-user.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

const user = limitedUser(freshName('').split(':')[0]!, ['getLock', 'getFairLock', 'getReadWriteLock']);
const { allow } = user;
const LEASE_MS = 60_000;

beforeAll(() => useUser(user.credentials));
afterAll(() => useUser(undefined));
afterEach(async () => {
  await allow();
  await closeClients();
});

const read = (client: LockClient, name: string): Lock => client.getReadWriteLock(name).readLock();
const write = (client: LockClient, name: string): Lock => client.getReadWriteLock(name).writeLock();
const fair = (client: LockClient, name: string): Lock => client.getFairLock(name);

test.each([
  ['a write lock', 'del', write],
  ['a read lock', 'del', read],
  ['a fair lock', 'hdel', fair],
] as const)(
  '%s whose release is refused without +%s is free when the command is allowed',
  async (_, command, lockOf) => {
    await allow();
    const client = await openClient();
    const name = freshName();
    const hold = await holdElsewhere(lockOf(client, name), LEASE_MS);
    await allow(command);
    expect(await outcome(hold.release())).toBe('ERR_LOCK_REFUSED');
    expect(await admin().hlen(name)).toBeGreaterThan(0);
    await allow();
    await until(async () => (await admin().exists(name)) === 0, 'it is free');
  },
);

test.each(['del', 'pexpire', 'hdel'])(
  'a read lock beside another reader whose release is refused without +%s is released when allowed',
  async (command) => {
    await allow();
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName();
    const hold = await holdElsewhere(read(client, name), 2 * LEASE_MS);
    const theirs = await holdElsewhere(read(other, name), LEASE_MS);
    await allow(command);
    expect(await outcome(hold.release())).toBe('ERR_LOCK_REFUSED');
    expect(await admin().hexists(name, hold.owner)).toBe(1);
    await allow();
    await until(async () => (await admin().hexists(name, hold.owner)) === 0, 'it is released');
    expect(Object.keys(await admin().hgetall(name)).sort()).toEqual(['mode', theirs.owner].sort());
    expect(await admin().pttl(name)).toBeLessThanOrEqual(LEASE_MS);
    expect(await admin().keys(`{${name}}:*`)).toHaveLength(1);
    await theirs.release();
  },
);

const queueOf = async (name: string): Promise<string[]> => {
  const keys = [`redisson_lock_queue:{${name}}`, `redisson_lock_timeout:{${name}}`, `holdfast_alive:{${name}}`];
  const found = await Promise.all(keys.map((key) => admin().exists(key)));
  return keys.filter((_, at) => found[at] === 1);
};

/** The server has refused the command to the user, in a script. */
async function isRefused(command: string): Promise<boolean> {
  const entries = (await admin().call('ACL', 'LOG')) as readonly (readonly unknown[])[];
  return entries.some((entry) => entry.includes(user.credentials.username) && entry.includes(command));
}

test.each(['lrem', 'zrem'])(
  'a fair waiter that leaves without +%s leaves no place behind when the command is allowed',
  async (command) => {
    await allow();
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName();
    const hold = await holdElsewhere(fair(other, name), LEASE_MS);
    const controller = new AbortController();
    const waits = outcome(inFlow(async () => fair(client, name).acquire({ signal: controller.signal })));
    await until(async () => (await queueOf(name)).length === 3, 'it has a place');
    await allow(command);
    controller.abort();
    expect(await waits).toBe('ERR_LOCK_ABORTED');
    await until(() => isRefused(command), 'its release is refused');
    expect(await queueOf(name)).not.toEqual([]);
    await allow();
    await until(async () => (await queueOf(name)).length === 0, 'its place is gone', 4_000);
    await hold.release();
  },
);

test.each(['ltrim', 'rpush'])(
  'when many fair waiters leave without +%s, the others stay queued once and in order',
  async (command) => {
    await allow();
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName();
    const hold = await holdElsewhere(fair(other, name), LEASE_MS);
    const controller = new AbortController();
    const waits = Array.from({ length: 12 }, () =>
      outcome(inFlow(() => fair(client, name).acquire({ signal: controller.signal }))),
    );
    await until(async () => (await admin().llen(fairQueueKey(name))) === 12, 'they have places');
    const stay = ['jvm:1', 'jvm:2'];
    for (const owner of stay) {
      await admin().rpush(fairQueueKey(name), owner);
      await admin().zadd(fairTimeoutsKey(name), Date.now() + 1_000 * LEASE_MS, owner);
    }
    await allow(command);
    controller.abort();
    expect(new Set(await Promise.all(waits))).toEqual(new Set(['ERR_LOCK_ABORTED']));
    await until(() => isRefused(command), 'their release is refused');
    expect((await admin().lrange(fairQueueKey(name), 0, -1)).slice(-2)).toEqual(stay);
    await allow();
    await until(async () => (await admin().exists(fairAliveKey(name))) === 0, 'their places are gone', 4_000);
    expect(await admin().lrange(fairQueueKey(name), 0, -1)).toEqual(stay);
    expect(await admin().zrange(fairTimeoutsKey(name), '0', '-1')).toEqual(stay);
    await hold.release();
    await admin().del(fairQueueKey(name), fairTimeoutsKey(name));
  },
);

test.each(['zadd', 'rpush'])(
  'a fair waiter whose place is refused without +%s leaves nothing behind',
  async (command) => {
    await allow();
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName();
    const hold = await holdElsewhere(fair(other, name), LEASE_MS);
    await allow(command);
    expect(await outcome(inFlow(() => fair(client, name).tryLock(LEASE_MS)))).toBe('ERR_LOCK_REFUSED');
    await allow();
    await until(async () => (await queueOf(name)).length === 0, 'its place is gone', 4_000);
    await hold.release();
  },
);

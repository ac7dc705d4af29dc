import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../../src/client/create-client.js';
import type { ForceUnlockOptions } from '../../../src/inspection/force-unlock.js';
import type { Lock } from '../../../src/locks/lock.js';
import { closeClients, holdElsewhere, inFlow, openClient, openProxy } from '../../support/clients/lock-clients.js';
import { admin, freshName } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

afterEach(closeClients);

const JVM = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';

const KINDS: Readonly<Record<string, (client: LockClient, name: string) => Lock>> = {
  plain: (client, name) => client.getLock(name),
  spin: (client, name) => client.getSpinLock(name),
  fenced: (client, name) => client.getFencedLock(name),
  fair: (client, name) => client.getFairLock(name),
  read: (client, name) => client.getReadWriteLock(name).readLock(),
  write: (client, name) => client.getReadWriteLock(name).writeLock(),
  group: (client, name) => client.getMultiLock(name, ['a', 'b']),
};

describe.each(Object.entries(KINDS))('a %s lock', (kind, get) => {
  test('is freed if the owner has it, wakes a waiter, and is not freed if the next owner has it', async () => {
    const [holder, waiter, operator] = [await openClient(), await openClient(), await openClient()];
    const name = freshName();
    const hold = await holdElsewhere(get(holder, name));
    // A reader does not wait for a reader.
    const next = kind === 'read' ? KINDS['write']! : get;
    const waiting = inFlow(() => next(waiter, name).acquire());
    const channels = async () => (await admin().pubsub('CHANNELS', `*${name}*`)) as string[];
    if (kind !== 'spin') await until(async () => (await channels()).length > 0, 'the waiter is subscribed');
    const [owner] = (await operator.inspect(name)).owners;
    expect(owner!.owner).toBe(hold.owner);
    expect(await operator.forceUnlock(name, { ifOwner: hold.owner })).toBe(true);
    const got = await waiting;
    expect(await operator.forceUnlock(name, { ifOwner: hold.owner })).toBe(false);
    expect((await operator.inspect(name)).owners.map(({ owner: has }) => has)).toEqual([got.owner]);
    await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    await got.release();
  });

  test('of this client is lost at once, as forced', async () => {
    const client = await openClient();
    const name = freshName();
    const losses: unknown[] = [];
    client.events.on('leaseLost', ({ reason }) => losses.push(reason));
    const hold = await holdElsewhere(get(client, name));
    expect(await client.forceUnlock(name, { ifOwner: hold.owner })).toBe(true);
    expect(hold.signal.aborted).toBe(true);
    expect(losses).toEqual(['forced']);
    expect((await client.inspect(name)).kind).toBe('free');
  });
});

test('one reader goes and the others stay', async () => {
  const [client, other] = [await openClient(), await openClient()];
  const name = freshName();
  const hold = await holdElsewhere(client.getReadWriteLock(name).readLock());
  const stays = await holdElsewhere(other.getReadWriteLock(name).readLock());
  expect(await other.forceUnlock(name, { ifOwner: hold.owner })).toBe(true);
  expect((await other.inspect(name)).owners.map(({ owner }) => owner)).toEqual([stays.owner]);
  await stays.release();
});

test('R1: after a lost reply the lock of the same JVM thread, which has locked again, stays', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const name = freshName();
  await admin().hset(name, JVM, '1');
  await client.forceUnlock(freshName(), { ifOwner: JVM });
  proxy.cutAfter({ command: 'EVALSHA' });
  const freed = client.forceUnlock(name, { ifOwner: JVM });
  await until(async () => (await admin().exists(name)) === 0, 'the lock is free');
  await admin().hset(name, JVM, '1');
  expect(await freed).toBe(true);
  expect(await admin().exists(name)).toBe(1);
  await admin().del(name);
});

test.each([
  [{}, 'ifOwner'],
  [{ ifOwner: 'alice' }, 'ifOwner'],
  [{ ifOwner: JVM, force: true }, 'force'],
  [undefined, 'options'],
])('%j is refused before any command', async (options, argument) => {
  const client = await openClient();
  await expect(client.forceUnlock(freshName(), options as ForceUnlockOptions)).rejects.toThrow(argument);
});

test('a hash of the user stays as it is, and a closed client frees nothing', async () => {
  const client = await openClient();
  const name = freshName();
  await admin().hset(name, { name: 'alice', mode: 'dark' });
  expect(await client.forceUnlock(name, { ifOwner: JVM })).toBe(false);
  expect(await admin().hgetall(name)).toEqual({ name: 'alice', mode: 'dark' });
  await admin().del(name);
  await client.close();
  await expect(client.forceUnlock(name, { ifOwner: JVM })).rejects.toMatchObject({ code: 'ERR_LOCK_CLIENT_CLOSED' });
});

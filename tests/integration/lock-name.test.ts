import { afterEach, describe, expect, test } from '@jest/globals';
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import type { LockClient } from '../../src/client/create-client.js';
import type { HoldMessage } from '../../src/diagnostics/channels.js';
import type { LockEvents } from '../../src/events.js';
import { createLocking } from '../../src/integrations/decorators/index.js';
import { lockName, type LockName } from '../../src/lock-name.js';
import type { Lock } from '../../src/locks/lock.js';
import { closeClients, holdElsewhere, openClient, outcome } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

afterEach(() => closeClients());

const TYPES = [
  'acquired',
  'notAcquired',
  'released',
  'waiting',
  'renewed',
  'leaseLost',
  'permitsAcquired',
  'permitsReleased',
  'latchPassed',
  'latchCountedDown',
] as const satisfies (keyof LockEvents)[];

/** The events that the client emits from now on: type, name and group of each. */
function groupsIn(client: LockClient): string[] {
  const seen: string[] = [];
  for (const type of TYPES) {
    client.events.on(type, ({ lockName: name, group = 'none' }) => seen.push(`${type} ${name} ${group}`));
  }
  return seen;
}

const KINDS: Record<string, (client: LockClient, name: string | LockName) => Lock> = {
  lock: (client, name) => client.getLock(name),
  'non-reentrant': (client, name) => client.getNonReentrantLock(name),
  fair: (client, name) => client.getFairLock(name),
  'non-reentrant fair': (client, name) => client.getNonReentrantFairLock(name),
  fenced: (client, name) => client.getFencedLock(name),
  spin: (client, name) => client.getSpinLock(name),
  read: (client, name) => client.getReadWriteLock(name).readLock(),
  write: (client, name) => client.getReadWriteLock(name).writeLock(),
  group: (client, name) => client.getMultiLock(name, ['a', 'b']),
};

describe('a lock with a name of lockName', () => {
  test.each(Object.keys(KINDS))('is the %s lock of that name, and its events have the group', async (kind) => {
    const client = await openClient();
    const id = freshName();
    const lock = KINDS[kind]!(client, lockName`order:${id}`);
    expect(lock.name).toBe(`order:${id}`);
    const seen = groupsIn(client);
    await lock.withLock(async () => {
      expect(await KINDS[kind]!(client, `order:${id}`).isLocked()).toBe(true);
    });
    expect(seen).toEqual([`acquired order:${id} order:{}`, `released order:${id} order:{}`]);
  });

  test('has the group of the handle that made the call, in nested calls and in the line of one name', async () => {
    const client = await openClient();
    const id = freshName();
    const [grouped, plain] = [client.getLock(lockName`order:${id}`), client.getLock(`order:${id}`)];
    const seen = groupsIn(client);
    await plain.withLock(() => grouped.withLock(() => undefined));
    const hold = await holdElsewhere(plain);
    const waiting = grouped.acquire();
    await until(() => client.stats().waits === 1, 'it waits');
    expect(await plain.tryLock()).toBe(false);
    await hold.release();
    await (await waiting).release();
    const name = `order:${id}`;
    expect(seen).toEqual([
      `acquired ${name} none`,
      `acquired ${name} order:{}`,
      `released ${name} order:{}`,
      `released ${name} none`,
      `acquired ${name} none`,
      `waiting ${name} order:{}`,
      `notAcquired ${name} none`,
      `released ${name} none`,
      `acquired ${name} order:{}`,
      `released ${name} order:{}`,
    ]);
  });

  test('has its group in renewals and losses, also on the channels', async () => {
    const client = await openClient({ lockWatchdogTimeout: 300 });
    const id = freshName();
    const lock = client.getLock(lockName`order:${id}`);
    const seen = groupsIn(client);
    const published: unknown[] = [];
    const listen = (message: unknown): unknown => published.push(message);
    for (const channel of ['holdfast:lease:renewed', 'holdfast:lease:lost']) subscribe(channel, listen);
    const hold = await lock.acquire();
    await until(() => seen.some((line) => line.startsWith('renewed')), 'the hold is renewed');
    await lock.forceUnlock();
    await outcome(hold.release());
    for (const channel of ['holdfast:lease:renewed', 'holdfast:lease:lost']) unsubscribe(channel, listen);
    expect(seen.filter((line) => !line.endsWith(` order:${id} order:{}`))).toEqual([]);
    expect(seen.at(-1)).toBe(`leaseLost order:${id} order:{}`);
    expect(published.length).toBeGreaterThan(1);
    for (const message of published) expect(message).toMatchObject({ name: `order:${id}`, group: 'order:{}' });
  });

  test('is a member of a multi-lock, whose message has each group once', async () => {
    const client = await openClient();
    const id = freshName();
    const members = [
      client.getLock(lockName`order:${`${id}1`}`),
      client.getLock(lockName`order:${`${id}2`}`),
      client.getFairLock(lockName`user:${id}`),
      client.getLock(id),
    ];
    const holds: HoldMessage[] = [];
    const subscribers = { start: (message: HoldMessage) => void holds.push(message) };
    const channel = tracingChannel<unknown, HoldMessage>('holdfast:hold');
    channel.subscribe(subscribers as never);
    const seen = groupsIn(client);
    await client.getMultiLock(...members).withLock(() => undefined);
    await client.getRedLock(client.getLock(id)).withLock(() => undefined);
    channel.unsubscribe(subscribers as never);
    const groups = ['order:{}', 'order:{}', 'user:{}', 'none', 'none'];
    const names = [...members.map(({ name }) => name), id];
    expect(seen.filter((line) => line.startsWith('acquired')).sort()).toEqual(
      names.map((name, i) => `acquired ${name} ${groups[i]!}`).sort(),
    );
    expect(holds.map(({ kind, group }) => [kind, group])).toEqual([
      ['multi', expect.stringMatching(/^(order:\{\}, user:\{\}|user:\{\}, order:\{\})$/)],
      ['red', undefined],
    ]);
  });

  test('names values of one group with the group of the first lock', async () => {
    const client = await openClient();
    const seats = lockName`seats:${freshName()}`;
    const seen = groupsIn(client);
    const both = client.getMultiLock(client.getMultiLock(seats, ['1']), client.getMultiLock(seats, ['2']));
    await both.withLock(() => undefined);
    expect(seen).toEqual([`acquired ${seats.name} seats:{}`, `released ${seats.name} seats:{}`]);
  });

  test('is refused if it is only an object that looks like one', async () => {
    const client = await openClient();
    const fake = { name: 'order:42', group: 'order:{}' } as never;
    for (const make of Object.values(KINDS)) {
      expect(() => make(client, fake)).toThrow(/must be|locks/);
    }
    expect(await outcome(client.inspect(fake))).toBe('ERR_LOCK_INVALID_ARGUMENT');
  });
});

test('semaphores, permits and latches take a name of lockName, and report its group', async () => {
  const client = await openClient();
  const id = freshName();
  const seen = groupsIn(client);
  const semaphore = client.getSemaphore(lockName`pool:${id}`, { permits: 1 });
  await semaphore.withPermits(() => undefined);
  const licenses = client.getPermitExpirableSemaphore(lockName`licenses:${id}`, { permits: 1 });
  await licenses.withPermit(async () => expect(await outcome(licenses.acquirePermit({ waitTime: 0 }))).toBeDefined());
  const latch = client.getCountDownLatch(lockName`started:${id}`);
  await latch.trySetCount(1);
  await latch.countDown();
  await latch.await();
  expect(seen.filter((line) => !/ (pool|licenses|started):\S+ \1:\{\}$/.test(line))).toEqual([]);
  expect(new Set(seen.map((line) => line.split(' ')[0]))).toEqual(
    new Set(['permitsAcquired', 'permitsReleased', 'notAcquired', 'latchCountedDown', 'latchPassed']),
  );
  await admin().del(semaphore.name, licenses.name);
});

test('inspect, forceUnlock and locked functions take a name of lockName', async () => {
  const client = await openClient();
  const id = freshName();
  const name = lockName`order:${id}`;
  const hold = await client.getLock(name).acquire();
  expect(await client.inspect(name)).toMatchObject({ name: name.name, kind: 'lock' });
  expect(await client.forceUnlock(name, { ifOwner: hold.owner })).toBe(true);
  await outcome(hold.release());
  const seen = groupsIn(client);
  const { locked } = createLocking(client);
  await locked({ key: (order: string) => lockName`order:${order}` }, async (_order: string) => undefined)(id);
  await locked({ key: name }, async () => undefined)();
  await locked({ key: [name, `${id}:other`] }, async () => undefined)();
  expect(seen.filter((line) => line.startsWith('acquired')).sort()).toEqual(
    [...Array<string>(3).fill(`acquired order:${id} order:{}`), `acquired ${id}:other none`].sort(),
  );
});

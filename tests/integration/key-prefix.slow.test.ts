import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { MonitorLine, MonitorLog } from '../support/servers/monitor-log.js';
import { inFlow, pause } from '../support/clients/lock-clients.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { PARKED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

/*
 * R8: with the keyPrefix of ioredis every object is a different one. Its names on the server begin with the prefix, and
 * it is as fast as without a prefix and leaves nothing behind. No waiter here would try again on its own within a
 * minute, so a message wakes every waiter that is granted.
 */

const PREFIX = 'app:';
const LEASE = { leaseTime: 60_000 };
type End = () => Promise<unknown>;

interface Kind {
  /** Acquires everything of the object at this client and returns the function that ends it. */
  readonly take: (clients: readonly LockClient[], name: string) => Promise<End>;
  /** Expects that a message wakes the waiter. */
  readonly told?: false;
  /** Keys that are meant to last, by name. */
  readonly lasts?: (name: string) => string[];
  readonly before?: (client: LockClient, name: string) => Promise<unknown>;
}

const locked = (make: (client: LockClient, name: string) => ReturnType<LockClient['getLock']>): Kind => ({
  async take([client], name) {
    const hold = await make(client!, name).acquire(LEASE);
    return () => hold.release();
  },
});

const KINDS: Record<string, Kind> = {
  lock: locked((client, name) => client.getLock(name)),
  'non-reentrant lock': locked((client, name) => client.getNonReentrantLock(name)),
  'fair lock': locked((client, name) => client.getFairLock(name)),
  'non-reentrant fair lock': locked((client, name) => client.getNonReentrantFairLock(name)),
  'spin lock': { ...locked((client, name) => client.getSpinLock(name)), told: false },
  'fenced lock': {
    ...locked((client, name) => client.getFencedLock(name)),
    lasts: (name) => [`redisson_lock_token:{${name}}`],
  },
  'write lock': locked((client, name) => client.getReadWriteLock(name).writeLock()),
  'read lock behind a write lock': {
    async take([client, second], name) {
      const half = client!.getReadWriteLock(name)[second === undefined ? 'readLock' : 'writeLock']();
      const hold = await half.acquire(LEASE);
      return () => hold.release();
    },
  },
  'multi-lock': locked((client, name) =>
    client.getMultiLock(client.getLock(`${name}:a`), client.getFairLock(`${name}:b`)),
  ),
  'group multi-lock': locked((client, name) => client.getMultiLock(name, ['a', 'b'])),
  RedLock: {
    async take(clients, name) {
      const hold = await clients[0]!.getRedLock(...clients.map((client) => client.getLock(name))).acquire(LEASE);
      return () => hold.release();
    },
  },
  semaphore: {
    before: (client, name) => client.getSemaphore(name).trySetPermits(1),
    async take([client], name) {
      await client!.getSemaphore(name).acquire();
      return () => client!.getSemaphore(name).release();
    },
    lasts: (name) => [name],
  },
  'permit-expirable semaphore': {
    before: (client, name) => client.getPermitExpirableSemaphore(name).trySetPermits(1),
    async take([client], name) {
      const permit = await client!.getPermitExpirableSemaphore(name).acquirePermit(LEASE);
      return () => permit.release();
    },
    lasts: (name) => [name],
  },
  'count-down latch': {
    before: (client, name) => client.getCountDownLatch(name).trySetCount(1),
    async take([client, second], name) {
      const latch = client!.getCountDownLatch(name);
      if (second === undefined) await latch.await();
      return async () => (second === undefined ? undefined : latch.countDown());
    },
  },
};

let servers: RedisServer[];
const clients: LockClient[] = [];
const logs: MonitorLog[] = [];
beforeAll(async () => {
  servers = await Promise.all([1, 2, 3].map(() => startServer()));
});
afterEach(async () => {
  for (const log of logs.splice(0)) log.stop();
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await Promise.all(servers.map((server) => server.command('FLUSHALL')));
});
afterAll(() => Promise.all(servers.map((server) => server.stop())));

/** A client of each server. */
async function openAll(): Promise<LockClient[]> {
  const opened = servers.map(({ port }) =>
    createClient({ redis: new Redis({ port, keyPrefix: PREFIX, lazyConnect: true, replyMapping: 'legacy' }) }),
  );
  clients.push(...opened);
  await Promise.all(opened.map((client) => client.ready()));
  return opened;
}

const kept = (key: string): boolean => !key.startsWith('holdfast_requests:');

/** Where something is called by this name without the prefix. */
const bare = (name: string, lines: readonly MonitorLine[]): string[] =>
  lines.flatMap(({ args }) => args).filter((arg) => arg.replaceAll(PREFIX + name, '').includes(name));

test.each(Object.keys(KINDS))(
  'R8: %s: keys and channels begin with the prefix, waiters are woken, and nothing is left behind',
  async (label) => {
    const { take, told = true, lasts = () => [], before } = KINDS[label]!;
    const name = `named-${Object.keys(KINDS).indexOf(label)}-`;
    logs.push(...(await Promise.all(servers.map((server) => server.monitor()))));
    const [first, second] = [await openAll(), await openAll()];
    await before?.(first[0]!, name);
    // A second client separates the holder from the waiter where they differ.
    const end = await inFlow(() => take(first, name));
    // A RedLock goes on when a majority has answered: the first server may not be part of it yet, ...
    let held: string[] = [];
    await until(async () => (held = (await servers[0]!.keys()).filter(kept)).length > 0, 'it is held');
    const waits = inFlow(() => take(label === 'RedLock' ? second : second.slice(0, 1), name));
    // A RedLock waits for one of its servers.
    const channels = async (): Promise<string[]> =>
      (await Promise.all(servers.map((server) => server.channels()))).flat().filter((each) => each.includes(name));
    if (told) await until(async () => (await channels()).length > 0, 'the channel has a subscriber');
    else await pause(PARKED_MS);
    const listened = await channels();
    expect(listened.length > 0).toBe(told);
    for (const each of [...held, ...listened]) {
      expect(each).toMatch(/^((redisson|holdfast)_[a-z_]+:?)?\{?app:/);
      expect(each).toContain(PREFIX + name);
    }
    await end();
    const next = await waits;
    await next();
    await until(async () => (await channels()).length === 0, 'the channel has no subscriber');
    // ... and one of them may still have to learn of the end.
    const left = async (): Promise<string[]> =>
      (await Promise.all(servers.map((server) => server.keys()))).flat().filter(kept);
    const lasting = lasts(PREFIX + name);
    await until(async () => (await left()).length <= lasting.length, 'nothing else is left');
    expect(await left()).toEqual(lasting);
    const lines = await Promise.all(logs.map((log) => log.settle()));
    expect(bare(name, lines.flat())).toEqual([]);
    expect(lines.flat().some(({ args }) => args.some((arg) => arg.includes(PREFIX + name)))).toBe(true);
  },
);

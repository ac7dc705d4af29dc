import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client.js';
import type { Lock } from '../../src/primitives/lock.js';
import { holdValues } from '../support/group-values.js';
import { closeClients, inFlow, openClient, pause } from '../support/lock-clients.js';
import { admin, expectNothingLeft, freshName } from '../support/redis.js';
import { until } from '../support/until.js';

/*
 * R21: every operation that can let a waiter in wakes one, or all that can enter. Each row puts something in the way,
 * lets calls of two clients wait for it, and does the one thing that clears it, at a third client where that can be.
 */

const WITHIN_MS = 200 + 250;
/** Long enough for all to have begun to wait before it ends. */
const LEASE_MS = 1_500;

interface Enabling {
  /** What is in the way, and what clears it. */
  prepare(name: string, client: LockClient): Promise<() => Promise<unknown>>;
  /** The call that waits; it gives back what ends what it got. */
  wait(name: string, client: LockClient): Promise<() => Promise<unknown>>;
  /** How many wait at each client, and how many of them all get in. Absent: one each, and one of them. */
  readonly waiters?: number;
  readonly enter?: number;
}

const nothing = async (): Promise<void> => undefined;
const giving = (hold: { release(): Promise<void> }) => () => hold.release();

const takes = (factory: (typeof LOCKS)[number] | 'getSpinLock'): Enabling['wait'] =>
  async function wait(name, client) {
    return giving(await client[factory](name).acquire());
  };
/** Values of a group, or locks of several names at one server. */
const VALUES = ['a', 'b', 'c'];
const members = (name: string, client: LockClient): Lock[] => VALUES.map((value) => client.getLock(`${name}:${value}`));
const JOINT = {
  'group lock': (name, client) => client.getMultiLock(name, VALUES),
  'multi-lock': (name, client) => client.getMultiLock(...members(name, client)),
  RedLock: (name, client) => client.getRedLock(...members(name, client)),
} satisfies Record<string, (name: string, client: LockClient) => Lock>;
const takesAll =
  (kind: keyof typeof JOINT): Enabling['wait'] =>
  async (name, client) =>
    giving(await JOINT[kind](name, client).acquire());
const reads: Enabling['wait'] = async (name, client) =>
  giving(await client.getReadWriteLock(name).readLock().acquire());
const writes: Enabling['wait'] = async (name, client) =>
  giving(await client.getReadWriteLock(name).writeLock().acquire());
const permit: Enabling['wait'] = async (name, client) => {
  const semaphore = client.getSemaphore(name);
  await semaphore.acquire();
  return () => semaphore.release();
};
const expirable: Enabling['wait'] = async (name, client) =>
  giving(await client.getPermitExpirableSemaphore(name).acquirePermit());
const opened: Enabling['wait'] = async (name, client) => {
  await client.getCountDownLatch(name).await();
  return nothing;
};

const LOCKS = ['getLock', 'getNonReentrantLock', 'getFencedLock', 'getFairLock', 'getNonReentrantFairLock'] as const;

const TABLE: Record<string, Enabling> = {
  ...Object.fromEntries(
    LOCKS.flatMap((factory): [string, Enabling][] => [
      [
        `${factory}: unlock`,
        { prepare: async (name, client) => giving(await client[factory](name).acquire()), wait: takes(factory) },
      ],
      [
        `${factory}: forceUnlock`,
        {
          async prepare(name, client) {
            await client[factory](name).acquire();
            return async () => (await openClient())[factory](name).forceUnlock();
          },
          wait: takes(factory),
        },
      ],
      [
        `${factory}: the end of a lease`,
        {
          async prepare(name) {
            await admin().hset(name, 'jvm:1', '1');
            await admin().pexpire(name, LEASE_MS);
            return () => until(async () => (await admin().hexists(name, 'jvm:1')) === 0, 'its lease is over');
          },
          wait: takes(factory),
        },
      ],
    ]),
  ),
  'getSpinLock: unlock': {
    prepare: async (name, client) => giving(await client.getSpinLock(name).acquire()),
    wait: takes('getSpinLock'),
  },
  ...Object.fromEntries(
    (Object.keys(JOINT) as (keyof typeof JOINT)[]).flatMap((kind): [string, Enabling][] => [
      [
        `${kind}: unlock`,
        { prepare: async (name, client) => giving(await JOINT[kind](name, client).acquire()), wait: takesAll(kind) },
      ],
      [
        `${kind}: forceUnlock`,
        {
          async prepare(name, client) {
            await JOINT[kind](name, client).acquire();
            return async () => JOINT[kind](name, await openClient()).forceUnlock();
          },
          wait: takesAll(kind),
        },
      ],
    ]),
  ),
  'group lock: the release of the one value that was held': {
    prepare: async (name, client) => giving(await client.getMultiLock(name, ['b']).acquire()),
    wait: takesAll('group lock'),
  },
  'group lock: the release of the parent of a hold of fewer values lets those in who wait for the rest': {
    async prepare(name, client) {
      const outer = await client.getMultiLock(name, VALUES).acquire();
      const inner = await outer.run(async () => client.getMultiLock(name, ['a']).acquire());
      return async () => {
        await outer.release();
        setTimeout(() => void inner.release(), 1_000);
      };
    },
    wait: async (name, client) => giving(await client.getMultiLock(name, ['b', 'c']).acquire()),
  },
  'group lock: the end of a lease': {
    async prepare(name) {
      const ends = performance.now() + LEASE_MS;
      await holdValues(name, ['b'], LEASE_MS);
      return () => pause(ends - performance.now());
    },
    wait: takesAll('group lock'),
  },
  'multi-lock: unlock of the one member that was held': {
    prepare: async (name, client) => giving(await client.getLock(`${name}:b`).acquire()),
    wait: takesAll('multi-lock'),
  },
  'multi-lock: unlock lets those in who wait for a member': {
    prepare: async (name, client) => giving(await JOINT['multi-lock'](name, client).acquire()),
    wait: async (name, client) => giving(await client.getLock(`${name}:c`).acquire()),
  },
  'multi-lock: the end of the lease of a member': {
    async prepare(name) {
      await admin().hset(`${name}:b`, 'jvm:1', '1');
      await admin().pexpire(`${name}:b`, LEASE_MS);
      return () => until(async () => (await admin().hexists(`${name}:b`, 'jvm:1')) === 0, 'its lease is over');
    },
    wait: takesAll('multi-lock'),
  },
  'write lock: unlock lets all readers in': {
    prepare: async (name, client) => giving(await client.getReadWriteLock(name).writeLock().acquire()),
    wait: reads,
    waiters: 4,
    enter: 8,
  },
  'write lock: unlock lets a writer in': {
    prepare: async (name, client) => giving(await client.getReadWriteLock(name).writeLock().acquire()),
    wait: writes,
  },
  'write lock: forceUnlock': {
    async prepare(name, client) {
      await client.getReadWriteLock(name).writeLock().acquire();
      return async () => (await openClient()).getReadWriteLock(name).writeLock().forceUnlock();
    },
    wait: reads,
    waiters: 2,
    enter: 4,
  },
  'read lock: the last unlock': {
    async prepare(name, client) {
      const lock = client.getReadWriteLock(name).readLock();
      const [first, second] = [await inFlow(() => lock.acquire()), await inFlow(() => lock.acquire())];
      await first.release();
      return giving(second);
    },
    wait: writes,
  },
  'read lock: forceUnlock': {
    async prepare(name, client) {
      await client.getReadWriteLock(name).readLock().acquire();
      return async () => (await openClient()).getReadWriteLock(name).readLock().forceUnlock();
    },
    wait: writes,
  },
  'write lock: downgrade to the read lock lets all readers in (hazard 24)': {
    async prepare(name, client) {
      const lock = client.getReadWriteLock(name);
      const write = await lock.writeLock().acquire();
      const read = await write.run(() => lock.readLock().acquire());
      return async () => {
        await write.release();
        setTimeout(() => void read.release(), 1_000);
      };
    },
    wait: reads,
    waiters: 2,
    enter: 4,
  },
  'read-write lock: the end of a lease (hazard 23)': {
    async prepare(name) {
      await admin().hset(name, { mode: 'write', 'jvm:1:write': '1' });
      await admin().pexpire(name, LEASE_MS);
      return () => until(async () => (await admin().hexists(name, 'jvm:1:write')) === 0, 'its lease is over');
    },
    wait: reads,
    waiters: 2,
    enter: 4,
  },
  'semaphore: release': {
    prepare: async (_name, _client) => async () => (await openClient()).getSemaphore(_name).release(),
    wait: permit,
  },
  'semaphore: release of several lets as many in (hazard 26)': {
    prepare: async (name) => async () => (await openClient()).getSemaphore(name).release(4),
    wait: permit,
    waiters: 3,
    enter: 4,
  },
  'semaphore: releaseIfExists': {
    async prepare(name, client) {
      await client.getSemaphore(name).trySetPermits(0);
      return async () => (await openClient()).getSemaphore(name).releaseIfExists();
    },
    wait: permit,
  },
  'semaphore: addPermits': {
    prepare: async (name) => async () => (await openClient()).getSemaphore(name).addPermits(2),
    wait: permit,
    enter: 2,
  },
  'semaphore: trySetPermits': {
    prepare: async (name) => async () => (await openClient()).getSemaphore(name).trySetPermits(2),
    wait: permit,
    enter: 2,
  },
  'permit-expirable semaphore: release': {
    async prepare(name, client) {
      const semaphore = client.getPermitExpirableSemaphore(name);
      await semaphore.trySetPermits(1);
      return giving(await semaphore.acquirePermit());
    },
    wait: expirable,
  },
  'permit-expirable semaphore: release of several lets as many in': {
    async prepare(name, client) {
      const semaphore = client.getPermitExpirableSemaphore(name);
      await semaphore.trySetPermits(4);
      return giving(await semaphore.acquirePermit({ permits: 4 }));
    },
    wait: expirable,
    waiters: 3,
    enter: 4,
  },
  'permit-expirable semaphore: the end of a lease (hazard 41)': {
    async prepare(name, client) {
      const semaphore = client.getPermitExpirableSemaphore(name);
      await semaphore.trySetPermits(1);
      const ends = performance.now() + LEASE_MS;
      await semaphore.acquire(LEASE_MS);
      return () => pause(ends - performance.now());
    },
    wait: expirable,
  },
  'permit-expirable semaphore: a shorter lease': {
    async prepare(name, client) {
      const semaphore = client.getPermitExpirableSemaphore(name);
      await semaphore.trySetPermits(1);
      const id = await semaphore.acquire(60_000);
      return async () => {
        await semaphore.updateLeaseTime(id, 10);
      };
    },
    wait: expirable,
  },
  'permit-expirable semaphore: addPermits': {
    prepare: async (name) => async () => (await openClient()).getPermitExpirableSemaphore(name).addPermits(2),
    wait: expirable,
    enter: 2,
  },
  'permit-expirable semaphore: setPermits': {
    async prepare(name, client) {
      await client.getPermitExpirableSemaphore(name).trySetPermits(1);
      await client.getPermitExpirableSemaphore(name).acquire(20_000);
      return async () => (await openClient()).getPermitExpirableSemaphore(name).setPermits(3);
    },
    wait: expirable,
    enter: 2,
  },
  'permit-expirable semaphore: trySetPermits': {
    prepare: async (name) => async () => (await openClient()).getPermitExpirableSemaphore(name).trySetPermits(2),
    wait: expirable,
    enter: 2,
  },
  'permit-expirable semaphore: whoever finds that a lease is over': {
    async prepare(name, client) {
      const semaphore = client.getPermitExpirableSemaphore(name);
      await semaphore.trySetPermits(1);
      await semaphore.acquire(60_000);
      return async () => {
        // As if the server's clock had been set forward: no waiter's timer knows of it.
        const [member] = await admin().zrangeBuffer(`{${name}}:timeout`, '0', '0');
        await admin().zadd(`{${name}}:timeout`, '1', member!);
        await semaphore.availablePermits();
      };
    },
    wait: expirable,
  },
  'latch: the last count-down lets all through': {
    async prepare(name, client) {
      await client.getCountDownLatch(name).trySetCount(1);
      return async () => (await openClient()).getCountDownLatch(name).countDown();
    },
    wait: opened,
    waiters: 3,
    enter: 6,
  },
  'latch: delete lets all through (hazard 28)': {
    async prepare(name, client) {
      await client.getCountDownLatch(name).trySetCount(9);
      return async () => (await openClient()).getCountDownLatch(name).delete();
    },
    wait: opened,
    waiters: 3,
    enter: 6,
  },
};

let used = '';
afterEach(async () => {
  await closeClients();
  await admin().del(used, `{${used}}:timeout`);
  await expectNothingLeft();
});

test.each(Object.entries(TABLE))('R21: %s', async (_, { prepare, wait, waiters = 1, enter = 1 }) => {
  const name = (used = freshName('enabling'));
  const clear = await inFlow(async () => prepare(name, await openClient()));
  let entered = 0;
  const waiting = new Set<string>();
  const abort: (() => Promise<unknown>)[] = [];
  const clients = [await openClient(), await openClient()];
  for (const client of clients) {
    let waits = 0;
    // A lock over several waits at each in turn, or at one of them again.
    client.events.on('waiting', () => waiting.add(`${client.id} ${Math.min((waits += 1), waiters)}`));
    for (let at = 0; at < waiters; at += 1) {
      inFlow(() => wait(name, client)).then(
        (end) => {
          entered += 1;
          abort.push(end);
        },
        () => undefined,
      );
    }
  }
  await until(() => waiting.size === waiters * clients.length, 'all wait');
  await pause(50); // each has looked once more since its subscription stands: from here on only what is told counts
  expect(entered).toBe(0);
  await clear();
  const cleared = performance.now();
  await until(() => entered >= enter, 'those who can are in');
  expect(performance.now() - cleared).toBeLessThan(WITHIN_MS);
  await Promise.all(clients.map((client) => client.close({ releaseHolds: true })));
  for (const end of abort) await end().catch(() => undefined);
});

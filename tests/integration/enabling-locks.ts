import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { holdValues } from '../support/lua/group-values.js';
import { inFlow, openClient, pause } from '../support/clients/lock-clients.js';
import { admin } from '../support/redis.js';
import { until } from '../support/time/until.js';

/** Long enough for all to have begun to wait before it ends. */
export const LEASE_MS = 1_500;

export interface Enabling {
  /** Occupies the lock and returns the function that frees it. */
  prepare(name: string, client: LockClient): Promise<() => Promise<unknown>>;
  /** The waiting call. It returns the function that ends its hold or permit. */
  wait(name: string, client: LockClient): Promise<() => Promise<unknown>>;
  /**
   * Number of waiters at each client, and number of all waiters that are granted. Absent: one each, and one of them.
   */
  readonly waiters?: number;
  readonly enter?: number;
}

/** Ends a hold or a permit. */
export const giving = (hold: { release(): Promise<void> }) => () => hold.release();

const takes = (factory: (typeof LOCKS)[number]): Enabling['wait'] =>
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

const LOCKS = [
  'getLock',
  'getNonReentrantLock',
  'getFencedLock',
  'getFairLock',
  'getNonReentrantFairLock',
  'getSpinLock',
] as const;

/** Operations that can let a waiter for a lock in. */
export const ENABLING_LOCKS: Record<string, Enabling> = {
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
            await admin().hset(name, '8743c9c0-0795-4907-87fd-6c719a6b4586:1', '1');
            await admin().pexpire(name, LEASE_MS);
            return () =>
              until(
                async () => (await admin().hexists(name, '8743c9c0-0795-4907-87fd-6c719a6b4586:1')) === 0,
                'its lease has ended',
              );
          },
          wait: takes(factory),
        },
      ],
    ]),
  ),
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
  'group lock: the release of the one held value': {
    prepare: async (name, client) => giving(await client.getMultiLock(name, ['b']).acquire()),
    wait: takesAll('group lock'),
  },
  'group lock: the release of a parent hold grants the values that its nested hold does not have': {
    async prepare(name, client) {
      const outer = await client.getMultiLock(name, VALUES).acquire();
      const inner = await outer.run(async () => client.getMultiLock(name, ['a']).acquire());
      return async () => {
        await outer.release();
        setTimeout(() => void inner.release().catch(() => undefined), 1_000); // its client may be closed by then
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
  'multi-lock: unlock of the one held member': {
    prepare: async (name, client) => giving(await client.getLock(`${name}:b`).acquire()),
    wait: takesAll('multi-lock'),
  },
  'multi-lock: unlock grants a member to its waiter': {
    prepare: async (name, client) => giving(await JOINT['multi-lock'](name, client).acquire()),
    wait: async (name, client) => giving(await client.getLock(`${name}:c`).acquire()),
  },
  'multi-lock: the end of the lease of a member': {
    async prepare(name) {
      await admin().hset(`${name}:b`, '8743c9c0-0795-4907-87fd-6c719a6b4586:1', '1');
      await admin().pexpire(`${name}:b`, LEASE_MS);
      return () =>
        until(
          async () => (await admin().hexists(`${name}:b`, '8743c9c0-0795-4907-87fd-6c719a6b4586:1')) === 0,
          'its lease has ended',
        );
    },
    wait: takesAll('multi-lock'),
  },
  'write lock: unlock grants the lock to all waiting readers': {
    prepare: async (name, client) => giving(await client.getReadWriteLock(name).writeLock().acquire()),
    wait: reads,
    waiters: 4,
    enter: 8,
  },
  'write lock: unlock grants the lock to a waiting writer': {
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
  'write lock: a downgrade to the read lock grants it to all waiting readers (hazard 24)': {
    async prepare(name, client) {
      const lock = client.getReadWriteLock(name);
      const write = await lock.writeLock().acquire();
      const read = await write.run(() => lock.readLock().acquire());
      return async () => {
        await write.release();
        setTimeout(() => void read.release().catch(() => undefined), 1_000); // its client may be closed by then
      };
    },
    wait: reads,
    waiters: 2,
    enter: 4,
  },
  'read-write lock: the end of a lease (hazard 23)': {
    async prepare(name) {
      await admin().hset(name, { mode: 'write', '8743c9c0-0795-4907-87fd-6c719a6b4586:1:write': '1' });
      await admin().pexpire(name, LEASE_MS);
      return () =>
        until(
          async () => (await admin().hexists(name, '8743c9c0-0795-4907-87fd-6c719a6b4586:1:write')) === 0,
          'its lease has ended',
        );
    },
    wait: reads,
    waiters: 2,
    enter: 4,
  },
  'write lock: the end of a lease grants the lock to a waiting writer': {
    async prepare(name) {
      await admin().hset(name, { mode: 'write', '8743c9c0-0795-4907-87fd-6c719a6b4586:1:write': '1' });
      await admin().pexpire(name, LEASE_MS);
      return () =>
        until(
          async () => (await admin().hexists(name, '8743c9c0-0795-4907-87fd-6c719a6b4586:1:write')) === 0,
          'its lease has ended',
        );
    },
    wait: writes,
  },
  'read lock: the end of a lease grants the lock to a waiting writer': {
    async prepare(name) {
      await admin().hset(name, { mode: 'read', '8743c9c0-0795-4907-87fd-6c719a6b4586:1': '1' });
      await admin().set(`{${name}}:8743c9c0-0795-4907-87fd-6c719a6b4586:1:rwlock_timeout:1`, '1', 'PX', LEASE_MS);
      await admin().pexpire(name, LEASE_MS);
      return () =>
        until(
          async () => (await admin().hexists(name, '8743c9c0-0795-4907-87fd-6c719a6b4586:1')) === 0,
          'its lease has ended',
        );
    },
    wait: writes,
  },
};

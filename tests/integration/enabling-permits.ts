import { openClient, pause } from '../support/clients/lock-clients.js';
import { admin } from '../support/redis.js';
import { giving, LEASE_MS, type Enabling } from './enabling-locks.js';

const permit: Enabling['wait'] = async (name, client) => {
  const semaphore = client.getSemaphore(name);
  await semaphore.acquire();
  return () => semaphore.release();
};
const expirable: Enabling['wait'] = async (name, client) =>
  giving(await client.getPermitExpirableSemaphore(name).acquirePermit());
const nothing = async (): Promise<void> => undefined;
const opened: Enabling['wait'] = async (name, client) => {
  await client.getCountDownLatch(name).await();
  return nothing;
};

/** A section that lasts until the test ends it. */
function section(within: (fn: () => Promise<void>) => Promise<unknown>): Promise<() => Promise<unknown>> {
  return new Promise((begun, failed) => {
    const done = within(() => new Promise<void>((end) => begun(() => (end(), done))));
    done.catch(failed);
  });
}

/** Operations that can let a waiter for permits or at a latch in. */
export const ENABLING_PERMITS: Record<string, Enabling> = {
  'semaphore: release': {
    prepare: async (_name, _client) => async () => (await openClient()).getSemaphore(_name).release(),
    wait: permit,
  },
  'semaphore: the release of several permits grants as many waiters (hazard 26)': {
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
  'semaphore: the end of withPermits': {
    async prepare(name, client) {
      const semaphore = client.getSemaphore(name);
      await semaphore.trySetPermits(1);
      return section((fn) => semaphore.withPermits(fn));
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
  'permit-expirable semaphore: tryRelease of an id': {
    async prepare(name, client) {
      const semaphore = client.getPermitExpirableSemaphore(name);
      await semaphore.trySetPermits(1);
      const id = await semaphore.acquire();
      return async () => (await openClient()).getPermitExpirableSemaphore(name).tryRelease(id);
    },
    wait: expirable,
  },
  'permit-expirable semaphore: the end of withPermit': {
    async prepare(name, client) {
      const semaphore = client.getPermitExpirableSemaphore(name);
      await semaphore.trySetPermits(1);
      return section((fn) => semaphore.withPermit(fn));
    },
    wait: expirable,
  },
  'permit-expirable semaphore: the release of several permits grants as many waiters': {
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
  'permit-expirable semaphore: a call that finds an expired lease': {
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
  'latch: the last count-down resumes all waiters': {
    async prepare(name, client) {
      await client.getCountDownLatch(name).trySetCount(1);
      return async () => (await openClient()).getCountDownLatch(name).countDown();
    },
    wait: opened,
    waiters: 3,
    enter: 6,
  },
  'latch: delete resumes all waiters (hazard 28)': {
    async prepare(name, client) {
      await client.getCountDownLatch(name).trySetCount(9);
      return async () => (await openClient()).getCountDownLatch(name).delete();
    },
    wait: opened,
    waiters: 3,
    enter: 6,
  },
};

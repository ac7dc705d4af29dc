import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { inFlow } from '../support/clients/lock-clients.js';
import { giving } from './enabling-locks.js';

/** No waiter is granted because of the end of a lease. */
const LEASE_MS = 20_000;

export interface Waiting {
  /** Absent: no limit, for forms that support it. */
  readonly waitTime?: number;
  readonly signal?: AbortSignal;
}

/** A waiting call with its section: reports when it is inside, and releases. `false`: the lock stayed busy. */
type Form = (client: LockClient, name: string, waiting: Waiting, inside: () => void) => Promise<boolean>;

export interface WaitingKind {
  /** Occupies the object and returns the function that frees it. */
  block(client: LockClient, name: string): Promise<() => Promise<unknown>>;
  /** The calls that wait for that. */
  readonly forms: Readonly<Record<string, Form>>;
  /** Those that take no time to wait. */
  readonly endless?: readonly string[];
}

const known = ({ waitTime = LEASE_MS, signal }: Waiting): { waitTime: number; signal: AbortSignal | undefined } => ({
  waitTime,
  signal,
});

function lockKind(of: (client: LockClient, name: string) => Lock, blocking = of): WaitingKind {
  return {
    block: async (client, name) => giving(await inFlow(() => blocking(client, name).acquire({ leaseTime: LEASE_MS }))),
    endless: ['lock'],
    forms: {
      async lock(client, name, { signal }, inside) {
        const lock = of(client, name);
        await lock.lock({ signal });
        inside();
        await lock.unlock();
        return true;
      },
      async tryLock(client, name, waiting, inside) {
        const lock = of(client, name);
        if (!(await lock.tryLock(known(waiting)))) return false;
        inside();
        await lock.unlock();
        return true;
      },
      async acquire(client, name, waiting, inside) {
        const hold = await of(client, name).acquire(waiting);
        inside();
        await hold.release();
        return true;
      },
      async tryAcquire(client, name, waiting, inside) {
        const hold = await of(client, name).tryAcquire(known(waiting));
        if (hold === null) return false;
        inside();
        await hold.release();
        return true;
      },
      async withLock(client, name, waiting, inside) {
        await of(client, name).withLock(waiting, inside);
        return true;
      },
    },
  };
}

const fenced = lockKind((client, name) => client.getFencedLock(name));
const reads = (client: LockClient, name: string): Lock => client.getReadWriteLock(name).readLock();
const writes = (client: LockClient, name: string): Lock => client.getReadWriteLock(name).writeLock();
const VALUES = ['a', 'b'];
const members = (client: LockClient, name: string): Lock[] => VALUES.map((value) => client.getLock(`${name}:${value}`));

export const WAITING_KINDS: Record<string, WaitingKind> = {
  lock: lockKind((client, name) => client.getLock(name)),
  'fair lock': lockKind((client, name) => client.getFairLock(name)),
  'non-reentrant lock': lockKind((client, name) => client.getNonReentrantLock(name)),
  'non-reentrant fair lock': lockKind((client, name) => client.getNonReentrantFairLock(name)),
  'spin lock': lockKind((client, name) => client.getSpinLock(name)),
  'fenced lock': {
    ...fenced,
    endless: ['lock', 'lockAndGetToken'],
    forms: {
      ...fenced.forms,
      async lockAndGetToken(client, name, { signal }, inside) {
        const lock = client.getFencedLock(name);
        await lock.lockAndGetToken({ signal });
        inside();
        await lock.unlock();
        return true;
      },
      async tryLockAndGetToken(client, name, waiting, inside) {
        const lock = client.getFencedLock(name);
        if ((await lock.tryLockAndGetToken(known(waiting))) === null) return false;
        inside();
        await lock.unlock();
        return true;
      },
    },
  },
  'read lock': lockKind(reads, writes),
  'write lock': lockKind(writes, reads),
  'group lock': lockKind((client, name) => client.getMultiLock(name, VALUES)),
  'multi-lock': lockKind((client, name) => client.getMultiLock(...members(client, name))),
  RedLock: lockKind((client, name) => client.getRedLock(...members(client, name))),
  semaphore: {
    async block(client, name) {
      await client.getSemaphore(name).trySetPermits(0);
      return () => client.getSemaphore(name).release();
    },
    forms: {
      async acquire(client, name, waiting, inside) {
        await client.getSemaphore(name).acquire(1, waiting);
        inside();
        await client.getSemaphore(name).release();
        return true;
      },
      async tryAcquire(client, name, waiting, inside) {
        const { waitTime, signal } = known(waiting);
        if (!(await client.getSemaphore(name).tryAcquire(1, waitTime, { signal }))) return false;
        inside();
        await client.getSemaphore(name).release();
        return true;
      },
      async acquirePermits(client, name, waiting, inside) {
        const permits = await client.getSemaphore(name).acquirePermits(waiting);
        inside();
        await permits.release();
        return true;
      },
      async tryAcquirePermits(client, name, waiting, inside) {
        const permits = await client.getSemaphore(name).tryAcquirePermits(known(waiting));
        if (permits === null) return false;
        inside();
        await permits.release();
        return true;
      },
      async withPermits(client, name, waiting, inside) {
        await client.getSemaphore(name).withPermits(waiting, inside);
        return true;
      },
    },
  },
  'permit-expirable semaphore': {
    async block(client, name) {
      const semaphore = client.getPermitExpirableSemaphore(name);
      await semaphore.trySetPermits(2);
      return giving(await semaphore.acquirePermit({ permits: 2, leaseTime: LEASE_MS }));
    },
    forms: {
      async acquire(client, name, waiting, inside) {
        const semaphore = client.getPermitExpirableSemaphore(name);
        const id = await semaphore.acquire(undefined, waiting);
        inside();
        await semaphore.release(id);
        return true;
      },
      async acquireMany(client, name, waiting, inside) {
        const semaphore = client.getPermitExpirableSemaphore(name);
        const ids = await semaphore.acquireMany(2, undefined, waiting);
        inside();
        await semaphore.release(ids);
        return true;
      },
      async tryAcquire(client, name, waiting, inside) {
        const semaphore = client.getPermitExpirableSemaphore(name);
        const { waitTime, signal } = known(waiting);
        const id = await semaphore.tryAcquire(waitTime, undefined, { signal });
        if (id === null) return false;
        inside();
        await semaphore.release(id);
        return true;
      },
      async tryAcquireMany(client, name, waiting, inside) {
        const semaphore = client.getPermitExpirableSemaphore(name);
        const { waitTime, signal } = known(waiting);
        const ids = await semaphore.tryAcquireMany(2, waitTime, undefined, { signal });
        if (ids.length === 0) return false;
        inside();
        await semaphore.release(ids);
        return true;
      },
      async acquirePermit(client, name, waiting, inside) {
        const permit = await client.getPermitExpirableSemaphore(name).acquirePermit(waiting);
        inside();
        await permit.release();
        return true;
      },
      async tryAcquirePermit(client, name, waiting, inside) {
        const permit = await client.getPermitExpirableSemaphore(name).tryAcquirePermit(known(waiting));
        if (permit === null) return false;
        inside();
        await permit.release();
        return true;
      },
      async withPermit(client, name, waiting, inside) {
        await client.getPermitExpirableSemaphore(name).withPermit(waiting, inside);
        return true;
      },
    },
  },
  latch: {
    async block(client, name) {
      await client.getCountDownLatch(name).trySetCount(1);
      return () => client.getCountDownLatch(name).countDown();
    },
    forms: {
      async await(client, name, { waitTime, signal }, inside) {
        if (!(await client.getCountDownLatch(name).await(waitTime, { signal }))) return false;
        inside();
        return true;
      },
    },
  },
};

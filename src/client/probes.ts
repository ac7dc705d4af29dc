/* Uses every kind of lock and synchronizer once, to find out what Redis refuses. */
import type { Lock } from '../locks/lock.js';
import type { ReadWriteLock } from '../locks/read-write-lock.js';
import { runOutside as outside } from '../ownership/flow.js';
import type { PermitExpirableSemaphore } from '../synchronizers/expirable-semaphore.js';
import type { CountDownLatch } from '../synchronizers/latch.js';
import type { Semaphore } from '../synchronizers/semaphore.js';
import { PROBE_LEASE_MS, PROBE_WAIT_MS } from '../timing.js';

interface Probed {
  getLock(name: string): Lock;
  getFencedLock(name: string): Lock;
  getFairLock(name: string): Lock;
  getSpinLock(name: string): Lock;
  getReadWriteLock(name: string): ReadWriteLock;
  getMultiLock(group: string, values: readonly string[]): Lock;
  getSemaphore(name: string): Semaphore;
  getPermitExpirableSemaphore(name: string): PermitExpirableSemaphore;
  getCountDownLatch(name: string): CountDownLatch;
}

/** Sets an expiry on the token counter of a fenced lock. */
type Expire = (name: string) => Promise<unknown>;

/** Each kind by the call that makes it, with a function that uses it on a name. */
const USES: Readonly<Record<string, (client: Probed, name: string, expire: Expire) => Promise<unknown>>> = {
  getLock: (client, name) => use(client.getLock(name)),
  'a waiter': async (client, name) => {
    // In an async function of its own: the code here must not be inside the hold.
    const held = await outside(async () => ({
      hold: await client.getLock(name).acquire({ leaseTime: PROBE_LEASE_MS }),
    }));
    try {
      await client.getLock(name).tryAcquire({ waitTime: PROBE_WAIT_MS, leaseTime: PROBE_LEASE_MS });
    } finally {
      await held.hold.release();
    }
  },
  getFairLock: (client, name) => use(client.getFairLock(name)),
  getFencedLock: async (client, name, expire) => {
    try {
      await use(client.getFencedLock(name));
    } finally {
      // Without an expiry, each run of the doctor would leave a counter: tokens outlive their locks.
      await expire(name);
    }
  },
  getSpinLock: (client, name) => use(client.getSpinLock(name)),
  getReadWriteLock: async (client, name) => {
    await use(client.getReadWriteLock(name).writeLock());
    await use(client.getReadWriteLock(name).readLock());
  },
  getMultiLock: (client, name) => use(client.getMultiLock(name, ['a'])),
  getSemaphore: async (client, name) => {
    const semaphore = client.getSemaphore(name);
    await semaphore.trySetPermits(1, PROBE_LEASE_MS);
    await semaphore.acquire(1, { waitTime: PROBE_WAIT_MS });
    await semaphore.release();
  },
  getPermitExpirableSemaphore: async (client, name) => {
    // Its own calls set no expiry, and keep one that is there.
    await client.getSemaphore(name).trySetPermits(1, PROBE_LEASE_MS);
    const semaphore = client.getPermitExpirableSemaphore(name);
    await semaphore.release(await semaphore.acquire(PROBE_LEASE_MS, { waitTime: PROBE_WAIT_MS }));
  },
  getCountDownLatch: async (client, name) => {
    const latch = client.getCountDownLatch(name);
    await latch.trySetCount(1);
    await latch.countDown();
  },
};

/** The probes of a client, on names that no other client uses. */
export function probesOf(client: Probed, id: string, expire: Expire): (readonly [string, () => Promise<unknown>])[] {
  return Object.entries(USES).map(([kind, run], at) => {
    return [kind, () => outside(() => run(client, `holdfast:doctor:${id}:${at}`, expire))] as const;
  });
}

async function use(lock: Lock): Promise<void> {
  const hold = await lock.acquire({ leaseTime: PROBE_LEASE_MS, waitTime: PROBE_WAIT_MS });
  await hold.release();
}

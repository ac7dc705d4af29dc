/* Uses every kind of lock and synchronizer once, to find out what Redis refuses. */
import type { Lock } from '../locks/lock.js';
import type { ReadWriteLock } from '../locks/read-write-lock.js';
import { runOutside as outside } from '../ownership/flow.js';
import type { PermitExpirableSemaphore } from '../synchronizers/expirable-semaphore.js';
import type { CountDownLatch } from '../synchronizers/latch.js';
import type { Semaphore } from '../synchronizers/semaphore.js';
import { NoMessageError } from '../inspection/doctor/doctor.js';
import { LockAbortedError } from '../errors.js';
import { within, type LeaseClock } from '../clock.js';
import { PROBE_LEASE_MS, PROBE_LOOK_MS, PROBE_WAIT_MS } from '../timing.js';
import { pause } from '../waiting/limits/wait-limit.js';

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

/** What the probes need beside the public calls. */
export interface ProbeMeans {
  readonly expire: Expire;
  /**
   * Locks the name for an owner that the lines of the client do not know: only a message tells them of its release.
   * `isHeard`: whether the server has confirmed the subscription to that message.
   */
  lockElsewhere(name: string, leaseMs: number): Promise<{ isHeard(): boolean; release(): Promise<unknown> }>;
  readonly clock: LeaseClock;
  /** How long, in ms, a probe waits for the confirmation of a subscription, and then for a message. */
  readonly limitMs: number;
}

/** Each kind by the call that makes it, with a function that uses it on a name. */
const USES: Readonly<Record<string, (client: Probed, name: string, means: ProbeMeans) => Promise<unknown>>> = {
  getLock: (client, name) => use(client.getLock(name)),
  'a waiter': async (client, name, { lockElsewhere, clock, limitMs }) => {
    // The lease outlasts the wait for the subscription, two requests, and the wait for the message.
    const elsewhere = await lockElsewhere(name, 5 * limitMs);
    const limit = new AbortController();
    let [isOver, isHeard] = [false, false];
    // In an async function of its own: the code here must not be inside the hold.
    const taken = outside(async () => {
      const hold = await client.getLock(name).acquire({ signal: limit.signal, leaseTime: PROBE_LEASE_MS });
      await hold.release();
    }).finally(() => (isOver = true));
    // The cause of a failure is what the call rejects with.
    taken.catch(() => undefined);
    try {
      const until = clock.now() + limitMs;
      while (!isOver && !(isHeard = elsewhere.isHeard()) && clock.now() < until) await pause(clock, PROBE_LOOK_MS);
    } finally {
      await elsewhere.release();
    }
    await within(
      clock.clock,
      limitMs,
      taken.catch(() => undefined),
    );
    limit.abort();
    await taken.catch((error: unknown) => {
      throw error instanceof LockAbortedError ? new NoMessageError(isHeard) : error;
    });
    // A call without a subscription polls, and may have got the lock by that.
    if (!isHeard) throw new NoMessageError(false);
  },
  getFairLock: (client, name) => use(client.getFairLock(name)),
  getFencedLock: async (client, name, { expire }) => {
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
export function probesOf(client: Probed, id: string, means: ProbeMeans): (readonly [string, () => Promise<unknown>])[] {
  return Object.entries(USES).map(([kind, run], at) => {
    return [kind, () => outside(() => run(client, `holdfast:doctor:${id}:${at}`, means))] as const;
  });
}

async function use(lock: Lock): Promise<void> {
  const hold = await lock.acquire({ leaseTime: PROBE_LEASE_MS, waitTime: PROBE_WAIT_MS });
  await hold.release();
}

import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { elapsed } from '../support/time/elapsed.js';
import { closeClients, inFlow, openClient, openProxy, pause } from '../support/clients/lock-clients.js';
import type { Fault } from '../support/proxy/fault.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { PARKED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

/*
 * R18 for the kinds other than the plain lock (subscriptions.test.ts): only the subscriber connection is cut, the
 * release happens while it is down, and its message is lost.
 */

const SLACK_MS = 250;
/** A head that hears nothing looks again after that much at most. */
const UNHEARD_MS = 2_000;
const LEASE_MS = 20_000;

interface Kind {
  /** Occupies the object at another client and returns the function that frees it with one message. */
  block(other: LockClient, name: string): Promise<() => Promise<unknown>>;
  /** Waits for the object and releases it. */
  wait(client: LockClient, name: string): Promise<() => Promise<unknown>>;
}

const nothing = async (): Promise<void> => undefined;
const giving = (hold: { release(): Promise<void> }) => () => hold.release();

const lockOf = (wanted: (client: LockClient, name: string) => Lock, blocking = wanted): Kind => ({
  block: async (other, name) => giving(await inFlow(() => blocking(other, name).acquire({ leaseTime: LEASE_MS }))),
  wait: async (client, name) => giving(await wanted(client, name).acquire({ leaseTime: LEASE_MS })),
});
const reads = (client: LockClient, name: string): Lock => client.getReadWriteLock(name).readLock();
const writes = (client: LockClient, name: string): Lock => client.getReadWriteLock(name).writeLock();
const opens: Kind['wait'] = async (client, name) => {
  expect(await client.getCountDownLatch(name).await()).toBe(true);
  return nothing;
};

const KINDS: Record<string, Kind> = {
  'a semaphore': {
    async block(other, name) {
      await other.getSemaphore(name).trySetPermits(0);
      return () => other.getSemaphore(name).release();
    },
    async wait(client, name) {
      await client.getSemaphore(name).acquire();
      return () => client.getSemaphore(name).release();
    },
  },
  'permits with a lease': {
    async block(other, name) {
      await other.getPermitExpirableSemaphore(name).trySetPermits(1);
      return giving(await other.getPermitExpirableSemaphore(name).acquirePermit({ leaseTime: LEASE_MS }));
    },
    wait: async (client, name) => giving(await client.getPermitExpirableSemaphore(name).acquirePermit()),
  },
  'a latch that is counted down': {
    async block(other, name) {
      await other.getCountDownLatch(name).trySetCount(1);
      return () => other.getCountDownLatch(name).countDown();
    },
    wait: opens,
  },
  'a latch that is deleted': {
    async block(other, name) {
      await other.getCountDownLatch(name).trySetCount(9);
      return () => other.getCountDownLatch(name).delete();
    },
    wait: opens,
  },
  'a fenced lock': lockOf((client, name) => client.getFencedLock(name)),
  'a group of values': lockOf((client, name) => client.getMultiLock(name, ['a', 'b'])),
  'a reader behind a writer': lockOf(reads, writes),
  'a writer behind a reader': lockOf(writes, reads),
};

/** How the connection goes; the last SUBSCRIBE is held until it is lifted. */
const GAPS: Record<string, (proxy: FaultProxy, name: string) => Promise<Fault>> = {
  async 'cut once'(proxy, name) {
    const back = proxy.holdCommand({ command: 'SUBSCRIBE', contains: name });
    expect(proxy.cut({ kind: 'subscriber' })).toBe(1);
    await back.applied;
    return back;
  },
  async 'cut again after it has subscribed again'(proxy, name) {
    const again = proxy.cutAfter({ command: 'SUBSCRIBE', contains: name });
    const back = proxy.holdCommand({ command: 'SUBSCRIBE', contains: name, nth: 2 });
    expect(proxy.cut({ kind: 'subscriber' })).toBe(1);
    await again.applied;
    await back.applied;
    return back;
  },
};

let used = '';
afterEach(async () => {
  await closeClients();
  await admin().del(used);
});

const listeners = async (name: string): Promise<number> => {
  const channels = (await admin().pubsub('CHANNELS', `*${name}*`)) as string[];
  return channels.length === 0 ? 0 : Number((await admin().pubsub('NUMSUB', ...channels))[1]);
};

describe.each(Object.entries(GAPS))('R18: %s', (_gap, open) => {
  test.each(Object.entries(KINDS))('R18: %s', async (_kind, { block, wait }) => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const name = (used = freshName());
    const clear = await block(other, name);
    let inside = 0;
    const waiting = inFlow(async () => {
      const release = await wait(client, name);
      inside = performance.now();
      await release();
    });
    await until(async () => (await listeners(name)) === 1, 'the waiter is subscribed');
    const back = await open(proxy, name);
    await until(async () => (await listeners(name)) === 0, 'no subscriber receives it');
    expect(inside).toBe(0);
    await clear();
    const clearAt = performance.now();
    back.lift();
    await waiting;
    expect(elapsed(clearAt, inside)).toBeLessThan(200 + SLACK_MS);
  });
});

test('R18: in none of these cases does a waiter wait for the end of a lease when its subscriber stays disconnected', async () => {
  const { proxy, url } = await openProxy();
  const [client, other] = [await openClient({ url }), await openClient()];
  const names: string[] = [];
  let entered = 0;
  const started = Object.values(KINDS).map(async ({ block, wait }) => {
    const name = freshName();
    names.push(name);
    const clear = await block(other, name);
    const waiting = inFlow(async () => {
      const release = await wait(client, name);
      entered += 1;
      const inside = performance.now();
      await release();
      return inside;
    });
    await until(async () => (await listeners(name)) === 1, 'the waiter is subscribed');
    return { clear, waiting };
  });
  const all = await Promise.all(started);
  await pause(PARKED_MS); // each has looked once more since it was subscribed
  const refused = proxy.refuse('reset');
  expect(proxy.cut({ kind: 'subscriber' })).toBe(1);
  await refused.appliedTimes(1);
  expect(entered).toBe(0);
  await Promise.all(all.map(({ clear }) => clear()));
  const clearAt = performance.now();
  const inside = await Promise.all(all.map(({ waiting }) => waiting));
  expect(elapsed(clearAt, Math.max(...inside))).toBeLessThan(UNHEARD_MS + SLACK_MS);
  await admin().del(...names);
});

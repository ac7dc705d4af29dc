import { afterEach, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { LEASE_BEYOND_MS } from '../../src/timing.js';
import type { Lock } from '../../src/locks/lock.js';
import { lockChannel } from '../../src/redis/keys.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import {
  answered,
  clientUrl,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
} from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { reach } from '../support/servers/topology.mjs';
import { elapsed } from '../support/time/elapsed.js';
import { until } from '../support/time/until.js';

/* `hold.release({ after })`: Redis keeps the lock for that time. */

const PARTIAL = scripts.releasePartial.script!.sha;
const AFTER_MS = 400;

afterEach(() => closeClients());

const isFree = (lock: Lock) => inFlow(async () => !(await lock.isLocked()));

const isWaitedFor = async (name: string) => Number((await admin().pubsub('NUMSUB', lockChannel(name)))[1]) === 1;

/** Time from `begun` (performance.now()) until the lock is free. */
async function freeAfter(begun: number, lock: Lock): Promise<number> {
  await until(() => isFree(lock), 'the lock is free');
  return performance.now() - begun;
}

/** Time from `begun` (performance.now()) until a caller outside of every hold has had the lock. */
async function grantedAfter(begun: number, lock: Lock): Promise<number> {
  const hold = await holdElsewhere(lock);
  const granted = performance.now() - begun;
  await hold.release();
  return granted;
}

function told(client: LockClient): string[] {
  const events: string[] = [];
  client.events.on('acquired', ({ holdCount }) => events.push(`acquired ${holdCount}`));
  client.events.on('released', ({ holdCount }) => events.push(`released ${holdCount}`));
  client.events.on('leaseLost', ({ reason }) => events.push(`lost ${reason}`));
  return events;
}

const KINDS: Readonly<Record<string, (client: LockClient, name: string) => Lock>> = {
  lock: (client, name) => client.getLock(name),
  'non-reentrant lock': (client, name) => client.getNonReentrantLock(name),
  'fair lock': (client, name) => client.getFairLock(name),
  'fenced lock': (client, name) => client.getFencedLock(name),
  'spin lock': (client, name) => client.getSpinLock(name),
  'read lock': (client, name) => client.getReadWriteLock(name).readLock(),
  'write lock': (client, name) => client.getReadWriteLock(name).writeLock(),
  'group multi-lock': (client, name) => client.getMultiLock(name, ['a', 'b']),
  'multi-lock': (client, name) => client.getMultiLock(client.getLock(name), client.getLock(`${name}:2`)),
};

describe.each(Object.entries(KINDS))('a hold of a %s that is released with `after`', (kind, lockOf) => {
  test('keeps the lock for that time, without a renewal, and frees it then', async () => {
    const client = await openClient({ lockWatchdogTimeout: 150 });
    const other = await openClient();
    const name = freshName();
    const lock = lockOf(client, name);
    const events = told(client);
    const hold = await holdElsewhere(lock);
    const begun = performance.now();
    await hold.release({ after: AFTER_MS });
    expect(hold.validFor()).toBe(0);
    expect(client.holds()).toEqual([]);
    // Another reader would be granted.
    const rival = kind === 'read lock' ? other.getReadWriteLock(name).writeLock() : lockOf(other, name);
    expect(await grantedAfter(begun, rival)).toBeGreaterThan(AFTER_MS - 5);
    await answered(client);
    expect(events.filter((event) => event.startsWith('lost'))).toEqual([]);
    expect(events.filter((event) => event === 'released 0')).toHaveLength(kind === 'multi-lock' ? 2 : 1);
  });
});

test('a RedLock keeps a majority for that time', async () => {
  const clients = [await openClient(), await openClient(), await openClient()];
  const [a, b, c] = clients.map((client) => client.getLock(freshName())) as [Lock, Lock, Lock];
  const lock = clients[0]!.getRedLock(a, b, c);
  const hold = await holdElsewhere(lock);
  const begun = performance.now();
  await hold.release({ after: AFTER_MS });
  expect(await grantedAfter(begun, lock)).toBeGreaterThan(AFTER_MS - 5);
});

test('the caller is outside of the hold at once, and a further release changes nothing', async () => {
  const client = await openClient();
  const lock = client.getLock(freshName());
  await inFlow(async () => {
    const begun = performance.now();
    const hold = await lock.acquire();
    const released = hold.release({ after: AFTER_MS });
    expect(lock.currentHold()).toBeUndefined();
    expect(hold.release()).toBe(released);
    await released;
    await expect(hold.extend(1_000)).rejects.toMatchObject({ code: 'ERR_LOCK_NOT_OWNER' });
    await (await lock.acquire()).release();
    expect(performance.now() - begun).toBeGreaterThan(AFTER_MS - 5);
  });
});

test.each(['the same client', 'another client'])(
  'a waiter of %s gets the lock at its end, not when the lease that the waiter knows of ends',
  async (whose) => {
    const client = await openClient();
    const other = whose === 'the same client' ? client : await openClient();
    const lock = client.getLock(freshName());
    const hold = await holdElsewhere(lock);
    const waits = holdElsewhere(other.getLock(lock.name)).then((got) => got.release());
    await until(() => isWaitedFor(lock.name), 'the waiter is subscribed');
    const begun = performance.now();
    await hold.release({ after: AFTER_MS });
    // The lease outlasts the hold, so that the release at the end finds the owner and publishes.
    expect(await admin().pttl(lock.name)).toBeGreaterThan(AFTER_MS + LEASE_BEYOND_MS / 2);
    await waits;
    expect(performance.now() - begun).toBeGreaterThan(AFTER_MS - 5);
    expect(elapsed(begun)).toBeLessThan(10_000);
  },
);

describe('the client closes before the end', () => {
  test.each([{}, { releaseHolds: true }])('close(%j) returns at once, and the lock keeps its time', async (options) => {
    const client = createClient(reach(clientUrl()));
    const lock = (await openClient()).getLock(freshName());
    const hold = await holdElsewhere(client.getLock(lock.name));
    const begun = performance.now();
    await hold.release({ after: 800 });
    const closing = performance.now();
    await client.close(options);
    expect(elapsed(closing)).toBeLessThan(700);
    expect(await freeAfter(begun, lock)).toBeGreaterThan(795);
  });

  test('close() releases an open hold of the owner, and a hold released with after stays', async () => {
    const client = createClient(reach(clientUrl()));
    const lock = (await openClient()).getLock(freshName());
    const mine = client.getLock(lock.name);
    const begun = performance.now();
    await inFlow(async () => {
      await mine.acquire();
      const nested = await mine.acquire();
      await nested.release({ after: 800 });
      await client.close({ releaseHolds: true });
    });
    expect(await lock.remainTimeToLive()).toBeLessThanOrEqual(800 + LEASE_BEYOND_MS);
    expect(await freeAfter(begun, lock)).toBeGreaterThan(795);
  });
});

describe('nested holds', () => {
  test('the release of the outer hold leaves the lock to the nested hold that was released with after', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const events = told(client);
    await inFlow(async () => {
      const outer = await lock.acquire();
      const nested = await lock.acquire();
      const begun = performance.now();
      await nested.release({ after: AFTER_MS });
      expect(client.holds()).toMatchObject([{ holdCount: 1 }]);
      expect(await lock.remainTimeToLive()).toBeGreaterThan(20_000);
      // A further hold is another one than that which was left.
      await (await lock.acquire()).release();
      await outer.release();
      expect(await lock.remainTimeToLive()).toBeLessThanOrEqual(AFTER_MS + LEASE_BEYOND_MS);
      expect(client.holds()).toEqual([]);
      expect(await freeAfter(begun, lock)).toBeGreaterThan(AFTER_MS - 5);
    });
    expect(events).toEqual(['acquired 1', 'acquired 2', 'released 1', 'acquired 2', 'released 1', 'released 0']);
  });

  test('an outer hold that is released after that end frees the lock by one request, and a waiter gets it', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const lock = client.getLock(freshName());
    const other = (await openClient()).getLock(lock.name);
    await inFlow(async () => {
      const outer = await lock.acquire();
      const begun = performance.now();
      await (await lock.acquire()).release({ after: 50 });
      await until(() => performance.now() - begun > 60, 'the time has passed');
      const waits = holdElsewhere(other);
      await until(() => isWaitedFor(lock.name), 'the waiter is subscribed');
      const partial = proxy.observe({ command: 'EVALSHA', sha: PARTIAL, times: Infinity });
      const released = performance.now();
      await outer.release();
      expect(partial.count).toBe(0);
      await (await waits).release();
      expect(elapsed(released)).toBeLessThan(10_000);
    });
  });

  test('a nested hold keeps the lock beyond the end of the outer hold', async () => {
    const client = await openClient({ lockWatchdogTimeout: 300 });
    const lock = client.getLock(freshName());
    await inFlow(async () => {
      const outer = await lock.acquire();
      const nested = await lock.acquire();
      const begun = performance.now();
      await outer.release({ after: 50 });
      await until(() => performance.now() - begun > 400, 'renewals have gone by');
      expect(nested.validFor()).toBeGreaterThan(0);
      await nested.release();
      expect(await lock.isLocked()).toBe(false);
    });
  });

  test('both releases at once keep the lock for the longer time', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    await inFlow(async () => {
      const outer = await lock.acquire();
      const nested = await lock.acquire();
      const begun = performance.now();
      await Promise.all([nested.release({ after: AFTER_MS }), outer.release({ after: 50 })]);
      expect(await freeAfter(begun, lock)).toBeGreaterThan(AFTER_MS - 5);
    });
  });

  test('the write half is kept when a read hold inside it outlives the release', async () => {
    const client = await openClient();
    const other = await openClient();
    const name = freshName();
    const [write, read] = [client.getReadWriteLock(name).writeLock(), client.getReadWriteLock(name).readLock()];
    await inFlow(async () => {
      const outer = await write.acquire();
      const inside = await read.acquire();
      const begun = performance.now();
      await outer.release({ after: AFTER_MS });
      await inside.release();
      expect(await grantedAfter(begun, other.getReadWriteLock(name).readLock())).toBeGreaterThan(AFTER_MS - 5);
    });
  });
});

describe('a release with `after` whose reply is lost', () => {
  test('is repeated, and the lock keeps its time', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const lock = client.getLock(freshName());
    const hold = await holdElsewhere(lock);
    const cut = proxy.cutAfter({ command: 'EVALSHA', sha: PARTIAL, contains: lock.name });
    const begun = performance.now();
    await hold.release({ after: AFTER_MS });
    expect(cut.count).toBe(1);
    expect(await freeAfter(begun, lock)).toBeGreaterThan(AFTER_MS - 5);
  });

  test('is no loss if the repeat comes after the end', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const lock = client.getLock(freshName());
    const events = told(client);
    const hold = await holdElsewhere(lock);
    proxy.swallow({ command: 'EVALSHA', sha: PARTIAL, contains: lock.name });
    await hold.release({ after: 20 });
    expect(await isFree(lock)).toBe(true);
    expect(events).toEqual(['acquired 1', 'released 0']);
  });

  test('rejects if no attempt is answered, and the lock is not freed before its time', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 300 });
    const direct = (await openClient()).getLock(freshName());
    const lock = client.getLock(direct.name);
    const events = told(client);
    const hold = await holdElsewhere(lock);
    proxy.stall();
    const begun = performance.now();
    const released = await outcome(hold.release({ after: 1_500 }));
    expect(released).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    proxy.lift();
    await until(
      async () => (await direct.remainTimeToLive()) <= 1_500 + LEASE_BEYOND_MS,
      'the request has run in the background',
    );
    expect(await freeAfter(begun, direct)).toBeGreaterThan(1_495);
    await until(() => events.includes('released 0'), 'the release is reported');
    expect(events).toEqual(['acquired 1', 'released 0']);
  });
});

test('a lost hold rejects, and the lock is not reacquired', async () => {
  const client = await openClient();
  const lock = client.getLock(freshName());
  const hold = await holdElsewhere(lock);
  await admin().del(lock.name);
  await expect(hold.release({ after: AFTER_MS })).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
  expect(await isFree(lock)).toBe(true);
});

test('0 releases at once', async () => {
  const lock = (await openClient()).getLock(freshName());
  const hold = await holdElsewhere(lock);
  await hold.release({ after: 0 });
  expect(await isFree(lock)).toBe(true);
});

test.each<[unknown, string]>([
  [{ after: -1 }, 'after must be an integer of at least 0 (ms)'],
  [{ after: 1.5 }, 'after must be an integer of at least 0 (ms)'],
  [{ after: '1s' }, 'after must be an integer of at least 0 (ms)'],
  [{ afterwards: 1 }, 'unknown option "afterwards"'],
  [5, 'options must be an object, as { after: 5000 }'],
])('release(%j) is refused, and the hold is unchanged', async (options, message) => {
  const client = await openClient();
  const both = client.getMultiLock(client.getLock(freshName()), client.getLock(freshName()));
  for (const lock of [client.getLock(freshName()), both]) {
    const hold = await holdElsewhere(lock);
    await expect(hold.release(options as { after: number })).rejects.toThrow(message);
    expect(hold.validFor()).toBeGreaterThan(0);
    await hold.release();
  }
});

import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import type { Lock } from '../../src/locks/lock.js';
import { startWorker } from '../support/processes/child.js';
import { elapsed } from '../support/time/elapsed.js';
import { closeClients, inFlow, openClient, outcome } from '../support/clients/lock-clients.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { until } from '../support/time/until.js';
import { expectNoOverlap } from '../support/serious.js';

afterEach(() => closeClients());

const pause = (ms: number) => new Promise((resume) => setTimeout(resume, ms));

/** A flow beside others, inside the same holds. */
const branch = async <T>(fn: () => Promise<T>): Promise<T> => fn();

async function waiting<T>(client: LockClient, call: () => Promise<T>): Promise<{ done: Promise<T> }> {
  let waits = false;
  const note = (): void => void (waits = true);
  client.events.on('waiting', note);
  const done = inFlow(call);
  done.catch(() => undefined); // looked at by the test, later
  await until(() => waits, 'the call waits');
  client.events.off('waiting', note);
  return { done };
}

test('many flows read at the same time and one writes alone, over two clients', async () => {
  const name = freshName('rw');
  const locks = [await openClient(), await openClient()].map((client) => client.getReadWriteLock(name));
  const inside = { readers: 0, writers: 0 };
  let most = 0;
  let value = 0;
  const broken: string[] = [];
  await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      inFlow(async () => {
        const lock = locks[i % 2]!;
        if (i % 6 === 0) {
          await lock.writeLock().withLock(async () => {
            inside.writers += 1;
            if (inside.writers > 1 || inside.readers > 0) broken.push(`writer beside ${JSON.stringify(inside)}`);
            const seen = value;
            await pause(1);
            value = seen + 1;
            inside.writers -= 1;
          });
        } else {
          await lock.readLock().withLock(async () => {
            inside.readers += 1;
            most = Math.max(most, inside.readers);
            if (inside.writers > 0) broken.push('reader beside a writer');
            await pause(2);
            inside.readers -= 1;
          });
        }
      }),
    ),
  );
  expectNoOverlap(broken);
  expect(value).toBe(10);
  expect(most).toBeGreaterThan(1);
});

test('R36: a nested read is granted while a writer of this client waits', async () => {
  const name = freshName('rw');
  const client = await openClient();
  const lock = client.getReadWriteLock(name);
  await lock.readLock().withLock(async () => {
    const writer = await waiting(client, () => lock.writeLock().withLock(() => 'written'));
    await lock.readLock().withLock(() => undefined);
    expect(await lock.readLock().getHoldCount()).toBe(1);
    void writer.done;
  });
  await until(async () => !(await lock.writeLock().isLocked()), 'the writer was in and is out');
});

test('R36: branches of one flow read together and write one at a time', async () => {
  const lock = (await openClient()).getReadWriteLock(freshName('rw'));
  let readers = 0;
  let together = 0;
  let writers = 0;
  let mostWriters = 0;
  await lock.writeLock().withLock(async () => {
    await Promise.all([
      ...Array.from({ length: 4 }, () =>
        branch(() =>
          lock.readLock().withLock(async () => {
            readers += 1;
            together = Math.max(together, readers);
            await until(() => together > 1, 'another branch reads at the same time');
            expect(writers).toBe(0);
            readers -= 1;
          }),
        ),
      ),
      ...Array.from({ length: 3 }, () =>
        branch(() =>
          lock.writeLock().withLock(async () => {
            writers += 1;
            mostWriters = Math.max(mostWriters, writers);
            expect(readers).toBe(0);
            await pause(2);
            writers -= 1;
          }),
        ),
      ),
    ]);
  });
  expect(mostWriters).toBe(1);
});

test('R36: the write of a sibling waits and is no upgrade; a write inside a read is refused at once', async () => {
  const lock = (await openClient()).getReadWriteLock(freshName('rw'));
  await lock.writeLock().withLock(async () => {
    let reading = true;
    const read = branch(() =>
      lock.readLock().withLock(async () => {
        await pause(30);
        reading = false;
      }),
    );
    await branch(() => lock.writeLock().withLock(() => expect(reading).toBe(false)));
    await read;
  });
  await lock.readLock().withLock(async () => {
    const began = performance.now();
    await expect(lock.writeLock().lock()).rejects.toMatchObject({ code: 'ERR_LOCK_UPGRADE' });
    await expect(lock.writeLock().tryLock(5_000)).rejects.toMatchObject({ code: 'ERR_LOCK_UPGRADE' });
    expect(elapsed(began)).toBeLessThan(250);
    expect(await lock.readLock().isHeldByCurrentContext()).toBe(true);
  });
});

test('R36: a write in a read in a write is refused beside another reader; otherwise new readers wait for it', async () => {
  const lock = (await openClient()).getReadWriteLock(freshName('rw'));
  const outer = await inFlow(async () => lock.writeLock().acquire());
  const within = (hold: Hold, half: Lock): Promise<Hold> => inFlow(() => hold.run(async () => half.acquire()));
  const reader = await within(outer, lock.readLock());
  const other = await within(outer, lock.readLock());
  // Each might want to write, and would wait for the other.
  expect(await outcome(within(reader, lock.writeLock()))).toBe('ERR_LOCK_UPGRADE');
  await other.release();
  for (const outlives of [false, true]) {
    const writer = await within(reader, lock.writeLock());
    let reads = false;
    const late = within(outer, lock.readLock()).finally(() => (reads = true));
    if (outlives) await reader.release();
    await pause(30);
    expect(reads).toBe(false);
    await writer.release();
    await (await late).release();
  }
  const sole = await within(outer, lock.writeLock());
  await sole.release();
  await outer.release();
});

test('R36: a write in a read whose outer write is released at the same moment is refused, and the read stays', async () => {
  const client = await openClient();
  const lock = client.getReadWriteLock(freshName('rw'));
  const write = await inFlow(async () => lock.writeLock().acquire());
  const read = await inFlow(() => write.run(async () => lock.readLock().acquire()));
  const upgrade = outcome(inFlow(() => read.run(async () => lock.writeLock().acquire())));
  const released = outcome(write.release()); // its request goes first
  expect(await Promise.all([upgrade, released])).toEqual(['ERR_LOCK_UPGRADE', 'ok']);
  expect(read.signal.aborted).toBe(false);
  expect(await outcome(read.release())).toBe('ok');
});

test('R36: the release of the shorter of two read holds keeps the lease of the longer one', async () => {
  const name = freshName('rw');
  const lock = (await openClient()).getReadWriteLock(name);
  const short = await inFlow(() => lock.readLock().acquire({ leaseTime: 5_000 }));
  const long = await short.run(() => lock.readLock().acquire({ leaseTime: 50_000 }));
  await short.release();
  expect(await admin().pttl(name)).toBeGreaterThan(48_000);
  expect(long.validFor()).toBeGreaterThan(48_000);
  await long.release();
});

test('R21: a downgrade wakes readers of every client, and the read hold stays', async () => {
  const name = freshName('rw');
  const client = await openClient();
  const other = await openClient();
  const lock = client.getReadWriteLock(name);
  const write = await inFlow(() => lock.writeLock().acquire());
  const read = await write.run(() => lock.readLock().acquire());
  const readers = [
    await waiting(client, () => lock.readLock().acquire()),
    await waiting(other, () => other.getReadWriteLock(name).readLock().acquire()),
  ];
  const began = performance.now();
  await write.release();
  const holds = await Promise.all(readers.map(({ done }) => done));
  expect(elapsed(began)).toBeLessThan(450);
  expect(await lock.writeLock().isLocked()).toBe(false);
  expect(await lock.readLock().isLocked()).toBe(true);
  await Promise.all([read, ...holds].map((hold) => hold.release()));
});

test('R21: all waiting readers are granted after a writer', async () => {
  const name = freshName('rw');
  const client = await openClient();
  const lock = client.getReadWriteLock(name);
  const write = await inFlow(() => lock.writeLock().acquire());
  const readers = [];
  for (let i = 0; i < 20; i += 1) readers.push(await waiting(client, () => lock.readLock().acquire()));
  await write.release();
  const holds = await Promise.all(readers.map(({ done }) => done));
  expect(await admin().hlen(name)).toBe(21);
  await Promise.all(holds.map((hold) => hold.release()));
});

test('R15: each half releases its own holds, in any order', async () => {
  const name = freshName('rw');
  const lock = (await openClient()).getReadWriteLock(name);
  await inFlow(async () => {
    await lock.writeLock().lock();
    await lock.readLock().lock();
    await lock.writeLock().unlock();
    expect(await admin().hget(name, 'mode')).toBe('read');
    await expect(lock.writeLock().unlock()).rejects.toMatchObject({ code: 'ERR_LOCK_NOT_OWNER' });
    await lock.readLock().unlock();
  });
  expect(await admin().exists(name)).toBe(0);
});

test('R16: the hold of a killed reader ends with its own lease while another reader renews', async () => {
  const name = freshName('rw');
  const lockWatchdogTimeout = 1_000;
  const client = await openClient({ lockWatchdogTimeout });
  const alive = await inFlow(() => client.getReadWriteLock(name).readLock().acquire());
  let renewals = 0;
  client.events.on('renewed', () => (renewals += 1));
  const doomed = await startWorker();
  try {
    await doomed.createClient({ url: testRedisUrl(), lockWatchdogTimeout });
    const hold = await doomed.flow('reader').acquire({ factory: 'getReadWriteLock', name, half: 'readLock' });
    const lease = `{${name}}:${hold.owner}:rwlock_timeout:1`;
    await pause(lockWatchdogTimeout + 100); // past its first lease: only its watchdog has kept it
    expect(await admin().exists(lease)).toBe(1);
    await doomed.kill9();
    const left = await admin().pttl(lease);
    const killed = performance.now();
    expect(left).toBeGreaterThan(0);
    const before = renewals;
    await until(async () => (await admin().exists(lease)) === 0, 'its own lease has ended');
    expect(elapsed(killed)).toBeLessThan(lockWatchdogTimeout + 250);
    await until(() => renewals >= before + 3, 'the other one has been renewed past that');
    expect(alive.validFor()).toBeGreaterThan(0);
    expect(await admin().keys(`*${name}*rwlock_timeout*`)).toEqual([`{${name}}:${alive.owner}:rwlock_timeout:1`]);
    // The next writer waits only for the living reader.
    const writer = inFlow(() => client.getReadWriteLock(name).writeLock().acquire({ waitTime: 10_000 }));
    await alive.release();
    await (await writer).release();
    expect(await admin().exists(name)).toBe(0);
  } finally {
    await doomed.close();
  }
});

test('every read hold is renewed', async () => {
  const name = freshName('rw');
  const client = await openClient({ lockWatchdogTimeout: 1_500 });
  const lock = client.getReadWriteLock(name);
  let renewals = 0;
  client.events.on('renewed', () => (renewals += 1));
  const outer = await inFlow(() => lock.readLock().acquire());
  const inner = await outer.run(() => lock.readLock().acquire());
  await until(() => renewals >= 3, 'three ticks');
  expect(await admin().keys(`*${name}*rwlock_timeout*`)).toHaveLength(2);
  expect(outer.signal.aborted).toBe(false);
  await outer.release();
  await until(() => renewals >= 6, 'three more');
  expect(inner.validFor()).toBeGreaterThan(0);
  await inner.release();
});

test('extend() extends one read hold and no other', async () => {
  const name = freshName('rw');
  const lock = (await openClient()).getReadWriteLock(name);
  const short = await inFlow(() => lock.readLock().acquire({ leaseTime: 5_000 }));
  const other = await short.run(() => lock.readLock().acquire({ leaseTime: 6_000 }));
  await other.extend(40_000);
  const keys = await Promise.all([1, 2].map((n) => admin().pttl(`{${name}}:${short.owner}:rwlock_timeout:${n}`)));
  expect(keys[0]).toBeLessThan(6_000);
  expect(keys[1]).toBeGreaterThan(38_000);
  await other.release();
  expect(await admin().pttl(name)).toBeLessThan(6_000);
  await short.release();
});

test.each(['readLock', 'writeLock'] as const)(
  'R15: an expired read hold inside a longer hold of the %s can be extended on its own',
  async (half) => {
    const name = freshName('rw');
    const lock = (await openClient()).getReadWriteLock(name);
    const outer = await inFlow(() => lock[half]().acquire({ leaseTime: 10_000 }));
    const inner = await outer.run(() => lock.readLock().acquire({ leaseTime: 50 }));
    const read = `{${name}}:${inner.owner}:rwlock_timeout:${half === 'readLock' ? 2 : 1}`;
    await until(async () => (await admin().exists(read)) === 0, 'its own lease has ended');
    await inner.extend(40_000);
    expect(inner.validFor()).toBeGreaterThan(38_000);
    expect(await admin().pttl(name)).toBeGreaterThan(38_000);
    await outer.release();
    expect(await admin().pttl(name)).toBeGreaterThan(38_000);
    await inner.release();
  },
);

test('forceUnlock() of one half keeps the holds of the other half', async () => {
  const name = freshName('rw');
  const lock = (await openClient()).getReadWriteLock(name);
  const hold = await inFlow(() => lock.readLock().acquire());
  expect(await lock.writeLock().forceUnlock()).toBe(false);
  expect(await lock.readLock().forceUnlock()).toBe(true);
  expect(hold.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'forced' });
  await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
});

test('a field of the hash that is not an owner does not count as one', async () => {
  const lock = (await openClient()).getReadWriteLock(freshName('rw'));
  const [read, write] = [lock.readLock(), lock.writeLock()];
  const hold = await inFlow(async () => write.acquire());
  const asked = [read.isHeldBy('mode'), read.isHeldBy(`${hold.owner}:write`), read.isHeldBy(hold.owner)];
  expect(await Promise.all([...asked, write.isHeldBy(hold.owner)])).toEqual([false, false, false, true]);
  await hold.release();
});

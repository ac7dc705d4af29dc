import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { fairQueueKey, latchChannel } from '../../src/redis/keys.js';
import {
  answered,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  outcome,
  pause,
} from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';
import { expectAtMost } from '../support/serious.js';

/*
 * Redisson puts braces around a name that has none. `x` and `{x}` then share a channel, but they are two keys and so
 * two locks. A fair lock's queue and the leases of permits with ids share more than that, as in Redisson:
 * docs/choosing.md says so.
 */

afterEach(async () => {
  await closeClients();
  const tokens = await admin().keys('redisson_lock_token:*');
  if (tokens.length > 0) await admin().del(...tokens);
});

const LOCKS: Record<string, (client: LockClient, name: string) => Lock> = {
  plain: (client, name) => client.getLock(name),
  'non-reentrant': (client, name) => client.getNonReentrantLock(name),
  fenced: (client, name) => client.getFencedLock(name),
  spin: (client, name) => client.getSpinLock(name),
  read: (client, name) => client.getReadWriteLock(name).readLock(),
  write: (client, name) => client.getReadWriteLock(name).writeLock(),
  group: (client, name) => client.getMultiLock(name, ['value']),
};

/** Many sections under each name; each name admits one at a time, and both admit at once. */
async function contend(names: readonly string[], section: (name: string, body: () => Promise<void>) => Promise<void>) {
  const inside = new Map(names.map((name) => [name, 0]));
  const most = new Map(names.map((name) => [name, 0]));
  const run = (name: string): Promise<void> =>
    section(name, async () => {
      const now = inside.get(name)! + 1;
      inside.set(name, now);
      most.set(name, Math.max(most.get(name)!, now));
      await pause(1);
      inside.set(name, inside.get(name)! - 1);
    });
  // Alternate the names, and then use all of one name first, so that the next waiter has the other name or the same.
  const inTurns = Array.from({ length: 15 }, () => names).flat();
  for (const order of [inTurns, [...inTurns].sort()]) await Promise.all(order.map((name) => inFlow(() => run(name))));
  return [...most.values()];
}

describe.each(Object.entries(LOCKS))('%s locks named x and {x} in one client', (kind, lockOf) => {
  test('do not keep each other out', async () => {
    const client = await openClient();
    const name = freshName();
    const [plain, braced] = [lockOf(client, name), lockOf(client, `{${name}}`)];
    const hold = await holdElsewhere(plain);
    const other = await inFlow(() => braced.tryAcquire());
    expect(other).not.toBeNull();
    expect(await outcome(hold.release())).toBe('ok');
    expect(await outcome(other!.release())).toBe('ok');
  });

  test("exclude each other's owners separately under contention, and leave nothing behind", async () => {
    const client = await openClient();
    const name = freshName();
    const lost: unknown[] = [];
    client.events.on('leaseLost', (event) => lost.push(event));
    const most = await contend([name, `{${name}}`], (each, body) => lockOf(client, each).withLock(body));
    if (kind !== 'read') {
      expectAtMost(Math.max(...most));
      expect(most).toEqual([1, 1]);
    }
    expect(lost).toEqual([]);
    expect(await admin().exists(name, `{${name}}`)).toBe(0);
  });
});

test('flows that acquire x and {x} in either order do not deadlock', async () => {
  const client = await openClient();
  const name = freshName();
  const [plain, braced] = [client.getLock(name), client.getLock(`{${name}}`)];
  const both = (): Promise<void> => plain.withLock(() => braced.withLock(() => pause(1)));
  await Promise.all(Array.from({ length: 10 }, () => inFlow(both)));
});

test('semaphores named x and {x} with one permit each admit one flow each and keep their permits', async () => {
  const client = await openClient();
  const name = freshName();
  const names = [name, `{${name}}`];
  for (const each of names) await client.getSemaphore(each).trySetPermits(1);
  const most = await contend(names, (each, body) => client.getSemaphore(each).withPermits(body));
  expectAtMost(Math.max(...most));
  expect(most).toEqual([1, 1]);
  for (const each of names) expect(await client.getSemaphore(each).availablePermits()).toBe(1);
  await admin().del(...names);
});

test('a latch named {x} stays closed when the latch named x opens', async () => {
  const client = await openClient();
  const name = freshName();
  const [plain, braced] = [client.getCountDownLatch(name), client.getCountDownLatch(`{${name}}`)];
  await braced.trySetCount(3);
  let isOpen = false;
  const waiting = braced.await().then(() => (isOpen = true));
  const channel = latchChannel(`{${name}}`);
  await until(async () => (await admin().pubsub('NUMSUB', channel))[1] === 1, 'it listens');
  await answered(client);
  await plain.trySetCount(1);
  await plain.countDown();
  // A message of any kind makes it look.
  await admin().publish(channel, '0');
  await answered(client);
  await answered(client);
  expect(isOpen).toBe(false);
  for (let at = 0; at < 3; at += 1) await braced.countDown();
  await waiting;
});

describe('names x and {x} that share a key in Redisson, as documented', () => {
  test('fair locks named q and {q} do not exclude each other, but share one queue', async () => {
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName();
    const hold = await holdElsewhere(client.getFairLock(name));
    const waiting = inFlow(async () => ({ hold: await other.getFairLock(name).acquire() }));
    await until(async () => (await admin().llen(fairQueueKey(name))) === 1, 'one waits');
    // The lock is free and the call is refused, because the queue is not empty.
    const braced = client.getFairLock(`{${name}}`);
    expect([await braced.isLocked(), await inFlow(() => braced.tryLock())]).toEqual([false, false]);
    await hold.release();
    await (await waiting).hold.release();
    expect(await inFlow(() => braced.withLock(() => 'inside'))).toBe('inside');
  });

  test('expirable permits named p and {p} share one set of taken permits, and the next reader frees expired ones', async () => {
    const client = await openClient();
    const name = freshName();
    const names = [name, `{${name}}`];
    const [plain, braced] = names.map((each) => client.getPermitExpirableSemaphore(each));
    for (const each of [plain!, braced!]) await each.trySetPermits(1);
    await plain!.acquire(10);
    expect(await braced!.getPermits()).toBe(2);
    await until(async () => (await braced!.availablePermits()) === 2, 'the permit of the other has come to it');
    expect(await plain!.availablePermits()).toBe(0);
    await admin().del(...names);
  });
});

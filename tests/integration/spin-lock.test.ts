import { afterEach, expect, test } from '@jest/globals';
import type { BackOff } from '../../src/locks/spin-lock.js';
import { elapsed } from '../support/time/elapsed.js';
import { closeClients, inFlow, openClient, openProxy } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';
import { expectAtMost } from '../support/serious.js';

afterEach(() => closeClients());

test('one flow at a time holds the lock over two clients, and no channel is subscribed', async () => {
  const name = freshName('spin');
  const { proxy, url } = await openProxy();
  const locks = [await openClient({ url }), await openClient({ url })].map((client) => client.getSpinLock(name));
  let value = 0;
  let inside = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      inFlow(() =>
        locks[i % 2]!.withLock(async () => {
          most = Math.max(most, (inside += 1));
          const seen = value;
          await new Promise((resume) => setTimeout(resume, 1));
          value = seen + 1;
          inside -= 1;
        }),
      ),
    ),
  );
  expectAtMost(most);
  expect({ value, most }).toEqual({ value: 30, most: 1 });
  expect(proxy.log.filter((command) => command.name.includes('SUBSCRIBE'))).toEqual([]);
});

test.each<[string, BackOff | undefined, number, number]>([
  ['exponential', undefined, 3, 60],
  ['exponential with a shorter end', { maxDelay: 4 }, 8, 400],
  ['constant', { delay: 50 }, 2, 20],
])('a waiter with %s back-off polls at the configured rate', async (_, backOff, least, most) => {
  const name = freshName('spin');
  await admin().hset(name, '8743c9c0-0795-4907-87fd-6c719a6b4586:1', '1');
  await admin().pexpire(name, 60_000);
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const before = proxy.log.length;
  expect(await client.getSpinLock(name, { backOff }).tryLock(400)).toBe(false);
  const tries = proxy.log.length - before;
  expect(tries).toBeGreaterThanOrEqual(least);
  expect(tries).toBeLessThanOrEqual(most);
  await admin().del(name);
});

test('a waiter acquires the lock soon after a release without a message, also of a plain lock', async () => {
  const name = freshName('spin');
  const client = await openClient();
  const other = await openClient();
  const hold = await inFlow(() => other.getLock(name).acquire());
  let waits = false;
  client.events.on('waiting', () => (waits = true));
  const entered = inFlow(() => client.getSpinLock(name).acquire());
  await until(() => waits, 'it waits');
  await hold.release();
  const released = performance.now();
  const mine = await entered;
  expect(elapsed(released)).toBeLessThan(128 + 250);
  await mine.release();
});

test.each([{ delay: 0 }, { initialDelay: -1 }, { multiplier: NaN }, 5])(
  'a back-off of %j is refused',
  async (backOff) => {
    const client = await openClient();
    expect(() => client.getSpinLock('name', { backOff: backOff as BackOff })).toThrow(/backOff/);
  },
);

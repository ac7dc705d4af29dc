import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import type { Lock } from '../../src/locks/lock.js';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
} from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { elapsed } from '../support/time/elapsed.js';
import { QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

/*
 * Redis has lost a hold, and the client has not noticed yet: no message comes, and the next renewal is seconds away. Calls
 * of this client learn from Redis that the lock is free, as calls of other clients do.
 */

afterEach(() => closeClients());

const LEASE_MS = 30_000;
const SOON_MS = 1_000;

const KINDS: Record<string, (client: LockClient, name: string) => Lock> = {
  lock: (client, name) => client.getLock(name),
  'fenced lock': (client, name) => client.getFencedLock(name),
  'non-reentrant lock': (client, name) => client.getNonReentrantLock(name),
  'write lock': (client, name) => client.getReadWriteLock(name).writeLock(),
  'spin lock': (client, name) => client.getSpinLock(name),
};

/** Deletes the hold in Redis. The lock is free then. */
const lose = ({ name }: Lock): Promise<unknown> => admin().del(name);

describe.each(Object.keys(KINDS))('after a hold of a %s is gone', (kind) => {
  test.each<[string, (lock: Lock) => Promise<Hold | null>]>([
    ['tryAcquire() with a short wait time', (lock) => lock.tryAcquire({ waitTime: 50 })],
    ['tryAcquire() with a long wait time', (lock) => lock.tryAcquire({ waitTime: LEASE_MS })],
    ['acquire()', (lock) => lock.acquire()],
  ])('%s gets it, although a call of the client has found it busy before', async (_call, call) => {
    const client = await openClient();
    const lock = KINDS[kind]!(client, freshName());
    const hold = await holdElsewhere(lock, LEASE_MS);
    expect(await inFlow(() => lock.tryLock(100))).toBe(false);
    await lose(lock);
    const asked = performance.now();
    const next = await inFlow(() => call(lock));
    expect(elapsed(asked)).toBeLessThan(SOON_MS);
    await next?.release();
    expect(next).not.toBeNull();
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    await admin().del(`redisson_lock_token:{${lock.name}}`); // a fenced lock keeps its counter
  });
});

test.each(Object.keys(KINDS).filter((kind) => kind !== 'spin lock'))(
  'a call for a %s gets it, although the call before it in line has found it busy',
  async (kind) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const lock = KINDS[kind]!(client, freshName());
    const hold = await holdElsewhere(lock, LEASE_MS);
    const sent = proxy.log.length;
    const first = inFlow(() => lock.acquire());
    const isAnswered = (): boolean =>
      proxy.log.slice(sent).some(({ args, answeredAt }) => args.includes(lock.name) && answeredAt !== undefined);
    await until(isAnswered, 'the first call has found it busy');
    await pause(QUIET_MS);
    await lose(lock);
    const second = await inFlow(() => lock.tryAcquire({ waitTime: 300 }));
    expect(second).not.toBeNull();
    await second?.release();
    await (await first).release();
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    await admin().del(`redisson_lock_token:{${lock.name}}`); // a fenced lock keeps its counter
  },
);

test('a spin lock that a call of the client waits for is noticed to be free at the next poll', async () => {
  const client = await openClient();
  const lock = client.getSpinLock(freshName());
  const hold = await holdElsewhere(lock, LEASE_MS);
  const next = inFlow(() => lock.acquire());
  await until(() => client.stats().waits === 1, 'a call waits');
  await lose(lock);
  const lost = performance.now();
  await (await next).release();
  expect(elapsed(lost)).toBeLessThan(SOON_MS);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
});

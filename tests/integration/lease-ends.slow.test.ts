import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { closeClients, holdElsewhere, openClient, outcome } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

afterEach(() => closeClients());

const LEASE_MS = 20_000;
/** A lock whose waiters may have seen a longer lease is released this long before its lease ends. */
const EARLY_MS = 60;

const KINDS: Record<string, (client: LockClient, name: string) => Lock> = {
  plain: (client, name) => client.getLock(name),
  'non-reentrant': (client, name) => client.getNonReentrantLock(name),
  fair: (client, name) => client.getFairLock(name),
  fenced: (client, name) => client.getFencedLock(name),
  spin: (client, name) => client.getSpinLock(name),
  read: (client, name) => client.getReadWriteLock(name).readLock(),
  write: (client, name) => client.getReadWriteLock(name).writeLock(),
  group: (client, name) => client.getMultiLock(name, ['a', 'b']),
  multi: (client, name) => client.getMultiLock(client.getLock(name), client.getLock(freshName())),
};

test('R11: a lock with a lease of 20 s that is never released is locked for 20 s, whatever its kind', async () => {
  const client = await openClient();
  const locked = await Promise.all(
    Object.entries(KINDS).map(async ([kind, make]) => {
      const name = freshName();
      const began = performance.now();
      const hold = await holdElsewhere(make(client, name), LEASE_MS);
      await until(() => hold.signal.aborted, `the ${kind} hold has ended`, LEASE_MS);
      expect(performance.now() - began).toBeLessThan(LEASE_MS);
      await until(async () => (await admin().exists(name)) === 0, `the ${kind} lock is free`, LEASE_MS);
      const lockedMs = performance.now() - began;
      expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
      return [kind, lockedMs > LEASE_MS - EARLY_MS && lockedMs < LEASE_MS + 1_000];
    }),
  );
  expect(locked).toEqual(Object.keys(KINDS).map((kind) => [kind, true]));
});

test('R11: a RedLock ends before its lease by the assumed drift of the clocks, and the locks stay for the lease', async () => {
  const clients = await Promise.all([openClient(), openClient(), openClient()]);
  const locks = clients.map((client) => client.getLock(freshName()));
  const began = performance.now();
  const hold = await holdElsewhere(clients[0].getRedLock(...locks, { driftFactor: 0.5 }), 4_000);
  await until(() => hold.signal.aborted, 'the hold has ended', 3_000);
  for (const { name } of locks) await until(async () => (await admin().exists(name)) === 0, 'it is free', 4_000);
  expect(performance.now() - began).toBeGreaterThan(4_000 - 10);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
});

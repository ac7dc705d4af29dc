import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { LockContext } from '../../src/ownership/lock-context.js';

import { closeClients, openClient, outcome } from '../support/clients/lock-clients.js';
import { Published } from '../support/clients/published.js';
import { admin, freshName } from '../support/redis.js';
import { readState } from '../support/redis-state.js';

/*
 * The examples of the wire document, step by step, with two owners of Holdfast. The examples with owners of the
 * document are in worked-examples-by-script.test.ts, and the example of the fair lock, which is about scores, in
 * fair-lock.test.ts.
 */

let published: Published | undefined;
afterEach(async () => {
  await published?.close();
  published = undefined;
  await closeClients();
});

const ofItsOwn = (): { context: LockContext } => ({ context: new LockContext() });

/** Types and values of every key with this name, and the messages since the last call. */
async function watch(name: string): Promise<() => Promise<{ keys: Record<string, unknown>; said: string[] }>> {
  const messages = (published = await Published.on(name));
  return async () => {
    const state = await readState(admin(), '');
    const keys = Object.entries(state).filter(([key]) => key.includes(name) && !key.startsWith('holdfast_'));
    const said = (await messages.take()).map(({ channel, payload }) => `${channel} ${payload}`);
    return { keys: Object.fromEntries(keys.map(([key, { value }]) => [key, value])), said };
  };
}

test('section 6: a lock is nested, requested by another owner, released by a stranger, released, acquired and forced', async () => {
  const [ours, theirs] = [await openClient(), await openClient()];
  const name = freshName();
  const [a, n] = [ours, theirs].map((client) => client.getLock(name, { context: new LockContext() })) as [
    ReturnType<typeof ours.getLock>,
    ReturnType<typeof ours.getLock>,
  ];
  const now = await watch(name);
  const free = `redisson_lock__channel:{${name}} 0`;
  await a.lock();
  const { owner } = a.currentHold()!;
  await a.lock();
  expect(await now()).toEqual({ keys: { [name]: { [owner]: '2' } }, said: [] });
  expect(await n.tryLock()).toBe(false);
  expect(await outcome(n.unlock())).toBe('ERR_LOCK_NOT_OWNER');
  expect(await now()).toEqual({ keys: { [name]: { [owner]: '2' } }, said: [] });
  await a.unlock();
  expect(await now()).toEqual({ keys: { [name]: { [owner]: '1' } }, said: [] });
  const waits = n.lock(30_000);
  await a.unlock();
  await waits;
  expect(await now()).toEqual({ keys: { [name]: { [n.currentHold()!.owner]: '1' } }, said: [free] });
  expect(await a.forceUnlock()).toBe(true);
  expect(await a.forceUnlock()).toBe(false);
  expect(await now()).toEqual({ keys: {}, said: [free] });
  expect([await a.getHoldCount(), await a.isLocked(), await a.remainTimeToLive()]).toEqual([0, false, -2]);
  await outcome(n.unlock());
});

test('section 13: permits are set, taken, requested in vain, released, drained and added', async () => {
  const client = await openClient();
  const name = freshName();
  const semaphore = client.getSemaphore(name);
  const now = await watch(name);
  const said = (free: number): string[] => [`redisson_sc:{${name}} ${free}`];
  expect(await semaphore.trySetPermits(2)).toBe(true);
  expect(await now()).toEqual({ keys: { [name]: '2' }, said: said(2) });
  expect(await semaphore.tryAcquire(1)).toBe(true);
  expect(await semaphore.tryAcquire(2)).toBe(false);
  expect(await now()).toEqual({ keys: { [name]: '1' }, said: [] });
  await semaphore.release(1);
  expect(await now()).toEqual({ keys: { [name]: '2' }, said: said(2) });
  expect(await semaphore.drainPermits()).toBe(2);
  expect(await now()).toEqual({ keys: { [name]: '0' }, said: [] });
  await semaphore.addPermits(3);
  expect(await now()).toEqual({ keys: { [name]: '3' }, said: said(3) });
  await admin().del(name);
});

test('section 15: a latch is set, counted down past zero and set again', async () => {
  const client = await openClient();
  const name = freshName();
  const latch = client.getCountDownLatch(name);
  const now = await watch(name);
  const said = (payload: string): string[] => [`redisson_countdownlatch__channel__{${name}} ${payload}`];
  expect(await latch.trySetCount(2)).toBe(true);
  expect(await now()).toEqual({ keys: { [name]: '2' }, said: said('1') });
  await latch.countDown();
  expect(await now()).toEqual({ keys: { [name]: '1' }, said: [] });
  await latch.countDown();
  expect(await now()).toEqual({ keys: {}, said: said('0') });
  await latch.countDown();
  expect(await now()).toEqual({ keys: {}, said: [] });
  expect(await latch.trySetCount(1)).toBe(true);
  expect(await now()).toEqual({ keys: { [name]: '1' }, said: said('1') });
  await latch.countDown();
});

test('section 9: each hold draws a token, a refused call draws none, and the counter outlives the lock', async () => {
  const [ours, theirs] = [await openClient(), await openClient()];
  const name = freshName();
  const [a, n] = [ours, theirs].map((client) => client.getFencedLock(name, { context: new LockContext() })) as [
    ReturnType<typeof ours.getFencedLock>,
    ReturnType<typeof ours.getFencedLock>,
  ];
  const token = `redisson_lock_token:{${name}}`;
  expect([await a.lockAndGetToken(), await a.lockAndGetToken()]).toEqual([1n, 2n]);
  expect(await n.tryLockAndGetToken()).toBe(null);
  expect(await admin().get(token)).toBe('2');
  await a.unlock();
  await a.unlock();
  expect(await admin().get(token)).toBe('2');
  expect(await n.lockAndGetToken()).toBe(3n);
  await n.unlock();
});

test.each([
  ['non-reentrant', (client: LockClient, name: string) => client.getNonReentrantLock(name, ofItsOwn())],
  ['non-reentrant fair', (client: LockClient, name: string) => client.getNonReentrantFairLock(name, ofItsOwn())],
] as const)('section 8: the owner of a %s lock is refused, and nothing changes', async (_, lockOf) => {
  const [ours, theirs] = [await openClient(), await openClient()];
  const name = freshName();
  const [a, n] = [lockOf(ours, name), lockOf(theirs, name)];
  const now = await watch(name);
  await a.lock(30_000);
  const held = { keys: { [name]: { [a.currentHold()!.owner]: '1' } }, said: [] };
  await admin().pexpire(name, 20_000);
  expect(await outcome(a.lock(60_000))).toBe('ERR_LOCK_NON_REENTRANT');
  expect(await n.tryLock()).toBe(false);
  expect(await now()).toEqual(held);
  expect(await admin().pttl(name)).toBeLessThanOrEqual(20_000);
  await a.unlock();
  expect((await now()).keys).toEqual({});
});

test('section 12.1: a RedLock over three locks, one of them held by another owner', async () => {
  const clients = [await openClient(), await openClient(), await openClient()];
  const name = freshName();
  const names = ['l1', 'l2', 'l3'].map((each) => `${name}:${each}`) as [string, string, string];
  const a = (await openClient()).getLock(names[1], ofItsOwn());
  await a.lock(30_000);
  const locks = clients.map((client, at) => client.getLock(names[at]!));
  const n = clients[0]!.getRedLock(...locks, ofItsOwn());
  expect(await n.tryLock(3_000, 10_000)).toBe(true);
  const now = await watch(name);
  const holders = Object.values((await now()).keys).map((hash) => Object.entries(hash as Record<string, string>));
  expect(holders.map((fields) => fields.map(([owner, count]) => [owner.split(':')[0], count]))).toEqual([
    [[clients[0]!.id, '1']],
    [[a.currentHold()!.owner.split(':')[0], '1']],
    [[clients[2]!.id, '1']],
  ]);
  // Redisson first sets it to half of the remaining wait, and sets the lease only after the last request.
  for (const each of [names[0], names[2]]) expect(await admin().pttl(each)).toBeGreaterThan(8_000);
  await n.unlock();
  expect((await now()).said.sort()).toEqual([names[0], names[2]].map((each) => `redisson_lock__channel:{${each}} 0`));
  await a.unlock();
});

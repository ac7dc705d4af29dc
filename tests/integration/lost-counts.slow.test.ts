import { afterEach, expect, test } from '@jest/globals';
import type { Permit } from '../../src/index.js';
import { semaphoreChannel } from '../../src/redis/keys.js';
import * as scripts from '../../src/redis/scripts/semaphore.js';
import { answered, closeClients, openClient, openProxy, outcome } from '../support/clients/lock-clients.js';
import { admin, freshName, leavesKeys } from '../support/redis.js';
import { until } from '../support/time/until.js';

/*
 * Redis can lose the count of a permit-expirable semaphore and keep the set of the permits that are taken: each is a key of
 * its own, and eviction takes one key.
 */

afterEach(() => closeClients());
leavesKeys('semaphores stay until they are deleted');

const PERMITS = 3;

/** Of three permits, two are taken: one by each client. Redis has lost the count. */
async function lost(permits?: number) {
  const [client, other] = [await openClient(), await openClient()];
  const name = freshName('permits');
  const semaphore = client.getPermitExpirableSemaphore(name, permits === undefined ? {} : { permits });
  await semaphore.trySetPermits(PERMITS);
  const own = await semaphore.acquirePermit();
  const theirs = await other.getPermitExpirableSemaphore(name).acquirePermit();
  await admin().del(name);
  return { client, other, name, semaphore, own, theirs };
}

test('a call that has waited for 5 s gets no permit that is taken, and gets the next one that is released', async () => {
  const [client, name] = [await openClient(), freshName('permits')];
  const semaphore = client.getPermitExpirableSemaphore(name, { permits: 2 });
  const out = [await semaphore.acquirePermit(), await semaphore.acquirePermit()];
  let third: Permit | undefined;
  const waits = semaphore.acquirePermit().then((permit) => (third = permit));
  await until(async () => (await admin().pubsub('NUMSUB', semaphoreChannel(name)))[1] === 1, 'the call waits');
  // The try after the confirmation of the subscription is answered, too.
  for (let i = 0; i < 3; i += 1) await answered(client);
  await admin().del(name);
  await until(async () => (await admin().exists(name)) === 1, 'the count is there again', 10_000);
  await answered(client);
  expect([third, await semaphore.getPermits(), await semaphore.availablePermits()]).toEqual([undefined, 2, 0]);
  await out[0]!.release();
  await (await waits).release();
  await out[1]!.release();
  expect([await semaphore.getPermits(), await semaphore.availablePermits()]).toEqual([2, 2]);
});

test.each<[string, (each: Awaited<ReturnType<typeof lost>>) => unknown, free: number, all: number]>([
  ['a release', ({ own }) => own.release(), 2, 3],
  ['a read', ({ semaphore }) => semaphore.availablePermits(), 1, 3],
  ['addPermits', ({ semaphore }) => semaphore.addPermits(1), 2, 4],
  ['trySetPermits', ({ semaphore }) => semaphore.trySetPermits(PERMITS), 1, 3],
  ['setPermits', ({ semaphore }) => semaphore.setPermits(5), 3, 5],
  ['a new lease', ({ semaphore, own }) => semaphore.updateLeaseTime(own.ids[0]!, 60_000), 1, 3],
  ['a call for a permit', async ({ semaphore }) => (await semaphore.tryAcquirePermit())?.release(), 1, 3],
])('%s of a handle that declares the number leaves it as it was', async (_, call, free, all) => {
  const each = await lost(PERMITS);
  await call(each);
  expect([await each.semaphore.availablePermits(), await each.semaphore.getPermits()]).toEqual([free, all]);
  for (const permit of [each.own, each.theirs]) await permit.release().catch(() => undefined);
  expect([await each.semaphore.availablePermits(), await each.semaphore.getPermits()]).toEqual([all, all]);
});

test('a call that declares no number goes on when a call beside it, which declared one, has ended', async () => {
  const [client, name] = [await openClient(), freshName('permits')];
  const declares = client.getPermitExpirableSemaphore(name, { permits: 1 });
  const out = await declares.acquirePermit();
  const behind = client.getPermitExpirableSemaphore(name).acquirePermit();
  expect(await declares.tryAcquirePermit({ waitTime: 50 })).toBeNull();
  for (let i = 0; i < 3; i += 1) await answered(client);
  await admin().del(name);
  await until(async () => (await admin().get(name)) === '0', 'the count is there again', 10_000);
  await out.release();
  await (await behind).release();
});

test('without a declared number the count stays lost, and a release removes its permit alone', async () => {
  const { semaphore, own, theirs, name } = await lost();
  await own.release();
  expect(await semaphore.acquiredPermits()).toBe(1);
  expect([await semaphore.isExists(), await semaphore.availablePermits(), await admin().exists(name)]).toEqual([
    false,
    0,
    0,
  ]);
  await semaphore.setPermits(PERMITS);
  expect([await semaphore.availablePermits(), await semaphore.getPermits()]).toEqual([2, PERMITS]);
  await theirs.release();
  expect(await semaphore.availablePermits()).toBe(PERMITS);
});

test('the cancellation of a call does not create a semaphore that was deleted meanwhile', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 300 });
  const name = freshName('permits');
  const semaphore = client.getSemaphore(name);
  await semaphore.trySetPermits(5);
  expect(await semaphore.tryAcquire()).toBe(true);
  await semaphore.release();
  const cancel = scripts.cancel.script!.sha;
  const cancels = proxy.holdCommand({ sha: cancel });
  const replies = proxy.stall({ kind: 'command', direction: 'to-client' });
  const taken = outcome(semaphore.tryAcquire());
  await until(async () => (await admin().get(name)) === '4', 'it has taken a permit');
  await admin().del(name);
  expect(await taken).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  const cancelled = proxy.observe({ sha: cancel, nth: 1 });
  replies.lift();
  cancels.lift();
  await cancelled.executed;
  await answered(client);
  expect(await admin().exists(name)).toBe(0);
});

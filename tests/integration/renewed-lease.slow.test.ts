import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { AcquireOptions } from '../../src/locks/arguments.js';
import type { Lock } from '../../src/locks/lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { closeClients, inFlow, openClient, openProxy } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

/* `{ leaseTime, renew: true }`: the watchdog renews the hold with its own lease. */

const RENEW = scripts.renew.script!.sha;
const LEASE_MS = 900;

afterEach(() => closeClients());

const KINDS: Readonly<Record<string, (client: LockClient, name: string) => Lock>> = {
  lock: (client, name) => client.getLock(name),
  'fair lock': (client, name) => client.getFairLock(name),
  'fenced lock': (client, name) => client.getFencedLock(name),
  'read lock': (client, name) => client.getReadWriteLock(name).readLock(),
  'write lock': (client, name) => client.getReadWriteLock(name).writeLock(),
  'multi-lock': (client, name) => client.getMultiLock(client.getLock(name), client.getLock(`${name} too`)),
};

test.each(Object.keys(KINDS))('%s: a lease with renew: true outlasts its time', async (kind) => {
  const client = await openClient();
  const lock = KINDS[kind]!(client, freshName());
  let renewed = 0;
  client.events.on('renewed', () => (renewed += 1));
  const begun = performance.now();
  await inFlow(async () =>
    lock.withLock({ leaseTime: LEASE_MS, renew: true }, async (hold) => {
      await until(() => performance.now() - begun > 2 * LEASE_MS, 'the lease has passed twice');
      expect(hold.validFor()).toBeGreaterThan(0);
      expect(renewed).toBeGreaterThan(2);
    }),
  );
});

test('the renewals ask for the lease of the hold, and never for that of the client', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const name = freshName();
  const lock = client.getLock(name);
  const hold = await inFlow(async () => lock.acquire({ leaseTime: LEASE_MS, renew: true }));
  const renewals = () => proxy.log.filter(({ args }) => args[0] === RENEW && args.includes(name));
  await until(() => renewals().length > 2, 'three renewals');
  expect(new Set(renewals().map(({ args }) => args[5]))).toEqual(new Set([String(LEASE_MS)]));
  expect(await admin().pttl(name)).toBeLessThanOrEqual(LEASE_MS);
  await hold.release();
});

test('a hold without a lease and one with a shorter renewed lease are both renewed in time', async () => {
  const client = await openClient({ lockWatchdogTimeout: 3_600 });
  const lost: string[] = [];
  client.events.on('leaseLost', ({ lockName }) => lost.push(lockName));
  const [long, short] = [client.getLock(freshName('long')), client.getLock(freshName('short'))];
  const holds = [
    await inFlow(async () => long.acquire()),
    await inFlow(async () => short.acquire({ leaseTime: LEASE_MS, renew: true })),
  ];
  const renewals: string[] = [];
  client.events.on('renewed', ({ lockName }) => renewals.push(lockName));
  await until(() => renewals.filter((name) => name === long.name).length > 1, 'two renewals of the longer lease');
  expect(renewals.filter((name) => name === short.name).length).toBeGreaterThan(2);
  expect(lost).toEqual([]);
  for (const hold of holds) await hold.release();
});

test('maxHoldTime limits a renewed lease', async () => {
  const client = await openClient();
  const lock = client.getLock(freshName());
  const hold = await inFlow(async () => lock.acquire({ leaseTime: LEASE_MS, renew: true, maxHoldTime: 2 * LEASE_MS }));
  const begun = performance.now();
  await until(() => hold.signal.aborted, 'the hold is lost');
  expect(performance.now() - begun).toBeGreaterThan(LEASE_MS);
  expect(hold.signal.reason).toMatchObject({ reason: 'maxHoldTime' });
});

describe('arguments', () => {
  test.each<[string, AcquireOptions]>([
    ['renew', { renew: 1 as unknown as boolean, leaseTime: 1_000 }],
    ['renew', { renew: false }],
    ['leaseTime', { renew: true, leaseTime: 99 }],
    ['maxHoldTime', { maxHoldTime: 99 }],
    ['maxHoldTime', { maxHoldTime: 1_000.5 }],
    ['maxHoldTime', { maxHoldTime: 1_000, leaseTime: 1_000 }],
    ['maxHoldTime', { maxHoldTime: 1_000, leaseTime: 1_000, renew: false }],
  ])('%s of %p is refused before any command', async (argument, options) => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const calls = [lock.acquire(options), lock.tryAcquire(options), lock.withLock(options, () => undefined)];
    for (const call of [...calls, lock.lock(options), lock.tryLock(options)])
      await expect(call).rejects.toMatchObject({ code: 'ERR_LOCK_INVALID_ARGUMENT', argument });
  });

  test('renew: true without a leaseTime renews with the lease of the client', async () => {
    const client = await openClient({ lockWatchdogTimeout: 900 });
    let renewed = 0;
    client.events.on('renewed', () => (renewed += 1));
    await inFlow(async () =>
      client.getLock(freshName()).withLock({ renew: true }, () => until(() => renewed > 2, 'it is renewed')),
    );
  });
});

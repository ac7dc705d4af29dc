import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { LockEvents } from '../../src/events.js';
import type { Hold } from '../../src/holding/hold.js';
import type { AcquireOptions } from '../../src/locks/arguments.js';
import type { Lock } from '../../src/locks/lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { closeClients, inFlow, openClient, openProxy, outcome } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

/* `maxHoldTime`: the watchdog renews a hold for that time at most. */

const RENEW = scripts.renew.script!.sha;
const LEASE_MS = 900;
const LIMIT_MS = 1_300;
const MARGIN_MS = 13;

afterEach(() => closeClients());

const take = (lock: Lock, options: AcquireOptions): Promise<Hold> => inFlow(async () => lock.acquire(options));

/** The losses of the client, in order. */
function lossesOf(client: LockClient): LockEvents['leaseLost'][] {
  const losses: LockEvents['leaseLost'][] = [];
  client.events.on('leaseLost', (event) => losses.push(event));
  return losses;
}

const lost = (hold: Hold): Promise<void> => until(() => hold.signal.aborted, 'the hold is lost');

test('a hold is renewed up to its maxHoldTime, and then lost with that reason', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, lockWatchdogTimeout: LEASE_MS });
  const losses = lossesOf(client);
  const name = freshName();
  const begun = performance.now();
  const hold = await take(client.getLock(name), { maxHoldTime: LIMIT_MS });
  await lost(hold);
  expect(performance.now() - begun).toBeGreaterThan(LIMIT_MS - MARGIN_MS);
  expect(hold.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'maxHoldTime' });
  expect(losses).toMatchObject([{ lockName: name, reason: 'maxHoldTime' }]);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
  // The last renewal asks for the rest alone, and no renewal follows it.
  const leases = proxy.log.filter(({ args }) => args[0] === RENEW).map(({ args }) => Number(args[5]));
  expect(leases.at(-1)).toBeLessThan(LEASE_MS);
  expect(leases.slice(0, -1).every((leaseMs) => leaseMs === LEASE_MS)).toBe(true);
  await until(async () => (await admin().exists(name)) === 0, 'the lock is free');
});

test('a first lease that is longer than maxHoldTime is cut to it, and not renewed', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const name = freshName();
  const hold = await take(client.getLock(name), { maxHoldTime: 500 });
  expect(await admin().pttl(name)).toBeLessThanOrEqual(500);
  await lost(hold);
  expect(hold.signal.reason).toMatchObject({ reason: 'maxHoldTime' });
  expect(proxy.log.some(({ args }) => args[0] === RENEW)).toBe(false);
});

test('the signal aborts before a waiter of another client gets the lock', async () => {
  const client = await openClient({ lockWatchdogTimeout: LEASE_MS });
  const other = await openClient();
  const name = freshName();
  const hold = await take(client.getLock(name), { maxHoldTime: LIMIT_MS });
  const next = await take(other.getLock(name), {});
  expect(hold.validFor()).toBe(0);
  expect(hold.signal.aborted).toBe(true);
  await next.release();
});

test('the other locks of the same renewals are renewed on', async () => {
  const client = await openClient({ lockWatchdogTimeout: LEASE_MS });
  const [limited, free] = [
    await take(client.getLock(freshName()), { maxHoldTime: LIMIT_MS }),
    await take(client.getLock(freshName()), {}),
  ];
  await lost(limited);
  let renewed = 0;
  client.events.on('renewed', ({ lockName }) => (renewed += Number(lockName === free.lockName)));
  await until(() => renewed > 2, 'the other lock is renewed');
  await free.release();
});

describe('the option of the client', () => {
  test('limits every renewed hold, and a call may set another time', async () => {
    const client = await openClient({ lockWatchdogTimeout: LEASE_MS, maxHoldTime: LIMIT_MS });
    const losses = lossesOf(client);
    const limited = await take(client.getLock(freshName()), {});
    const unlimited = await take(client.getLock(freshName()), { maxHoldTime: Infinity });
    const leased = await take(client.getLock(freshName()), { leaseTime: 60_000 });
    await lost(limited);
    let renewed = 0;
    client.events.on('renewed', ({ lockName }) => (renewed += Number(lockName === unlimited.lockName)));
    await until(() => renewed > 2, 'the hold without a limit is renewed');
    expect(leased.validFor()).toBeGreaterThan(0);
    expect(losses.map(({ lockName, reason }) => [lockName, reason])).toEqual([[limited.lockName, 'maxHoldTime']]);
    await Promise.all([unlimited.release(), leased.release()]);
  });

  test.each([0, 99, 1.5, '1000', null])('%p is refused', async (maxHoldTime) => {
    await expect(openClient({ maxHoldTime: maxHoldTime as number })).rejects.toMatchObject({ argument: 'maxHoldTime' });
  });
});

describe('nested holds', () => {
  test('a tenure lives as long as its longest hold', async () => {
    const client = await openClient({ lockWatchdogTimeout: LEASE_MS });
    const losses = lossesOf(client);
    const lock = client.getLock(freshName());
    const begun = performance.now();
    const outer = await take(lock, { maxHoldTime: LIMIT_MS });
    const nested = await outer.run(() => lock.acquire({ maxHoldTime: Infinity }));
    await until(() => performance.now() - begun > LIMIT_MS + LEASE_MS, 'the time of the outer hold has passed');
    expect(losses).toEqual([]);
    expect(outer.signal.aborted).toBe(false);
    // Its own lease has ended: the release of the nested hold frees the lock.
    await nested.release();
    expect(outer.signal.reason).toMatchObject({ reason: 'maxHoldTime' });
    await until(async () => (await admin().exists(lock.name)) === 0, 'the lock is free');
  });

  test('a nested hold with a limit does not end the outer hold', async () => {
    const client = await openClient({ lockWatchdogTimeout: LEASE_MS });
    const lock = client.getLock(freshName());
    const outer = await take(lock, {});
    const nested = await outer.run(() => lock.acquire({ maxHoldTime: 500 }));
    const begun = performance.now();
    await until(() => performance.now() - begun > LEASE_MS, 'the time of the nested hold has passed');
    expect(nested.signal.aborted).toBe(false);
    await nested.release();
    expect(outer.validFor()).toBeGreaterThan(0);
    await outer.release();
  });
});

describe('the time begins anew', () => {
  /** The time that a hold has, of `maxHoldTime`, if it began after `asked` (performance.now()). */
  function expectWhole(hold: Hold, asked: number, maxHoldTime: number): void {
    const validFor = hold.validFor();
    expect(validFor).toBeGreaterThanOrEqual(
      Math.floor(maxHoldTime - maxHoldTime / 100 - 1 - (performance.now() - asked)),
    );
  }

  test('for the waiter of this client that a release hands the lock to', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const first = await take(lock, { maxHoldTime: 20_000 });
    let handed = false;
    client.events.on('acquired', ({ handedOff }) => (handed = handedOff));
    const waiting = take(lock, { maxHoldTime: 20_000 });
    await until(() => first.validFor() < 19_700, 'some time has passed');
    const released = performance.now();
    await first.release();
    const second = await waiting;
    expect(handed).toBe(true);
    expectWhole(second, released, 20_000);
    await second.release();
  });

  test('for a call that enters a kept lock', async () => {
    const client = await openClient({ handOff: { local: 10_000, keep: 10_000 } });
    const lock = client.getLock(freshName());
    const first = await take(lock, { maxHoldTime: 20_000 });
    await until(() => first.validFor() < 19_700, 'some time has passed');
    await first.release();
    const asked = performance.now();
    const second = await take(lock, { maxHoldTime: 20_000 });
    expect(second.owner).toBe(first.owner);
    expectWhole(second, asked, 20_000);
    await second.release();
  });
});

test('release({ after }) ends the limit: the lock stays for that time', async () => {
  const client = await openClient({ lockWatchdogTimeout: LEASE_MS });
  const losses = lossesOf(client);
  const lock = client.getLock(freshName());
  const hold = await take(lock, { maxHoldTime: LIMIT_MS });
  const released = performance.now();
  await hold.release({ after: 2_000 });
  const next = await take(lock, {});
  expect(performance.now() - released).toBeGreaterThanOrEqual(2_000);
  expect(losses).toEqual([]);
  await next.release();
});

describe('a lock over several locks', () => {
  const kinds: Readonly<Record<string, (client: LockClient, names: readonly string[]) => Lock>> = {
    'multi-lock': (client, names) => client.getMultiLock(...names.map((name) => client.getLock(name))),
    RedLock: (client, names) => client.getRedLock(...names.map((name) => client.getLock(name))),
  };

  test.each(Object.keys(kinds))('%s: the time begins with the grant of the whole', async (kind) => {
    const client = await openClient();
    const losses = lossesOf(client);
    const names = [freshName('a'), freshName('b'), freshName('c')];
    // Keep the lock from a majority, so that the call waits for longer than its maxHoldTime.
    const other = await openClient();
    const busy = await Promise.all(names.slice(1).map((name) => take(other.getLock(name), {})));
    const waiting = take(kinds[kind]!(client, names), { maxHoldTime: LIMIT_MS });
    await until(() => client.stats().waiting > 0, 'the call waits');
    const waits = performance.now();
    await until(() => performance.now() - waits > LIMIT_MS + 200, 'the time has passed once');
    expect(losses).toEqual([]);
    const freed = performance.now();
    await Promise.all(busy.map((hold) => hold.release()));
    const hold = await waiting;
    await lost(hold);
    expect(performance.now() - freed).toBeGreaterThan(LIMIT_MS - 20);
    expect(hold.signal.reason).toMatchObject({ reason: 'maxHoldTime' });
    await until(async () => (await admin().exists(...names)) === 0, 'the locks are free');
  });
});

import { afterEach, expect, test } from '@jest/globals';
import { LockAbortedError } from '../../src/errors.js';
import type { LockEvents } from '../../src/events.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
  TestClock,
} from '../support/clients/lock-clients.js';
import { Random } from '../support/random.js';
import { admin, freshName } from '../support/redis.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';

const RENEW = scripts.renew.script!.sha;
const SLACK_MS = 250;

let server: RedisServer | undefined;
afterEach(async () => {
  await closeClients();
  await server?.stop();
  server = undefined;
});

test('R9: 1,000 random interleavings of acquire, abort and unlock leave no renewal and no key', async () => {
  const lockWatchdogTimeout = 2_400;
  const tick = lockWatchdogTimeout / 3;
  const random = new Random('R9');
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, lockWatchdogTimeout });
  proxy.delay(() => random.below(12), { direction: 'to-client', kind: 'command' });
  proxy.delay(() => random.below(4), { direction: 'to-server', kind: 'command' });
  const lost: unknown[] = [];
  client.events.on('leaseLost', (event) => lost.push(event));
  const endedAt = new Map<string, number>();
  let granted = 0;
  let aborted = 0;

  const interleaving = async (name: string): Promise<void> => {
    const lock = client.getLock(name);
    const controller = new AbortController();
    const abortsAfter = random.below(3) === 0 ? undefined : random.below(30);
    if (abortsAfter !== undefined) setTimeout(() => controller.abort(), abortsAfter);
    const contenders = 1 + random.below(2);
    const call = async (): Promise<void> => {
      try {
        const hold = await lock.acquire({ signal: controller.signal });
        granted += 1;
        if (random.below(2) === 0) await pause(random.below(20));
        if (random.below(4) === 0) await (await lock.acquire()).release();
        await hold.release();
      } catch (error) {
        if (!(error instanceof LockAbortedError)) throw error;
        aborted += 1;
      }
    };
    await Promise.all(Array.from({ length: contenders }, () => inFlow(call)));
    endedAt.set(name, performance.now());
  };

  const names = Array.from({ length: 1_000 }, () => freshName('r9'));
  const left = [...names];
  const worker = async (): Promise<void> => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) await interleaving(name);
  };
  // The sections end before their first renewal. This hold keeps the watchdog at work beside them.
  const kept = await inFlow(async () => client.getLock(freshName('kept')).acquire());
  const renewed = (): boolean => proxy.log.some(({ args }) => args[0] === RENEW);
  await Promise.all([until(renewed, 'the watchdog has renewed', 5_000), ...Array.from({ length: 50 }, worker)]);
  await kept.release();

  // A leftover hold would last for the whole watchdog timeout, while a pending release takes one round trip.
  await until(async () => (await admin().exists(...names)) === 0, 'all keys are gone', tick);
  await pause(tick + SLACK_MS);
  const late = proxy.log.filter(
    ({ args, at }) =>
      args[0] === RENEW && names.some((name) => args.includes(name) && at > (endedAt.get(name) ?? 0) + tick),
  );
  expect(late).toEqual([]);
  expect(lost).toEqual([]);
  expect(granted).toBeGreaterThan(200);
  expect(aborted).toBeGreaterThan(200);
});

test('R10: a renewal that was pending when the lease ended neither creates nor reacquires the lock', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, lockWatchdogTimeout: 600 });
  const other = await openClient();
  const lost: LockEvents['leaseLost'][] = [];
  client.events.on('leaseLost', (event) => lost.push(event));
  for (const takenBy of ['nobody', 'another'] as const) {
    const name = freshName('r10');
    const hold = await holdElsewhere(client.getLock(name));
    const renewal = proxy.holdCommand({ contains: name, where: ({ args }) => args[0] === RENEW, times: Infinity });
    await renewal.applied;
    // A whole cycle of another owner, which has the lock again when the renewal arrives.
    await inFlow(() => other.getLock(name).withLock({ leaseTime: 20_000 }, () => undefined));
    const newer = takenBy === 'another' ? await holdElsewhere(other.getLock(name), 20_000) : undefined;
    renewal.lift();
    await until(
      () =>
        proxy.log.some(({ args, answeredAt }) => args[0] === RENEW && args.includes(name) && answeredAt !== undefined),
      'the renewal was run',
    );
    expect(await admin().hgetall(name)).toEqual(newer === undefined ? {} : { [newer.owner]: '1' });
    expect(hold.signal.aborted).toBe(true);
    expect(hold.validFor()).toBe(0);
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    expect(lost.filter(({ lockName }) => lockName === name)).toHaveLength(1);
    if (newer === undefined) continue;
    expect(await admin().hgetall(name)).toEqual({ [newer.owner]: '1' });
    await newer.release();
  }
});

test('R10: a holder whose key was deleted, acquired and freed by another learns it from its next renewal', async () => {
  const client = await openClient({ lockWatchdogTimeout: 900 });
  const other = await openClient();
  const name = freshName('r10');
  const hold = await holdElsewhere(client.getLock(name));
  await admin().del(name);
  await inFlow(() => other.getLock(name).withLock(() => undefined));
  await until(() => hold.signal.aborted, 'the first holder learns of the loss', 300 + SLACK_MS);
  expect(hold.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'gone' });
  expect(await admin().exists(name)).toBe(0);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
});

test('R12: one failed renewal does not stop the later ones', async () => {
  const lockWatchdogTimeout = 1_500;
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, lockWatchdogTimeout, commandTimeout: 300 });
  const name = freshName('r12');
  const failed: unknown[] = [];
  client.events.on('renewFailed', (event) => failed.push(event));
  const hold = await holdElsewhere(client.getLock(name));
  const refusal = proxy.answer({ where: ({ args }) => args[0] === RENEW, times: Infinity }, '-LOADING not yet\r\n');
  await until(() => failed.length > 0, 'a renewal failed');
  refusal.lift();
  await pause(1.5 * lockWatchdogTimeout);
  expect(hold.signal.aborted).toBe(false);
  expect(hold.validFor()).toBeGreaterThan(0);
  expect(await admin().pttl(name)).toBeGreaterThan(0);
  await hold.release();
});

test('R12: a lost lock that another flow of the process acquires is renewed for three periods', async () => {
  const lockWatchdogTimeout = 900;
  const client = await openClient({ lockWatchdogTimeout });
  const lock = client.getLock(freshName('r12'));
  const first = await holdElsewhere(lock);
  await admin().del(lock.name);
  const second = await holdElsewhere(lock);
  await until(() => first.signal.aborted, 'the first hold is lost');
  const renewed: number[] = [];
  client.events.on('renewed', ({ owner }) => owner === second.owner && renewed.push(performance.now()));
  await pause(3 * lockWatchdogTimeout);
  expect(second.signal.aborted).toBe(false);
  expect(await lock.isHeldBy(second.owner)).toBe(true);
  expect(renewed.length).toBeGreaterThanOrEqual(3);
  expect(await outcome(first.release())).toBe('ERR_LOCK_LOST');
  expect(await lock.isHeldBy(second.owner)).toBe(true);
  await second.release();
});

test('R12: a failed batch of renewals does not delay the others', async () => {
  const lockWatchdogTimeout = 900;
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, lockWatchdogTimeout });
  const locks = Array.from({ length: 150 }, () => client.getLock(freshName('r12')));
  const holds = await Promise.all(locks.map((lock) => holdElsewhere(lock)));
  const failing = locks[0]!.name;
  const renewed = new Map<string, number>();
  client.events.on('renewed', ({ lockName }) => renewed.set(lockName, (renewed.get(lockName) ?? 0) + 1));
  const swallowed = proxy.holdReply(
    { contains: failing, where: ({ args }) => args[0] === RENEW, times: Infinity },
    400,
  );
  await swallowed.applied;
  const inBatch = proxy.log.find(({ args }) => args[0] === RENEW && args.includes(failing))!.args;
  const others = locks.filter(({ name }) => !inBatch.includes(name));
  expect(others).toHaveLength(50);
  swallowed.lift();
  const refused = proxy.answer(
    { contains: failing, where: ({ args }) => args[0] === RENEW, times: Infinity },
    '-ERR no\r\n',
  );
  await pause(2 * lockWatchdogTimeout);
  expect(refused.count).toBeGreaterThan(0);
  for (const { name } of others) expect(renewed.get(name)).toBeGreaterThanOrEqual(4);
  const stillHeld = await Promise.all(others.map((lock) => lock.isLocked()));
  expect(stillHeld).not.toContain(false);
  refused.lift();
  await Promise.allSettled(holds.map((hold) => hold.release()));
});

test('R12: a key overwritten with another type loses its own hold and no other hold of its batch', async () => {
  const lockWatchdogTimeout = 900;
  const client = await openClient({ lockWatchdogTimeout });
  const holds = [];
  for (let i = 0; i < 3; i += 1) {
    holds.push(await holdElsewhere(client.getLock(freshName('r12'))));
    holds.push(await inFlow(async () => client.getReadWriteLock(freshName('r12')).readLock().acquire()));
  }
  const foreign = holds.slice(0, 2);
  for (const { lockName } of foreign) await admin().set(lockName, 'something else');
  await pause(2 * lockWatchdogTimeout);
  expect(holds.map(({ signal }) => signal.aborted)).toEqual([true, true, false, false, false, false]);
  for (const { signal } of foreign) expect(signal.reason).toMatchObject({ reason: 'gone' });
  for (const { lockName } of foreign) await admin().del(lockName);
  const released = await Promise.all(holds.map((hold) => outcome(hold.release())));
  expect(released.slice(2)).toEqual(['ok', 'ok', 'ok', 'ok']);
});

test('R14: 10,000 locks stay held for five periods by one timer and one command per hundred of them and tick', async () => {
  const LOCKS = 10_000;
  const lockWatchdogTimeout = 4_800;
  const tick = lockWatchdogTimeout / 3;
  server = await startServer();
  const clock = new TestClock();
  const client = await openClient({ url: server.url, lockWatchdogTimeout, clock });
  const lost: unknown[] = [];
  client.events.on('leaseLost', (event) => lost.push(event));
  await inFlow(async () => {
    for (let taken = 0; taken < LOCKS; taken += 500) {
      const taking = Array.from({ length: 500 }, (_, i) => client.getLock(`lock-${taken + i}`).acquire());
      await Promise.all(taking);
    }
  });
  await until(() => clock.timers <= 1, 'the attempt deadlines have passed');
  const startedAt = performance.now();
  await server.resetCommandStats();
  let mostTimers = 0;
  while (performance.now() < startedAt + 5 * tick) {
    await pause(tick / 4);
    expect(Number(await server.command('DBSIZE'))).toBe(LOCKS);
    mostTimers = Math.max(mostTimers, clock.timers);
  }
  const sent = (await server.commandStats()).get('evalsha') ?? 0;
  const ticks = Math.floor((performance.now() - startedAt) / tick) + 1;
  expect(lost).toEqual([]);
  expect(client.holds()).toHaveLength(LOCKS);
  expect(sent).toBeGreaterThanOrEqual(4 * (LOCKS / 100));
  expect(sent).toBeLessThanOrEqual(ticks * (LOCKS / 100));
  // The timer of the watchdog, and while a batch is pending, the timer of all its deadlines.
  expect(mostTimers).toBeLessThanOrEqual(2);
  await client.close();
});

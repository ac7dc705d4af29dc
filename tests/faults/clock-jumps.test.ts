import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { renew } from '../../src/redis/scripts/lock.js';
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
import { elapsed } from '../support/time/elapsed.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

const SLACK_MS = 250;
const HOUR = 3_600_000;

afterEach(() => closeClients());

async function bench(terms = {}): Promise<{ proxy: FaultProxy; client: LockClient; clock: TestClock; name: string }> {
  const { proxy, url } = await openProxy();
  const clock = new TestClock();
  return { proxy, clock, client: await openClient({ url, clock, ...terms }), name: freshName() };
}

test('R37: after a clock jump without a reply, an unconfirmed hold is lost at its deadline before the jump', async () => {
  const { proxy, client, clock, name } = await bench();
  const hold = await holdElsewhere(client.getLock(name), 1_000);
  const ends = performance.now() + hold.validFor();
  let lostAt = Infinity;
  hold.signal.addEventListener('abort', () => (lostAt = performance.now()));
  proxy.stall({ direction: 'to-client' });
  // By one clock half of the lease has passed, by the other one all but half.
  await pause(200);
  clock.jumpWall(400);
  expect(hold.validFor()).toBe(0);
  expect(hold.signal.aborted).toBe(false);
  await until(() => lostAt < Infinity, 'the loss is reported');
  expect(elapsed(ends, lostAt)).toBeLessThan(SLACK_MS);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
});

test('R37: the client releases what a lost hold may have left for as long as Redis keeps it, after any clock jump', async () => {
  const { proxy, client, clock, name } = await bench({ commandTimeout: 300 });
  const hold = await holdElsewhere(client.getLock(name), 20_000);
  const { signal } = hold;
  const silence = proxy.stall({ direction: 'to-server' });
  clock.jumpWall(HOUR);
  expect(hold.validFor()).toBe(0);
  await until(() => signal.aborted, 'the hold is lost');
  await pause(700); // two attempts at giving it back have failed
  silence.lift();
  await until(async () => (await admin().exists(name)) === 0, 'it is released', 6_000);
  await outcome(hold.release());
});

test('R37: a clock jump while the client was idle makes no reply to a single try late', async () => {
  const { client, clock, name } = await bench();
  const lock = client.getLock(name);
  for (let round = 0; round < 3; round += 1) {
    clock.jumpWall(HOUR);
    expect(await outcome(inFlow(() => lock.withLock({ waitTime: 0 }, () => undefined)))).toBe('ok');
  }
});

test('R37: after a clock jump reads inside a multi-lock or a RedLock query Redis, like those of one lock', async () => {
  const { client } = await bench();
  const clock = new TestClock();
  const opened = await Promise.all([1, 2, 3].map(() => openClient({ clock })));
  const members = opened.map((each) => each.getLock(freshName()));
  for (const lock of [members[0]!, client.getMultiLock(...members), client.getRedLock(...members)]) {
    const hold = await holdElsewhere(lock);
    clock.jumpWall(HOUR);
    expect(await hold.run(() => lock.isHeldByCurrentContext())).toBe(true);
    clock.jumpWall(HOUR);
    expect(await hold.run(() => lock.getHoldCount())).toBe(1);
    await hold.release();
  }
});

test.each([
  ['the only hold', false],
  ['one around which another is open', true],
])('R3, R37: an unanswered release after a clock jump takes one command deadline: %s', async (_, nested) => {
  const { proxy, client, clock, name } = await bench({ commandTimeout: 600 });
  const lock = client.getLock(name);
  await inFlow(async () => {
    const outer = await lock.acquire({ leaseTime: 60_000 });
    const inner = nested ? await outer.run(() => lock.acquire({ leaseTime: 60_000 })) : outer;
    const silence = proxy.stall({ direction: 'to-server' });
    clock.jumpWall(1_000);
    const began = performance.now();
    expect(await outcome(inner.release())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    expect(elapsed(began)).toBeLessThan(600 + SLACK_MS);
    silence.lift();
    if (nested) await outer.release();
    // Released in the background, long before the lease ends.
    await until(async () => (await admin().exists(name)) === 0, 'it is released', 6_000);
  });
});

test('R37: after a clock jump during a nested release, Redis determines the remaining lease of the outer hold', async () => {
  const { proxy, client, clock, name } = await bench();
  const lock = client.getLock(name);
  const outer = await holdElsewhere(lock, 60_000);
  const inner = await outer.run(() => lock.acquire({ leaseTime: 60_000 }));
  const reply = proxy.holdReply({ sha: renew.script!.sha });
  const extended = outer.extend(90_000);
  await reply.executed;
  const released = inner.release();
  clock.jumpWall(HOUR);
  reply.lift();
  await Promise.all([extended, released]);
  expect(outer.signal.aborted).toBe(false);
  expect(outer.validFor()).toBeGreaterThan(0);
  expect(await admin().hget(name, outer.owner)).toBe('1');
  expect(await admin().pttl(name)).toBeGreaterThan(50_000);
  await outer.release();
});

test('R37: the end of a lease from after a clock jump is reported in time, also beside an earlier lease', async () => {
  const { client, clock, name } = await bench();
  const before = await holdElsewhere(client.getLock(freshName()), 60_000);
  clock.jumpWall(HOUR);
  const hold = await holdElsewhere(client.getLock(name), 300);
  const ends = performance.now() + hold.validFor();
  let lostAt = Infinity;
  hold.signal.addEventListener('abort', () => (lostAt = performance.now()));
  await until(() => lostAt < Infinity, 'the loss is reported');
  expect(elapsed(ends, lostAt)).toBeLessThan(SLACK_MS);
  for (const each of [before, hold]) await outcome(each.release());
});

test('R37: a lock acquired after a clock jump is renewed, also beside one with a long lease', async () => {
  const { client, clock, name } = await bench({ lockWatchdogTimeout: 900 });
  const leased = await holdElsewhere(client.getLock(freshName()), 60_000);
  clock.jumpWall(HOUR);
  const lock = client.getLock(name);
  await inFlow(async () => {
    await lock.lock();
    const hold = lock.currentHold()!;
    await pause(1_200);
    expect(hold.validFor()).toBeGreaterThan(0);
    await lock.unlock();
  });
  await outcome(leased.release());
});

import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { FencedHold } from '../../src/locks/fenced-lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { acquireRead } from '../../src/redis/scripts/read-write-lock.js';
import { elapsed } from '../support/time/elapsed.js';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
} from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { expectAtMost } from '../support/serious.js';

const NESTED = scripts.acquireNested.script!.sha;
const PARTIAL = scripts.releasePartial.script!.sha;
const RELEASE = scripts.release.script!.sha;
const RENEW = scripts.renew.script!.sha;
const SLACK_MS = 250;

afterEach(() => closeClients());

async function bench(): Promise<{ proxy: FaultProxy; client: LockClient; name: string }> {
  const { proxy, url } = await openProxy();
  return { proxy, client: await openClient({ url }), name: freshName() };
}

test('R11: during an unanswered release of a longer nested hold the loss of the outer hold is reported in time', async () => {
  const { proxy, client, name } = await bench();
  const lock = client.getLock(name);
  const leaseMs = 700;
  const outer = await holdElsewhere(lock, leaseMs);
  const nested = await outer.run(() => lock.acquire({ leaseTime: 20_000 }));
  // Another loss makes the client look at all deadlines: that of this lock is the nested hold's by then.
  const other = await holdElsewhere(client.getLock(freshName()), 100);
  await until(() => other.signal.aborted, 'the other one is lost');
  await outcome(other.release());
  let toldAt = Infinity;
  outer.signal.addEventListener('abort', () => (toldAt = performance.now()));
  const held = proxy.holdReply({ sha: PARTIAL });
  const released = outcome(nested.release());
  await held.applied;
  const deadline = performance.now() + outer.validFor();
  await until(() => toldAt < Infinity, 'the loss is reported');
  expect(elapsed(deadline, toldAt)).toBeLessThan(SLACK_MS);
  held.lift();
  expect(await released).toBe('ok'); // its own lease was not over
  expect(await outcome(outer.release())).toBe('ERR_LOCK_LOST');
  expect(await admin().exists(name)).toBe(0);
});

test('R11: a longer nested hold that a loss listener releases leaves the deadline of the outer hold', async () => {
  const { client, name } = await bench();
  const lock = client.getLock(name);
  const outer = await holdElsewhere(lock, 700);
  const nested = await outer.run(() => lock.acquire({ leaseTime: 20_000 }));
  const other = await holdElsewhere(client.getLock(freshName()), 100);
  let released: Promise<unknown> | undefined;
  // While the client looks at all deadlines: that of this lock was the nested hold's.
  other.signal.addEventListener('abort', () => void (released = outcome(nested.release())));
  let toldAt = Infinity;
  outer.signal.addEventListener('abort', () => (toldAt = performance.now()));
  await until(() => released !== undefined, 'the other one is lost');
  expect(await released).toBe('ok');
  const deadline = performance.now() + outer.validFor();
  await pause(outer.validFor() + SLACK_MS);
  expect(elapsed(deadline, toldAt)).toBeLessThan(SLACK_MS);
  await outcome(other.release());
  expect(await outcome(outer.release())).toBe('ERR_LOCK_LOST');
});

test('R11: a waiter for an inner hold learns that the outer one is lost when its release finds the loss', async () => {
  const { proxy, client, name } = await bench();
  const lock = client.getLock(name);
  const lost: unknown[] = [];
  client.events.on('leaseLost', (event) => lost.push(event));
  for (const request of ['acquire', 'extend'] as const) {
    await inFlow(async () => {
      const outer = await lock.acquire();
      const inner = await lock.acquire({ leaseTime: 300 });
      const held = proxy.holdReply({ command: 'EVALSHA' });
      const asked = outcome(request === 'acquire' ? lock.acquire() : inner.extend(20_000));
      await held.applied;
      const released = outcome(outer.release());
      await until(() => inner.signal.aborted, 'nothing is left of the inner lease');
      held.lift();
      expect(await Promise.all([asked, released, outcome(inner.release())])).toEqual([
        'ERR_LOCK_LOST',
        'ok',
        'ERR_LOCK_LOST',
      ]);
      expect(await admin().exists(name)).toBe(0);
    });
  }
  expect(lost).toMatchObject([{ reason: 'expired' }, { reason: 'expired' }]);
});

test.each([
  ['lock', 1, 'ERR_LOCK_REDIS_UNAVAILABLE'],
  ['multi-lock', 2, 'ERR_LOCK_MULTI_UNLOCK'],
])(
  'R11: %s: with the last unlock unanswered, the unlock of an expired hold around it reports its loss',
  async (_, members, failure) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 600 });
    const locks = Array.from({ length: members }, () => client.getLock(freshName()));
    const lock = members === 1 ? locks[0]! : client.getMultiLock(...locks);
    await inFlow(async () => {
      await lock.lock(400);
      const outer = lock.currentHold()!;
      await lock.lock(20_000);
      await pause(420);
      const swallowed = proxy.swallow({ sha: RELEASE, times: Infinity });
      expect(await outcome(lock.unlock())).toBe(failure);
      expect(outer.signal.aborted).toBe(true);
      expect(await outcome(lock.unlock())).toBe('ERR_LOCK_LOST');
      swallowed.lift();
      // Nothing but the first is left to wait for.
      expect(await outcome(lock.unlock())).toBe('ok');
      expect(await Promise.all(locks.map(({ name }) => admin().exists(name)))).toEqual(locks.map(() => 0));
      expect(await outcome(lock.unlock())).toBe('ERR_LOCK_NOT_OWNER');
    });
  },
);

test('R11: an outer release that waited for an inner one and finds the lock gone rejects and reports the loss', async () => {
  const { proxy, client, name } = await bench();
  const lock = client.getLock(name);
  const lost: unknown[] = [];
  client.events.on('leaseLost', (event) => lost.push(event));
  const outer = await holdElsewhere(lock);
  const inner = await outer.run(() => lock.acquire());
  const held = proxy.holdReply({ sha: PARTIAL });
  const released = [outcome(inner.release())];
  await held.executed;
  released.push(outcome(outer.release()));
  await admin().del(name);
  held.lift();
  expect(await Promise.all(released)).toEqual(['ok', 'ERR_LOCK_LOST']);
  expect(lost).toMatchObject([{ lockName: name, reason: 'gone' }]);
});

test('R11: a late read attempt that arrives after a nested one removes no read hold', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, lockWatchdogTimeout: 900, commandTimeout: 6_000 });
  const lock = client.getReadWriteLock(freshName()).readLock();
  await admin().script('LOAD', acquireRead.script!.source);
  const late = proxy.holdCommand({ sha: acquireRead.script!.sha });
  const asked = holdElsewhere(lock, 1_000);
  await late.applied;
  proxy.cut({ kind: 'command', side: 'client' });
  const outer = await asked;
  const inner = await inFlow(() => outer.run(async () => lock.acquire()));
  late.lift();
  await late.executed;
  expect(await admin().hget(lock.name, outer.owner)).toBe('2');
  // The renewed one outlives the lease of the other.
  await pause(1_500);
  expect(inner.signal.aborted).toBe(false);
  expect(await Promise.all([outcome(outer.release()), outcome(inner.release())])).toEqual(['ok', 'ok']);
});

test('R3: an unanswered partial release, followed by the end of all holds, is completed in the background', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 600 });
  const lock = client.getLock(freshName());
  await inFlow(async () => {
    const outer = await lock.acquire();
    const inner = await lock.acquire({ leaseTime: 300 });
    const swallowed = proxy.swallow({ sha: PARTIAL, times: Infinity });
    const released = outcome(outer.release());
    await until(() => inner.signal.aborted, 'nothing is left of the inner lease');
    expect(await released).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    swallowed.lift();
    await until(async () => (await admin().exists(lock.name)) === 0, 'it is released', 1_000);
    expect(await outcome(inner.release())).toBe('ERR_LOCK_LOST');
  });
});

test('R15: a nested release after the outer lease has ended reports that loss before the lock is free', async () => {
  const { proxy, client, name } = await bench();
  const lock = client.getLock(name);
  const outer = await holdElsewhere(lock, 400);
  const nested = await outer.run(() => lock.acquire({ leaseTime: 20_000 }));
  const { signal } = outer;
  await pause(450);
  expect(signal.aborted).toBe(false); // the nested hold has kept the lock for both
  const held = proxy.holdCommand({ sha: RELEASE });
  const released = nested.release();
  await held.applied;
  expect(signal.aborted).toBe(true);
  expect(outer.validFor()).toBe(0);
  expect(await admin().exists(name)).toBe(1);
  held.lift();
  await released;
  expect(await admin().exists(name)).toBe(0);
  expect(await outcome(outer.release())).toBe('ERR_LOCK_LOST');
});

test.each(['getFencedLock', 'getLock'] as const)(
  'R29: a nested hold has its own token after a release of another hold from %s that never reached Redis',
  async (factory) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 300 });
    const name = freshName();
    const lock = client.getFencedLock(name);
    const before = await inFlow(() => lock.acquire());
    await before.release();
    const outer = await inFlow(() => client[factory](name).acquire());
    const other = await outer.run(() => client[factory](name).acquire());
    const cut = proxy.cutBefore({ command: ['EVALSHA', 'EVAL'], times: Infinity });
    expect(await outcome(other.release())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    cut.lift();
    const nested = await outer.run(() => lock.acquire());
    expect(await admin().hget(name, outer.owner)).toBe('2');
    const largest = other instanceof FencedHold ? other.token : before.token;
    expect(nested.token).toBeGreaterThan(largest);
    await nested.release();
    await outer.release();
  },
);

test('R24: a nested hold that outlives its parent excludes the branches beside that parent', async () => {
  const { client, name } = await bench();
  const lock = client.getLock(name);
  const inside: string[] = [];
  let most = 0;
  const section = async (who: string, ms: number): Promise<void> => {
    most = Math.max(most, inside.push(who));
    await pause(ms);
    inside.splice(inside.indexOf(who), 1);
  };
  await lock.withLock(async () => {
    const children: Promise<void>[] = [];
    const branch = async (who: string): Promise<void> => {
      await lock.lock();
      children.push(lock.withLock(() => section(`child of ${who}`, 60)));
      await pause(STARTED_MS); // the child is inside by now
      await lock.unlock();
      await lock.withLock(() => section(`${who} again`, 10));
    };
    await Promise.all([branch('first'), branch('second'), lock.withLock(() => section('third', 10))]);
    await Promise.all(children);
  });
  expectAtMost(most);
  expect(most).toBe(1);
});

test.each(['acquire', 'release', 'extend'] as const)(
  'R3: %s inside a hold that waits for an attempt that may still run settles within one command deadline',
  async (request) => {
    const commandTimeout = 1_800;
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout });
    const lock = client.getLock(freshName());
    const outer = await holdElsewhere(lock, 20_000);
    const nested = await outer.run(() => lock.acquire({ leaseTime: 20_000 }));
    // The first attempt lies in the network while its connection is gone; the second one is answered.
    const late = proxy.holdCommand({ sha: NESTED });
    const ids = proxy.connections({ kind: 'command' }).map(({ id }) => id);
    const third = nested.run(() => lock.acquire({ leaseTime: 20_000 }));
    await late.applied;
    proxy.cut({ connection: ids, side: 'client' });
    const last = await third;
    const swallowed = proxy.swallow({
      where: ({ args }) => [NESTED, PARTIAL, RENEW].includes(args[0]!),
      times: Infinity,
    });
    const called = performance.now();
    const asked =
      request === 'acquire'
        ? last.run(() => lock.acquire({ waitTime: 0 }))
        : request === 'release'
          ? last.release()
          : last.extend(30_000);
    expect(await outcome(asked)).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    expect(elapsed(called)).toBeLessThan(commandTimeout + SLACK_MS);
    swallowed.lift();
    late.lift();
    if (request !== 'release') await last.release();
    await nested.release();
    await outer.release();
  },
);

test('R23: a nested call that is aborted while it waits for an earlier request rejects at once and sends nothing', async () => {
  const { proxy, client, name } = await bench();
  const lock = client.getLock(name);
  const outer = await holdElsewhere(lock);
  const held = proxy.holdReply({ sha: RENEW });
  const extended = outcome(outer.extend(60_000));
  await held.applied;
  const controller = new AbortController();
  const called = outer.run(() => outcome(lock.acquire({ signal: controller.signal })));
  await pause(STARTED_MS); // it has its turn among the branches, and waits for the answer
  const aborted = performance.now();
  controller.abort();
  expect(await called).toBe('ERR_LOCK_ABORTED');
  expect(elapsed(aborted)).toBeLessThan(50 + SLACK_MS);
  held.lift();
  expect(await extended).toBe('ok');
  // The next one has its place, and the count that would have been its own.
  const nested = await outer.run(() => lock.acquire());
  expect(proxy.log.filter(({ args }) => args[0] === NESTED)).toHaveLength(1);
  expect(await admin().hgetall(name)).toEqual({ [outer.owner]: '2' });
  await nested.release();
  await outer.release();
});

test('R23: a nested call that is aborted while pending rejects at the reply, before the release of its grant', async () => {
  const { proxy, client, name } = await bench();
  const lock = client.getLock(name);
  const outer = await holdElsewhere(lock);
  const answer = proxy.holdReply({ sha: NESTED });
  const givenBack = proxy.holdReply({ sha: PARTIAL });
  const controller = new AbortController();
  const called = outer.run(() => outcome(lock.acquire({ signal: controller.signal })));
  await answer.executed;
  controller.abort();
  const answeredAt = performance.now();
  answer.lift();
  expect(await called).toBe('ERR_LOCK_ABORTED');
  expect(elapsed(answeredAt)).toBeLessThan(SLACK_MS);
  await givenBack.executed;
  expect(await admin().hgetall(name)).toEqual({ [outer.owner]: '1' });
  givenBack.lift();
  await outer.release();
});

test('R2: a call that is aborted between two attempts sends nothing more', async () => {
  const { proxy, client, name } = await bench();
  const later = proxy.answer({ command: ['EVALSHA', 'EVAL'], contains: name, times: Infinity }, '-LOADING later\r\n');
  const controller = new AbortController();
  const called = inFlow(() => outcome(client.getLock(name).acquire({ signal: controller.signal })));
  // The third pause is a tenth of a second.
  await later.appliedTimes(3);
  await pause(10);
  const aborted = performance.now();
  controller.abort();
  expect(await called).toBe('ERR_LOCK_ABORTED');
  expect(elapsed(aborted)).toBeLessThan(50 + SLACK_MS);
  const { count } = later;
  later.lift();
  await pause(500);
  expect(proxy.log.filter(({ args }) => args.includes(name))).toHaveLength(count);
});

test('a hold whose lease ends right after the release of a nested hold leaves nothing to wait for', async () => {
  const { client, name } = await bench();
  // A kind whose waiters are not woken by messages.
  const lock = client.getSpinLock(name);
  const leaseMs = 200;
  const outer = await holdElsewhere(lock, leaseMs);
  const nested = await outer.run(() => lock.acquire({ leaseTime: leaseMs }));
  client.events.on('released', () => {
    // Redis has released the nested hold, and its release has found the outer one open. No other code ends the rest.
    const end = performance.now() + leaseMs;
    while (performance.now() < end);
    queueMicrotask(() => expect(outer.validFor()).toBe(0));
  });
  await nested.release();
  expect(outer.signal.aborted).toBe(true);
  expect(await inFlow(() => lock.tryLock(2_000, leaseMs).then((granted) => granted && lock.forceUnlock()))).toBe(true);
  expect(await outcome(outer.release())).toBe('ERR_LOCK_LOST');
});

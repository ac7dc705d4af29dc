import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { createLocking } from '../../src/integrations/decorators/index.js';
import type { Hold } from '../../src/holding/hold.js';
import { LockContext } from '../../src/ownership/lock-context.js';
import { LockLostError, MultiUnlockError } from '../../src/errors.js';
import type { Lock } from '../../src/locks/lock.js';
import { acquire, release, releasePartial } from '../../src/redis/scripts/lock.js';
import { startWorker, type Worker } from '../support/processes/child.js';
import { elapsed } from '../support/time/elapsed.js';
import {
  answered,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
  ready,
  type ClientSettings,
} from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { SharedCounter } from '../support/processes/shared-counter.js';
import { FakeClock } from '../support/time/fake-clock.js';
import { until } from '../support/time/until.js';
import { expectAtMost, expectNoOverlap } from '../support/serious.js';

const workers: Worker[] = [];
let other: RedisServer;
let elsewhere: LockClient;

beforeAll(async () => {
  other = await startServer();
  elsewhere = createClient({ url: other.url });
  await elsewhere.ready();
});
afterAll(async () => {
  await elsewhere.close();
  await other.stop();
});
afterEach(async () => {
  other.resume();
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
  await closeClients();
  await until(async () => (await other.keys()).length === 0, 'nothing is left on the other server');
});

const held = async (...names: string[]): Promise<boolean[]> =>
  Promise.all(names.map(async (name) => (await admin().exists(name)) === 1));

describe('a multi-lock', () => {
  test('has one owner per server, re-enters as a whole and by member, and acquires all members or none', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const client = await openClient();
    const both = client.getMultiLock(client.getLock(a), client.getLock(b));
    await both.lock();
    const { owner } = both.currentHold()!;
    expect(await admin().hgetall(a)).toEqual({ [owner]: '1' });
    expect(await admin().hgetall(b)).toEqual({ [owner]: '1' });
    await both.lock();
    await client.getLock(a).lock();
    expect([await both.getHoldCount(), await client.getLock(a).getHoldCount()]).toEqual([2, 3]);
    await client.getLock(a).unlock();
    expect(await outcome(client.getLock(a).unlock())).toBe('ERR_LOCK_NOT_OWNER');
    await both.unlock();
    expect(await both.isHeldBy(owner)).toBe(true);
    await both.unlock();
    expect(await held(a, b)).toEqual([false, false]);
  });

  test('takes members of other kinds, clients and servers, and counts a duplicate once', async () => {
    const [a, b, c, d] = [freshName('a'), freshName('b'), freshName('c'), freshName('d')];
    const [client, second] = [await openClient(), await openClient()];
    const members = [
      client.getReadWriteLock(a).writeLock(),
      second.getFencedLock(b),
      client.getSpinLock(c),
      elsewhere.getLock(d),
      client.getMultiLock(c + c, ['x', 'y']),
    ];
    const lock = client.getMultiLock(...members, client.getSpinLock(c));
    await lock.withLock(async (hold) => {
      expect(await held(a, b, c, c + c)).toEqual([true, true, true, true]);
      expect(await other.command('EXISTS', d)).toBe(1);
      expect(hold.owner.split(', ')).toHaveLength(3);
    });
    expect(await held(a, b, c, c + c)).toEqual([false, false, false, false]);
    expect(lock.name.split(', ')).toHaveLength(5);
  });

  test('takes one round trip when all are free', async () => {
    const names = Array.from({ length: 10 }, () => freshName());
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const lock = client.getMultiLock(...names.map((name) => client.getLock(name)));
    await lock.withLock(() => undefined);
    const before = proxy.log.length;
    // Hold every reply until all requests are sent: a sequential implementation would never send the second one.
    const answers = proxy.holdReply({ command: 'EVALSHA', times: Infinity });
    const taking = lock.acquire();
    const asked = (): number => proxy.log.slice(before).filter(({ name }) => name === 'EVALSHA').length;
    await until(() => asked() === names.length, 'all requests are sent before the first reply');
    answers.lift();
    const hold = await taking;
    await hold.release();
  });

  test('is refused for locks that would wait for each other, for no locks, and for other values', async () => {
    const [client, again] = [await openClient(), await openClient()];
    const name = freshName();
    const locks = client.getReadWriteLock(name);
    expect(() => client.getMultiLock(locks.readLock(), locks.writeLock())).toThrow(/twice/);
    expect(() => client.getMultiLock(client.getLock(name), again.getLock(name))).toThrow(/twice/);
    expect(() =>
      client.getMultiLock(client.getMultiLock(name, ['a']), client.getMultiLock(name, ['a', 'b'])),
    ).toThrow();
    expect(() => client.getMultiLock()).toThrow(/at least one/);
    expect(() => client.getMultiLock(client.getLock(name), 7 as never)).toThrow(/locks/);
    expect(() => client.getMultiLock(client.getLock(name), { wait: 1 } as never)).toThrow(
      /^unknown option "wait"; expected one of context/,
    );
  });

  test('belongs to its context, whichever flow calls', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const client = await openClient();
    const context = new LockContext();
    const lock = client.getMultiLock(client.getLock(a), client.getLock(b), { context });
    await lock.lock();
    expect([await lock.isHeldBy(context), await lock.getHoldCount(), await lock.tryLock()]).toEqual([true, 1, true]);
    await lock.unlock();
    await lock.unlock();
    expect(await outcome(lock.unlock())).toBe('ERR_LOCK_NOT_OWNER');
  });
});

describe('a call that does not wait asks Redis, whatever this client believes to hold', () => {
  type End = (names: readonly string[]) => Promise<unknown>;
  const ends: readonly [string, End][] = [
    ['a loss of data', (names) => admin().del(...names)],
    [
      'a forced unlock by another client',
      async (names) => {
        const client = await openClient();
        await client.getMultiLock(...names.map((name) => client.getLock(name))).forceUnlock();
      },
    ],
  ];

  test.each(ends)('tryLock() gets the lock after %s', async (_, end) => {
    const names = [freshName('a'), freshName('b')];
    const client = await openClient();
    const both = client.getMultiLock(...names.map((name) => client.getLock(name)));
    const stuck = await inFlow(() => both.acquire());
    expect(await inFlow(() => both.tryLock())).toBe(false);
    await end(names);
    expect(
      await inFlow(async () => {
        const taken = await both.tryLock();
        if (taken) await both.unlock();
        return taken;
      }),
    ).toBe(true);
    expect(await outcome(stuck.release())).toBe('ERR_LOCK_LOST');
  });

  test.each(ends)('locked() with several keys runs after %s', async (_, end) => {
    const names = [freshName('a'), freshName('b')];
    const client = await openClient();
    const { locked } = createLocking(client);
    const sections: (() => void)[] = [];
    const body = (): Promise<string> => new Promise((done) => sections.push(() => done('ran')));
    const run = locked({ key: names, onBusy: 'skip' }, body);
    const stuck = inFlow(() => run());
    await until(() => sections.length === 1, 'the first call is in its section');
    expect(await inFlow(() => run())).toBeUndefined();
    await end(names);
    const second = inFlow(() => run());
    await until(() => sections.length === 2, 'the second call is in its section');
    for (const finish of sections) finish();
    expect(await second).toBe('ran');
    expect(await outcome(stuck)).toBe('ERR_LOCK_LOST');
  });
});

describe('a call with a wait time waits through an outage', () => {
  const forms: readonly [string, { waitTime: number; leaseTime?: number }][] = [
    ['whose lease the client renews', { waitTime: 10_000 }],
    ['with a lease of its own', { waitTime: 10_000, leaseTime: 20_000 }],
  ];

  test.each(forms)('of one server (a hold %s)', async (_, form) => {
    const [a, b] = [freshName('a'), freshName('b')];
    const client = await openClient();
    const { away, lock } = await beside(client, a, b);
    await other.pause();
    let ended = false;
    const call = inFlow(() => lock.acquire(form)).finally(() => (ended = true));
    // Longer than two command deadlines.
    await pause(700);
    expect(ended).toBe(false);
    other.resume();
    const hold = await call;
    expect(hold.validFor()).toBeGreaterThan(0);
    await hold.release();
    await away.close();
  });

  test('while the lease of the hold begins', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 300 });
    const busy = await holdElsewhere((await openClient()).getLock(b));
    const lock = client.getMultiLock(client.getLock(a), client.getLock(b));
    const call = inFlow(() => lock.acquire({ waitTime: 10_000, leaseTime: 20_000 }));
    await until(() => client.stats().waiting === 1, 'it waits for the second lock');
    const lost = proxy.swallow({ sha: releasePartial.script!.sha, times: Infinity });
    await busy.release();
    await lost.applied;
    await pause(700);
    lost.lift();
    const hold = await call;
    expect(await held(a, b)).toEqual([true, true]);
    await hold.release();
  });

  test('and rejects with the reason when the outage outlasts the wait', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const client = await openClient();
    const { away, lock } = await beside(client, a, b);
    await other.pause();
    const began = performance.now();
    expect(await inFlow(() => outcome(lock.acquire({ waitTime: 1_000 })))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    expect(elapsed(began)).toBeGreaterThan(800);
    expect(await held(a)).toEqual([false]);
    other.resume();
    await until(async () => (await other.command('EXISTS', b)) === 0, 'nothing is left');
    await away.close();
  });

  async function beside(client: LockClient, a: string, b: string): Promise<{ away: LockClient; lock: Lock }> {
    const away = createClient({ url: other.url, commandTimeout: 300 });
    await ready(away);
    return { away, lock: client.getMultiLock(client.getLock(a), away.getLock(b)) };
  }
});

describe('R27: the lease', () => {
  test('is exact for every member after a long wait, and the members held during the wait are kept', async () => {
    const [a, b, c] = [freshName('a'), freshName('b'), freshName('c')];
    const client = await openClient({ lockWatchdogTimeout: 1_500 });
    const busy = await inFlow(async () => client.getLock(b).acquire());
    const waits = inFlow(async () =>
      client.getMultiLock(...[c, b, a].map((name) => client.getLock(name))).acquire({ leaseTime: 6_000 }),
    );
    // Longer than a lease of the watchdog: the granted members are renewed.
    await pause(2_000);
    expect(await held(a, b, c)).toEqual([true, true, false]);
    await busy.release();
    const hold = await waits;
    const lefts = await Promise.all([a, b, c].map((name) => admin().pttl(name)));
    for (const left of lefts) {
      expect(left).toBeLessThanOrEqual(6_000);
      expect(left).toBeGreaterThan(4_500);
    }
    expect(hold.validFor()).toBeLessThanOrEqual(5_940);
    await pause(1_400);
    for (const name of [a, b, c]) expect(await admin().pttl(name)).toBeLessThanOrEqual(4_600); // the lock is not renewed
    await hold.release();
  });

  test('does not shorten a longer hold of a member around the call', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const client = await openClient();
    await client.getLock(a).withLock({ leaseTime: 60_000 }, async () => {
      await client.getMultiLock(client.getLock(a), client.getLock(b)).withLock({ leaseTime: 5_000 }, async () => {
        expect(await admin().pttl(a)).toBeGreaterThan(50_000);
        expect(await admin().pttl(b)).toBeLessThanOrEqual(5_000);
      });
    });
  });
});

test('R13: a multi-lock is not granted if one member has expired when the last one is granted', async () => {
  const { proxy, url } = await openProxy();
  const [client, away] = [await openClient(), await openClient({ url, commandTimeout: 4_500 })];
  const [a, b] = [freshName('a'), freshName('b')];
  const lock = client.getMultiLock(client.getLock(a), away.getLock(b));
  const take = async (waitTime: number): Promise<Hold> => {
    // The next try, after 1,500 ms, follows the end of the lease of the other member.
    const lost = proxy.swallow({ sha: acquire.script!.sha, contains: b });
    const taken = inFlow(async () => lock.acquire({ waitTime, leaseTime: 1_200 }));
    return taken.finally(() => lost.lift());
  };
  expect(await outcome(take(0))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  const hold = await take(10_000);
  expect(hold.validFor()).toBeGreaterThan(0);
  expect(await held(a, b)).toEqual([true, true]);
  await hold.release();
});

describe('R27: a call that ends without the lock', () => {
  test('with false, a time-out or an abort holds and renews no member', async () => {
    const [a, b, c] = [freshName('a'), freshName('b'), freshName('c')];
    const client = await openClient({ lockWatchdogTimeout: 3_000 });
    const busy = await inFlow(async () => client.getLock(b).acquire());
    const lock = client.getMultiLock(...[a, b, c].map((name) => client.getLock(name)));
    expect(await lock.tryLock()).toBe(false);
    expect(await held(a, c)).toEqual([false, false]);
    expect(await lock.tryLock(200, 5_000)).toBe(false);
    expect(await held(a, c)).toEqual([false, false]);
    const abort = new AbortController();
    const waits = inFlow(() => outcome(lock.lock({ signal: abort.signal })));
    await until(async () => (await held(a))[0] === true, 'it waits with the granted members');
    abort.abort();
    expect(await waits).toBe('ERR_LOCK_ABORTED');
    expect(await held(a, c)).toEqual([false, false]);
    expect(client.holds()).toHaveLength(1);
    await busy.release();
  });

  test('because a server hangs rejects within its deadline and holds nothing on the other server', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const client = await openClient();
    const away = createClient({ url: other.url, commandTimeout: 600 });
    await ready(away);
    const lock = client.getMultiLock(client.getLock(a), away.getLock(b));
    await lock.withLock(() => undefined);
    await other.pause();
    for (const call of [() => lock.tryLock(), () => lock.lock(), () => lock.acquire({ leaseTime: 5_000 })]) {
      const began = performance.now();
      expect(await inFlow(() => outcome(call()))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
      expect(elapsed(began)).toBeLessThan(2 * 600 + 1_000);
      expect(await held(a)).toEqual([false]);
      expect(client.holds()).toEqual([]);
    }
    other.resume();
    await until(async () => (await other.command('EXISTS', b)) === 0, 'the requested members are released');
    await away.close();
  });
});

test('R3: a multi-lock that can be neither acquired nor released rejects within one command deadline', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 1_800 });
  const away = createClient({ url: other.url, commandTimeout: 1_800 });
  await ready(away);
  const [a, b] = [freshName('a'), freshName('b')];
  const lock = client.getMultiLock(client.getLock(a), away.getLock(b));
  for (const call of [() => lock.tryLock(), () => lock.lock(), () => lock.acquire({ waitTime: 100 })]) {
    const unreleased = proxy.swallow({ command: 'EVALSHA', sha: release.script!.sha, times: Infinity });
    await other.pause();
    const began = performance.now();
    expect(await inFlow(() => outcome(call()))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    expect(elapsed(began)).toBeLessThan(100 + 1_800 + 1_000);
    await unreleased.applied;
    unreleased.lift();
    other.resume();
    const left = async (): Promise<number> => (await admin().exists(a)) + (await other.keys()).length;
    await until(async () => (await left()) === 0, 'everything is released');
  }
  await away.close();
});

test('R3: a multi-lock with a late last grant and unanswered leases rejects one command deadline after its wait time', async () => {
  const [a, b] = [freshName('a'), freshName('b')];
  const [commandTimeout, waitTime] = [4_200, 2_000];
  const { proxy, url } = await openProxy();
  const [client, beside] = [await openClient({ url, commandTimeout }), await openClient()];
  const theirs = await holdElsewhere(beside.getLock(b));
  const lock = client.getMultiLock(client.getLock(a), client.getLock(b));
  const called = performance.now();
  const call = outcome(inFlow(async () => lock.acquire({ waitTime, leaseTime: 20_000 })));
  await until(async () => (await admin().pubsub('CHANNELS', `*{${b}}`)).length > 0, 'it stands in line');
  await pause(1_000 - elapsed(called));
  const granted = proxy.holdReply({ sha: acquire.script!.sha, contains: b }, 1_300); // of 1,400 for one attempt
  const lost = proxy.swallow({ sha: releasePartial.script!.sha, times: Infinity });
  await theirs.release();
  expect(await call).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  expect(elapsed(called)).toBeLessThan(waitTime + commandTimeout + 1_000);
  expect(granted.count).toBe(1);
  lost.lift();
  await until(async () => (await admin().exists(a, b)) === 0, 'everything is released');
});

describe('a multi-lock whose wait time has ended', () => {
  async function bench(settings: ClientSettings = {}): Promise<{ proxy: FaultProxy; lock: Lock; a: Lock; b: Lock }> {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, ...settings });
    const [a, b] = [client.getLock(freshName('a')), elsewhere.getLock(freshName('b'))];
    return { proxy, lock: client.getMultiLock(a, b), a, b };
  }

  test('during the release of its first grants acquires no member again', async () => {
    const { proxy, lock, b } = await bench();
    const beside = await openClient({ url: other.url });
    const theirs = await holdElsewhere(beside.getLock(b.name));
    const tried = proxy.observe({ command: 'EVALSHA', sha: acquire.script!.sha, times: Infinity });
    const released = proxy.holdReply({ command: 'EVALSHA', sha: release.script!.sha });
    const call = outcome(inFlow(async () => lock.acquire({ waitTime: 100 })));
    await released.executed;
    await pause(120);
    released.lift();
    expect(await call).toBe('ERR_LOCK_TIMEOUT');
    expect(tried.count).toBe(1);
    await theirs.release();
  });

  test('when a member is granted late tries no other member', async () => {
    const clock = new FakeClock();
    const { proxy, lock, a, b } = await bench({ clock });
    const beside = (await openClient()).getLock(a.name);
    const theirs = await holdElsewhere(beside);
    const call = outcome(inFlow(async () => lock.acquire({ waitTime: 200 })));
    await until(async () => (await admin().pubsub('CHANNELS', `*{${a.name}}`)).length > 0, 'it stands in line');
    const granted = proxy.holdReply({ command: 'EVALSHA', sha: acquire.script!.sha });
    await theirs.release();
    await granted.executed;
    await clock.advance(220);
    granted.lift();
    expect(await call).toBe('ERR_LOCK_TIMEOUT');
    expect(await held(a.name)).toEqual([false]);
    expect(await b.isLocked()).toBe(false);
  });
});

describe('unlock()', () => {
  test('releases every member and reports all failures in one error', async () => {
    const [a, b, c] = [freshName('a'), freshName('b'), freshName('c')];
    const client = await openClient();
    const lock = client.getMultiLock(...[a, b, c].map((name) => client.getLock(name)));
    await lock.lock();
    await admin().del(a, c);
    const error = await lock.unlock().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockLostError);
    const { cause } = error as LockLostError;
    expect(cause).toBeInstanceOf(MultiUnlockError);
    expect((cause as MultiUnlockError).failures.map(({ lockName }) => lockName)).toEqual([a, c]);
    expect(await held(a, b, c)).toEqual([false, false, false]);
    expect(await outcome(lock.unlock())).toBe('ERR_LOCK_NOT_OWNER');
  });

  test('with a hanging server frees the other members at once, names the hanging one, and releases it later', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const client = await openClient();
    const away = createClient({ url: other.url, commandTimeout: 3_000 });
    await ready(away);
    const hold = await inFlow(async () => client.getMultiLock(client.getLock(a), away.getLock(b)).acquire());
    await other.pause();
    let settled = false;
    const released = hold
      .release()
      .catch((reason: unknown) => reason)
      .finally(() => (settled = true));
    await until(async () => (await held(a))[0] === false, 'the other member is free');
    expect(settled).toBe(false);
    expect(await released).toMatchObject({ code: 'ERR_LOCK_MULTI_UNLOCK', failures: [{ lockName: b }] });
    other.resume();
    await until(async () => (await other.command('EXISTS', b)) === 0, 'it is released');
    await away.close();
  });

  test('the loss of a member is the loss of the multi-lock: the signal aborts once, and nested calls reject', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const client = await openClient({ lockWatchdogTimeout: 1_500 });
    const lock = client.getMultiLock(client.getLock(a), client.getLock(b));
    const hold = await inFlow(async () => lock.acquire());
    const lost = new Promise<void>((resolve) => hold.signal.addEventListener('abort', () => resolve()));
    await admin().del(b);
    await lost;
    expect(hold.validFor()).toBe(0);
    await hold.run(async () => expect(await outcome(lock.lock())).toBe('ERR_LOCK_LOST'));
    expect(await hold.release().catch((error: unknown) => error)).toBe(hold.signal.reason);
    expect(await held(a)).toEqual([false]);
  });
});

test('forceUnlock() that one server refuses rejects after the others have replied', async () => {
  const { proxy, url } = await openProxy();
  const [client, beside] = [await openClient({ url }), await openClient()];
  const [a, b] = [freshName('a'), freshName('b')];
  await admin().set(a, 'of another program');
  const hold = await holdElsewhere(beside.getLock(b));
  const forcing = proxy.holdReply({ contains: b });
  let settled = false;
  const call = outcome(client.getMultiLock(client.getLock(a), client.getLock(b)).forceUnlock()).finally(
    () => (settled = true),
  );
  await forcing.executed;
  await answered(beside);
  expect(settled).toBe(false);
  forcing.lift();
  expect(await call).toBe('ERR_LOCK_REFUSED');
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
  await admin().del(a);
});

describe('a multi-lock acts for the context that its members name', () => {
  const joints = {
    'of plain locks': (client: LockClient, names: readonly string[], context?: LockContext) =>
      names.map((name) => client.getLock(name, { context })),
    'of the halves of read-write locks': (client: LockClient, names: readonly string[], context?: LockContext) => [
      client.getReadWriteLock(names[0]!, { context }).readLock(),
      client.getReadWriteLock(names[1]!, { context }).writeLock(),
    ],
    'of group multi-locks': (client: LockClient, names: readonly string[], context?: LockContext) =>
      names.map((name) => client.getMultiLock(name, ['x', 'y'], { context })),
  };
  const factories = ['getMultiLock', 'getRedLock'] as const;
  const cases = factories.flatMap((factory) =>
    Object.entries(joints).map(([what, members]) => [factory, what, members] as const),
  );

  test.each(cases)('%s %s: acquired in one flow and released in another', async (factory, _, membersOf) => {
    const names = [freshName('a'), freshName('b')];
    const client = await openClient();
    const context = new LockContext();
    const lock = client[factory](...membersOf(client, names, context));
    await inFlow(() => lock.lock());
    expect(await lock.isHeldByCurrentContext()).toBe(true);
    for (const member of membersOf(client, names, context)) expect(await member.isHeldByCurrentContext()).toBe(true);
    expect(await inFlow(() => client[factory](...membersOf(client, names)).tryLock())).toBe(false);
    await inFlow(() => client[factory](...membersOf(client, names, context)).unlock());
    expect(await held(...names)).toEqual([false, false]);
  });

  test.each(cases)(
    '%s %s: members with different contexts are refused when the multi-lock is created',
    async (factory, _, membersOf) => {
      const names = [freshName('a'), freshName('b')];
      const client = await openClient();
      const [one, other] = [new LockContext(), new LockContext()];
      const [first] = membersOf(client, names, one);
      for (const context of [other, undefined]) {
        const [, second] = membersOf(client, names, context);
        expect(() => client[factory](first!, second!)).toThrow(/with the same context/);
        expect(() => client[factory](second!, first!)).toThrow(/with the same context/);
      }
      expect(() => client[factory](first!, { context: other })).toThrow(/with the same context/);
      const [, unnamed] = membersOf(client, names);
      const lock = client[factory](first!, unnamed!, { context: one });
      await inFlow(() => lock.lock());
      await lock.unlock();
      const named = client[factory](first!, membersOf(client, names, one)[1]!, { context: one });
      await inFlow(() => named.lock());
      await named.unlock();
    },
  );

  test('a multi-lock cannot be a member of another one, with any context', async () => {
    const client = await openClient();
    const inner = client.getMultiLock(client.getLock(freshName()), { context: new LockContext() });
    for (const factory of factories) expect(() => client[factory](inner)).toThrow(/a multi-lock has several/);
  });
});

describe('several group multi-locks of one group', () => {
  test('are locked together, with one script and one owner', async () => {
    const group = freshName();
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const lock = client.getMultiLock(client.getMultiLock(group, ['b', 'c']), client.getMultiLock(group, ['a']));
    await lock.withLock(() => undefined);
    const before = proxy.log.length;
    await lock.withLock(async () => {
      expect(proxy.log.slice(before).filter(({ name }) => name === 'EVALSHA')).toHaveLength(1);
      expect(await client.getMultiLock(group, ['c', 'a']).getHoldCount()).toBe(1);
      await client.getMultiLock(group, ['b']).withLock(() => undefined);
    });
  });

  test('with other values never wait for each other', async () => {
    const group = freshName();
    const [client, rival] = [await openClient(), await openClient()];
    let sections = 0;
    const flow = async (from: LockClient, parts: readonly string[][]): Promise<void> => {
      const lock = from.getMultiLock(...parts.map((values) => from.getMultiLock(group, values)));
      for (let round = 0; round < 10; round += 1) {
        await lock.withLock({ waitTime: 5_000 }, async () => {
          await Promise.resolve((sections += 1));
        });
      }
    };
    // Which comes first must not depend on the other values of each: of so many pairs some would be in another order.
    const pairs = Array.from({ length: 12 }, (_, i) => [`a${i}`, `b${i}`] as const);
    await Promise.all(
      pairs.flatMap(([a, b]) => [
        inFlow(() => flow(client, [[a], [b]])),
        inFlow(() =>
          flow(rival, [
            [b, `${b} too`],
            [a, `${a} too`],
          ]),
        ),
        inFlow(() =>
          flow(rival, [
            [`${a} as well`, a],
            [`${b} as well`, b],
          ]),
        ),
      ]),
    );
    expect(sections).toBe(360);
  });

  test('of several clients, or in a RedLock, are refused', async () => {
    const group = freshName();
    const [client, again] = [await openClient(), await openClient()];
    const [a, b] = [client.getMultiLock(group, ['a']), client.getMultiLock(group, ['b'])];
    expect(() => client.getMultiLock(a, again.getMultiLock(group, ['b']))).toThrow(/with all the values/);
    expect(() => client.getRedLock(a, b)).toThrow(/with all the values/);
  });

  test('the order of members at several servers does not depend on the kind of lock', async () => {
    const name = freshName();
    const client = await openClient();
    const rival = await openClient();
    let sections = 0;
    const flow = async (members: readonly Lock[]): Promise<void> => {
      const lock = client.getMultiLock(...members);
      for (let round = 0; round < 30; round += 1) {
        await lock.withLock({ waitTime: 5_000 }, async () => {
          await Promise.resolve((sections += 1));
        });
      }
    };
    const kinds = (at: LockClient): [Lock, Lock] => [at.getLock(name), at.getFencedLock(name)];
    const [[plainHere, fencedHere], [plainThere, fencedThere]] = [kinds(client), kinds(elsewhere)];
    const [[rivalPlain, rivalFenced]] = [kinds(rival)];
    await Promise.all([
      inFlow(() => flow([plainHere, fencedThere])),
      inFlow(() => flow([fencedHere, plainThere])),
      inFlow(() => flow([rivalPlain, fencedThere])),
      inFlow(() => flow([rivalFenced, plainThere])),
    ]);
    expect(sections).toBe(120);
    await admin().del(`redisson_lock_token:{${name}}`);
    await other.command('DEL', `redisson_lock_token:{${name}}`);
  });
});

describe('R27: two multi-locks with the same names in another order', () => {
  test('complete 200 rounds in one process without a deadlock or a stall of 2 s', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const client = await openClient();
    const rival = await openClient();
    let [longest, inside, counter] = [0, 0, 0];
    const flow = async (from: LockClient, names: string[]): Promise<void> => {
      const lock = from.getMultiLock(...names.map((name) => from.getLock(name)));
      for (let round = 0; round < 200; round += 1) {
        const began = performance.now();
        await lock.withLock(async () => {
          longest = Math.max(longest, elapsed(began));
          inside += 1;
          expectAtMost(inside);
          const seen = counter;
          await Promise.resolve();
          counter = seen + 1;
          inside -= 1;
        });
      }
    };
    await Promise.all([inFlow(() => flow(client, [a, b])), inFlow(() => flow(rival, [b, a]))]);
    expect(counter).toBe(400);
    expect(longest).toBeLessThan(2_000);
  });

  test('complete every section in two processes, [a, b] and [b, a], without an overlap', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const counter = await SharedCounter.start();
    const started = await Promise.all([startWorker(), startWorker()]);
    workers.push(...started);
    const results = await Promise.all(
      started.map(async (worker, at) => {
        await worker.createClient({ url: testRedisUrl() });
        const members = at === 0 ? [a, b] : [b, a];
        return worker.contend({
          locks: [{ factory: 'getMultiLock', members }],
          port: counter.port,
          flows: 4,
          rounds: 25,
          form: 'withLock',
        });
      }),
    );
    expect(results.map(({ sections }) => sections)).toEqual([100, 100]);
    expectNoOverlap(counter.overlaps);
    await counter.close();
  });
});

describe('R27: a multi-lock that waits with some of its members', () => {
  test('R27: tries again if a member is lost before its lease begins', async () => {
    const [a, b] = [freshName('a'), freshName('b')];
    const client = await openClient();
    const busy = await holdElsewhere(client.getLock(b));
    const call = inFlow(async () =>
      client.getMultiLock(client.getLock(a), client.getLock(b)).acquire({ waitTime: 20_000, leaseTime: 20_000 }),
    );
    await until(async () => (await held(a))[0] === true, 'it waits with the granted members');
    await admin().del(a);
    await busy.release();
    const hold = await call;
    expect(await held(a, b)).toEqual([true, true]);
    await hold.release();
  });

  test('R13: is not granted if its lease ends before it has begun everywhere', async () => {
    const { proxy, url } = await openProxy();
    const [client, away] = [await openClient(), await openClient({ url, commandTimeout: 9_000 })];
    const [a, b] = [freshName('a'), freshName('b')];
    const busy = await holdElsewhere(client.getLock(a));
    const call = inFlow(async () =>
      client.getMultiLock(client.getLock(a), away.getLock(b)).acquire({ waitTime: 20_000, leaseTime: 1_000 }),
    );
    await until(() => client.stats().waiting === 1, 'it waits for the first lock');
    const late = proxy.holdReply({ sha: releasePartial.script!.sha, contains: b }, 1_500);
    await busy.release();
    const hold = await call;
    expect(late.count).toBe(1);
    expect(hold.validFor()).toBeGreaterThan(0);
    await hold.release();
  });
});

test('R27: several read locks are acquired beside other readers of the process, also with a single try', async () => {
  const client = await openClient();
  const locks = [freshName('a'), freshName('b')].map((name) => client.getReadWriteLock(name).readLock());
  const reader = await holdElsewhere(locks[0]!);
  const both = client.getMultiLock(...locks);
  expect(await inFlow(() => both.withLock({ waitTime: 0 }, () => 'read'))).toBe('read');
  // Beside another reader inside one hold of theirs.
  await both.withLock(async () => {
    const beside = await locks[0]!.acquire();
    const branch = await outcome(both.withLock({ waitTime: 0 }, () => undefined));
    await beside.release();
    expect(branch).toBe('ok');
  });
  await reader.release();
});

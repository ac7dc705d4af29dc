import { afterEach, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { ClientClosedError } from '../../src/errors.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import * as permits from '../../src/redis/scripts/permit-expirable-semaphore.js';
import { takenPermitsKey } from '../../src/redis/keys.js';
import * as semaphores from '../../src/redis/scripts/semaphore.js';
import { Semaphore } from '../../src/synchronizers/semaphore.js';
import { startWorker } from '../support/processes/child.js';
import type { SeenCommand } from '../support/proxy/fault.js';
import {
  answered,
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
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { LONG_QUIET_MS, PARKED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { WAITING_KINDS } from './waiting-forms.js';

const ACQUIRE = scripts.acquire.script!.sha;
const RENEW = scripts.renew.script!.sha;
const SLACK_MS = 250;
const DEADLINE_MS = 600;

let server: RedisServer | undefined;
afterEach(async () => {
  await closeClients();
  if (server?.running === true) server.resume();
  await server?.stop();
  server = undefined;
});

const RELEASES = {
  'a lock': [scripts.release, (client: LockClient, name: string) => holdElsewhere(client.getLock(name), 20_000)],
  'permits of a semaphore': [
    semaphores.release,
    async (client: LockClient, name: string) => {
      await client.getSemaphore(name).trySetPermits(1);
      return client.getSemaphore(name).acquirePermits();
    },
  ],
  'a permit with an id': [
    permits.release,
    async (client: LockClient, name: string) => {
      await client.getPermitExpirableSemaphore(name).trySetPermits(1);
      return client.getPermitExpirableSemaphore(name).acquirePermit();
    },
  ],
} as const;

test.each(Object.entries(RELEASES))(
  'close() sends a refused release of %s once more and does not wait for its command deadline',
  async (_, [{ script }, take]) => {
    const { proxy, url } = await openProxy();
    const clock = new TestClock();
    const client = await openClient({ url, commandTimeout: 60_000, clock });
    const name = freshName();
    const taken = await take(client, name);
    const refused = proxy.answer({ sha: script!.sha, times: Infinity }, '-NOPERM no permissions\r\n');
    expect(await outcome(taken.release())).toBe('ERR_LOCK_REFUSED');
    await refused.appliedTimes(5); // the next would come after 800 ms
    await answered(client);
    const before = refused.count;
    await client.close();
    expect(refused.count).toBe(before + 1);
    expect(clock.timers).toBe(0);
    await admin().del(name, `{${name}}:timeout`);
  },
);

describe('R32: close() settles within one command deadline', () => {
  const downs: Record<string, (down: RedisServer) => Promise<unknown>> = {
    killed: (down) => down.kill9(),
    'stopped, so that it accepts connections and does not reply': (down) => down.pause(),
  };
  test.each(Object.entries(downs))(
    'R32: with Redis %s, and with holds, waiters and pending calls',
    async (_, goDown) => {
      server = await startServer();
      const clock = new TestClock();
      const client = await openClient({ url: server.url, commandTimeout: DEADLINE_MS, clock });
      const other = await openClient({ url: server.url, commandTimeout: DEADLINE_MS });
      const hold = await holdElsewhere(client.getLock('held'));
      await holdElsewhere(other.getLock('theirs'));
      const waiting = [client.getLock('held').acquire(), client.getLock('theirs').acquire({ waitTime: 60_000 })];
      const outcomes = waiting.map(outcome);
      await pause(PARKED_MS);
      await goDown(server);
      const underWay = [
        outcome(client.getLock('free').acquire()),
        outcome(client.getLock('free').tryLock()),
        outcome(client.getLock('free').isLocked()),
        outcome(client.inspect('free')),
      ];
      // Requests of one owner go out one at a time: the release stands behind this one.
      underWay.push(outcome(hold.extend(60_000)));
      await pause();
      const released = outcome(hold.release());
      const at = performance.now();
      await client.close({ releaseHolds: true });
      expect(elapsed(at)).toBeLessThan(DEADLINE_MS + SLACK_MS);
      expect(await Promise.all(outcomes)).toEqual(['ERR_LOCK_CLIENT_CLOSED', 'ERR_LOCK_CLIENT_CLOSED']);
      for (const each of [...underWay, released]) {
        expect(['ERR_LOCK_CLIENT_CLOSED', 'ERR_LOCK_REDIS_UNAVAILABLE']).toContain(await each);
      }
      expect(clock.timers).toBe(0);
      await other.close();
    },
  );

  test('R32: with a Redis that was never reachable', async () => {
    const client = createClient({ url: 'redis://127.0.0.1:1', commandTimeout: DEADLINE_MS });
    const waiting = outcome(client.getLock('a').acquire());
    const ready = outcome(client.ready());
    await pause(PARKED_MS);
    const at = performance.now();
    await client.close();
    expect(elapsed(at)).toBeLessThan(DEADLINE_MS + SLACK_MS);
    expect(await waiting).toBe('ERR_LOCK_CLIENT_CLOSED');
    expect(['ERR_LOCK_CLIENT_CLOSED', 'ERR_LOCK_REDIS_UNAVAILABLE']).toContain(await ready);
  });
});

test('R32: close() rejects waiters, aborts holds, stops renewals and leaves no timer', async () => {
  const { proxy, url } = await openProxy();
  const clock = new TestClock();
  const client = await openClient({ url, lockWatchdogTimeout: 1_500, clock });
  const lock = client.getLock(freshName());
  const lost: unknown[] = [];
  client.events.on('leaseLost', (event) => lost.push(event));
  const hold = await holdElsewhere(lock);
  const waiting = [lock.acquire(), lock.acquire({ waitTime: 60_000 }), lock.tryLock(60_000)].map(outcome);
  await until(() => proxy.log.some(({ args }) => args[0] === RENEW), 'it is renewed');
  await client.close();
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'ERR_LOCK_CLIENT_CLOSED'));
  expect(hold.signal.aborted).toBe(true);
  expect(hold.signal.reason).toBeInstanceOf(ClientClosedError);
  expect(hold.validFor()).toBe(0);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_CLIENT_CLOSED');
  expect(lost).toEqual([]);
  expect(clock.timers).toBe(0);
  await until(() => proxy.stats.open === 0, 'its connections are closed');
  const sent = proxy.log.length;
  await until(async () => (await admin().exists(lock.name)) === 0, 'the lease has ended', 1_500 + SLACK_MS);
  expect(proxy.log).toHaveLength(sent);
  expect(await outcome(lock.tryLock())).toBe('ERR_LOCK_CLIENT_CLOSED');
});

test.each(Object.entries(WAITING_KINDS))(
  'R32: %s: close() ends every wait, with a limit or without',
  async (_, kind) => {
    const [client, other] = [await openClient({ commandTimeout: DEADLINE_MS }), await openClient()];
    let waiting = 0;
    client.events.on('waiting', () => (waiting += 1));
    const names: string[] = [];
    const calls: Promise<unknown>[] = [];
    const clears: (() => Promise<unknown>)[] = [];
    for (const form of Object.values(kind.forms)) {
      for (const limit of [{}, { waitTime: 60_000 }]) {
        const name = freshName('waits');
        names.push(name);
        clears.push(await kind.block(other, name));
        const before = waiting;
        calls.push(outcome(inFlow(() => form(client, name, limit, () => undefined))));
        await until(() => waiting > before, 'it waits');
      }
    }
    const at = performance.now();
    await client.close();
    expect(await Promise.all(calls)).toEqual(calls.map(() => 'ERR_LOCK_CLIENT_CLOSED'));
    expect(elapsed(at)).toBeLessThan(DEADLINE_MS + SLACK_MS);
    for (const clear of clears) await clear();
    await admin().del(...names); // the number of permits stays, by design
  },
);

test.each([undefined, 60_000])(
  'R32: a RedLock that waits at a busy server, for %s ms, sends no request to others after close()',
  async (waitTime) => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const names = ['a', 'b', 'c'].map((each) => freshName(each));
    const holds = await Promise.all(names.slice(0, 2).map((name) => holdElsewhere(other.getLock(name))));
    const waits = new Promise((resolve) => client.events.on('waiting', resolve));
    const lock = client.getRedLock(...names.map((name) => client.getLock(name)));
    const call = outcome(inFlow(() => lock.acquire({ waitTime })));
    await waits;
    const sent = proxy.log.length;
    await client.close();
    expect(await call).toBe('ERR_LOCK_CLIENT_CLOSED');
    // The release of its first grants there may still be pending.
    const asks = ({ args }: SeenCommand): boolean => args[0] === ACQUIRE && args.includes(names[2]!);
    expect(proxy.log.slice(sent).filter(asks)).toEqual([]);
    for (const hold of holds) await hold.release();
  },
);

test('R32: close({ releaseHolds }) releases every open hold and wakes the waiters of other clients', async () => {
  const [client, other] = [await openClient(), await openClient()];
  const names = [freshName(), freshName(), freshName()];
  await inFlow(async () => {
    for (const name of names) {
      await client.getLock(name).lock();
      await client.getLock(name).lock();
    }
  });
  const waiting = holdElsewhere(other.getLock(names[0]!));
  await pause(PARKED_MS);
  const at = performance.now();
  await client.close({ releaseHolds: true });
  const hold = await waiting;
  expect(elapsed(at)).toBeLessThan(200 + SLACK_MS);
  expect(await admin().exists(...names)).toBe(1);
  await hold.release();
});

const SECTIONS = {
  'a lock': (client: LockClient, name: string) => client.getLock(name),
  'a fair lock': (client: LockClient, name: string) => client.getFairLock(name),
  'a write lock': (client: LockClient, name: string) => client.getReadWriteLock(name).writeLock(),
  'a read lock': (client: LockClient, name: string) => client.getReadWriteLock(name).readLock(),
  'a group lock': (client: LockClient, name: string) => client.getMultiLock(name, ['a', 'b']),
  'a multi-lock': (client: LockClient, name: string) => client.getMultiLock(client.getLock(name)),
  'a RedLock': (client: LockClient, name: string) => client.getRedLock(client.getLock(name)),
};

describe.each(Object.entries(SECTIONS))('%s whose section runs at close()', (_, lockOf) => {
  test.each([true, false])(
    'aborts the signal of the section before the lock is released, releaseHolds: %s',
    async (releaseHolds) => {
      const leaseTime = releaseHolds ? 30_000 : 1_500;
      const { proxy, url } = await openProxy();
      const client = await openClient({ url });
      const lock = lockOf(client, freshName());
      let freed = Infinity;
      const steps: string[] = [];
      const section = inFlow(() =>
        lock.withLock({ leaseTime }, async (hold) => {
          await lock.withLock({ leaseTime }, async (inner) => {
            inner.signal.addEventListener('abort', () => steps.push('inner'));
            hold.signal.addEventListener('abort', () => {
              steps.push('outer');
              freed = proxy.log.length;
            });
            await new Promise((resolve) => inner.signal.addEventListener('abort', resolve));
            expect([hold.signal.reason, inner.signal.reason]).toEqual([
              expect.any(ClientClosedError),
              expect.any(ClientClosedError),
            ]);
            expect(hold.validFor()).toBe(0);
          });
        }),
      );
      const ended = section.catch((error: unknown) => error);
      await until(() => client.holds()[0]?.holdCount === 2, 'both are inside');
      const sent = proxy.log.length;
      await client.close({ releaseHolds });
      expect(await ended).toBeInstanceOf(ClientClosedError);
      expect(steps.sort()).toEqual(['inner', 'outer']);
      expect(freed).toBe(sent);
      if (releaseHolds) expect(await admin().keys('*')).toEqual([]);
      else await until(async () => (await admin().keys('*')).length === 0, 'the lease has ended', 2_500);
    },
  );

  test('rejects with the result of the body, also if the body outlasts close() and the lease', async () => {
    const client = await openClient();
    const lock = lockOf(client, freshName());
    let end = (): void => undefined;
    let inside = false;
    const section = inFlow(() =>
      lock.withLock({ leaseTime: 1_000 }, async () => {
        inside = true;
        await new Promise<void>((resolve) => (end = resolve));
        return 'paid';
      }),
    );
    const ended = section.catch((error: unknown) => error);
    await until(() => inside, 'it is inside');
    await client.close();
    await until(async () => (await admin().keys('*')).length === 0, 'the lease has ended');
    end();
    expect(await ended).toMatchObject({ code: 'ERR_LOCK_CLIENT_CLOSED', result: 'paid' });
  });
});

test('R32: close() releases what a pending call acquires, and no call in the line sends a request', async () => {
  const { proxy, url } = await openProxy();
  for (let round = 0; round < 5; round += 1) {
    const client = await openClient({ url });
    const lock = client.getLock(freshName());
    const held = proxy.holdReply({ contains: lock.name });
    const calls = Array.from({ length: 20 }, () => outcome(inFlow(() => lock.acquire())));
    await held.executed;
    const closing = client.close();
    held.lift();
    expect(await Promise.all(calls)).toEqual(calls.map(() => 'ERR_LOCK_CLIENT_CLOSED'));
    await closing;
    expect(await admin().exists(lock.name)).toBe(0);
    const requests = proxy.log.filter(({ name, args }) => name.startsWith('EVAL') && args.includes(lock.name));
    expect(requests).toHaveLength(2);
  }
});

test.each<[string, (client: LockClient, name: string, waitTime: number) => Promise<unknown>]>([
  ['lock', (client, name, waitTime) => client.getLock(name).tryLock(waitTime)],
  ['semaphore', (client, name, waitTime) => client.getSemaphore(name).tryAcquire(1, waitTime)],
])('R32: a call for a %s whose time has passed before the first reply does not report it busy', async (_, call) => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const name = freshName();
  const held = proxy.holdReply({ contains: name });
  const calls = [5_000, 20].map((waitTime) => outcome(inFlow(() => call(client, name, waitTime))));
  await held.executed;
  await pause(PARKED_MS);
  const closing = client.close();
  held.lift();
  expect(await Promise.all(calls)).toEqual(calls.map(() => 'ERR_LOCK_CLIENT_CLOSED'));
  await closing;
  expect(await admin().exists(name)).toBe(0);
});

test('R32: close() completes a release that had failed before', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 300 });
  const lock = client.getLock(freshName());
  const hold = await holdElsewhere(lock);
  const lost = proxy.cutBefore({ sha: scripts.release.script!.sha, times: Infinity });
  expect(await outcome(hold.release())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  // Repeated after longer and longer pauses: it is in the middle of one of 1.6 s.
  await pause(3_500);
  lost.lift();
  await client.close();
  expect(await admin().exists(lock.name)).toBe(0);
});

test('R32: an unanswered single try is not repeated after close(), and close() releases its effect in time', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 1_500 });
  const lock = client.getLock(freshName());
  const silent = proxy.swallow({ sha: scripts.acquire.script!.sha, contains: lock.name, times: Infinity });
  const taken = outcome(inFlow(() => lock.tryLock()));
  await silent.executed;
  await client.close();
  expect(silent.count).toBe(1);
  expect(await taken).toBe('ERR_LOCK_CLIENT_CLOSED');
  expect(await admin().exists(lock.name)).toBe(0);
});

test.each([false, true])(
  'R32: a nested call whose reply arrives while the client closes gets no hold (%s)',
  async (releaseHolds) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const lock = client.getLock(freshName());
    await inFlow(async () => {
      await lock.lock(1_000);
      const outer = lock.currentHold()!;
      const held = proxy.holdReply({ contains: lock.name }, 100);
      const nested = outcome(lock.acquire({ leaseTime: 1_000 }));
      await held.executed;
      const closing = client.close({ releaseHolds });
      expect(await nested).toBe('ERR_LOCK_CLIENT_CLOSED');
      await closing;
      expect(await outcome(outer.release())).toBe('ERR_LOCK_CLIENT_CLOSED');
      expect(client.holds()).toEqual([]);
    });
    if (releaseHolds) expect(await admin().exists(lock.name)).toBe(0);
    else await until(async () => (await admin().exists(lock.name)) === 0, 'the lease has ended', 1_000 + SLACK_MS);
  },
);

test('R32: no timer of an idle client that holds locks keeps the process alive', async () => {
  const worker = await startWorker();
  try {
    await worker.createClient({ url: testRedisUrl(), lockWatchdogTimeout: 3_000 });
    const before = await worker.resources();
    const name = freshName();
    await worker.flow('a').lock(name);
    await worker.flow('a').lock(freshName(), 5_000);
    const waiting = worker.flow('b').tryLock(name, 5_000);
    await pause(LONG_QUIET_MS);
    const { active } = await worker.resources();
    expect(active.filter((kind) => kind === 'Timeout')).toEqual(before.active.filter((kind) => kind === 'Timeout'));
    await worker.flow('a').unlock(name);
    expect(await waiting).toBeDefined();
    await worker.closeClient({ releaseHolds: true });
    // With the client closed nothing of it is left that would: sockets neither.
    const sockets = ({ active: kinds }: { active: string[] }): number =>
      kinds.filter((kind) => kind === 'TCPSocketWrap').length;
    await until(async () => sockets(await worker.resources()) === 0, 'its sockets are closed');
  } finally {
    await worker.close();
  }
});

test.each(['withPermits', 'withPermit', 'withPermit with a lease'])(
  'a %s whose body outlasts close() rejects with the result of the body, and its permits stay taken',
  async (form) => {
    const client = await openClient();
    const name = freshName();
    const failed: unknown[] = [];
    client.events.on('releaseFailed', ({ lockName, cause }) => failed.push([lockName, cause]));
    const semaphore = form === 'withPermits' ? client.getSemaphore(name) : client.getPermitExpirableSemaphore(name);
    await semaphore.trySetPermits(2);
    const section = <T>(fn: () => T | Promise<T>): Promise<T> =>
      semaphore instanceof Semaphore
        ? semaphore.withPermits(fn)
        : semaphore.withPermit(form === 'withPermit' ? {} : { leaseTime: 60_000 }, fn);
    const cause = new Error('from the body');
    let otherRuns = false;
    let closed = false;
    const [done, thrown] = await Promise.allSettled([
      section(async () => {
        // A grant whose reply the client has not read yet would be released by close().
        await until(() => otherRuns, 'both bodies run');
        await client.close({ releaseHolds: true });
        closed = true;
        return 'done';
      }),
      section(async () => {
        otherRuns = true;
        await until(() => closed, 'the client is closed');
        throw cause;
      }),
    ]);
    const code = 'ERR_LOCK_CLIENT_CLOSED';
    expect(done).toMatchObject({ status: 'rejected', reason: { code, result: 'done' } });
    expect(thrown).toMatchObject({ status: 'rejected', reason: cause });
    // Only the call that rejects with the error of its body has to report the failed release as an event.
    expect(failed).toMatchObject([[name, { code }]]);
    expect(await admin().get(name)).toBe('0');
    await admin().del(name, takenPermitsKey(name));
  },
);

import { afterEach, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import * as fairScripts from '../../src/redis/scripts/fair-lock.js';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
} from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { freePort } from '../support/servers/free-port.js';
import { QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

/* A call with a time limit reports a busy lock only if Redis has said so. */

afterEach(() => closeClients());

const COMMAND_MS = 600;
const UNAVAILABLE = 'ERR_LOCK_REDIS_UNAVAILABLE';
const REFUSED = 'ERR_LOCK_REFUSED';

type Call = (client: LockClient, name: string, waitTime: number) => Promise<unknown>;

const CALLS: Record<string, Call> = {
  'tryLock() of a lock': (client, name, waitTime) => client.getLock(name).tryLock(waitTime),
  'tryAcquire() of a lock': (client, name, waitTime) => client.getLock(name).tryAcquire({ waitTime }),
  'acquire() of a lock': (client, name, waitTime) => client.getLock(name).acquire({ waitTime }),
  'tryLock() of a fenced lock': (client, name, waitTime) => client.getFencedLock(name).tryLock(waitTime),
  'tryLock() of a fair lock': (client, name, waitTime) => client.getFairLock(name).tryLock(waitTime),
  'tryLock() of a spin lock': (client, name, waitTime) => client.getSpinLock(name).tryLock(waitTime),
  'tryLock() of a read lock': (client, name, waitTime) => client.getReadWriteLock(name).readLock().tryLock(waitTime),
  'tryLock() of a write lock': (client, name, waitTime) => client.getReadWriteLock(name).writeLock().tryLock(waitTime),
  'tryLock() of a group multi-lock': (client, name, waitTime) =>
    client.getMultiLock(name, ['a', 'b']).tryLock(waitTime),
  'tryAcquirePermits()': (client, name, waitTime) => client.getSemaphore(name).tryAcquirePermits({ waitTime }),
  'tryAcquirePermit()': (client, name, waitTime) =>
    client.getPermitExpirableSemaphore(name).tryAcquirePermit({ waitTime }),
  'await() of a latch': (client, name, waitTime) => client.getCountDownLatch(name).await(waitTime),
};

test('no call reports a busy lock while nothing listens at the address of Redis', async () => {
  const client = createClient({ url: `redis://127.0.0.1:${await freePort()}`, commandTimeout: COMMAND_MS });
  try {
    const outcomesOf = async (kind: string): Promise<unknown[]> => {
      const name = freshName();
      const call = (waitTime: number): Promise<unknown> => outcome(inFlow(() => CALLS[kind]!(client, name, waitTime)));
      // The first call sends the try. The others wait behind it, some of them for less time than the try takes.
      const calls = [2 * COMMAND_MS, COMMAND_MS / 2, COMMAND_MS, COMMAND_MS + 100].map((waitTime) => call(waitTime));
      await calls[1];
      // These calls come while the line pauses, and their time ends in that pause.
      const joined = [call(10), call(50)];
      await calls[2];
      joined.push(call(10), call(50));
      return Promise.all([...calls, ...joined]);
    };
    const kinds = Object.keys(CALLS);
    const outcomes = await Promise.all(kinds.map(async (kind) => [kind, await outcomesOf(kind)] as const));
    const expected = kinds.map((kind) => [kind, Array(8).fill(UNAVAILABLE)]);
    expect(Object.fromEntries(outcomes)).toEqual(Object.fromEntries(expected));
    expect(client.stats().waiting).toBe(0);
  } finally {
    await client.close();
  }
});

test('a call reports a busy lock again as soon as Redis has replied', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: COMMAND_MS });
  const other = await openClient();
  const lock = client.getLock(freshName());
  const hold = await holdElsewhere(other.getLock(lock.name));
  proxy.refuse('reset');
  proxy.cut({});
  expect(await outcome(inFlow(() => lock.tryLock(COMMAND_MS)))).toBe(UNAVAILABLE);
  const waiting = inFlow(() => lock.tryLock(10 * COMMAND_MS));
  proxy.lift();
  await until(async () => (await outcome(client.ready())) === 'ok', 'Redis is back');
  await until(async () => (await lock.tryLock(300).catch(() => 'unavailable')) === false, 'the lock is busy');
  await hold.release();
  expect(await waiting).toBe(true);
  await client.close({ releaseHolds: true });
});

test('no call reports a busy lock while Redis refuses the tries', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  proxy.holdReply({ contains: 'refused', times: Infinity }, 100);
  const outcomesOf = async (kind: string): Promise<unknown[]> => {
    const name = freshName('refused');
    // A list: no primitive reads or writes one under its own name.
    await admin().rpush(name, 'of the user');
    // One time limit ends before the first reply, and one while the next try is pending.
    const calls = [5_000, 20, 150, 0].map((waitTime) => outcome(inFlow(() => CALLS[kind]!(client, name, waitTime))));
    const outcomes = await Promise.all(calls);
    await admin().del(name);
    return outcomes;
  };
  // A latch only asks whether its key exists.
  const kinds = Object.keys(CALLS).filter((kind) => !kind.endsWith('latch'));
  const outcomes = await Promise.all(kinds.map(async (kind) => [kind, await outcomesOf(kind)] as const));
  const expected = kinds.map((kind) => [kind, Array(4).fill(REFUSED)]);
  expect(Object.fromEntries(outcomes)).toEqual(Object.fromEntries(expected));
});

test('a fair call whose place Redis refuses to refresh does not report a busy lock', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, fairWaiterTimeout: 1_000 });
  const other = await openClient();
  const lock = client.getFairLock(freshName());
  const hold = await holdElsewhere(other.getFairLock(lock.name));
  const refused = proxy.answer({ sha: fairScripts.refresh.script!.sha, times: Infinity }, '-NOPERM no permissions\r\n');
  expect(await outcome(inFlow(() => lock.tryLock(800)))).toBe(REFUSED);
  expect(refused.count).toBeGreaterThan(0);
  await hold.release();
});

type AbortableCall = (client: LockClient, name: string, waitTime: number, signal?: AbortSignal) => Promise<unknown>;

const ABORTABLE: Record<string, AbortableCall> = {
  'a lock': (client, name, waitTime, signal) => client.getLock(name).tryLock({ waitTime, signal }),
  'a fenced lock': (client, name, waitTime, signal) => client.getFencedLock(name).tryLock({ waitTime, signal }),
  'a read lock': (client, name, waitTime, signal) =>
    client.getReadWriteLock(name).readLock().tryLock({ waitTime, signal }),
  'a write lock': (client, name, waitTime, signal) =>
    client.getReadWriteLock(name).writeLock().tryLock({ waitTime, signal }),
  'a semaphore': (client, name, waitTime, signal) => client.getSemaphore(name).tryAcquire(1, waitTime, { signal }),
  'a latch': (client, name, waitTime, signal) => client.getCountDownLatch(name).await(waitTime, { signal }),
};

test.each(Object.entries(ABORTABLE))('%s: a call that is aborted fails no other call', async (kind, call) => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const other = await openClient();
  const name = freshName();
  const { writeLock, latch } = {
    writeLock: other.getReadWriteLock(name).writeLock(),
    latch: other.getCountDownLatch(name),
  };
  const hold = kind.endsWith('lock')
    ? await holdElsewhere(
        kind === 'a lock' ? other.getLock(name) : kind === 'a fenced lock' ? other.getFencedLock(name) : writeLock,
      )
    : undefined;
  if (kind === 'a latch') await latch.trySetCount(1);
  // The client does not send the source of the script once the call is aborted.
  await admin().script('FLUSH');
  const held = proxy.holdReply({ contains: name });
  const controller = new AbortController();
  const aborted = outcome(inFlow(() => call(client, name, 5_000, controller.signal)));
  const others = [20, 50, 150, 500].map((waitTime) =>
    inFlow(() => call(client, name, waitTime)).catch((error: unknown) => error),
  );
  await held.executed;
  await pause(QUIET_MS);
  controller.abort();
  held.lift();
  expect(await aborted).toBe('ERR_LOCK_ABORTED');
  expect(await Promise.all(others)).toEqual(others.map(() => false));
  await hold?.release();
  await admin().del(name, `redisson_lock_token:{${name}}`);
});

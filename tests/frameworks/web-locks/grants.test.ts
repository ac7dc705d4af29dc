import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { LockLostError, type LockClient } from '../../../src/index.js';
import { createLockManager, type LockManager, type WebLock } from '../../../src/integrations/web-locks/index.js';
import { closeClients, openClient } from '../../support/clients/lock-clients.js';
import { freshName } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

/* The situations of the web platform tests about who holds and who waits. */

let client: LockClient;
let locks: LockManager;
let name: string;

beforeEach(async () => {
  client = await openClient();
  locks = createLockManager(client);
  name = freshName();
});
afterEach(closeClients);

type Options = Parameters<LockManager['request']>[1] & object;

/** A request whose callback runs until `release()`. */
interface Held {
  readonly granted: Promise<WebLock | null>;
  readonly done: Promise<unknown>;
  readonly isGranted: boolean;
  release(value?: unknown): void;
}

function hold(options: Options = {}, manager = locks, of = name): Held {
  let release!: (value?: unknown) => void;
  let isGranted = false;
  const released = new Promise((resolve) => (release = resolve));
  let grant!: (lock: WebLock | null) => void;
  const granted = new Promise<WebLock | null>((resolve) => (grant = resolve));
  const done = manager.request(of, options, (lock) => {
    isGranted = true;
    grant(lock);
    return released;
  });
  done.catch(() => undefined);
  return {
    granted,
    done,
    release,
    get isGranted() {
      return isGranted;
    },
  };
}

/** All requests but the held ones wait at Redis or behind one that does. */
const waiting = (count: number): Promise<void> =>
  until(async () => client.stats().waiting > 0 && (await locks.query()).pending.length === count, 'the requests wait');

const isFree = async (options: Options = {}, of = name): Promise<boolean> =>
  locks.request(of, { ...options, ifAvailable: true }, (lock) => lock !== null);

describe('modes', () => {
  test('exclusive requests run one after the other, in their order', async () => {
    const order: number[] = [];
    let inside = 0;
    await Promise.all(
      [1, 2, 3, 4, 5].map((each) =>
        locks.request(name, async () => {
          inside += 1;
          expect(inside).toBe(1);
          order.push(each);
          await isFree();
          inside -= 1;
        }),
      ),
    );
    expect(order).toEqual([1, 2, 3, 4, 5]);
  });

  test('exclusive requests of two names run at the same time', async () => {
    const [a, b] = [hold(), hold({}, locks, freshName())];
    await Promise.all([a.granted, b.granted]);
    a.release();
    b.release();
    await Promise.all([a.done, b.done]);
  });

  test('shared requests run at the same time', async () => {
    const all = [1, 2, 3].map(() => hold({ mode: 'shared' }));
    await Promise.all(all.map(({ granted }) => granted));
    for (const { release } of all) release();
    await Promise.all(all.map(({ done }) => done));
  });

  test('an exclusive request waits for every shared one', async () => {
    const [a, b] = [hold({ mode: 'shared' }), hold({ mode: 'shared' })];
    await Promise.all([a.granted, b.granted]);
    const writer = hold();
    await waiting(1);
    a.release();
    await a.done;
    expect(writer.isGranted).toBe(false);
    b.release();
    await writer.granted;
    writer.release();
    await writer.done;
  });

  test('a shared request behind a waiting exclusive one waits for it', async () => {
    const reader = hold({ mode: 'shared' });
    await reader.granted;
    const [writer, late] = [hold(), hold({ mode: 'shared' })];
    await waiting(2);
    reader.release();
    await writer.granted;
    expect(late.isGranted).toBe(false);
    writer.release();
    await late.granted;
    late.release();
    await late.done;
  });

  test('a request inside the callback of the same name is a stranger', async () => {
    await locks.request(name, async () => expect(await isFree()).toBe(false));
    await locks.request(name, { mode: 'shared' }, async () => {
      expect(await isFree({ mode: 'shared' })).toBe(true);
      expect(await isFree()).toBe(false);
    });
  });
});

describe('the lock is held', () => {
  test('until the promise of the callback resolves', async () => {
    const first = hold();
    await first.granted;
    expect(await isFree()).toBe(false);
    first.release('result');
    expect(await first.done).toBe('result');
    expect(await isFree()).toBe(true);
  });

  test('until the promise of the callback rejects; the next request then runs', async () => {
    let reject!: (error: Error) => void;
    const failing = locks.request(name, () => new Promise((_, fail) => (reject = fail)));
    failing.catch(() => undefined);
    const next = hold();
    await waiting(1);
    reject(new Error('failed'));
    await expect(failing).rejects.toThrow('failed');
    await next.granted;
    next.release();
    await next.done;
  });
});

describe('ifAvailable', () => {
  test('a free lock is granted', async () => {
    const held = hold({ ifAvailable: true });
    expect(await held.granted).toEqual({ name, mode: 'exclusive' });
    held.release();
    await held.done;
  });

  test.each(['exclusive', 'shared'] as const)('a busy lock gives null to a request for %s', async (mode) => {
    const first = hold();
    await first.granted;
    const second = hold({ ifAvailable: true, mode });
    expect(await second.granted).toBe(null);
    second.release('without');
    expect(await second.done).toBe('without');
    first.release();
    await first.done;
  });

  test('a callback that got null may throw', async () => {
    await locks.request(name, async () => {
      const error = new Error('busy');
      await expect(
        locks.request(name, { ifAvailable: true }, () => {
          throw error;
        }),
      ).rejects.toBe(error);
    });
  });

  test('a request in the same turn behind a free shared lock shares it', async () => {
    const [first, second] = [hold({ mode: 'shared' }), hold({ mode: 'shared', ifAvailable: true })];
    expect(await second.granted).toEqual({ name, mode: 'shared' });
    first.release();
    second.release();
    await Promise.all([first.done, second.done]);
  });

  test('a request in the same turn behind a free exclusive lock gets null', async () => {
    const [first, second] = [hold(), hold({ ifAvailable: true })];
    expect(await second.granted).toBe(null);
    second.release();
    first.release();
    await Promise.all([first.done, second.done]);
  });

  test('a waiting request comes first, also if the lock could be shared', async () => {
    const reader = hold({ mode: 'shared' });
    await reader.granted;
    const writer = hold();
    await waiting(1);
    expect(await isFree({ mode: 'shared' })).toBe(false);
    reader.release();
    await writer.granted;
    writer.release();
    await writer.done;
  });

  test('the lock is free when the request of its holder has resolved', async () => {
    for (let round = 0; round < 5; round += 1) {
      await locks.request(name, () => undefined);
      expect(await isFree()).toBe(true);
    }
  });

  test('does not wait for a callback whose lock was stolen', async () => {
    const first = hold();
    await first.granted;
    await locks.request(name, { steal: true }, () => undefined);
    await expect(first.done).rejects.toMatchObject({ name: 'AbortError' });
    expect(await isFree()).toBe(true);
    first.release();
  });
});

describe('steal', () => {
  test('a free lock is granted', async () => {
    expect(await locks.request(name, { steal: true }, (lock) => lock)).toEqual({ name, mode: 'exclusive' });
  });

  test.each(['exclusive', 'shared'] as const)('the %s request that held the lock rejects at once', async (mode) => {
    const victims = mode === 'shared' ? [hold({ mode }), hold({ mode })] : [hold({ mode })];
    await Promise.all(victims.map(({ granted }) => granted));
    const thief = hold({ steal: true });
    await thief.granted;
    for (const victim of victims) {
      const error: unknown = await victim.done.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(DOMException);
      expect(error).toMatchObject({ name: 'AbortError', cause: expect.any(LockLostError) });
      victim.release();
    }
    expect(await isFree()).toBe(false);
    thief.release();
    await thief.done;
  });

  test('the end of a stolen callback does not release the lock of the thief', async () => {
    const victim = hold();
    await victim.granted;
    const thief = hold({ steal: true });
    await thief.granted;
    victim.release();
    await expect(victim.done).rejects.toMatchObject({ name: 'AbortError' });
    expect(await isFree()).toBe(false);
    thief.release();
    await thief.done;
  });

  test('an error of a stolen callback is not an unhandled rejection', async () => {
    let fail!: (error: Error) => void;
    const victim = locks.request(name, () => new Promise((_, reject) => (fail = reject)));
    const stolen = expect(victim).rejects.toMatchObject({ name: 'AbortError' });
    await until(() => fail !== undefined, 'the callback runs');
    await locks.request(name, { steal: true }, () => undefined);
    await stolen;
    fail(new Error('too late'));
    expect(await isFree()).toBe(true);
  });

  test('waiting requests stay behind the thief, and keep their order', async () => {
    const victim = hold();
    await victim.granted;
    const [second, third] = [hold(), hold()];
    await waiting(2);
    const thief = hold({ steal: true });
    await thief.granted;
    await waiting(2);
    expect([second.isGranted, third.isGranted]).toEqual([false, false]);
    thief.release();
    await second.granted;
    expect(third.isGranted).toBe(false);
    second.release();
    await third.granted;
    third.release();
    victim.release();
    await third.done;
  });

  test('a thief can be robbed', async () => {
    const [first, second] = [hold({ steal: true }), hold({ steal: true })];
    await Promise.all([first.granted, second.granted]);
    await expect(first.done).rejects.toMatchObject({ name: 'AbortError' });
    first.release();
    second.release('second');
    expect(await second.done).toBe('second');
  });

  test('takes the lock from another client, whose request rejects', async () => {
    const other = createLockManager(await openClient({ lockWatchdogTimeout: 600 }));
    const victim = hold({}, other);
    await victim.granted;
    const thief = hold({ steal: true });
    await thief.granted;
    await expect(victim.done).rejects.toMatchObject({ name: 'AbortError' });
    victim.release();
    thief.release();
    await thief.done;
  });
});

describe('signal', () => {
  const neverCalled = jest.fn();
  afterEach(() => expect(neverCalled).not.toHaveBeenCalled());

  test.each<[string, unknown, unknown]>([
    ['an AbortError by default', undefined, expect.objectContaining({ name: 'AbortError' })],
    ['its reason', 'stopped', 'stopped'],
  ])('a signal that was aborted before refuses with %s', async (_title, reason, expected) => {
    const signal = AbortSignal.abort(reason);
    await expect(locks.request(name, { signal }, neverCalled)).rejects.toEqual(expected);
  });

  test('an abort in the same turn ends the request', async () => {
    const controller = new AbortController();
    const request = locks.request(name, { signal: controller.signal }, neverCalled);
    controller.abort();
    await expect(request).rejects.toMatchObject({ name: 'AbortError' });
    expect(await isFree()).toBe(true);
  });

  test.each([
    ['waits at Redis', 0],
    ['waits behind another request', 1],
  ])('an abort ends a request that %s, with its reason; the next one is granted', async (_title, before) => {
    const first = hold();
    await first.granted;
    const others = Array.from({ length: before }, () => hold());
    const controller = new AbortController();
    const request = locks.request(name, { signal: controller.signal }, neverCalled);
    const next = hold();
    await waiting(before + 2);
    controller.abort('stopped');
    await expect(request).rejects.toBe('stopped');
    expect((await locks.query()).pending).toHaveLength(before + 1);
    first.release();
    for (const other of others) {
      await other.granted;
      other.release();
    }
    await next.granted;
    next.release();
    await next.done;
  });

  test('an abort by time ends the wait', async () => {
    const first = hold();
    await first.granted;
    const request = locks.request(name, { signal: AbortSignal.timeout(50) }, neverCalled);
    await expect(request).rejects.toMatchObject({ name: 'TimeoutError' });
    first.release();
    await first.done;
  });

  test('an abort after the grant, and after the release, has no effect', async () => {
    const controller = new AbortController();
    const held = hold({ signal: controller.signal });
    await held.granted;
    controller.abort();
    expect(await isFree()).toBe(false);
    held.release('result');
    expect(await held.done).toBe('result');
    const later = new AbortController();
    expect(await locks.request(name, { signal: later.signal }, () => 1)).toBe(1);
    later.abort();
    expect(await isFree()).toBe(true);
  });

  test('a signal that outlives its requests keeps no listener of them', async () => {
    const { signal } = new AbortController();
    const removed = jest.spyOn(signal, 'removeEventListener');
    const added = jest.spyOn(signal, 'addEventListener');
    await locks.request(name, { signal }, () => undefined);
    expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(
      added.mock.calls.map(([, listener]) => listener),
    );
  });
});

describe('query()', () => {
  test('lists nothing at first', async () => {
    expect(await locks.query()).toEqual({ held: [], pending: [] });
  });

  test('lists a lock of each mode with the client that holds it', async () => {
    const other = await openClient();
    const second = freshName();
    const all = [hold(), hold({ mode: 'shared' }, createLockManager(other), second)];
    await Promise.all(all.map(({ granted }) => granted));
    const { held, pending } = await locks.query();
    expect(held.sort((a, b) => a.mode.localeCompare(b.mode))).toEqual([
      { name, mode: 'exclusive', clientId: client.id },
      { name: second, mode: 'shared', clientId: other.id },
    ]);
    expect(pending).toEqual([]);
    for (const { release } of all) release();
    await Promise.all(all.map(({ done }) => done));
  });

  test('lists each holder of a shared lock', async () => {
    const all = [hold({ mode: 'shared' }), hold({ mode: 'shared' })];
    await Promise.all(all.map(({ granted }) => granted));
    const one = { name, mode: 'shared', clientId: client.id };
    expect((await locks.query()).held).toEqual([one, one]);
    for (const { release } of all) release();
    await Promise.all(all.map(({ done }) => done));
  });

  test('lists waiting requests in their order, and none that is over', async () => {
    const first = hold();
    await first.granted;
    const [second, third] = [hold({ mode: 'shared' }), hold()];
    await waiting(2);
    expect((await locks.query()).pending).toEqual([
      { name, mode: 'shared', clientId: client.id },
      { name, mode: 'exclusive', clientId: client.id },
    ]);
    first.release();
    second.release();
    third.release();
    await third.done;
    expect(await locks.query()).toEqual({ held: [], pending: [] });
  });

  test('lists no read-write lock that is not of a lock manager', async () => {
    await client
      .getReadWriteLock(name)
      .writeLock()
      .withLock(async () => {
        expect((await locks.query()).held).toEqual([]);
      });
  });
});

test('locks of two clients exclude each other', async () => {
  const other = createLockManager(await openClient());
  const first = hold();
  await first.granted;
  expect(await other.request(name, { ifAvailable: true }, (lock) => lock)).toBe(null);
  const next = hold({}, other);
  await until(async () => (await other.query()).pending.length === 1, 'the other client waits');
  first.release();
  await next.granted;
  next.release();
  await next.done;
});

test('the end of the client ends held and waiting requests', async () => {
  const closing = await openClient();
  const manager = createLockManager(closing);
  const first = hold({}, manager);
  await first.granted;
  const next = hold({}, manager);
  await until(() => closing.stats().waiting === 1, 'the second request waits');
  await closing.close({ releaseHolds: true });
  for (const { done } of [first, next]) await expect(done).rejects.toMatchObject({ code: 'ERR_LOCK_CLIENT_CLOSED' });
  first.release();
});

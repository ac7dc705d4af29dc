import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type * as Package from '../../src/index.js';
import type { ContextOptions } from '../../src/locks/arguments.js';
import type { Lock } from '../../src/locks/lock.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { reach } from '../support/servers/topology.mjs';

const noHook = (): (() => void) => () => undefined;
/** As Bun does. */
const notImplemented = (): never => {
  throw new Error('not implemented');
};

/** The possible faults of a runtime, as the library sees them. */
const RUNTIMES: Record<string, object | undefined> = {
  'has no promise hooks': undefined,
  'never calls its promise hooks': { onInit: noHook, onBefore: noHook },
  'refuses to enable its promise hooks': { onInit: notImplemented, onBefore: notImplemented },
};

type Make = (client: LockClient, name: string, options?: ContextOptions) => Lock;
const KINDS: Record<string, Make> = {
  lock: (client, name, options) => client.getLock(name, options),
  'fair lock': (client, name, options) => client.getFairLock(name, options),
  'non-reentrant lock': (client, name, options) => client.getNonReentrantLock(name, options),
  'non-reentrant fair lock': (client, name, options) => client.getNonReentrantFairLock(name, options),
  'fenced lock': (client, name, options) => client.getFencedLock(name, options),
  'spin lock': (client, name, options) => client.getSpinLock(name, options),
  'read lock': (client, name, options) => client.getReadWriteLock(name, options).readLock(),
  'write lock': (client, name, options) => client.getReadWriteLock(name, options).writeLock(),
  'group lock': (client, name, options) => client.getMultiLock(name, ['a', 'b'], options),
  'multi-lock': (client, name, options = {}) => client.getMultiLock(client.getLock(name), options),
  RedLock: (client, name, options = {}) => client.getRedLock(client.getLock(name), options),
};

describe.each(Object.entries(RUNTIMES))('R3: where the runtime %s', (_, promiseHooks) => {
  let holdfast: typeof Package;
  let client: LockClient;
  beforeEach(async () => {
    jest.resetModules();
    jest.unstable_mockModule('node:v8', () => ({ default: {}, promiseHooks }));
    holdfast = await import('../../src/index.js');
    client = holdfast.createClient(reach(testRedisUrl()));
  });
  afterEach(() => client.close());

  const isUnsupported = async (call: Promise<unknown>): Promise<void> => {
    const [settled] = await Promise.allSettled([call]);
    expect(settled).toMatchObject({ status: 'rejected', reason: { code: 'ERR_LOCK_UNSUPPORTED_RUNTIME' } });
    expect((settled as PromiseRejectedResult).reason).toBeInstanceOf(holdfast.UnsupportedRuntimeError);
  };
  const exists = (name: string): Promise<number> => admin().exists(name);

  test.each(Object.entries(KINDS))('R3: %s: lock() and tryLock() reject and take nothing', async (_kind, make) => {
    const name = freshName();
    const lock = make(client, name);
    for (const call of [() => lock.lock(), () => lock.lock(5_000), () => lock.tryLock(), () => lock.tryLock(100)]) {
      await isUnsupported(call());
      expect(await exists(name)).toBe(0);
    }
  });

  test('the first calls of a process, during the runtime check, end like all later calls', async () => {
    jest.resetModules();
    const fresh = await import('../../src/index.js');
    const first = fresh.createClient(reach(testRedisUrl()));
    const lock = first.getLock(freshName());
    const [bare, hold] = await Promise.allSettled([lock.lock(), lock.acquire()]);
    expect(bare).toMatchObject({ status: 'rejected', reason: { code: 'ERR_LOCK_UNSUPPORTED_RUNTIME' } });
    expect(hold).toMatchObject({ status: 'fulfilled', value: { lockName: lock.name } });
    await (hold as PromiseFulfilledResult<Package.Hold>).value.release();
    await first.close();
  });

  test('R3: a fenced lock acquires nothing and draws no token', async () => {
    const lock = client.getFencedLock(freshName());
    await isUnsupported(lock.lockAndGetToken());
    await isUnsupported(lock.tryLockAndGetToken());
    expect(await exists(lock.name)).toBe(0);
    expect(await lock.getToken()).toBe(0n);
  });

  test.each(Object.entries(KINDS))('R3: %s: withLock and acquire with release work', async (_kind, make) => {
    const name = freshName();
    const lock = make(client, name);
    expect(
      await lock.withLock(async (hold) => {
        expect(lock.currentHold()).toBe(hold);
        return exists(name);
      }),
    ).toBe(1);
    expect(await exists(name)).toBe(0);
    const hold = await lock.acquire();
    expect(lock.currentHold()).toBeUndefined(); // the library cannot see that this code awaited it
    expect(await exists(name)).toBe(1);
    expect(hold.run(() => lock.currentHold())).toBe(hold);
    await hold.release();
    expect(await exists(name)).toBe(0);
    const tried = await lock.tryAcquire();
    await tried!.release();
    expect(await exists(name)).toBe(0);
  });

  test.each(Object.entries(KINDS))('R3: %s: with a context every form works', async (_kind, make) => {
    const name = freshName();
    const context = new holdfast.LockContext();
    for (const [lock, options] of [
      [make(client, name), { context }],
      [make(client, name, { context }), {}],
    ] as const) {
      await lock.lock(options);
      expect(await exists(name)).toBe(1);
      await lock.unlock(options);
      expect(await exists(name)).toBe(0);
      expect(await lock.tryLock(options)).toBe(true);
      await lock.unlock(options);
      await lock.withLock(options, () => undefined);
      expect(await exists(name)).toBe(0);
    }
  });
});

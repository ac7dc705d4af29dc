import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { LockClient } from '../../../src/index.js';
import { createLockManager, type LockManager } from '../../../src/integrations/web-locks/index.js';
import { closeClients, openClient } from '../../support/clients/lock-clients.js';
import { freshName } from '../../support/redis.js';

/* The situations of the web platform tests about arguments, names and the values of the callback. */

let client: LockClient;
let locks: LockManager;
let name: string;

beforeEach(async () => {
  client = await openClient();
  locks = createLockManager(client);
  name = freshName();
});
afterEach(closeClients);

/** Calls with arguments that the types do not allow. */
const call = (...args: unknown[]): Promise<unknown> =>
  (locks.request as (...args: unknown[]) => Promise<unknown>).apply(locks, args);

const callback = jest.fn();
beforeEach(() => {
  callback.mockReset();
});
afterEach(() => expect(callback).not.toHaveBeenCalled());

const { signal } = new AbortController();

test.each<[string, () => unknown[], string]>([
  ['no argument', () => [], 'TypeError'],
  ['a name alone', () => [name], 'TypeError'],
  ['a name and options without a callback', () => [name, {}], 'TypeError'],
  ['a callback that is null', () => [name, {}, null], 'TypeError'],
  ['a callback that is a string', () => [name, {}, 'callback'], 'TypeError'],
  ['a callback that is undefined', () => [name, undefined], 'TypeError'],
  ['options that are a number', () => [name, 1, callback], 'TypeError'],
  ['options that are a string', () => [name, 'shared', callback], 'TypeError'],
  ['a name that is a symbol', () => [Symbol('name'), callback], 'TypeError'],
  ['an unknown mode', () => [name, { mode: 'foo' }, callback], 'TypeError'],
  ['a mode that is null', () => [name, { mode: null }, callback], 'TypeError'],
  ['a mode that is empty', () => [name, { mode: '' }, callback], 'TypeError'],
  ['a mode in other letters', () => [name, { mode: 'Shared' }, callback], 'TypeError'],
  ['a mode that is a symbol', () => [name, { mode: Symbol('shared') }, callback], 'TypeError'],
  ['a signal that is a string', () => [name, { signal: 'stop' }, callback], 'TypeError'],
  ['a signal that is null', () => [name, { signal: null }, callback], 'TypeError'],
  ['a signal that is a controller', () => [name, { signal: new AbortController() }, callback], 'TypeError'],
  ['a name that begins with -', () => ['-name', callback], 'NotSupportedError'],
  ['the name -', () => ['-', callback], 'NotSupportedError'],
  ['steal and ifAvailable', () => [name, { steal: true, ifAvailable: true }, callback], 'NotSupportedError'],
  ['steal and the mode shared', () => [name, { steal: true, mode: 'shared' }, callback], 'NotSupportedError'],
  ['a signal and steal', () => [name, { signal, steal: true }, callback], 'NotSupportedError'],
  ['a signal and ifAvailable', () => [name, { signal, ifAvailable: true }, callback], 'NotSupportedError'],
])('%s is refused, and the callback is not called', async (_title, args, error) => {
  await expect(call(...args())).rejects.toMatchObject({ name: error });
  expect(await locks.query()).toEqual({ held: [], pending: [] });
});

test('an error for excluded options is a DOMException', async () => {
  const error: unknown = await call('-', callback).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(DOMException);
});

test('a name that Redis cannot store, half of a surrogate pair, is refused', async () => {
  await expect(call('\uD800', callback)).rejects.toMatchObject({ code: 'ERR_LOCK_INVALID_ARGUMENT' });
});

test('something that is no client is refused', () => {
  expect(() => createLockManager(JSON.parse('{}') as LockClient)).toThrow(
    expect.objectContaining({ code: 'ERR_LOCK_INVALID_ARGUMENT', argument: 'client' }),
  );
});

test('each call with the same client returns the same manager', () => {
  expect(createLockManager(client)).toBe(locks);
});

describe('a granted lock', () => {
  test.each(['', ' ', 'abc', '\0', 'a\0b', 'a-', '{', 'a{b}c', '日本語', '👍', '*', '\\*', 'constructor'])(
    'has the name %j',
    async (given) => {
      const own = given === '' ? '' : given + freshName();
      expect(await locks.request(own, (lock) => lock)).toEqual({ name: own, mode: 'exclusive' });
      expect(await locks.request(own, async () => (await locks.query()).held)).toEqual([
        { name: own, mode: 'exclusive', clientId: client.id },
      ]);
    },
  );

  test('converts a name that is no string', async () => {
    expect(await call(12, (lock: unknown) => lock)).toEqual({ name: '12', mode: 'exclusive' });
    expect(await call(undefined, (lock: unknown) => lock)).toEqual({ name: 'undefined', mode: 'exclusive' });
  });

  test.each(['exclusive', 'shared'] as const)('has the mode %s', async (mode) => {
    expect(await locks.request(name, { mode }, (lock) => lock)).toEqual({ name, mode });
  });

  test.each([undefined, null, {}])('has the mode exclusive with the options %j', async (options) => {
    expect(await call(name, options, (lock: unknown) => lock)).toEqual({ name, mode: 'exclusive' });
  });

  test('cannot be changed', async () => {
    await locks.request(name, (lock) => expect(Object.isFrozen(lock)).toBe(true));
  });

  test('is passed alone, and after request() has returned', async () => {
    const calls: unknown[][] = [];
    const requested = locks.request(name, (...args: unknown[]) => void calls.push(args));
    expect(calls).toEqual([]);
    await requested;
    expect(calls).toEqual([[{ name, mode: 'exclusive' }]]);
  });
});

describe('the request', () => {
  test.each([123, undefined, null, 'text'])('resolves with what the callback returns: %j', async (value) => {
    expect(await locks.request(name, () => value)).toBe(value);
  });

  test('resolves with what the promise of the callback resolves with', async () => {
    expect(await locks.request(name, () => Promise.resolve(123))).toBe(123);
  });

  test('resolves with what a thenable of the callback resolves with', async () => {
    const thenable = { then: (resolve: (value: number) => void) => resolve(123) } as PromiseLike<number>;
    expect(await locks.request(name, () => thenable)).toBe(123);
  });

  test.each<[string, (error: Error) => unknown]>([
    [
      'throws',
      (error) => {
        throw error;
      },
    ],
    ['rejects with', (error) => Promise.reject(error)],
    [
      'rejects in a thenable with',
      (error) => ({ then: (_: unknown, reject: (error: Error) => void) => reject(error) }),
    ],
  ])('rejects with the error that the callback %s, and the lock is free', async (_title, fail) => {
    const error = new Error('of the callback');
    await expect(locks.request(name, () => fail(error))).rejects.toBe(error);
    expect(await locks.request(name, { ifAvailable: true }, (lock) => lock?.name)).toBe(name);
  });
});

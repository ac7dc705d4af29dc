import { afterEach, describe, expect, test } from '@jest/globals';
import { Readable } from 'node:stream';
import { defer, lastValueFrom, type Observable } from 'rxjs';
import type { LockClient } from '../../../src/index.js';
import { InvalidArgumentError, LockTimeoutError } from '../../../src/index.js';
import { createLocking } from '../../../src/integrations/decorators/index.js';
import { closeClients, holdElsewhere, openClient } from '../../support/clients/lock-clients.js';
import { freshName } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

afterEach(() => closeClients());

const heldBy = (client: LockClient): string[] =>
  client
    .holds()
    .map(({ lockName }) => lockName)
    .sort();

describe('a locked function', () => {
  test('runs inside the lock, with its own this and arguments, and releases the lock', async () => {
    const client = await openClient();
    const { locked } = createLocking(client);
    const name = freshName();
    const cart = {
      price: 3,
      total: locked(
        { key: (a: number, b: number) => `${name}:${a + b}` },
        async function (this: { price: number }, a: number, b: number) {
          return { held: heldBy(client), total: this.price * (a + b) };
        },
      ),
    };
    expect(await cart.total(1, 2)).toEqual({ held: [`${name}:3`], total: 9 });
    expect(client.holds()).toEqual([]);
  });

  test('has the name and the length of the function', async () => {
    const { locked } = createLocking(await openClient());
    const ship = locked({ key: freshName() }, async function ship(_order: string, _by: Date) {
      return 1;
    });
    expect([ship.name, ship.length]).toEqual(['ship', 2]);
  });

  test('rejects with the error of the function, unchanged, also if that error is of a busy lock', async () => {
    const client = await openClient();
    const { locked } = createLocking(client);
    const error = new LockTimeoutError('another lock', 0);
    const fail = locked({ key: freshName(), onBusy: 'skip' }, async () => Promise.reject(error));
    await expect(fail()).rejects.toBe(error);
    expect(client.holds()).toEqual([]);
  });

  test.each([
    ['returns', (result: Observable<number>) => result],
    ['resolves with', async (result: Observable<number>) => result],
  ])('that %s an Observable rejects, and nobody subscribes to it', async (_title, body) => {
    const client = await openClient();
    let subscribed = 0;
    const work = defer(async () => (subscribed += 1));
    const call = createLocking(client).locked({ key: freshName() }, () => body(work));
    await expect(call()).rejects.toMatchObject({
      code: 'ERR_LOCK_INVALID_ARGUMENT',
      message: expect.stringContaining('lastValueFrom(observable)'),
    });
    expect([subscribed, client.holds()]).toEqual([0, []]);
    const { locked } = createLocking(client);
    expect(await locked({ key: freshName() }, () => lastValueFrom(work))()).toBe(1);
  });

  test.each([
    ['returns', (result: AsyncIterable<number>) => result],
    ['resolves with', async (result: AsyncIterable<number>) => result],
  ])(
    'that %s an async iterator rejects, and nothing of it runs: compilers make one of `async function*`',
    async (...row) => {
      const [, body] = row;
      const client = await openClient();
      let rows = 0;
      const generator = async function* () {
        yield (rows += 1);
      };
      const call = createLocking(client).locked({ key: freshName() }, () => body(generator()));
      await expect(call()).rejects.toMatchObject({
        code: 'ERR_LOCK_INVALID_ARGUMENT',
        message: expect.stringContaining('async iterator'),
      });
      expect([rows, client.holds()]).toEqual([0, []]);
    },
  );

  test('that returns a stream is no such function: its values may exist already', async () => {
    const { locked } = createLocking(await openClient());
    const stream = Readable.from(['a', 'b']);
    expect(await locked({ key: freshName() }, () => stream)()).toBe(stream);
  });

  test.each<[string, () => unknown]>([
    ['a generator function', function* () {}],
    ['an async generator function', async function* () {}],
  ])('%s is refused: it would run without the lock', async (_, fn) => {
    const client = await openClient();
    const { locked, Locked } = createLocking(client);
    const key = freshName();
    const message = /a function that is no generator function; use an async function and iterate in it$/;
    expect(() => locked({ key }, fn)).toThrow(message);
    const decorator = Locked({ key }) as (...args: unknown[]) => unknown;
    expect(() => decorator(fn, { kind: 'method', name: 'ship' })).toThrow(message);
    expect(() => decorator({}, 'ship', { value: fn })).toThrow(InvalidArgumentError);
    await expect(client.getLock(key).withLock(fn)).rejects.toThrow(message);
    await expect(client.getSemaphore(key, { permits: 1 }).withPermits({}, fn)).rejects.toThrow(InvalidArgumentError);
  });

  test('re-enters if it calls itself', async () => {
    const { locked } = createLocking(await openClient());
    const key = freshName();
    const factorial = locked({ key }, async (n: number): Promise<number> => (n < 2 ? 1 : n * (await factorial(n - 1))));
    expect(await factorial(5)).toBe(120);
  });

  test('acquires a list of names as one lock, whatever their order, and each name once', async () => {
    const client = await openClient();
    const { locked } = createLocking(client);
    const [a, b] = [freshName(), freshName()].sort() as [string, string];
    const transfer = locked(
      { key: (from: string, to: string) => [from, to], waitTime: 5_000 },
      async (_from: string, _to: string) => heldBy(client),
    );
    const runs = [transfer(a, b), transfer(b, a), transfer(a, a)];
    expect(await Promise.all(runs)).toEqual([[a, b], [a, b], [a]]);
  });

  test.each([
    ['lock', 'lock'],
    ['non-reentrant', 'lock'],
    ['fair', 'lock'],
    ['non-reentrant-fair', 'lock'],
    ['fenced', 'fenced'],
    ['spin', 'lock'],
    ['read', 'read-write'],
    ['write', 'read-write'],
  ] as const)('of the kind %s acquires a lock of that kind', async (kind, inRedis) => {
    const client = await openClient();
    const { locked } = createLocking(client);
    const key = freshName();
    const inspected = await locked({ key, kind }, () => client.inspect(key))();
    expect(inspected.kind).toBe(inRedis);
    expect(inspected.owners).toMatchObject([{ mode: kind === 'read' || kind === 'write' ? kind : 'exclusive' }]);
  });

  test('runs without the lock if its condition is false', async () => {
    const client = await openClient();
    const { locked } = createLocking(client);
    const key = freshName();
    const held = locked({ key, when: async (dry: boolean) => !dry }, async (_dry: boolean) => heldBy(client));
    expect(await held(true)).toEqual([]);
    expect(await held(false)).toEqual([key]);
  });

  test('with atLeast keeps the lock for that time since its begin, and resolves or rejects when it has ended', async () => {
    const { locked } = createLocking(await openClient());
    const other = await openClient();
    const error = new Error('failed');
    for (const work of [async () => 'ran', async () => Promise.reject(error)]) {
      const key = freshName();
      const begun = performance.now();
      const result: unknown = await locked({ key, atLeast: 300 }, work)().catch((rejected: unknown) => rejected);
      expect(['ran', error]).toContain(result);
      await (await holdElsewhere(other.getLock(key))).release();
      expect(performance.now() - begun).toBeGreaterThan(295);
    }
  });

  test('that ran for longer than atLeast leaves the lock free', async () => {
    const client = await openClient();
    const { locked } = createLocking(client);
    const key = freshName();
    const begun = performance.now();
    await locked({ key, atLeast: 20 }, () => until(() => performance.now() - begun > 30, 'the time is over'))();
    expect(await client.getLock(key).isLocked()).toBe(false);
  });

  test('finds its client in this at each call', async () => {
    const client = await openClient();
    const { locked } = createLocking((self: { locks?: LockClient }) => self.locks!);
    const service = { ship: locked({ key: freshName() }, async () => 'shipped') } as {
      locks?: LockClient;
      ship: () => Promise<string>;
    };
    await expect(service.ship()).rejects.toThrow('client must be a function that returns a client of createClient()');
    service.locks = client;
    expect(await service.ship()).toBe('shipped');
  });
});

describe('a locked function whose lock is busy', () => {
  async function busy() {
    const client = await openClient();
    const key = freshName();
    const hold = await holdElsewhere((await openClient()).getLock(key));
    return { ...createLocking(client), key, hold };
  }

  test('rejects at once by default', async () => {
    const { locked, key, hold } = await busy();
    let runs = 0;
    await expect(locked({ key }, () => (runs += 1))()).rejects.toMatchObject({ code: 'ERR_LOCK_TIMEOUT', waitTime: 0 });
    expect(runs).toBe(0);
    await hold.release();
  });

  test('skips the call, or resolves with what onBusy returns for the arguments', async () => {
    const { locked, key, hold } = await busy();
    const skipped: string | undefined = await locked({ key, onBusy: 'skip' }, async () => 'ran')();
    expect(skipped).toBeUndefined();
    const instead = locked(
      { key, onBusy: ({ lockName, waitTime }, n: number) => [lockName, waitTime, n] as const },
      async (_n: number) => 'ran',
    );
    const result: string | readonly [string, number, number] = await instead(7);
    expect(result).toEqual([key, 0, 7]);
    await hold.release();
  });

  test('waits for waitTime, and stops waiting when the signal of the call aborts', async () => {
    const { locked, key, hold } = await busy();
    const run = locked(
      { key, waitTime: Infinity, signal: (signal: AbortSignal) => signal },
      async (_signal: AbortSignal) => 'ran',
    );
    const controller = new AbortController();
    const aborted = run(controller.signal);
    const waits = run(new AbortController().signal);
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'ERR_LOCK_ABORTED' });
    await hold.release();
    expect(await waits).toBe('ran');
  });
});

test.each<[string, unknown, string]>([
  ['no options', undefined, 'options must be an object with a key'],
  ['no key', {}, 'key must be a name'],
  ['an unknown option', { key: 'a', waitTme: 1 }, 'unknown option "waitTme"; expected one of key, kind, waitTime'],
  ['an unknown kind', { key: 'a', kind: 'rw' }, 'kind must be one of lock, non-reentrant'],
  ['a condition that is no function', { key: 'a', when: true }, 'when must be a function'],
  ['a time that is none', { key: 'a', atLeast: -1 }, 'atLeast must be an integer of at least 0 (ms)'],
  ['a wait time that is no number', { key: 'a', waitTime: '500' }, 'waitTime must be a number (ms)'],
  ['a wait time that is null', { key: 'a', waitTime: null }, 'waitTime must be a number (ms)'],
  ['a lease that is not a number', { key: 'a', leaseTime: NaN }, 'leaseTime must be a number (ms)'],
  ['an unknown reaction', { key: 'a', onBusy: 'wait' }, "onBusy must be 'throw', 'skip' or a function"],
])('%s is refused where the function is declared', async (_title, options, message) => {
  const { locked } = createLocking(await openClient());
  expect(() => locked(options as { key: string }, () => 1)).toThrow(message);
  expect(() => locked(options as { key: string }, () => 1)).toThrow(InvalidArgumentError);
});

test.each<[string, unknown]>([
  ['an empty list', []],
  ['undefined', undefined],
  ['a list with an empty name', ['a', '']],
])('a key function that returns %s fails the call, and the function does not run', async (_title, key) => {
  const { locked } = createLocking(await openClient());
  let runs = 0;
  await expect(locked({ key: () => key as string }, () => (runs += 1))()).rejects.toBeInstanceOf(InvalidArgumentError);
  expect(runs).toBe(0);
});

test('a value that is not a client is refused', () => {
  expect(() => createLocking('client' as never)).toThrow('client must be a client of createClient()');
});

test.each<[string, unknown[]]>([
  ['a field', [undefined, { kind: 'field', name: 'ship' }]],
  ['a getter', [() => 1, { kind: 'getter', name: 'ship' }]],
  ['a legacy field', [{}, 'ship', undefined]],
  ['a legacy getter', [{}, 'ship', { get: () => 1 }]],
])('@Locked on %s is refused', async (_title, args) => {
  const { Locked } = createLocking(await openClient());
  const decorator = Locked({ key: 'a' }) as unknown as (...args: unknown[]) => unknown;
  expect(() => decorator(...args)).toThrow('@Locked must be on a method; use locked() for a function that is a value');
});

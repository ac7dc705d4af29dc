import { describe, expect, test } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { inspect } from 'node:util';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { LockContext } from '../../src/ownership/lock-context.js';
import { ClientClosedError, InvalidArgumentError, RedisUnavailableError, RefusedError } from '../../src/errors.js';
import { runFixture } from '../support/processes/fixture-process.js';
import { freePort } from '../support/servers/free-port.js';
import { holdElsewhere, inFlow, openProxy, pause } from '../support/clients/lock-clients.js';
import { admin, expectNothingLeft, freshName, testRedisUrl } from '../support/redis.js';
import { startServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';
import { plainLockKind as kind } from './plain-lock.js';
import { ATTEMPT_MS, errorOf, leaveNothing, open, SLACK_MS, startWaiting, timed, type Bench } from './lock-kind.js';
import { reach } from '../support/servers/topology.mjs';

leaveNothing();

/** A client that the test closes, or that never connects. */
async function using<T>(client: LockClient, use: (client: LockClient) => Promise<T>): Promise<T> {
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

describe('createClient()', () => {
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['neither url nor redis', {}],
    ['both', { url: 'redis://localhost', redis: new Redis({ lazyConnect: true }) }],
    ['a url that is none', { url: 'localhost:6379' }],
    ['a url that is no string', { url: 6379 }],
    ['a url that cannot be read', { url: 'redis://user:pass#word@localhost' }],
    ['a url with a bad escape', { url: 'redis://user:50%off@localhost' }],
    ['a redis that is none', { redis: {} }],
    ['a redis that is null', { redis: null }],
    ['lockWatchdogTimeout 0', { url: 'redis://localhost', lockWatchdogTimeout: 0 }],
    ['lockWatchdogTimeout 50', { url: 'redis://localhost', lockWatchdogTimeout: 50 }],
    ['lockWatchdogTimeout 1.5', { url: 'redis://localhost', lockWatchdogTimeout: 1_000.5 }],
    ['lockWatchdogTimeout NaN', { url: 'redis://localhost', lockWatchdogTimeout: NaN }],
    ['commandTimeout 0', { url: 'redis://localhost', commandTimeout: 0 }],
    ['commandTimeout -1', { url: 'redis://localhost', commandTimeout: -1 }],
    ['commandTimeout "3000"', { url: 'redis://localhost', commandTimeout: '3000' }],
    ['keyPrefix 5', { url: 'redis://localhost', keyPrefix: 5 }],
    ['handOff true', { url: 'redis://localhost', handOff: true }],
    ['handOff with 0 sections', { url: 'redis://localhost', handOff: { maxSections: 0 } }],
    ['callSites "no"', { url: 'redis://localhost', callSites: 'no' }],
    ...[
      ...['url', 'redis', 'credentials', 'lockWatchdogTimeout', 'commandTimeout', 'keyPrefix', 'handOff', 'release'],
      ...['replicas', 'shardedSubscriptions', 'callSites', 'clientName', 'fairLockWaitTimeout', 'fairWaiterTimeout'],
    ].map((name): [string, unknown] => [`${name} null`, { url: 'redis://localhost', [name]: null }]),
    ...['maxSections', 'maxTime', 'local', 'keep'].map((name): [string, unknown] => [
      `handOff.${name} null`,
      { url: 'redis://localhost', handOff: { [name]: null } },
    ]),
    ['replicas.acks null', { url: 'redis://localhost', replicas: { acks: null } }],
    ['a misspelt option', { url: 'redis://localhost', commandTimout: 500 }],
    ['a misspelt option of handOff', { url: 'redis://localhost', handOff: { maxSection: 4 } }],
    ['a misspelt option of replicas', { url: 'redis://localhost', replicas: { ack: 1 } }],
  ])('R7: throws at once for %s', (_, options) => {
    expect(() => createClient(options as never)).toThrow(InvalidArgumentError);
  });

  test('R7: a message names the path of the option and the known options, and never shows a possible password', () => {
    const thrown = (options: unknown): unknown => {
      try {
        return createClient(options as never);
      } catch (error) {
        return error;
      }
    };
    const url = 'redis://localhost';
    const secret = 'geheim';
    for (const [options, argument, text] of [
      [{}, 'url', /unless redis is given/],
      [{ url, redis: new Redis({ lazyConnect: true }) }, 'redis', /absent where url is given/],
      [{ url, redis: new Redis({ lazyConnect: true, password: secret }) }, 'redis', /absent where url is given/],
      [{ redis: { password: secret } }, 'redis', /a connection of ioredis, .*, not an object/],
      [{ url: new URL(`redis://me:${secret}@host`) }, 'url', /a string that begins/],
      [{ url: `redis://me:p#${secret}@host` }, 'url', /percent-encoded/],
      [{ url: `redis://me:50%${secret}@host` }, 'url', /percent-encoded/],
      [{ url, password: secret }, 'password', /^unknown option "password"; expected one of url, redis, /],
      [{ url: `http://me:${secret}@host` }, 'url', /begins with redis:\/\/, .*valkeys:\/\//],
      [{ redis: { url: `https://me:${secret}@host` } }, 'url', /begins with redis:\/\//],
      [{ redis: { url: `me:${secret}@host:6379` } }, 'url', /begins with redis:\/\//],
      [{ redis: { host: 'a', url: `unix://me:${secret}@host` } }, 'url', /begins with redis:\/\//],
      [{ redis: { rootNodes: [{ url: `https://me:${secret}@host` }] } }, 'url', /begins with redis:\/\//],
      [{ redis: new Redis(`valkey://me:${secret}@host`, { lazyConnect: true }) }, 'redis', /takes every other scheme/],
      [{ redis: new Cluster([`https://me:${secret}@host`], { lazyConnect: true }) }, 'redis', /begins with redis:\/\//],
      [`redis://me:${secret}@host`, 'options', /an object with url or redis/],
      [{ url, replicas: { acks: -1 } }, 'replicas.acks', /an integer from 0 to 2147483647, not -1/],
      [{ url, handOff: { maxTime: 2 ** 40 } }, 'handOff.maxTime', /to 2147483647, not 1099511627776/],
    ] as const) {
      const error = thrown(options);
      expect(error).toMatchObject({ argument, message: expect.stringMatching(text) });
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(secret);
    }
  });

  test('an undefined option counts as absent', async () => {
    const options = { ...reach(testRedisUrl()), lockWatchdogTimeout: undefined, keyPrefix: undefined };
    await using(createClient(options as never), async (client) => {
      const hold = await client.getLock(freshName()).acquire();
      expect(hold.validFor()).toBeGreaterThan(28_000);
      await hold.release();
    });
  });

  test('a passed connection is neither used nor changed nor closed', async () => {
    const redis = new Redis(testRedisUrl());
    await redis.ping();
    const listeners = redis.eventNames().map((name) => redis.listenerCount(name));
    await using(createClient({ redis }), async (client) => {
      await client.getLock(freshName()).withLock(() => undefined);
    });
    expect(redis.status).toBe('ready');
    expect(await redis.ping()).toBe('PONG');
    expect(redis.eventNames().map((name) => redis.listenerCount(name))).toEqual(listeners);
    await redis.quit();
  });
});

test('R7: unknown event types, invalid listeners and invalid options of close() are refused', async () => {
  await using(createClient({ url: 'redis://localhost' }), async (client) => {
    const events = client.events as unknown as Record<'on' | 'off', (type?: unknown, listener?: unknown) => void>;
    for (const type of [undefined, 'leaselost', '*', 'toString']) {
      expect(() => events.on(type, () => undefined)).toThrow(/^type must be one of .*leaseLost.*, not /);
      expect(() => events.off(type)).toThrow(InvalidArgumentError);
    }
    expect(() => events.on('leaseLost')).toThrow(/^listener must be a function/);
    expect(() => events.off('leaseLost', 5)).toThrow(/^listener must be a function/);
    for (const options of [null, 5, { releaseHold: true }, { releaseHolds: 'yes' }]) {
      expect(await errorOf(client.close(options as never))).toBeInstanceOf(InvalidArgumentError);
    }
    // None of these closed it: a closed one refuses before it looks at arguments.
    expect(await errorOf(client.inspect(''))).toBeInstanceOf(InvalidArgumentError);
  });
});

describe('options of a handle', () => {
  const factories: Record<string, (client: LockClient, options: never) => unknown> = {
    getLock: (client, options) => client.getLock('name', options),
    getNonReentrantLock: (client, options) => client.getNonReentrantLock('name', options),
    getFairLock: (client, options) => client.getFairLock('name', options),
    getNonReentrantFairLock: (client, options) => client.getNonReentrantFairLock('name', options),
    getSpinLock: (client, options) => client.getSpinLock('name', options),
    getFencedLock: (client, options) => client.getFencedLock('name', options),
    getReadWriteLock: (client, options) => client.getReadWriteLock('name', options),
    getGroupMultiLock: (client, options) => client.getMultiLock('name', ['value'], options),
    getMultiLock: (client, options) => client.getMultiLock(client.getLock('name'), options),
    getRedLock: (client, options) => client.getRedLock(client.getLock('name'), options),
  };

  test.each(Object.entries(factories))(
    'R7: %s() refuses values that are not options, and misspelt options',
    async (_, factory) => {
      await using(createClient({ url: 'redis://localhost' }), (client) => {
        for (const wrong of [null, 5, 'name', [], { contxt: new LockContext() }, { context: {} }]) {
          expect(() => factory(client, wrong as never)).toThrow(InvalidArgumentError);
        }
        factory(client, { context: undefined } as never);
        factory(client, { context: new LockContext() } as never);
        return Promise.resolve();
      });
    },
  );

  test('R7: a misspelt back-off option, and locks in an array, are refused by name', async () => {
    await using(createClient({ url: 'redis://localhost' }), (client) => {
      const backOff = { maxDelai: 5 } as never;
      expect(() => client.getSpinLock('name', { backOff })).toThrow(
        /^unknown option "backOff.maxDelai"; expected one of /,
      );
      const locks = [client.getLock('a'), client.getLock('b')] as never;
      expect(() => client.getMultiLock(locks)).toThrow('locks must be passed one by one, not as an array');
      expect(() => client.getRedLock(locks)).toThrow('locks must be passed one by one, not as an array');
      for (const other of [
        client.getSemaphore('a'),
        client.getReadWriteLock('a'),
        client.getMultiLock(client.getLock('a')),
      ]) {
        const message = 'locks must be locks that each have one name (a multi-lock has several)';
        expect(() => client.getMultiLock(client.getLock('b'), other as never)).toThrow(message);
        expect(() => client.getRedLock(other as never)).toThrow(message);
      }
      return Promise.resolve();
    });
  });
});

describe('what a log shows', () => {
  const secret = 'no-word-for-logs';
  /** All strings that can be reached without asking a closure or a private field. */
  function strings(from: unknown, found = new Set<unknown>()): Set<unknown> {
    if (found.has(from)) return found;
    found.add(from);
    if (typeof from !== 'object' || from === null) return found;
    for (const key of Reflect.ownKeys(from)) strings(Reflect.get(from, key), found);
    if (from instanceof Map || from instanceof Set) strings([...(from as Iterable<unknown>)], found);
    return found;
  }

  test.each([
    ['one server', undefined],
    ['no acknowledgements', { acks: 0 }],
    ['acknowledgements', { acks: 1 }],
  ])(
    'has a few words about a client, its locks and holds, and nothing about the connection (%s)',
    async (_, replicas) => {
      const server = await startServer({ requirepass: secret });
      try {
        const url = `redis://:${secret}@${server.host}:${server.port}`;
        await using(createClient({ url, replicas }), async (client) => {
          await client.ready();
          const [a, b] = [client.getLock('a'), client.getLock('b')];
          const seats = client.getSemaphore('seats');
          const rooms = client.getPermitExpirableSemaphore('rooms');
          const others = [a, client.getFairLock('a'), client.getMultiLock(a, b), client.getMultiLock('a', ['b'])];
          const more = [client.getRedLock(a), client.getReadWriteLock('a'), client.getReadWriteLock('a').writeLock()];
          const shown: unknown[] = [
            client,
            client.events,
            ...others,
            ...more,
            client.getCountDownLatch('a'),
            seats,
            rooms,
          ];
          if (replicas?.acks !== 1) {
            await Promise.all([seats.trySetPermits(1), rooms.trySetPermits(1)]);
            const hold = await holdElsewhere(client.getMultiLock(a, b));
            const token = await holdElsewhere(client.getFencedLock('fenced'));
            shown.push(hold, token, await seats.acquirePermits(), await rooms.acquirePermit());
            expect(JSON.parse(JSON.stringify(hold))).toEqual({ lockName: 'a, b', owner: hold.owner });
            expect(inspect(token)).toBe(`FencedHold { lockName: 'fenced', owner: '${token.owner}' }`);
          }
          expect(inspect([[[a]]])).toContain('[SingleLock]');
          expect(`${inspect(a)} ${JSON.stringify({ a })}`).toBe(`SingleLock { name: 'a' } {"a":{"name":"a"}}`);
          for (const each of shown) {
            expect(`${inspect(each, { depth: 20 })} ${JSON.stringify(each)}`.length).toBeLessThan(400);
            // Loggers inspect objects in different ways, and so does the message of a failed assertion.
            expect([...strings(each)].filter((text) => String(text).includes(secret))).toEqual([]);
          }
        });
      } finally {
        await server.stop();
      }
    },
  );
});

describe('ready()', () => {
  test('resolves when Redis can be used', async () => {
    await using(createClient(reach(testRedisUrl())), async (client) => {
      expect(await client.ready()).toBeUndefined();
      expect(await client.ready()).toBeUndefined();
    });
  });

  test('rejects within one command deadline without a reply, and works later', async () => {
    const port = await freePort();
    await using(createClient({ ...reach(`redis://127.0.0.1:${port}`), commandTimeout: 300 }), async (client) => {
      const { value, ms } = await timed(() => errorOf(client.ready()));
      expect(value).toBeInstanceOf(RedisUnavailableError);
      expect(value).toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE', outcome: 'none' });
      expect(ms).toBeLessThan(300 + SLACK_MS);
      expect(await errorOf(client.getLock(freshName()).lock())).toBeInstanceOf(RedisUnavailableError);
    });
  });

  test('without a reply, every message names the cause', async () => {
    const port = await freePort();
    const began = expect.stringContaining(`connect ECONNREFUSED 127.0.0.1:${port}`);
    await using(createClient({ url: `redis://127.0.0.1:${port}`, commandTimeout: 300 }), async (client) => {
      const lock = client.getLock(freshName());
      const calls = [client.ready(), lock.tryLock(), lock.isLocked(), client.inspect(lock.name)];
      for (const error of await Promise.all(calls.map(errorOf))) {
        expect(error).toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE', message: began });
      }
    });
  });

  test('rejects at once with wrong credentials', async () => {
    const server = await startServer({ requirepass: 'right' });
    const url = server.url.replace('right', 'wrong');
    await using(createClient(reach(url)), async (client) => {
      const { value, ms } = await timed(() => errorOf(client.ready()));
      expect(value).toBeInstanceOf(RefusedError);
      expect(ms).toBeLessThan(2_000); // of a command deadline of 3,000
    });
    await using(createClient(reach(server.url)), (client) => client.ready());
    const without = new URL(server.url);
    without.password = '';
    await using(createClient(reach(without.href)), async (client) => {
      for (const call of [() => client.ready(), () => client.getLock(freshName()).tryLock()]) {
        const { value, ms } = await timed(() => errorOf(call()));
        expect(value).toMatchObject({ code: 'ERR_LOCK_REFUSED', message: expect.stringContaining('NOAUTH') });
        expect(ms).toBeLessThan(2_000); // of a command deadline of 3,000
      }
    });
    await server.stop();
  });

  test('rejects at once for a missing or forbidden database, and no lock is stored in another one', async () => {
    const server = await startServer({ loneMaster: false }); // a cluster has no databases
    const reader = new Redis(server.url);
    await reader.call('ACL', 'SETUSER', 'narrow', 'on', '>secret', '~*', '+@all', '-select');
    const narrow = new URL(`${server.url}/1`);
    [narrow.username, narrow.password] = ['narrow', 'secret'];
    for (const [url, said] of [
      [`${server.url}/99`, { message: expect.stringContaining('DB index is out of range') }],
      [narrow.href, { rule: '+select' }],
    ] as const) {
      await using(createClient({ url }), async (client) => {
        const lock = client.getLock(freshName());
        for (const call of [() => client.ready(), () => lock.tryLock(), () => lock.withLock(() => 1)]) {
          const { value, ms } = await timed(() => errorOf(call()));
          expect(value).toMatchObject({ code: 'ERR_LOCK_REFUSED', ...said });
          expect(ms).toBeLessThan(2_000); // of a command deadline of 3,000
        }
      });
      expect(await reader.dbsize()).toBe(0);
    }
    await using(createClient({ url: `${server.url}/1` }), async (client) => {
      const hold = await client.getLock('here').acquire();
      expect(await reader.dbsize()).toBe(0);
      await hold.release();
    });
    await reader.quit();
    await server.stop();
  });
});

describe('holds()', () => {
  test('lists the holds of this client: name, owner, count, age and call site', async () => {
    const { client, lock, name } = await open(kind);
    const other = await open(kind);
    expect(client.holds()).toEqual([]);
    await lock.lock();
    const { owner } = lock.currentHold()!;
    await lock.lock();
    await pause(30);
    const [listed] = client.holds();
    expect(client.holds()).toEqual([
      {
        lockName: name,
        owner,
        holdCount: 2,
        age: expect.any(Number),
        callSite: expect.stringMatching(/client\.test\.ts:\d+/),
      },
    ]);
    expect(listed!.age).toBeGreaterThanOrEqual(29);
    expect(listed!.age).toBeLessThan(30 + SLACK_MS);
    expect(other.client.holds()).toEqual([]);
    const context = new LockContext();
    await other.lock.lock({ context });
    expect(other.client.holds()).toMatchObject([{ lockName: other.name, holdCount: 1 }]);
    await other.lock.unlock({ context });
    await lock.unlock();
    expect(client.holds()).toMatchObject([{ holdCount: 1 }]);
    await lock.unlock();
    expect(client.holds()).toEqual([]);
  });

  test('does not list lost holds', async () => {
    const { client, lock } = await open(kind);
    const hold = await holdElsewhere(lock, 250);
    const end = performance.now() + 260;
    while (performance.now() < end);
    expect(client.holds()).toEqual([]);
    await errorOf(hold.release());
  });

  test('has no call site without callSites', async () => {
    const { client, lock } = await open(kind, { callSites: false });
    const hold = await holdElsewhere(lock);
    expect(client.holds()).toMatchObject([{ callSite: undefined }]);
    await hold.release();
  });
});

describe('inspect()', () => {
  test('reports the kind, the owners, their holds and the remaining lease of a lock', async () => {
    const { client, lock, name } = await open(kind);
    const other = await open(kind, { name });
    const free = {
      name,
      kind: 'free',
      type: 'none',
      owners: [],
      queue: [],
      remaining: -2,
      value: undefined,
      permits: [],
    };
    expect(await client.inspect(name)).toEqual(free);
    const hold = await holdElsewhere(lock, 20_000);
    const nested = await hold.run(() => lock.acquire());
    const held = { ...free, kind: 'lock', type: 'hash', remaining: expect.any(Number) };
    const owner = { owner: hold.owner, holdCount: 2, mode: 'exclusive' };
    const seen = await client.inspect(name);
    expect(seen).toEqual({ ...held, owners: [{ ...owner, isThisClient: true }] });
    expect(seen.remaining).toBeGreaterThan(25_000);
    expect(await other.client.inspect(name)).toEqual({ ...held, owners: [{ ...owner, isThisClient: false }] });
    await hold.release();
    await nested.release();
    expect(await client.inspect(name)).toEqual(free);
  });

  test('reports objects of other programs', async () => {
    const { client, name } = await open(kind);
    const jvm = '8743c9c0-0795-4907-87fd-6c719a6b4586';
    await admin().hset(name, { mode: 'read', [`${jvm}:1`]: '2', [`${jvm}:2:write`]: '1' });
    expect(await client.inspect(name)).toMatchObject({
      kind: 'read-write',
      remaining: -1,
      owners: [
        { owner: `${jvm}:1`, holdCount: 2, mode: 'read' },
        { owner: `${jvm}:2`, holdCount: 1, mode: 'write' },
      ],
    });
    await admin().del(name);
    await admin().hset(name, `${jvm}:1`, '1');
    await admin().rpush(`redisson_lock_queue:{${name}}`, `${jvm}:2`, `${jvm}:3`);
    expect(await client.inspect(name)).toMatchObject({ kind: 'fair', queue: [`${jvm}:2`, `${jvm}:3`] });
    await admin().del(`redisson_lock_queue:{${name}}`);
    await admin().set(`redisson_lock_token:{${name}}`, '7');
    expect(await client.inspect(name)).toMatchObject({ kind: 'fenced' });
    await admin().del(`redisson_lock_token:{${name}}`, name);
    await admin().set(name, '3');
    expect(await client.inspect(name)).toMatchObject({ kind: 'counter', value: '3', owners: [] });
    await admin().del(name);
    await admin().sadd(name, 'x');
    expect(await client.inspect(name)).toMatchObject({ kind: 'unknown', owners: [] });
    await admin().del(name);
  });

  test('R7: refuses an invalid name', async () => {
    const { client } = await open(kind);
    for (const name of ['', 5, undefined]) {
      expect(await errorOf(client.inspect(name as never))).toBeInstanceOf(InvalidArgumentError);
    }
  });

  test('reports another type of key, which no call acquires or frees', async () => {
    const { lock, name } = await open(kind);
    await admin().set(name, 'of somebody else');
    for (const call of [
      () => lock.tryLock(),
      () => lock.acquire(),
      () => lock.forceUnlock(),
      () => lock.tryLock(100),
    ]) {
      const error = await errorOf(call());
      expect(error).toBeInstanceOf(RefusedError);
      expect((error as Error).message).toContain('the key of this name has another type');
    }
    expect(await admin().get(name)).toBe('of somebody else');
    await admin().del(name);
  });
});

test('R11: a throwing listener disturbs no call, renewal or other listener, and its error surfaces', async () => {
  const report = await runFixture('throwing-listeners.mjs', [testRedisUrl(), freshName('throwing')]);
  expect(report).toEqual({
    order: [1, 2, 3],
    renewed: true,
    failure: 'ERR_LOCK_LOST',
    released: 'ERR_LOCK_LOST',
    failing: 'of the body',
    told: ['acquired', 'leaseLost', 'releaseFailed', 'released', 'renewed', 'waiting'],
    uncaught: true,
  });
});

describe('R32: close()', () => {
  async function heldAndWaiting(
    bench: Bench,
  ): Promise<{ holder: Awaited<ReturnType<typeof holdElsewhere>>; waiters: Promise<unknown>[] }> {
    const { lock } = bench;
    const holder = await holdElsewhere(lock);
    const nested = await holder.run(() => lock.acquire());
    const calls = [
      () => lock.lock(),
      () => lock.tryLock(20_000),
      () => lock.acquire(),
      () => lock.tryAcquire({ waitTime: 20_000 }),
      () => lock.withLock(() => undefined),
      () => lock.acquire({ context: new LockContext() }),
    ];
    const waiters: Promise<unknown>[] = [];
    for (const call of calls) waiters.push(errorOf((await startWaiting(bench, call as () => Promise<unknown>)).result));
    // A branch that waits for its turn waits for no lock, but it waits.
    waiters.push(holder.run(() => errorOf(lock.acquire())));
    await nested.run(async () => undefined);
    return { holder, waiters };
  }

  test('rejects waiters, aborts holds, and leaves held locks to their leases', async () => {
    const bench = await open(kind, { lockWatchdogTimeout: 1_500 });
    const { holder, waiters } = await heldAndWaiting(bench);
    const { signal } = holder;
    await bench.client.close();
    for (const error of await Promise.all(waiters)) expect(error).toBeInstanceOf(ClientClosedError);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(ClientClosedError);
    expect(holder.validFor()).toBe(0);
    expect(bench.client.holds()).toEqual([]);
    expect(bench.events.leaseLost).toEqual([]);
    expect(bench.clock.timers).toBe(0);
    expect(await admin().hgetall(bench.name)).toEqual({ [holder.owner]: '2' });
    expect(await errorOf(holder.release())).toBeInstanceOf(ClientClosedError);
    await pause(1_500); // and the lock is not renewed
    expect(await admin().exists(bench.name)).toBe(0);
  });

  test('with releaseHolds releases the holds first, and hands them to no waiter of this client', async () => {
    const bench = await open(kind);
    const other = await open(kind, { name: bench.name });
    const { holder, waiters } = await heldAndWaiting(bench);
    const outside = await startWaiting(other, () => other.lock.acquire());
    await bench.client.close({ releaseHolds: true });
    for (const error of await Promise.all(waiters)) expect(error).toBeInstanceOf(ClientClosedError);
    const next = await outside.result;
    expect(next.validFor()).toBeGreaterThan(0);
    expect(holder.validFor()).toBe(0);
    expect(bench.clock.timers).toBe(0);
    await next.release();
  });

  test('with releaseHolds and without other waiters leaves no key', async () => {
    const bench = await open(kind);
    await heldAndWaiting(bench);
    await bench.client.close({ releaseHolds: true });
    expect(await admin().exists(bench.name)).toBe(0);
  });

  test('every call returns the promise of the first one, and so does the end of an await using', async () => {
    const { client } = await open(kind);
    const first = client.close();
    expect(client.close({ releaseHolds: true })).toBe(first);
    expect(client[Symbol.asyncDispose]()).toBe(first);
    await first;
  });

  test('afterwards every call rejects and sends nothing', async () => {
    const { proxy, url } = await openProxy();
    const { client, lock } = await open(kind, { url });
    await client.close();
    const before = proxy.stats.accepted;
    for (const call of [
      () => client.ready(),
      () => client.inspect('name'),
      () => lock.lock(),
      () => lock.tryLock(),
      () => lock.acquire(),
      () => lock.tryAcquire(),
      () => lock.withLock(() => undefined),
      () => lock.forceUnlock(),
      () => lock.isLocked(),
      () => lock.remainTimeToLive(),
      () => lock.isHeldBy('owner:1'),
      () => lock.isHeldByCurrentContext(),
      () => lock.getHoldCount(),
    ]) {
      const error = await errorOf(call());
      expect(error).toBeInstanceOf(ClientClosedError);
      expect(error).toMatchObject({ code: 'ERR_LOCK_CLIENT_CLOSED' });
    }
    expect(lock.currentHold()).toBeUndefined();
    expect(proxy.stats.accepted).toBe(before);
  });

  test('rejects pending acquires, and none of them leaves a key', async () => {
    const { proxy, url } = await openProxy();
    for (const call of ['acquire', 'tryAcquire'] as const) {
      const { client, lock, name, clock } = await open(kind, { url });
      // And with it those of the other two, which are sent behind it.
      const held = proxy.holdReply({ contains: `${name}:1` });
      const calls = [1, 2, 3].map((at) => errorOf(inFlow(() => kind.make(client, `${name}:${at}`)[call]())));
      await held.executed;
      const closed = client.close();
      held.lift();
      await closed;
      for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(ClientClosedError);
      expect(clock.timers).toBe(0);
      expect(lock.name).toBe(name);
    }
    await expectNothingLeft();
  });

  test('ends a pending read at once', async () => {
    const { proxy, url } = await openProxy();
    const { client, lock, name } = await open(kind, { url });
    const held = proxy.holdReply({ contains: name });
    const asked = errorOf(lock.isLocked());
    await held.executed;
    const { ms } = await timed(async () => {
      await client.close();
      expect(await asked).toBeInstanceOf(ClientClosedError);
    });
    expect(ms).toBeLessThan(ATTEMPT_MS);
  });

  test('ends a pending nested acquire and a pending extend, and the lock is released', async () => {
    const { proxy, url } = await openProxy();
    const { client, lock, name, clock } = await open(kind, { url });
    const outer = await holdElsewhere(lock);
    proxy.delay(20, { direction: 'to-client', kind: 'command' });
    const nested = errorOf(outer.run(() => lock.acquire()));
    const extended = outer.extend(60_000).then(
      () => 'extended',
      (error: unknown) => error,
    );
    await pause(2);
    await client.close({ releaseHolds: true });
    expect(await nested).toBeInstanceOf(ClientClosedError);
    await extended;
    expect(client.holds()).toEqual([]);
    expect(clock.timers).toBe(0);
    proxy.lift();
    await until(async () => (await admin().exists(name)) === 0, 'the lock is free');
  });

  test.each([false, true])('settles in time with Redis down, releaseHolds %p', async (releaseHolds) => {
    const { proxy, url } = await openProxy();
    const commandTimeout = 450;
    const bench = await open(kind, { url, commandTimeout });
    const { waiters } = await heldAndWaiting(bench);
    proxy.stall();
    const { ms } = await timed(() => bench.client.close({ releaseHolds }));
    expect(ms).toBeLessThan(2 * commandTimeout + SLACK_MS);
    for (const error of await Promise.all(waiters)) expect(error).toBeInstanceOf(ClientClosedError);
    expect(bench.clock.timers).toBe(0);
    proxy.lift();
    await admin().del(bench.name);
  });

  test('of a client that never reached Redis settles in time and rejects pending calls', async () => {
    const client = createClient({ ...reach(`redis://127.0.0.1:${await freePort()}`), commandTimeout: 300 });
    const lock = client.getLock(freshName());
    const calls = [lock.lock(), lock.tryLock(), lock.isLocked()].map((call) => errorOf(call));
    const { ms } = await timed(() => client.close());
    expect(ms).toBeLessThan(2 * 300 + SLACK_MS);
    const [waiting, once] = await Promise.all(calls);
    expect(waiting).toBeInstanceOf(ClientClosedError);
    expect(once).toBeInstanceOf(ClientClosedError);
  });
});

import { afterEach, describe, expect, test } from '@jest/globals';
import { inspect } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import RedisMock from 'ioredis-mock';
import { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import * as nodeRedis from 'redis';
import * as nodeRedis4 from 'redis-4';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/client/create-client.js';
import { InvalidArgumentError } from '../../src/errors.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';

const opened: LockClient[] = [];
const given: { disconnect(): void }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((client) => client.close({ releaseHolds: true })));
  for (const connection of given.splice(0)) connection.disconnect();
});

function open(options: CreateClientOptions): LockClient {
  const client = createClient(options);
  opened.push(client);
  return client;
}

/** A refused client opens nothing; one that was accepted by mistake is closed all the same. */
function refusal(options: unknown): unknown {
  try {
    open(options as CreateClientOptions);
  } catch (error) {
    return error;
  }
  return 'accepted';
}

const kept = <C extends { disconnect(): void }>(connection: C): C => {
  given.push(connection);
  return connection;
};

describe('an address is refused when the client is created', () => {
  test.each([
    ['a path that is no number', '/mydb'],
    ['two slashes', '//0'],
    ['a blank', '/ 1'],
    ['a letter behind the number', '/1x'],
    ['a fraction', '/1.5'],
    ['a negative number', '/-1'],
    ['a slash behind the number', '/1/'],
    ['a number too long to be one', '/12345678901234567890'],
    ['a db in its query that is no number', '?db=mydb'],
    ['an empty db in its query', '?db='],
    ['a second db in its query', '?db=1&db=x'],
    ['a port in its query that is no number', '?port=x'],
    ['a family that is no number', '?family=ipv4'],
  ])('for %s: %s', (_, rest) => {
    for (const host of ['redis://me:geheim@127.0.0.1:6379', 'rediss://me:geheim@[::1]', 'redis://me:geheim@host']) {
      const error = refusal({ url: host + rest });
      expect(error).toBeInstanceOf(InvalidArgumentError);
      expect(error).toMatchObject({ argument: 'url', code: 'ERR_LOCK_INVALID_ARGUMENT' });
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('geheim');
    }
  });

  test.each([
    ['a slash', 'redis://me:12/geheim@host'],
    ['an @ and a slash', 'redis://me:p@ge/heim@host'],
    ['a question mark', 'redis://me:p@ge?heim@host'],
    ['a hash', 'redis://me:p@ge#heim@host'],
  ])('for a password with an unescaped %s, without showing any part of it', (_, url) => {
    const error = refusal({ url });
    expect(error).toBeInstanceOf(InvalidArgumentError);
    expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch(/"ge|heim|host"/);
  });

  test.each([
    ['that ioredis made NaN of', () => new Redis('redis://127.0.0.1/mydb', { lazyConnect: true })],
    ['that is a fraction', () => new Redis({ db: 1.5, lazyConnect: true })],
    ['below 0', () => new Redis({ db: -1, lazyConnect: true })],
  ])('a connection with a database %s is refused, too', (_, connection) => {
    expect(refusal({ redis: kept(connection()) })).toMatchObject({
      argument: 'redis',
      message: expect.stringContaining('database'),
    });
  });

  test('a database number, or none, selects that database', async () => {
    const url = new URL(testRedisUrl());
    const db = url.pathname.slice(1);
    for (const [path, query] of [
      [`/${db}`, ''],
      [`/0${db}`, ''],
      ['', `db=${db}`],
      ['/', `db=${db}&family=4`],
    ] as const) {
      url.pathname = path;
      url.search = query;
      const name = freshName();
      const client = open({ url: url.href });
      await client.getLock(name).withLock(async () => expect(await admin().exists(name)).toBe(1));
    }
    await open({ url: `redis://${url.host}` }).ready();
    await open({ url: `redis://${url.host}/` }).ready();
  });

  test('a connection whose database is null leads to database 0, as it does in ioredis', async () => {
    const { hostname, port } = new URL(testRedisUrl());
    const given = { host: hostname, port: Number(port), db: null as unknown as number, lazyConnect: true };
    const redis = kept(new Redis(given));
    const name = freshName();
    await open({ redis })
      .getLock(name)
      .withLock(async () => expect(await redis.exists(name)).toBe(1));
  });

  test('a unix socket in the query is kept', () => {
    expect(refusal({ url: 'redis://?path=/run/redis.sock&db=2' })).toBe('accepted');
    expect(refusal({ url: 'redis:///2?path=/run/redis.sock' })).toBe('accepted');
  });
});

describe('a value that is not an ioredis connection is refused, and the error says what to pass instead', () => {
  const settings = { url: 'redis://:geheim@127.0.0.1:1' };
  const nodes = { rootNodes: [settings] };
  test.each<[string, () => unknown]>([
    ['a cluster of redis 6', () => nodeRedis.createCluster(nodes)],
    ['a pool of redis 6', () => nodeRedis.createClientPool(settings)],
    ['a cluster of redis 4', () => nodeRedis4.createCluster(nodes)],
    ['a mock', () => new (RedisMock as unknown as new (options: object) => object)({ lazyConnect: true })],
    ['something with the methods of one', () => ({ duplicate: () => 1, sendCommand: () => 1, options: {} })],
    [
      'a sentinel of redis 6',
      () => nodeRedis.createSentinel({ name: 'm', sentinelRootNodes: [{ host: 'a', port: 1 }] }),
    ],
    ['options that do not say where Redis is', () => ({ password: 'geheim', maxRetriesPerRequest: null })],
    ['an empty object', () => ({})],
    ['a url that is no text, beside options of ioredis', () => ({ url: 1, host: 'geheim' })],
    ['a function', () => Redis],
    ['sentinels that are no list', () => ({ name: 'm', sentinels: 'geheim' })],
    ['sentinels that are no list, beside a url', () => ({ name: 'm', sentinels: 'geheim', url: 'redis://a' })],
    ['no sentinels', () => ({ name: 'm', sentinels: [], password: 'geheim' })],
    ['a sentinel that is null', () => ({ name: 'm', sentinels: [null], password: 'geheim' })],
    ['no sentinels of the package redis', () => ({ name: 'm', sentinelRootNodes: [] })],
    ['a sentinel of the package redis that is null', () => ({ name: 'm', sentinelRootNodes: [null] })],
    ['a node of the package redis that is null', () => ({ rootNodes: [null], defaults: { password: 'geheim' } })],
    ['no nodes of the package redis', () => ({ rootNodes: [], defaults: { password: 'geheim' } })],
  ])('%s', (_, make) => {
    const error = refusal({ redis: make() });
    expect(error).toMatchObject({
      code: 'ERR_LOCK_INVALID_ARGUMENT',
      argument: 'redis',
      message: expect.stringMatching(/must be a connection of ioredis, made by its `new Redis\(...\)` or `new Cluster/),
    });
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('geheim');
  });

  test.each<[string, (address: { host: string; port: number; db: number }) => object]>([
    ['a host and a port', ({ host, port, db }) => ({ host, port, db })],
    ['those of BullMQ', ({ host, port, db }) => ({ host, port, db, maxRetriesPerRequest: null })],
    ['a url and a database', ({ host, port, db }) => ({ url: `redis://${host}:${port}`, db })],
    ['a url, and what it does not name', ({ host, port, db }) => ({ url: `redis://${host}/${db}`, port, db: 15 })],
    ['a port that is text', ({ host, port, db }) => ({ host, port: String(port), db: String(db) })],
  ])('options of ioredis are accepted: %s', async (_, make) => {
    const { hostname, port, pathname } = new URL(testRedisUrl());
    const redis = make({ host: hostname, port: Number(port), db: Number(pathname.slice(1)) });
    const name = freshName();
    await open({ redis })
      .getLock(name)
      .withLock(async () => expect(await admin().exists(name)).toBe(1));
  });

  test('options of ioredis are accepted: sentinels', () => {
    expect(refusal({ redis: { name: 'm', sentinels: [{ host: '127.0.0.1', port: 1 }] } })).toBe('accepted');
    expect(refusal({ redis: { host: 'a', db: NaN, password: 'geheim' } })).toMatchObject({ argument: 'redis' });
  });

  test('a Redis or Cluster of ioredis, also a subclass or a proxy of one, is accepted', () => {
    class Own extends Redis {}
    const options = { lazyConnect: true };
    for (const redis of [new Own(options), new Proxy(new Redis(options), {}), new Cluster([{ port: 1 }], options)]) {
      expect(refusal({ redis: kept(redis) })).toBe('accepted');
    }
  });

  test('a connection of iovalkey, a fork of ioredis, works as one', async () => {
    expect(refusal({ redis: kept(new ValkeyCluster([{ port: 1 }], { lazyConnect: true })) })).toBe('accepted');
    const redis = kept(new Valkey(testRedisUrl()));
    const [one, other] = [open({ redis: redis as unknown as Redis }), open({ url: testRedisUrl() })];
    const name = freshName();
    let inside = 0;
    const section = async (): Promise<void> => {
      inside += 1;
      expect(inside).toBe(1);
      await admin().ping();
      inside -= 1;
    };
    await Promise.all(
      [one, other].flatMap((client) => Array.from({ length: 20 }, () => client.getLock(name).withLock(section))),
    );
  });
});

describe('a name with a lone surrogate, which UTF-8 cannot carry, is refused', () => {
  const bad = ['\ud800', 'order:\udc00', 'a\ud83d', '\ude00\ud83d', `{x}\ud800`];
  const entrances: Record<string, (client: LockClient, name: string) => unknown> = {
    getLock: (client, name) => client.getLock(name),
    getNonReentrantLock: (client, name) => client.getNonReentrantLock(name),
    getFairLock: (client, name) => client.getFairLock(name),
    getNonReentrantFairLock: (client, name) => client.getNonReentrantFairLock(name),
    getSpinLock: (client, name) => client.getSpinLock(name),
    getFencedLock: (client, name) => client.getFencedLock(name),
    getReadWriteLock: (client, name) => client.getReadWriteLock(name),
    'the group of getMultiLock': (client, name) => client.getMultiLock(name, ['a']),
    'a value of getMultiLock': (client, name) => client.getMultiLock('group', ['a', name]),
    getSemaphore: (client, name) => client.getSemaphore(name),
    getPermitExpirableSemaphore: (client, name) => client.getPermitExpirableSemaphore(name),
    getCountDownLatch: (client, name) => client.getCountDownLatch(name),
    inspect: (client, name) => client.inspect(name),
    keyPrefix: (_, name) => open({ url: testRedisUrl(), keyPrefix: name }),
    'the keyPrefix of a connection': (_, name) =>
      open({ redis: kept(new Redis({ lazyConnect: true, keyPrefix: name })) }),
  };

  test.each(Object.keys(entrances))('%s', async (entrance) => {
    const client = open({ url: testRedisUrl() });
    const enter = async (name: string): Promise<unknown> => entrances[entrance]!(client, name);
    for (const name of bad) {
      await expect(enter(name)).rejects.toMatchObject({
        code: 'ERR_LOCK_INVALID_ARGUMENT',
        message: expect.stringContaining('without lone surrogates'),
      });
    }
    await enter('order:\u{1f600}'); // a pair is one character
  });

  test('every name with a surrogate pair is usable, and its waiters are woken', async () => {
    const name = `${freshName()}:\u{1f600}`;
    const [one, other] = [open({ url: testRedisUrl() }), open({ url: testRedisUrl() })];
    const hold = await one.getLock(name).acquire();
    const waiting = other.getLock(name).acquire({ waitTime: 10_000 });
    await hold.release();
    await (await waiting).release();
  });
});

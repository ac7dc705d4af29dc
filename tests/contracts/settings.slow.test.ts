import { afterEach, describe, expect, test } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/client/create-client.js';
import { elapsed } from '../support/time/elapsed.js';
import { runFixture } from '../support/processes/fixture-process.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { closeClients, holdElsewhere, inFlow, openProxy, ready } from '../support/clients/lock-clients.js';
import { admin, freshName, leavesKeys, testRedisUrl } from '../support/redis.js';
import { allChannels } from '../support/servers/server-version.js';
import { startServer } from '../support/servers/servers.js';
import { contend, WATCHDOG_MS } from './contended.js';
import { fitsOneSlot } from '../../src/redis/cluster-slots.js';
import { InvalidArgumentError } from '../../src/errors.js';
import { reach, topology } from '../support/servers/topology.mjs';
import { channelOf, leaveNothing, SLACK_MS } from './lock-kind.js';

/** Longer than any of these tests, so that only a message can wake a waiter. */
const LEASE_MS = 60_000;

type Settings = Omit<RedisOptions, 'replyMapping'>;

const clients: LockClient[] = [];
const opened: Redis[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  for (const redis of opened.splice(0)) redis.disconnect();
  await closeClients(); // and proxies
});
leaveNothing();

function client(options: CreateClientOptions): LockClient {
  const made = createClient({ lockWatchdogTimeout: WATCHDOG_MS, ...options });
  clients.push(made);
  return made;
}

/** A user's own connection, set up in whatever way. */
function redis(options: Settings, url = testRedisUrl()): Redis {
  const connection: Redis = new Redis(url, options);
  connection.on('error', () => undefined);
  opened.push(connection);
  return connection;
}

/** The same, as it looks in the topology of this run. */
const given = (options: Settings): CreateClientOptions =>
  topology === 'single' ? { redis: redis(options) } : reach(testRedisUrl(), options);

/** The type of ioredis depends on its reply mapping, and the type of the client does not. */
const resp3Mapping = (options: Settings): Settings => Object.assign(options, { replyMapping: 'resp3' });

const SETTINGS: Record<string, Settings> = {
  stringNumbers: { stringNumbers: true },
  enableAutoPipelining: { enableAutoPipelining: true },
  reconnectOnError: { reconnectOnError: () => 2 },
  'a commandTimeout of 1 ms': { commandTimeout: 1 },
  lazyConnect: { lazyConnect: true },
  'retryStrategy null': { retryStrategy: null },
  'RESP 2': { protocol: 2 },
  'RESP 3': { protocol: 3 },
  'RESP 3, numbers as strings and maps as objects': resp3Mapping({ protocol: 3, stringNumbers: true }),
  'no offline queue, ready check, resending or resubscription': {
    enableOfflineQueue: false,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: null,
  },
  'short time-outs on the socket': { socketTimeout: 30, blockingTimeout: 30 },
  'options for a replica': { readOnly: true, connectionName: 'of the user' },
  'all at once': {
    stringNumbers: true,
    enableAutoPipelining: true,
    reconnectOnError: () => true,
    commandTimeout: 50,
    lazyConnect: true,
    retryStrategy: null,
    keyPrefix: 'all:',
  },
};

describe('R34: a client with a passed connection that has', () => {
  test.each(Object.keys(SETTINGS))('%s contends like any other client', async (label) => {
    const name = freshName();
    const options = SETTINGS[label]!;
    const prefix = options.keyPrefix ?? '';
    await contend(
      [client(given(options)), client({ ...reach(testRedisUrl()), keyPrefix: prefix })],
      name,
      prefix + name,
    );
  });
});

if (topology === 'single') {
  describe('R34: an address whose query sets', () => {
    test.each([
      ['a prefix', 'keyPrefix=app:', 'app:'],
      ['what the other kinds of connection do', 'monitor=true&readOnly=true&lazyConnect=false&commandTimeout=1', ''],
      [
        'queueing and resending',
        'enableOfflineQueue=true&autoResendUnfulfilledCommands=true&maxRetriesPerRequest=9',
        '',
      ],
    ])('%s contends like any other client', async (_, query, prefix) => {
      const name = freshName();
      const asked = client({ url: `${testRedisUrl()}?${query}` });
      await contend([asked, client({ url: testRedisUrl(), keyPrefix: prefix })], name, prefix + name);
    });

    test('resending sends nothing for a call that has rejected', async () => {
      const { proxy, url } = await openProxy();
      const asked = client({
        url: `${url}?autoResendUnfulfilledCommands=true&maxRetriesPerRequest=9`,
        commandTimeout: 600,
      });
      await asked.ready();
      const swallowed = proxy.swallow({ command: 'EVALSHA', times: Infinity });
      const refused = proxy.refuse('reset');
      await expect(asked.getLock(freshName()).tryLock()).rejects.toThrow('did not reply');
      swallowed.lift();
      refused.lift();
      // The pause before the next connection may be longer than one command deadline.
      await ready(asked);
      await asked.getLock(freshName()).isLocked();
      // The lock is released, and nothing else is sent.
      expect(proxy.log.filter(({ args }) => args[0] === scripts.acquire.script!.sha)).toHaveLength(1);
    });
  });
}

test('R34: a connection that was closed by its owner can still be copied', async () => {
  const closed = redis({});
  await closed.quit();
  const name = freshName();
  await contend([client({ redis: closed }), client({ ...reach(testRedisUrl()) })], name, name);
});

test('credentials and database come from the passed connection', async () => {
  const server = await startServer({
    loneMaster: false,
    users: [`app on >secret ~* ${allChannels()} +@all`, 'default off'],
  });
  const url = `redis://app:secret@${server.host}:${server.port}/3`;
  // On a separate server, with a plain URL.
  const copied = client({ redis: redis({}, url) });
  const hold = await copied.getLock('lock').acquire();
  const database = new Redis(url, { protocol: 2 }); // Redis 6.0 takes no HELLO where the default user is off
  expect(await database.hgetall('lock')).toEqual({ [hold.owner]: '1' });
  await database.quit();
  await hold.release();
  await copied.close();
  await server.stop();
});

describe('R8: with a keyPrefix', () => {
  test.each<[string, (prefix: string) => CreateClientOptions]>([
    ['of ioredis', (keyPrefix) => given({ keyPrefix })],
    ['of the client', (keyPrefix) => ({ ...reach(testRedisUrl()), keyPrefix })],
    ['of the client, which goes before that of ioredis', (keyPrefix) => ({ ...given({ keyPrefix: 'x:' }), keyPrefix })],
  ])('%s waiters are woken, and the prefix is part of the name', async (_, options) => {
    for (const prefix of ['app:', 'app{tag}:', 'ünï ✓:']) {
      const name = freshName();
      await contend([client(options(prefix)), client(options(prefix))], name, prefix + name);
    }
  });

  test('contends with a client without a prefix that uses the full name', async () => {
    const name = freshName();
    const prefixed = client(given({ keyPrefix: 'app:' }));
    const plain = client({ ...reach(testRedisUrl()) });
    const told: string[] = [];
    prefixed.events.on('acquired', ({ lockName }) => told.push(lockName));
    const lock = prefixed.getLock(name);
    const hold = await holdElsewhere(lock, LEASE_MS);
    expect([
      lock.name,
      hold.lockName,
      prefixed.holds()[0]?.lockName,
      (await prefixed.inspect(name)).name,
      ...told,
    ]).toEqual(Array.from({ length: 5 }, () => name));
    expect(await plain.getLock(name).tryLock()).toBe(true);
    await plain.getLock(name).forceUnlock();
    expect(await plain.getLock(`app:${name}`).tryLock()).toBe(false);
    const next = inFlow(() => plain.getLock(`app:${name}`).acquire({ leaseTime: LEASE_MS }));
    expect(await channelOf(name)).toBe(`redisson_lock__channel:{app:${name}}`);
    const released = performance.now();
    await hold.release();
    await (await next).release();
    expect(elapsed(released)).toBeLessThan(200 + SLACK_MS);
  });
});

describe('R8: a name', () => {
  test.each([
    ['with colons', (name: string) => `a:b:${name}`, (name: string) => `{a:b:${name}}`],
    ['with spaces', (name: string) => ` a  ${name} `, (name: string) => `{ a  ${name} }`],
    ['with a tag', (name: string) => `ord:{42}:${name}`, (name: string) => `ord:{42}:${name}`],
    ['that is all tag', (name: string) => `{${name}}`, (name: string) => `{${name}}`],
    ['with an opening brace', (name: string) => `a{${name}`, (name: string) => `a{${name}`],
    ['with a closing brace', (name: string) => `a}${name}`, (name: string) => `{a}${name}}`],
    ['with an empty tag', (name: string) => `{}${name}`, (name: string) => `{}${name}`],
    ['with two tags', (name: string) => `{a}${name}{b}`, (name: string) => `{a}${name}{b}`],
    ['in unicode', (name: string) => `ключ-锁-🔒-${name}`, (name: string) => `{ключ-锁-🔒-${name}}`],
    ['with quotes and line ends', (name: string) => `"'\\\r\n\t${name}`, (name: string) => `{"'\\\r\n\t${name}}`],
    ['with glob signs', (name: string) => `*?[a-z]${name}`, (name: string) => `{*?[a-z]${name}}`],
    ['with a zero byte', (name: string) => `\0${name}`, (name: string) => `{\0${name}}`],
    [
      'of a thousand characters',
      (name: string) => name.padEnd(1_000, 'x'),
      (name: string) => `{${name.padEnd(1_000, 'x')}}`,
    ],
  ])('%s is one key and one channel, and waiters are woken', async (_, nameOf, channelPart) => {
    const mark = freshName();
    const name = nameOf(mark);
    if (topology === 'cluster' && !fitsOneSlot(name)) {
      const refusing = client({ ...reach(testRedisUrl()) });
      expect(() => refusing.getLock(name)).toThrow(InvalidArgumentError);
      return;
    }
    const first = client({ ...reach(testRedisUrl()) });
    const hold = await holdElsewhere(first.getLock(name), LEASE_MS);
    const second = client({ ...reach(testRedisUrl()) });
    const waiter = inFlow(() => second.getLock(name).acquire());
    expect(await channelOf(mark)).toBe(`redisson_lock__channel:${channelPart(mark)}`);
    expect(await admin().keys('*')).toEqual([name]);
    const released = performance.now();
    await hold.release();
    await (await waiter).release();
    expect(elapsed(released)).toBeLessThan(200 + SLACK_MS);
  });
});

test('R32: an idle client with held locks and waiters does not keep its process alive by timers', async () => {
  leavesKeys('the process ends with two locks held');
  const name = freshName('idle');
  const { timers, ms, held } = await runFixture<{ timers: number; ms: number; held: number }>('idle-client.mjs', [
    testRedisUrl(),
    name,
  ]);
  expect({ timers, held }).toEqual({ timers: 0, held: 2 });
  expect(ms).toBeLessThan(1_500);
});

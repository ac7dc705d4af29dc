import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Cluster, Redis } from 'ioredis';
import { Redis as Valkey } from 'iovalkey';
import * as nodeRedis from 'redis';
import * as nodeRedis4 from 'redis-4';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/client/create-client.js';
import { systemClock } from '../../src/clock.js';
import {
  fromNodeRedis,
  sourceOfProvider,
  type NodeRedisCredentials,
  type NodeRedisCredentialsProvider,
  type NodeRedisSource,
} from '../../src/redis/connections/node-redis.js';
import { startupNodesOf } from '../../src/redis/connections/user-connection.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';

const PASSWORD = 'p@ss/w#rd';
let user: string;
let url: string;
const opened: LockClient[] = [];

beforeEach(async () => {
  user = `node-redis-${freshName().replace(/\W/g, '-')}`;
  await admin().call('ACL', 'SETUSER', user, 'on', `>${PASSWORD}`, '+@all', '~*', '&*');
  const address = new URL(testRedisUrl());
  address.username = user;
  address.password = encodeURIComponent(PASSWORD);
  url = address.href;
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((client) => client.close({ releaseHolds: true })));
  await admin().call('ACL', 'DELUSER', user);
});

const settings = (): {
  socket: { host: string; port: number };
  username: string;
  password: string;
  database: number;
} => {
  const { hostname, port, pathname } = new URL(url);
  const database = Number(pathname.slice(1));
  return { socket: { host: hostname, port: Number(port) }, username: user, password: PASSWORD, database };
};

describe('a client of the package redis or its options, or a connection of iovalkey, is accepted', () => {
  test.each<[string, () => CreateClientOptions['redis']]>([
    ['a client of redis 6, with a url', () => nodeRedis.createClient({ url })],
    ['a client of redis 6, with a socket', () => nodeRedis.createClient(settings())],
    ['options of redis 6, with a url', () => ({ url })],
    ['options of redis 6, with a socket', () => settings()],
    ['a client of redis 4, with a url', () => nodeRedis4.createClient({ url })],
    ['a client of redis 4, with a socket', () => nodeRedis4.createClient(settings())],
    ['a connection of iovalkey', () => new Valkey(url, { lazyConnect: true })],
  ])('%s: the client locks in that database, as that user', async (_, make) => {
    const given = make();
    const client = createClient({ redis: given } as CreateClientOptions);
    opened.push(client);
    const name = freshName();
    await client.getLock(name).withLock(async () => {
      expect(await admin().exists(name)).toBe(1);
      expect(String(await admin().call('CLIENT', 'LIST'))).toContain(`user=${user}`);
    });
    // The client opens its own connections and leaves the given one alone.
    expect(given).toMatchObject(
      given instanceof Valkey ? { status: 'wait' } : 'isOpen' in given! ? { isOpen: false } : {},
    );
  });

  test('options of TLS are those of the socket', () => {
    const ca = 'a certificate';
    const makers = [nodeRedis.createClient, nodeRedis4.createClient] as ((options: object) => object)[];
    for (const make of makers) {
      const { options } = fromNodeRedis(make({ socket: { host: 'a', tls: true, ca, servername: 'b' } })) as Redis;
      expect(options).toMatchObject({ host: 'a', port: 6379, tls: { ca, servername: 'b' } });
      const { options: ofUrl } = fromNodeRedis(make({ url: 'rediss://a:1', socket: { ca, tls: true } })) as Redis;
      expect(ofUrl).toMatchObject({ host: 'a', port: 1, tls: { ca } });
    }
    const plain = fromNodeRedis(nodeRedis.createClient({ socket: { path: '/run/redis.sock', tls: false } })) as Redis;
    expect(plain.options).toMatchObject({ path: '/run/redis.sock' });
    expect(plain.options.tls ?? undefined).toBeUndefined();
  });

  test('options of a cluster: the nodes and the defaults for all of them', () => {
    const given = {
      rootNodes: [{ url: 'redis://a:1' }, { socket: { host: 'b', port: 2 } }],
      defaults: { username: 'me', password: PASSWORD, socket: { tls: true as const, servername: 'c' } },
      nodeAddressMap: { 'd:1': { host: 'e', port: 3 } },
    };
    const connection = fromNodeRedis(given)!;
    expect(connection.isCluster).toBe(true);
    expect(startupNodesOf(connection as Cluster)).toMatchObject([
      { host: 'a', port: 1 },
      { host: 'b', port: 2 },
    ]);
    expect(connection.options).toMatchObject({
      redisOptions: { username: 'me', password: PASSWORD, tls: { servername: 'c' } },
      natMap: given.nodeAddressMap,
    });
  });

  test('a valkey:// address is a redis:// address, and valkeys:// one of TLS', () => {
    const urls = ['valkey://a:1/2', 'valkeys://a:1/2'];
    const [plain, tls] = urls.map((each) => (fromNodeRedis({ url: each }) as Redis).options);
    expect(plain).toMatchObject({ host: 'a', port: 1, db: 2 });
    expect(plain!.tls ?? undefined).toBeUndefined();
    expect(tls).toMatchObject({ host: 'a', port: 1, db: 2, tls: {} });
    const cluster = fromNodeRedis({ rootNodes: [{ url: 'valkey://b:3' }] }) as Cluster;
    expect(startupNodesOf(cluster)).toMatchObject([{ host: 'b', port: 3 }]);
  });

  test.each<[string, (provider: NodeRedisCredentialsProvider) => NodeRedisSource]>([
    [
      'the defaults of a cluster',
      (credentialsProvider) => ({ rootNodes: [{ url }], defaults: { credentialsProvider } }),
    ],
    ['a node of a cluster', (credentialsProvider) => ({ rootNodes: [{ url, credentialsProvider }], defaults: null! })],
    [
      'the nodes behind a sentinel',
      (credentialsProvider) => ({
        name: 'main',
        sentinelRootNodes: [{ host: 'a', port: 1 }],
        nodeClientOptions: { credentialsProvider },
        sentinelClientOptions: null!,
      }),
    ],
  ])('a provider of credentials of %s is asked', async (_, options) => {
    let asked = 0;
    const credentials = (): Promise<NodeRedisCredentials> => ((asked += 1), Promise.resolve({ password: 'x' }));
    const connection = fromNodeRedis(options({ type: 'async-credentials-provider', credentials }))!;
    await sourceOfProvider(
      connection,
      systemClock((fn) => fn),
    )!.lend(
      () => Promise.resolve(),
      () => undefined,
    );
    expect(asked).toBe(1);
  });

  test('a provider that is null is none, and one of the sentinels themselves is refused', () => {
    const none = fromNodeRedis({ url, credentialsProvider: null! })!;
    expect(
      sourceOfProvider(
        none,
        systemClock((fn) => fn),
      ),
    ).toBeUndefined();
    const provider = { type: 'async-credentials-provider' as const, credentials: () => Promise.resolve({}) };
    const sentinels = { name: 'main', sentinelRootNodes: [{ host: 'a', port: 1 }] };
    const redis = { ...sentinels, sentinelClientOptions: { credentialsProvider: provider } };
    expect(() => createClient({ redis })).toThrow(/sentinelClientOptions/);
  });

  test('options of a sentinel: the name, the sentinels, and the credentials of both', () => {
    const connection = fromNodeRedis({
      name: 'main',
      sentinelRootNodes: [{ host: 'a', port: 1 }],
      nodeClientOptions: { password: PASSWORD, database: 2 },
      sentinelClientOptions: { username: 'watch', password: 'of the sentinel' },
    })!;
    expect(connection.options).toMatchObject({
      name: 'main',
      sentinels: [{ host: 'a', port: 1 }],
      ...{ password: PASSWORD, db: 2, sentinelUsername: 'watch', sentinelPassword: 'of the sentinel' },
    });
  });
});

describe('an address beside other options: it wins for what it names, and the options say the rest', () => {
  type Given = { url: string; socket?: { port: number } } & Partial<Record<'username' | 'password', string>> & {
      database?: number;
    };
  const given: [string, () => Given][] = [
    [
      'a database',
      () => {
        const { database, ...rest } = settings();
        return { url: address({ ...rest, database: undefined }), database };
      },
    ],
    [
      'a database and a path of /',
      () => ({ url: `${address({ database: undefined })}/`, database: settings().database }),
    ],
    ['a port', () => ({ url: address({ socket: { host: '127.0.0.1' } }), socket: { port: settings().socket.port } })],
    ['a password', () => ({ url: address({ password: undefined }), password: PASSWORD })],
    ['a user', () => ({ url: address({ username: undefined }), username: user })],
    ['other values of all of them', () => ({ url, username: 'x', password: 'x', database: 15, socket: { port: 1 } })],
  ];
  const ways: [string, (options: Given) => unknown][] = [
    ['options', (options) => options],
    ['a client of redis 6', (options) => nodeRedis.createClient(options)],
    ['a client of redis 4', (options) => nodeRedis4.createClient(options)],
  ];

  /** The address of the suite's server, with some of its parts. */
  function address(parts: {
    socket?: { host: string; port?: number };
    username?: string | undefined;
    password?: string | undefined;
    database?: number | undefined;
  }): string {
    const { socket, username, password, database } = { ...settings(), ...parts };
    const credentials = `${username ?? ''}:${encodeURIComponent(password ?? '')}`;
    const port = socket.port === undefined ? '' : `:${socket.port}`;
    return `redis://${credentials}@${socket.host}${port}${database === undefined ? '' : `/${database}`}`;
  }

  test.each(ways.flatMap(([way, make]) => given.map(([what, of]) => [way, what, make, of] as const)))(
    '%s, with %s',
    async (_way, _what, make, of) => {
      const client = createClient({ redis: make(of()) } as CreateClientOptions);
      opened.push(client);
      const name = freshName();
      await client.getLock(name).withLock(async () => {
        expect(await admin().exists(name)).toBe(1);
        expect(String(await admin().call('CLIENT', 'LIST'))).toContain(`user=${user}`);
      });
    },
  );
});

test('the keyPrefix and the name of the package redis are the defaults of keyPrefix and clientName', async () => {
  const name = freshName();
  const client = createClient({ redis: nodeRedis.createClient({ url, keyPrefix: 'shop:', name: 'tills' }) });
  opened.push(client);
  await client.getLock(name).withLock(async () => {
    expect(await admin().exists(`shop:${name}`)).toBe(1);
    expect(String(await admin().call('CLIENT', 'LIST'))).toContain(`name=holdfast:${client.id}:tills:`);
  });
});

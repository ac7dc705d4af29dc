import { afterEach, describe, expect, test } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { inspect } from 'node:util';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/client/create-client.js';
import { RedisCluster } from '../support/servers/cluster.js';
import { contend } from '../support/clients/contention.js';
import { elapsed } from '../support/time/elapsed.js';
import { inFlow, outcome } from '../support/clients/lock-clients.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { SentinelSetup } from '../support/servers/sentinel.js';
import { serverMajor } from '../support/servers/server-version.js';
import { startServer, type ServerOptions } from '../support/servers/servers.js';
import { startTlsServer } from '../support/servers/tls.js';
import { expectNoOverlap } from '../support/serious.js';

const clients: LockClient[] = [];
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

function create(options: CreateClientOptions): LockClient {
  const client = createClient(options);
  clients.push(client);
  return client;
}

/** Two clients, each with half of the flows, on the same locks. */
async function expectExclusion(options: CreateClientOptions): Promise<void> {
  const both = [create(options), create(options)];
  await Promise.all(both.map((client) => client.ready()));
  const result = await contend({ clients: both, names: ['a', 'b', 'c:{tag}'], flows: 12, sections: 5 });
  expectNoOverlap(result.overlaps);
  expect(result.values).toEqual(result.entered);
  expect(result.entered.reduce((a, b) => a + b)).toBe(60);
  expect(result.longestWaitMs).toBeLessThan(5_000);
}

async function start(options: ServerOptions = {}): ReturnType<typeof startServer> {
  const server = await startServer(options);
  stops.push(() => server.stop());
  return server;
}

const given = (options: RedisOptions): CreateClientOptions => ({
  redis: new Redis({ ...options, lazyConnect: true, replyMapping: 'legacy' }),
});

describe('the lock works', () => {
  test('in a cluster, also behind a mapped address and with a password', async () => {
    const cluster = await RedisCluster.start({ replicas: 0, server: { requirepass: 'secret' } });
    stops.push(() => cluster.stop());
    const proxies = await Promise.all(cluster.servers.map(({ address }) => FaultProxy.start(address)));
    stops.push(() => Promise.all(proxies.map((proxy) => proxy.close())));
    await expectExclusion({ redis: cluster.connection({}, { password: 'secret' }) });
    for (const server of cluster.servers) await server.resetCommandStats();
    const natMap = Object.fromEntries(
      cluster.servers.map(({ host, port }, i) => {
        const { hostname, port: mapped } = new URL((proxies[i] as FaultProxy).url);
        return [`${host}:${port}`, { host: hostname, port: Number(mapped) }];
      }),
    );
    await expectExclusion({ redis: cluster.connection({ natMap }, { password: 'secret' }) });
    const wrong = create({ redis: cluster.connection({}, { password: 'mistaken' }), commandTimeout: 900 });
    const error = await wrong.ready().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'ERR_LOCK_REFUSED' });
    expect(inspect(error, { depth: 10 })).not.toContain('mistaken');
  }, 30_000);

  test('through Sentinel', async () => {
    const setup = await SentinelSetup.start({ replicas: 1, sentinels: 1 });
    stops.push(() => setup.stop());
    await expectExclusion({ redis: setup.connection() });
  }, 30_000);

  test('over TLS, and not with an untrusted server', async () => {
    const tls = await startTlsServer();
    stops.push(() => tls.stop());
    const { port, ca } = tls;
    await expectExclusion(given({ host: '127.0.0.1', port, tls: { ca } }));
    const url = `rediss://127.0.0.1:${port}`;
    await expectExclusion({ redis: { url, tls: { ca } } }); // as in BullMQ
    const trusting = create({ url, commandTimeout: 600 });
    expect(await outcome(trusting.ready())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  });

  test('over a unix socket, in another database', async () => {
    const server = await start({ unixSocket: true });
    await expectExclusion(given({ path: server.socketPath, db: 3 }));
  });

  test('for a user with a password and minimal permissions', async () => {
    const rules = [
      'locker on >hidden-word -@all ~a ~b ~c:{tag}',
      // Redis 6.0 has no rules for channels.
      serverMajor() >= 7 ? 'resetchannels &redisson_lock__channel:*' : '',
      '+evalsha +eval +time +exists +hset +hexists +hdel +del +pexpire +pttl +hkeys +hget',
      '+publish +subscribe +unsubscribe +ping +select +pubsub',
    ]
      .filter((rule) => rule !== '')
      .join(' ');
    const server = await start({ users: [rules, 'default off'] });
    const options = given({ host: server.host, port: server.port, username: 'locker', password: 'hidden-word' });
    await expectExclusion(options);
    const client = create(options);
    const seen: unknown[] = [client];
    client.events.on('connectionError', (event) => seen.push(event));
    const refused = await inFlow(() => client.getLock('elsewhere').acquire()).catch((reason: unknown) => reason);
    expect(refused).toMatchObject({ code: 'ERR_LOCK_REFUSED' });
    seen.push(refused);
    expect(inspect(seen, { depth: 20, showHidden: true })).not.toContain('hidden-word');
  });
});

test('R34: the retry and timeout options of a passed connection change nothing', async () => {
  const server = await start();
  await expectExclusion(
    given({
      port: server.port,
      stringNumbers: true,
      enableAutoPipelining: true,
      reconnectOnError: () => 2,
      commandTimeout: 1,
      retryStrategy: () => null,
      keyPrefix: 'app:',
      readOnly: true,
      protocol: 3,
    }),
  );
});

test('R34: a cut connection is restored soon, regardless of the retryStrategy of the passed connection', async () => {
  const proxy = await FaultProxy.start((await start()).address);
  stops.push(() => proxy.close());
  const { hostname, port } = new URL(proxy.url);
  const client = create(given({ host: hostname, port: Number(port), retryStrategy: () => 60_000 }));
  await client.ready();
  proxy.cut();
  const cutAt = performance.now();
  await client.getLock('cut').withLock(() => undefined);
  expect(elapsed(cutAt)).toBeLessThan(1_000);
});

test('R34: a reply may take longer than the commandTimeout of the passed connection, and is not requested again', async () => {
  const proxy = await FaultProxy.start((await start()).address);
  stops.push(() => proxy.close());
  const { hostname, port } = new URL(proxy.url);
  const client = create(given({ host: hostname, port: Number(port), commandTimeout: 20 }));
  await client.getLock('slow').withLock(() => undefined);
  const asked = proxy.observe({ contains: 'slow', times: Infinity });
  proxy.holdReply({ contains: 'slow' }, 200);
  await client.getLock('slow').acquire();
  expect(asked.count).toBe(1);
});

test.each(['by its address', 'with a connection'])(
  'R34: a server passed as %s that refuses HELLO, like Redis 6.0 without a default user, works',
  async (how) => {
    const proxy = await FaultProxy.start((await start()).address);
    stops.push(() => proxy.close());
    const { hostname: host, port } = new URL(proxy.url);
    const rest = "no permissions to run the 'hello' command or its subcommand\r\n";
    proxy.answer({ command: 'HELLO', times: Infinity }, `-NOPERM this user has ${rest}`);
    await expectExclusion(
      how === 'by its address' ? { url: proxy.url } : given({ host, port: Number(port), protocol: 3 }),
    );
  },
);

import { afterEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/client/create-client.js';
import { elapsed } from '../support/time/elapsed.js';
import { holdElsewhere, inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { startTlsServer } from '../support/servers/tls.js';
import { until } from '../support/time/until.js';

const DEADLINE_MS = 600;
const LATE_MS = 10_000;
const SLACK_MS = 250;

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

interface Way {
  readonly server: RedisServer;
  readonly proxy: FaultProxy;
  /** Through the proxy. */
  connection(): CreateClientOptions;
}

const WAYS: Record<string, () => Promise<Way>> = {
  async TCP() {
    const server = await startServer({ loneMaster: false });
    stops.push(() => server.stop());
    const proxy = await FaultProxy.start(server.address);
    return { server, proxy, connection: () => ({ url: proxy.url }) };
  },
  async TLS() {
    const { server, port, ca, stop } = await startTlsServer({ loneMaster: false });
    stops.push(stop);
    const proxy = await FaultProxy.start({ host: server.host, port }, { opaque: true });
    const connection = (): CreateClientOptions => ({
      redis: new Redis({ host: proxy.host, port: proxy.port, tls: { ca }, lazyConnect: true, replyMapping: 'legacy' }),
    });
    return { server, proxy, connection };
  },
};

test.each(Object.entries(WAYS))(
  'R2: over %s: a request that reaches the server 10 s late acquires, counts and extends nothing',
  async (_, open) => {
    const { server, proxy, connection } = await open();
    stops.push(() => proxy.close());
    const client: LockClient = createClient({
      ...connection(),
      commandTimeout: DEADLINE_MS,
      lockWatchdogTimeout: 60_000,
    });
    stops.push(() => client.close());
    await client.ready();
    const semaphore = client.getSemaphore('permits');
    await semaphore.trySetPermits(3);
    await semaphore.withPermits(() => undefined);
    await client.getLock('free').withLock(() => client.getLock('free').withLock(() => undefined));
    const held = await holdElsewhere(client.getLock('held'), 60_000);
    const began = await server.command('PTTL', 'held');
    const log = await server.monitor();

    const stalled = proxy.stall({ direction: 'to-server' });
    const calls = [
      () => client.getLock('free').acquire({ waitTime: 0 }),
      () => client.getLock('free').tryLock(),
      () => held.run(() => client.getLock('held').acquire({ waitTime: 0, leaseTime: 600_000 })),
      () => held.extend(600_000),
      () => semaphore.tryAcquire(2),
    ];
    const called = performance.now();
    const settled = await Promise.all(calls.map((call) => outcome(inFlow<unknown>(call))));
    expect(elapsed(called)).toBeLessThan(2 * DEADLINE_MS + SLACK_MS);
    expect(settled).toEqual(calls.map(() => 'ERR_LOCK_REDIS_UNAVAILABLE'));
    const rejected = (await log.settle()).length;
    await pause(LATE_MS);
    stalled.lift();
    const late = (): number =>
      log.lines.slice(rejected).filter(({ command, args }) => command === 'EVALSHA' && args.includes('free')).length;
    await until(() => late() >= 2, 'the earlier requests have arrived');
    await until(async () => Number(await server.command('HLEN', 'free')) === 0, 'nothing is taken');
    // Nothing that scripts have written since creates a lock, counts or lengthens it.
    const written = (await log.settle())
      .slice(rejected)
      .filter(({ source, command }) => source === 'lua' && ['HSET', 'HINCRBY', 'PEXPIRE', 'DECRBY'].includes(command))
      .filter(({ args }) => ['free', 'held', 'permits'].includes(args[0]!));
    expect(written).toEqual([]);
    expect(await server.command('GET', 'permits')).toBe('3');
    expect(Number(await server.command('PTTL', 'held'))).toBeLessThan(Number(began) - LATE_MS + SLACK_MS);
    log.stop();
    await outcome(held.release());
  },
  40_000,
);

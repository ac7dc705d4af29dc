import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { RedisOptions } from 'ioredis';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/client/create-client.js';
import type { ClientOptions } from '../../src/options.js';
import { contend } from '../support/clients/contention.js';
import { elapsed } from '../support/time/elapsed.js';
import { runFixture } from '../support/processes/fixture-process.js';
import { inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import { expectPassedOn } from '../support/clients/passed-on.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { MASTER_NAME, SentinelSetup } from '../support/servers/sentinel.js';
import type { RedisServer } from '../support/servers/servers.js';
import { QUIET_MS, STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { expectNoOverlap } from '../support/serious.js';

let setup: SentinelSetup;
const clients: LockClient[] = [];
const proxies: FaultProxy[] = [];
beforeAll(async () => {
  setup = await SentinelSetup.start();
}, 60_000);
afterAll(() => setup.stop());
afterEach(async () => {
  for (const proxy of proxies) proxy.lift();
  await setup.heal();
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  const master = await setup.master();
  await until(
    async () =>
      [...(await master.keys()), ...(await master.channels())].filter((name) => !name.startsWith('__')).length === 0,
    'no key and no channel is left',
  );
}, 60_000);

async function open(options: Partial<CreateClientOptions> = {}): Promise<LockClient> {
  const given = { redis: setup.connection(), lockWatchdogTimeout: 3_000, ...options } as CreateClientOptions;
  const client = createClient(given);
  clients.push(client);
  await client.ready();
  return client;
}

/** Connections that wait for word of a failover. */
async function listeners(): Promise<number> {
  const lists = await Promise.all(setup.sentinels.map((sentinel) => sentinel.command('CLIENT', 'LIST')));
  return lists.flatMap((list) => String(list).match(/\bsub=1\b/g) ?? []).length;
}

let names = 0;
const freshName = (label: string): string => `${label}:${(names += 1)}`;

test('flows of two clients exclude each other', async () => {
  const result = await contend({
    clients: [await open(), await open()],
    names: ['a', 'b', 'c'].map(freshName),
    flows: 24,
    sections: 10,
  });
  expectNoOverlap(result.overlaps);
  expect(result.values).toEqual(result.entered);
});

test('R3: a planned failover while holding, waiting and renewing keeps the lock and wakes the waiter', async () => {
  const [holder, waiter] = [await open({ lockWatchdogTimeout: 10_000 }), await open()];
  const name = freshName('planned');
  const hold = await inFlow(() => holder.getLock(name).acquire());
  const waiting = inFlow(() => waiter.getLock(name).acquire({ waitTime: 60_000 }));
  await pause(200);
  await (await setup.master()).command('WAIT', 2, 1_000);
  await setup.failover();
  const switched = performance.now();
  while ((await outcome(holder.getLock(freshName('probe')).withLock(() => undefined))) !== 'ok')
    await pause(STARTED_MS);
  expect(elapsed(switched)).toBeLessThan(6_000);
  expect(hold.validFor()).toBeGreaterThan(0);
  await expectPassedOn(hold, waiting, 2_000);
}, 60_000);

test('R3: a lock confirmed by both replicas outlives its master: it is held, renewed and handed over', async () => {
  const replicas = { acks: 2, timeout: 1_000 };
  const [holder, waiter] = [
    // Longer than sentinels may take to agree, which is twice their failover time-out when they have to vote again.
    await open({ lockWatchdogTimeout: 18_000, replicas }),
    await open({ replicas: { acks: 0 } }),
  ];
  const name = freshName('outlives');
  const lost: unknown[] = [];
  const renewed: number[] = [];
  holder.events.on('leaseLost', (event) => lost.push(event));
  holder.events.on('renewed', () => renewed.push(performance.now()));
  const hold = await inFlow(() => holder.getLock(name).acquire());
  const waiting = inFlow(() => waiter.getLock(name).acquire({ waitTime: 60_000 }));
  await pause(200);
  const master = await setup.master();
  await master.kill9();
  await setup.switchedFrom(master);
  const switched = performance.now();
  const renewedThere = (): boolean => renewed.some((at) => at > switched);
  await until(() => renewedThere() || lost.length > 0, 'it is renewed at the new master', 20_000);
  expect(lost).toEqual([]);
  expect(hold.validFor()).toBeGreaterThan(0);
  await expectPassedOn(hold, waiting, 2_000);
}, 60_000);

test('R3: with a master that stops replying at the count of its replicas every call settles in time', async () => {
  const master = await setup.master();
  const proxy = await FaultProxy.start(master.address);
  const natMap = { [`${master.host}:${master.port}`]: { host: proxy.host, port: proxy.port } };
  const silent = proxy.swallow({ command: 'INFO', times: Infinity });
  const client = createClient({ redis: setup.connection({ natMap }), commandTimeout: 900 });
  clients.push(client);
  const lock = client.getLock(freshName('silent'));
  const asked = performance.now();
  expect(await Promise.all([client.ready(), inFlow(() => lock.tryLock())].map((call) => outcome(call)))).toEqual([
    'ERR_LOCK_REDIS_UNAVAILABLE',
    'ERR_LOCK_REDIS_UNAVAILABLE',
  ]);
  expect(elapsed(asked)).toBeLessThan(900 + 1_000);
  silent.lift();
  const lifted = performance.now();
  while ((await outcome(inFlow(() => lock.withLock(() => undefined)))) !== 'ok') await pause(STARTED_MS);
  expect(elapsed(lifted)).toBeLessThan(6_000);
  await client.close();
  await proxy.close();
}, 30_000);

test('R3: with a late master that stops replying at the count of its replicas calls settle in time', async () => {
  const master = await setup.master();
  const proxy = await FaultProxy.start(master.address);
  proxies.push(proxy);
  const natMap = { [`${master.host}:${master.port}`]: { host: proxy.host, port: proxy.port } };
  const away = proxy.refuse('reset');
  const silent = proxy.swallow({ command: 'INFO', times: Infinity });
  const client = createClient({ redis: setup.connection({ natMap }), commandTimeout: 6_000 });
  clients.push(client);
  const asked = performance.now();
  const calls = [client.ready(), inFlow(() => client.getLock(freshName('late')).tryLock())].map((call) =>
    outcome(call),
  );
  // An attempt has 2 s, and less than that is left when a connection stands again.
  await pause(4_600);
  away.lift();
  expect(await Promise.all(calls)).toEqual(['ERR_LOCK_REDIS_UNAVAILABLE', 'ERR_LOCK_REDIS_UNAVAILABLE']);
  expect(elapsed(asked)).toBeLessThan(6_000 + 1_000);
  expect(silent.count).toBeGreaterThan(0);
}, 30_000);

/** A client whose connections to all sentinels and servers go through proxies. */
async function openThroughProxies(
  options: ClientOptions = {},
): Promise<{ client: LockClient; toSentinels: FaultProxy[]; toServers: FaultProxy[] }> {
  const proxyOf = async ({ address }: RedisServer): Promise<FaultProxy> => {
    const proxy = await FaultProxy.start(address);
    proxies.push(proxy);
    return proxy;
  };
  const toSentinels = await Promise.all(setup.sentinels.map(proxyOf));
  const toServers = await Promise.all(setup.servers.map(proxyOf));
  const ways = [...toSentinels, ...toServers];
  const natMap = Object.fromEntries(
    [...setup.sentinels, ...setup.servers].map(({ host, port }, i) => [
      `${host}:${port}`,
      { host: ways[i]!.host, port: ways[i]!.port },
    ]),
  );
  const client = await open({ redis: setup.connection({ natMap }, toSentinels), ...options });
  return { client, toSentinels, toServers };
}

test('R3: a failover message while connections look for the master ends none of them', async () => {
  const { client, toSentinels, toServers } = await openThroughProxies();
  const name = freshName('asking');
  const lock = client.getLock(name);
  const holder = await open({ replicas: { acks: 2, timeout: 1_000 } });
  await client.getLock(freshName('warm')).withLock(() => undefined);
  const hold = await inFlow(() => holder.getLock(name).acquire({ leaseTime: 60_000 }));
  const waiting = inFlow(() => lock.acquire({ waitTime: 30_000 }));
  const master = await setup.master();
  await until(async () => (await master.channels()).some((channel) => channel.includes(name)), 'it waits');
  // Two clients with a connection for commands and one for grants that replicas confirm; one of them subscribes.
  await until(async () => (await listeners()) === 5 * setup.sentinels.length, 'each connection listens everywhere');
  const held = toSentinels.map((proxy) => proxy.holdReply({ command: 'SENTINEL', times: Infinity }));
  for (const proxy of toServers) proxy.cut();
  await until(() => held.reduce((sum, { count }) => sum + count, 0) >= 3, 'all connections look for the master');
  await setup.failover();
  await until(async () => (await listeners()) === 2 * setup.sentinels.length, 'the connections have received it');
  for (const fault of held) fault.lift();
  const lifted = performance.now();
  while ((await outcome(inFlow(() => lock.isLocked()))) !== 'ok') await pause(STARTED_MS);
  await until(
    async () => (await (await setup.master()).channels()).some((channel) => channel.includes(name)),
    'it waits',
  );
  await hold.release();
  await (await waiting).release();
  expect(elapsed(lifted)).toBeLessThan(6_000);
}, 60_000);

interface OfFixture {
  said: string[];
  outcomes: Record<string, number>;
}

/** Runs in a separate process: that of jest has other errors, and a client in an endless loop could block it. */
function runClient(ms: number, redis: RedisOptions, options: ClientOptions = {}): Promise<OfFixture> {
  return runFixture('sentinel-client.mjs', [
    JSON.stringify({ redis: { name: MASTER_NAME, ...redis }, ms, ...options }),
  ]);
}

test('R32: close() while the subscriber connects to the master leaves no subscription at the sentinels', async () => {
  const master = await setup.master();
  let onConnecting = (): unknown => undefined;
  const natMap = (address: string): null => {
    // Sentinel has named the master: with the end of this turn the connection to it is on its way.
    if (address === `${master.host}:${master.port}`) onConnecting();
    return null;
  };
  const client = await open({ redis: setup.connection({ natMap }) });
  const holder = await open();
  const lock = client.getLock(freshName('closing'));
  await inFlow(() => client.getLock(freshName('warm')).withLock(() => undefined));
  const hold = await inFlow(() => holder.getLock(lock.name).acquire());
  const closed = new Promise<void>((resolve, reject) => {
    onConnecting = () => setImmediate(() => void client.close().then(resolve, reject));
  });
  expect(await outcome(inFlow(() => lock.acquire()))).toBe('ERR_LOCK_CLIENT_CLOSED');
  await closed;
  await hold.release();
  await holder.close();
  await until(async () => (await listeners()) === 0, 'the channel has no subscriber');
}, 30_000);

test('R3: a dead Sentinel causes no unhandled error on the console', async () => {
  const sentinels = setup.sentinels.map(({ address }) => address);
  await setup.sentinels[1]!.kill9();
  const { said, outcomes } = await runClient(4_000, { sentinels });
  expect(said).toEqual([]);
  expect(Object.keys(outcomes)).toContain('ok');
}, 60_000);

test('R3: a server that stops replying at the count of its replicas delays no call while the client leaves it', async () => {
  const master = await setup.master();
  const proxy = await FaultProxy.start(master.address);
  proxies.push(proxy);
  const natMap = { [`${master.host}:${master.port}`]: { host: proxy.host, port: proxy.port } };
  // Held data keeps the socket half open after the client has closed it.
  const held = proxy.holdCommand({ command: 'INFO', times: Infinity });
  const sentinels = setup.sentinels.map(({ address }) => address);
  const { outcomes } = await runClient(1_500, { sentinels, natMap }, { commandTimeout: 600 });
  expect(held.count).toBeGreaterThan(1);
  expect(Object.keys(outcomes)).toEqual(['ERR_LOCK_REDIS_UNAVAILABLE']);
}, 60_000);

test('R3: a hanging Sentinel delays neither the connection to the master nor that to the next master', async () => {
  const [hung] = setup.sentinels;
  await hung?.pause();
  const asked = performance.now();
  const client = await open({ commandTimeout: 1_500 });
  const lock = client.getLock(freshName('hung-sentinel'));
  await inFlow(() => lock.withLock(() => undefined));
  expect(elapsed(asked)).toBeLessThan(6_000);
  const master = await setup.master(setup.sentinels[1]);
  await master.kill9();
  await setup.switchedFrom(master);
  const switched = performance.now();
  while ((await outcome(inFlow(() => lock.withLock({ waitTime: 1_000 }, () => undefined)))) !== 'ok')
    await pause(STARTED_MS);
  expect(elapsed(switched)).toBeLessThan(6_000);
}, 60_000);

test.each(['kill9', 'pause'] as const)(
  'R3: after the master is gone (%s), calls succeed within 5 s of the new one',
  async (how) => {
    const client = await open();
    const lock = client.getLock(freshName(how));
    await inFlow(() => lock.withLock(() => undefined));
    const master = await setup.master();
    await master[how]();
    const asked = performance.now();
    await outcome(inFlow(() => lock.withLock({ waitTime: 300 }, () => undefined)));
    expect(elapsed(asked)).toBeLessThan(300 + 4_000);
    await setup.switchedFrom(master);
    const switched = performance.now();
    while ((await outcome(inFlow(() => lock.withLock({ waitTime: 5_000 }, () => undefined)))) !== 'ok')
      await pause(STARTED_MS);
    expect(elapsed(switched)).toBeLessThan(6_000);
  },
  60_000,
);

test('R6: a demoted master that still replies grants no lock, and calls succeed within 5 s of a new master', async () => {
  const client = await open();
  const lock = client.getLock(freshName('demoted'));
  await inFlow(() => lock.withLock(() => undefined));
  const master = await setup.master();
  const other = setup.servers.find((server) => server !== master);
  if (other === undefined) throw new Error('there is no other server');
  // The client gets no message, because the sentinels notice it later than the client.
  await master.replicaOf(other.address);
  const demoted = performance.now();
  const outcomes: unknown[] = [];
  while (performance.now() - demoted < 3_000) {
    outcomes.push(await outcome(inFlow(() => lock.tryLock(0, 1_000).then((got) => (got ? lock.unlock() : undefined)))));
    await pause(QUIET_MS);
  }
  expect(new Set(outcomes)).toEqual(new Set(['ERR_LOCK_REDIS_UNAVAILABLE']));
  await master.replicaOf(undefined);
  const restored = performance.now();
  while ((await outcome(inFlow(() => lock.withLock({ waitTime: 5_000 }, () => undefined)))) !== 'ok')
    await pause(STARTED_MS);
  expect(elapsed(restored)).toBeLessThan(6_000);
}, 60_000);

test('no hold is reported valid on the reply of an abandoned master', async () => {
  const client = await open({ lockWatchdogTimeout: 3_000 });
  const name = freshName('left-behind');
  const hold = await inFlow(() => client.getLock(name).acquire());
  const master = await setup.master();
  const reasons: unknown[] = [];
  client.events.on('leaseLost', ({ reason }) => reasons.push(reason));
  // The new master never hears of this lock, as after a failover that lost a write.
  for (const server of setup.servers) if (server !== master) await server.pause();
  await pause(QUIET_MS);
  await master.kill9();
  for (const server of setup.servers) if (server !== master) server.resume();
  const next = await setup.switchedFrom(master);
  await next.command('DEL', name);
  await until(() => hold.signal.aborted, 'the holder learns of the loss');
  expect(reasons).toHaveLength(1);
  expect(hold.validFor()).toBe(0);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
}, 60_000);

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import type { Lock } from '../../src/locks/lock.js';
import { elapsed } from '../support/time/elapsed.js';
import { holdElsewhere, inFlow, outcome, ready } from '../support/clients/lock-clients.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';
import { reach, topology } from '../support/servers/topology.mjs';

const DEADLINE_MS = 600;
const WAIT_MS = 300;
const SLACK_MS = 250;
const PASSWORD = 'secret';
/** Within which calls succeed when the address answers again. */
const BACK_MS = 5_000;

let server: RedisServer;
let other: LockClient;
const clients: LockClient[] = [];
const proxies: FaultProxy[] = [];
let names = 0;

beforeAll(async () => {
  server = await startServer({ requirepass: PASSWORD });
  other = createClient(reach(server.url));
  await other.ready();
});

afterEach(async () => {
  for (const proxy of proxies) proxy.lift();
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  await until(async () => (await server.keys()).length === 0, 'nothing is left');
});

afterAll(async () => {
  await other.close();
  await server.stop();
});

/** The steps before the first reply of a script at which a server can stop replying. */
const handshakes: Readonly<Record<string, (proxy: FaultProxy) => unknown>> = {
  'on connect': (proxy) => proxy.refuse('hang'),
  'from the first byte on': (proxy) => proxy.stall({ direction: 'to-client' }),
  'at AUTH': (proxy) => proxy.swallow({ command: ['AUTH', 'HELLO'], times: Infinity }),
  // A cluster has no databases.
  ...(topology !== 'cluster' && {
    'at SELECT': (proxy: FaultProxy) => proxy.swallow({ command: 'SELECT', times: Infinity }),
  }),
  'at TIME': (proxy) => proxy.swallow({ command: 'TIME', times: Infinity }),
  'at the first script': (proxy) => proxy.swallow({ command: ['EVALSHA', 'EVAL'], times: Infinity }),
  'at SCRIPT LOAD': (proxy) => {
    proxy.answer({ command: 'EVALSHA', times: Infinity }, '-NOSCRIPT No matching script. Please use EVAL.\r\n');
    return proxy.swallow({ command: 'EVAL', times: Infinity });
  },
};

async function openProxied(): Promise<{ proxy: FaultProxy; url: string }> {
  const proxy = await FaultProxy.start(server.address);
  proxies.push(proxy);
  return { proxy, url: `redis://:${PASSWORD}@${proxy.host}:${proxy.port}/1` };
}

function clientAt(url: string): LockClient {
  const client = createClient({ ...reach(url), commandTimeout: DEADLINE_MS });
  clients.push(client);
  return client;
}

interface Timed {
  ms: number;
  how: unknown;
}

async function timeOf(call: Promise<unknown>): Promise<Timed> {
  const at = performance.now();
  return { how: await outcome(call), ms: elapsed(at) };
}

const timed = (call: () => Promise<unknown>): Promise<Timed> => timeOf(inFlow(call));

const freshName = (): string => `hang:${++names}`;

/** Every call that uses Redis without a hold, with its wait time in ms. */
const asking: Readonly<Record<string, [(lock: Lock, client: LockClient) => Promise<unknown>, number?]>> = {
  lock: [(lock) => lock.lock()],
  tryLock: [(lock) => lock.tryLock()],
  'tryLock with a wait': [(lock) => lock.tryLock(WAIT_MS), WAIT_MS],
  acquire: [(lock) => lock.acquire()],
  'acquire with a wait': [(lock) => lock.acquire({ waitTime: WAIT_MS }), WAIT_MS],
  tryAcquire: [(lock) => lock.tryAcquire()],
  withLock: [(lock) => lock.withLock(() => undefined)],
  forceUnlock: [(lock) => lock.forceUnlock()],
  isLocked: [(lock) => lock.isLocked()],
  remainTimeToLive: [(lock) => lock.remainTimeToLive()],
  isHeldBy: [(lock) => lock.isHeldBy('nobody:1')],
  inspect: [(lock, client) => client.inspect(lock.name)],
};

function expectInTime(calls: Record<string, Timed>, terms: Readonly<Record<string, number>> = {}): void {
  const late = Object.entries(calls).filter(([name, { ms }]) => ms > (terms[name] ?? 0) + DEADLINE_MS + SLACK_MS);
  expect(late).toEqual([]);
  const codes = Object.fromEntries(Object.entries(calls).map(([name, { how }]) => [name, how]));
  const unavailable = Object.fromEntries(Object.keys(calls).map((name) => [name, 'ERR_LOCK_REDIS_UNAVAILABLE']));
  expect(codes).toEqual(unavailable);
}

const waits = Object.fromEntries(Object.entries(asking).map(([name, [, wait = 0]]) => [name, wait]));

async function timedAll(client: LockClient): Promise<Record<string, Timed>> {
  const results = await Promise.all(
    Object.entries(asking).map(async ([name, [call]]) => {
      const lock = client.getLock(freshName());
      return [name, await timed(async () => call(lock, client))] as const;
    }),
  );
  return Object.fromEntries(results);
}

async function expectBack(client: LockClient): Promise<void> {
  const at = performance.now();
  await until(
    async () => (await outcome(client.getLock(freshName()).withLock({ waitTime: 0 }, () => undefined))) === 'ok',
    'calls succeed again',
    BACK_MS + SLACK_MS,
  );
  expect(elapsed(at)).toBeLessThan(BACK_MS + SLACK_MS);
}

describe('R3: a server that stops replying before its first reply', () => {
  test.each(Object.entries(handshakes))(
    'R3: %s: every call settles in time, also close(), and succeeds soon after the address replies',
    async (_, hang) => {
      const { proxy, url } = await openProxied();
      hang(proxy);
      const [client, closing] = [clientAt(url), clientAt(url)];
      const ready = timed(() => client.ready());
      const underWay = outcome(inFlow(async () => closing.getLock(freshName()).lock()));
      const calls = await timedAll(client);
      const reads = ['isLocked', 'remainTimeToLive', 'isHeldBy', 'forceUnlock'];
      // Where only scripts hang, a read is answered.
      const scriptsOnly = calls['isLocked']?.how === 'ok';
      expectInTime(
        scriptsOnly ? Object.fromEntries(Object.entries(calls).filter(([name]) => !reads.includes(name))) : calls,
        waits,
      );
      expect((await ready).ms).toBeLessThan(DEADLINE_MS + SLACK_MS);
      const closed = await timed(() => closing.close());
      expect(closed.ms).toBeLessThan(2 * DEADLINE_MS + SLACK_MS);
      await underWay;
      // Accepted connections without a reply stay so: the client has to close them on its own.
      proxy.lift();
      await expectBack(client);
    },
  );
});

describe('R3: a server that stops replying while locks are held', () => {
  const silences: Readonly<Record<string, (proxy: FaultProxy) => unknown>> = {
    'swallows every reply': (proxy) => {
      proxy.refuse('hang');
      return proxy.stall({ direction: 'to-client' });
    },
    'accepts no more data': (proxy) => {
      proxy.refuse('hang');
      return proxy.stall({ direction: 'to-server' });
    },
  };

  test.each(Object.entries(silences))('R3: it %s: every call of a holder settles in time', async (_, silence) => {
    const { proxy, url } = await openProxied();
    const client = clientAt(url);
    await ready(client);
    const held = async (): Promise<[Lock, Hold]> => {
      const lock = client.getLock(freshName());
      return [lock, await holdElsewhere(lock, 10_000)];
    };
    const inHold: Readonly<Record<string, (lock: Lock, hold: Hold) => Promise<unknown>>> = {
      release: (_lock, hold) => hold.release(),
      extend: (_lock, hold) => hold.extend(20_000),
      'nested lock': (lock, hold) => hold.run(() => lock.lock()),
      'nested tryLock': (lock, hold) => hold.run(() => lock.tryLock()),
      'nested withLock': (lock, hold) => hold.run(() => lock.withLock(() => undefined)),
      getHoldCount: (lock, hold) => hold.run(() => lock.getHoldCount()),
      isHeldByCurrentContext: (lock, hold) => hold.run(() => lock.isHeldByCurrentContext()),
      forceUnlock: (lock) => lock.forceUnlock(),
    };
    const prepared = await Promise.all(
      Object.entries(inHold).map(async ([name, call]) => [name, call, ...(await held())] as const),
    );
    let taken = 0;
    // Holds of bare calls belong to the flows that took them.
    const bare = Array.from({ length: 2 }, () => {
      let goOn!: () => void;
      const silent = new Promise<void>((resolve) => (goOn = resolve));
      const lock = client.getLock(freshName());
      const unlocked = inFlow(async () => {
        await lock.lock(10_000);
        taken += 1;
        await silent;
        return timeOf(lock.unlock());
      });
      return { goOn, unlocked };
    });
    await until(() => taken === bare.length, 'the bare holds are taken');
    const [outerLock, outer] = await held();
    const nested = await outer.run(() => outerLock.acquire());

    silence(proxy);
    for (const { goOn } of bare) goOn();
    const results = await Promise.all([
      ...prepared.map(async ([name, call, lock, hold]) => [name, await timed(async () => call(lock, hold))] as const),
      timed(() => nested.release()).then((result) => ['partial release', result] as const),
      ...bare.map(async ({ unlocked }, index) => [`unlock ${index}`, await unlocked] as const),
    ]);
    expectInTime({ ...Object.fromEntries(results), ...(await timedAll(client)) }, waits);
    const closed = await timed(() => client.close({ releaseHolds: true }));
    expect(closed.ms).toBeLessThan(2 * DEADLINE_MS + SLACK_MS);
    proxy.lift();
    proxy.cut();
    for (const key of await server.keys()) await server.command('DEL', key);
  });
});

test('R3: calls of one holder that wait for each other also settle in time', async () => {
  const { proxy, url } = await openProxied();
  const client = clientAt(url);
  await ready(client);
  const lock = client.getLock(freshName());
  const outer = await holdElsewhere(lock, 10_000);
  const nested = await outer.run(() => lock.acquire());
  proxy.refuse('hang');
  proxy.stall({ direction: 'to-client' });
  const branch = (): Promise<Timed> => timeOf(outer.run(() => lock.lock()));
  const calls = {
    'partial release': timeOf(nested.release()),
    extend: timeOf(outer.extend(20_000)),
    branch: branch(),
    'second branch': branch(),
    'third branch': branch(),
  };
  const settled = Object.fromEntries(
    await Promise.all(Object.entries(calls).map(async ([name, call]) => [name, await call] as const)),
  );
  expectInTime({ ...settled, ...{ 'last release': await timeOf(outer.release()) } });
  proxy.lift();
  proxy.cut();
});

describe('R3: a server that stops replying at a subscription', () => {
  const silences: Readonly<Record<string, (proxy: FaultProxy) => unknown>> = {
    'on connect': (proxy) => proxy.refuse('hang', { times: 1 }),
    'at SUBSCRIBE': (proxy) => proxy.swallow({ command: 'SUBSCRIBE', times: Infinity }),
    'at UNSUBSCRIBE': (proxy) => proxy.swallow({ command: 'UNSUBSCRIBE', times: Infinity }),
  };

  test.each(Object.entries(silences))(
    'R19: %s: waits settle within their wait times, and close() in time',
    async (_, silence) => {
      const { proxy, url } = await openProxied();
      const client = clientAt(url);
      await ready(client);
      const name = freshName();
      const theirs = createClient(reach(`${server.url}/1`));
      clients.push(theirs);
      const holder = await holdElsewhere(theirs.getLock(name), 60_000);
      silence(proxy);
      const results = await Promise.all([
        timed(async () => client.getLock(name).tryLock(WAIT_MS)),
        timed(async () => client.getLock(name).acquire({ waitTime: WAIT_MS })),
      ]);
      for (const { ms } of results) expect(ms).toBeLessThan(WAIT_MS + DEADLINE_MS + SLACK_MS);
      expect(results.map(({ how }) => how)).toEqual(['ok', 'ERR_LOCK_TIMEOUT']);
      // The subscription lingers for half a second before it ends.
      if (_ === 'at UNSUBSCRIBE') await until(() => (proxy.stats.commands.get('UNSUBSCRIBE') ?? 0) > 0, 'it is ended');
      const waiting = timed(async () => client.getLock(name).tryLock(WAIT_MS));
      expect((await waiting).ms).toBeLessThan(WAIT_MS + DEADLINE_MS + SLACK_MS);
      const closed = await timed(() => client.close());
      expect(closed.ms).toBeLessThan(2 * DEADLINE_MS + SLACK_MS);
      await holder.release();
    },
  );
});

import { afterEach, describe, expect, test } from '@jest/globals';
import { getEventListeners } from 'node:events';
import type { LockClient } from '../../src/client/create-client.js';
import type { Timer } from '../../src/clock.js';
import type { LockEvents } from '../../src/events.js';
import type { Hold } from '../../src/holding/hold.js';
import { lockChannel } from '../../src/redis/keys.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { elapsed } from '../support/time/elapsed.js';
import {
  answered,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
  TestClock,
} from '../support/clients/lock-clients.js';
import { LOCK_SCRIPTS } from '../support/lua/lock-scripts.js';
import { freshName } from '../support/redis.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { PARKED_MS, QUIET_MS, STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const SLACK_MS = 250;
const LEASE_MS = 20_000;

/** The next call of a client that has to wait does. */
const waits = (client: LockClient): Promise<unknown> => new Promise((resolve) => client.events.on('waiting', resolve));

let server: RedisServer | undefined;
afterEach(async () => {
  await closeClients();
  await server?.stop();
  server = undefined;
});

test('calls that one signal aborts reject with one error for each lock', async () => {
  const client = await openClient();
  const other = await openClient();
  const names = [freshName(), freshName()];
  const holds = await Promise.all(names.map((name) => holdElsewhere(other.getLock(name))));
  const controller = new AbortController();
  const { signal } = controller;
  const aborted = async (name: string): Promise<unknown> =>
    inFlow(() => client.getLock(name).acquire({ signal })).catch((error: unknown) => error);
  const calls = names.map((name) => Array.from({ length: 50 }, () => aborted(name)));
  await answered(client);
  controller.abort(new Error('enough'));
  const errors = await Promise.all(calls.map((each) => Promise.all(each)));
  expect(errors.map((each) => new Set(each).size)).toEqual([1, 1]);
  expect(errors.map(([error]) => error)).toEqual(
    names.map((lockName): unknown =>
      expect.objectContaining({ code: 'ERR_LOCK_ABORTED', lockName, cause: signal.reason as unknown }),
    ),
  );
  await Promise.all(holds.map((hold) => hold.release()));
});

describe('R21: what frees the lock wakes a waiter of another client within 200 ms', () => {
  /** Takes the lock, lets another client wait for it, and frees it. */
  async function wokenBy(
    take: (client: LockClient, name: string, free: Promise<void>) => Promise<unknown>,
    heldMs = 0,
  ): Promise<number> {
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName();
    let begin!: () => void;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const freed = inFlow(() => take(client, name, begun));
    await until(() => client.getLock(name).isLocked(), 'it is held');
    const itWaits = waits(other);
    const waiting = holdElsewhere(other.getLock(name), LEASE_MS);
    await itWaits;
    await pause(heldMs);
    const at = performance.now();
    begin();
    const hold = await waiting;
    const waitedMs = elapsed(at);
    await outcome(freed);
    await hold.release();
    return waitedMs;
  }

  test.each<[string, (client: LockClient, name: string, begun: Promise<void>) => Promise<unknown>]>([
    [
      'unlock()',
      async (client, name, begun) => {
        await client.getLock(name).lock(LEASE_MS);
        await begun;
        await client.getLock(name).unlock();
      },
    ],
    [
      'the last unlock() of three',
      async (client, name, begun) => {
        const lock = client.getLock(name);
        await lock.lock(LEASE_MS);
        await lock.lock(LEASE_MS);
        await lock.lock(LEASE_MS);
        await lock.unlock();
        await begun;
        await lock.unlock();
        await lock.unlock();
      },
    ],
    [
      'hold.release()',
      async (client, name, begun) => {
        const hold = await client.getLock(name).acquire({ leaseTime: LEASE_MS });
        await begun;
        await hold.release();
      },
    ],
    ['the end of withLock()', (client, name, begun) => client.getLock(name).withLock(() => begun)],
    [
      'the failure of a body',
      (client, name, begun) =>
        client.getLock(name).withLock(async () => {
          await begun;
          throw new Error('work failed');
        }),
    ],
    [
      'forceUnlock()',
      async (client, name, begun) => {
        const hold = await client.getLock(name).acquire({ leaseTime: LEASE_MS });
        await begun;
        expect(await client.getLock(name).forceUnlock()).toBe(true);
        expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
      },
    ],
    [
      'close({ releaseHolds })',
      async (client, name, begun) => {
        await client.getLock(name).acquire({ leaseTime: LEASE_MS });
        await begun;
        await client.close({ releaseHolds: true });
      },
    ],
  ])('R21: %s', async (_, take) => {
    expect(await wokenBy(take)).toBeLessThan(200 + SLACK_MS);
  });

  test('R21: a release after the end of the outer lease', async () => {
    const take = async (client: LockClient, name: string, begun: Promise<void>): Promise<void> => {
      const lock = client.getLock(name);
      const outer = await lock.acquire({ leaseTime: 500 });
      const inner = await lock.acquire({ leaseTime: LEASE_MS });
      await begun;
      // The key lasts for 20 s more, and no holder counts on it.
      await inner.release();
      expect(await outcome(outer.release())).toBe('ERR_LOCK_LOST');
    };
    expect(await wokenBy(take, 510)).toBeLessThan(200 + SLACK_MS);
  });

  test('R21: forceUnlock() by a third client', async () => {
    const [client, other, third] = [
      await openClient({ lockWatchdogTimeout: 900 }),
      await openClient(),
      await openClient(),
    ];
    const name = freshName();
    const hold = await holdElsewhere(client.getLock(name), LEASE_MS);
    const bothWait = Promise.all([waits(other), waits(client)]);
    const waiting = holdElsewhere(other.getLock(name), LEASE_MS);
    const waitingHere = holdElsewhere(client.getLock(name), LEASE_MS);
    await bothWait;
    const at = performance.now();
    expect(await third.getLock(name).forceUnlock()).toBe(true);
    const first = await Promise.race([waiting, waitingHere]);
    expect(elapsed(at)).toBeLessThan(200 + SLACK_MS);
    await first.release();
    await Promise.all([waiting, waitingHere]).then((holds) => Promise.all(holds.map((each) => each.release())));
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    expect(await third.getLock(name).forceUnlock()).toBe(false);
  });

  test('R21: the end of a lease without a release', async () => {
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName();
    const at = performance.now();
    const hold = await holdElsewhere(client.getLock(name), 400);
    const [here, there] = [holdElsewhere(client.getLock(name), 400), holdElsewhere(other.getLock(name), 400)];
    await (await Promise.race([here, there])).release();
    expect(elapsed(at)).toBeLessThan(400 + 200 + SLACK_MS);
    // For its client a hold ends 5 ms before its lease, and the watchdog looks up to 2 ms early.
    expect(performance.now() - at).toBeGreaterThanOrEqual(393);
    for (const each of [here, there]) await (await each).release();
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
  });
});

describe('R22: what waiting costs', () => {
  const WAITERS = 1_000;

  /** The commands that clients have sent, without the commands inside scripts. */
  function sent(stats: ReadonlyMap<string, number>): Record<string, number> {
    const names = ['evalsha', 'eval', 'subscribe', 'unsubscribe', 'ping'];
    const counts = new Map(names.map((name) => [name, stats.get(name) ?? 0]));
    return Object.fromEntries([...counts].filter(([, calls]) => calls > 0));
  }

  /** A server that knows the scripts already. */
  async function warmServer(): Promise<RedisServer> {
    const warm = await startServer();
    for (const { source } of LOCK_SCRIPTS.values()) await warm.command('SCRIPT', 'LOAD', source);
    return warm;
  }

  test('R22: 1,000 waiters of a client cost two tries and one subscription, and no command while they wait', async () => {
    server = await warmServer();
    const [client, other] = [await openClient({ url: server.url }), await openClient({ url: server.url })];
    const holder = await holdElsewhere(other.getLock('a'), LEASE_MS);
    await server.resetCommandStats();
    const controller = new AbortController();
    const calls = Array.from({ length: WAITERS }, () =>
      outcome(inFlow(() => client.getLock('a').acquire({ signal: controller.signal }))),
    );
    await until(async () => (await server!.channels()).length === 1, 'they are subscribed');
    // The second try follows the subscription.
    await until(async () => (sent(await server!.commandStats()).evalsha ?? 0) >= 2, 'they have looked once more');
    await pause(PARKED_MS);
    expect(sent(await server.commandStats())).toEqual({ evalsha: 2, subscribe: 1 });
    await server.resetCommandStats();
    await pause(600);
    expect(sent(await server.commandStats())).toEqual({});
    controller.abort();
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ERR_LOCK_ABORTED']));
    expect(sent(await server.commandStats())).toEqual({});
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    await holder.release();
    await closeClients();
  });

  test('R22: a release that wakes three clients of 1,000 waiters each costs one command and a try of each', async () => {
    server = await warmServer();
    const { url } = server;
    const clients = [await openClient({ url }), await openClient({ url }), await openClient({ url })];
    const holder = await holdElsewhere((await openClient({ url })).getLock('a'), LEASE_MS);
    await server.resetCommandStats();
    let entered = 0;
    let first!: (hold: Hold) => void;
    const isInside = new Promise<Hold>((resolve) => (first = resolve));
    const waiter = async (client: LockClient): Promise<void> => {
      const hold = await client.getLock('a').acquire({ leaseTime: LEASE_MS });
      if (entered++ === 0) first(hold);
      else await hold.release();
    };
    const calls = clients.flatMap((client) =>
      Array.from({ length: WAITERS }, () => outcome(inFlow(() => waiter(client)))),
    );
    const subscribers = async (): Promise<unknown> =>
      ((await server!.command('PUBSUB', 'NUMSUB', lockChannel('a'))) as unknown[])[1];
    await until(async () => (await subscribers()) === clients.length, 'all are subscribed');
    const tries = async (): Promise<number> => sent(await server!.commandStats()).evalsha ?? 0;
    await until(async () => (await tries()) >= 2 * clients.length, 'each client has tried twice');
    await pause(QUIET_MS);
    await server.resetCommandStats();
    await holder.release();
    const hold = await isInside;
    await until(async () => (await tries()) > clients.length, 'each client has tried');
    await pause(QUIET_MS);
    expect(sent(await server.commandStats())).toEqual({ evalsha: 1 + clients.length });
    // With hand-overs from then on, a section does not cost more either.
    await hold.release();
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ok']));
    expect(entered).toBe(clients.length * WAITERS);
    // Signs of life go by the clock, however long all this takes.
    const { evalsha, unsubscribe = 0, ping: _, ...others } = sent(await server.commandStats());
    expect(evalsha).toBeLessThan(1.5 * entered);
    expect(unsubscribe).toBeLessThanOrEqual(clients.length);
    expect(others).toEqual({});
    await closeClients();
  });

  test('R22: a thousand waiters that one signal aborts during a try of the head send no request', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const lock = client.getLock(freshName());
    const holder = await holdElsewhere(other.getLock(lock.name), LEASE_MS);
    const controller = new AbortController();
    const slow = proxy.holdReply({ contains: lock.name });
    const calls = Array.from({ length: WAITERS }, () =>
      outcome(inFlow(() => lock.acquire({ signal: controller.signal }))),
    );
    await slow.executed;
    controller.abort();
    await pause(STARTED_MS);
    slow.lift();
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ERR_LOCK_ABORTED']));
    expect(proxy.log.filter(({ args }) => args.includes(lock.name))).toHaveLength(1);
    await holder.release();
  });

  test('R22: a flow that waits for a hot lock again and again subscribes once', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const lock = client.getLock(freshName());
    const sections = 20;
    for (let section = 0; section < sections; section += 1) {
      const holder = await holdElsewhere(other.getLock(lock.name), LEASE_MS);
      const next = holdElsewhere(lock, LEASE_MS);
      await answered(client); // it waits
      await holder.release();
      await (await next).release();
      await answered(client);
    }
    const channel = lockChannel(lock.name);
    const subscribed = proxy.log.filter(({ name, args }) => /^S?SUBSCRIBE$/.test(name) && args.includes(channel));
    // Once, but for a machine that stood still for longer than a subscription lingers.
    expect(subscribed.length).toBeGreaterThan(0);
    expect(subscribed.length).toBeLessThan(sections / 2);
  });

  test('R22: a lease that is shorter than the round trip to Redis costs few tries', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const name = freshName();
    const { sha } = scripts.acquire.script!;
    const tries = proxy.observe({ sha, contains: name, times: Infinity });
    // Also to a try with the source of the script: another file may have made the server forget its scripts.
    proxy.holdReply({ contains: name, times: Infinity }, 20);
    const wait = { leaseTime: 10, waitTime: 1_500 };
    expect(await outcome(inFlow(async () => client.getLock(name).acquire(wait)))).not.toBe('ok');
    expect(tries.count).toBeGreaterThan(2);
    expect(tries.count).toBeLessThanOrEqual(10);
  });

  test('R22: waiters send at most 10 commands a second while the server is read-only or loading', async () => {
    const COUNTED_MS = 2_000;
    server = await startServer();
    const { proxy, url } = await openProxy();
    proxy.answer(
      { command: ['EVAL', 'EVALSHA'], times: Infinity },
      '-LOADING Redis is loading the dataset in memory\r\n',
    );
    const readOnly = await openClient({ url: server.url });
    const loading = await openClient({ url });
    const other = await openClient({ url: server.url });
    await server.replicaOf({ host: '127.0.0.1', port: 1 });
    await server.resetCommandStats();
    const begin = proxy.log.length;
    const wait = (client: LockClient): Promise<unknown> =>
      outcome(inFlow(async () => (await client.getLock('a').acquire({ waitTime: 30_000 })).release()));
    // The next in line are as many as they like: it is the head that tries.
    const began = performance.now();
    const waiting = [readOnly, loading].map((client) => Array.from({ length: 20 }, () => wait(client)));
    await pause(COUNTED_MS);
    const { evalsha = 0, eval: sources = 0 } = sent(await server.commandStats());
    const most = (10 * (performance.now() - began)) / 1_000;
    const counted = proxy.log.length;
    expect(evalsha + sources).toBeGreaterThan(2);
    expect(evalsha + sources).toBeLessThanOrEqual(most);
    const tries = proxy.log.slice(begin, counted).filter(({ name }) => name.startsWith('EVAL'));
    expect(tries.length).toBeGreaterThan(2);
    expect(tries.length).toBeLessThanOrEqual(most);
    await server.replicaOf(undefined);
    proxy.lift();
    expect(new Set(await Promise.all(waiting.flat()))).toEqual(new Set(['ok']));
    await inFlow(() => other.getLock('a').withLock(() => undefined));
    await closeClients();
  });
});

test('a waiting call emits one event', async () => {
  const [client, other] = [await openClient(), await openClient()];
  const lock = client.getLock(freshName());
  const announced: LockEvents['waiting'][] = [];
  client.events.on('waiting', (event) => announced.push(event));
  const holder = await holdElsewhere(other.getLock(lock.name), LEASE_MS);
  const waits = [1, 2, 3].map(() => inFlow(async () => (await lock.acquire()).release()));
  await until(() => announced.length === 3, 'all wait');
  await holder.release();
  await Promise.all(waits);
  expect(announced.map(({ waiters }) => waiters).sort()).toEqual([2, 3, 3]);
});

/** As timers do now and then, by a part of a ms. */
class EarlyTimers extends TestClock {
  override setTimer(ms: number, fn: () => void): Timer {
    return super.setTimer(ms - 20, fn);
  }
}

test.each(['in line', 'for its turn inside a hold'])('a call that waits %s uses its whole wait time', async (how) => {
  const lock = (await openClient({ clock: new EarlyTimers() })).getLock(freshName());
  const outer = await holdElsewhere(lock, LEASE_MS);
  const branch = await outer.run(() => lock.acquire());
  const began = performance.now();
  const wait = (): Promise<boolean> => lock.tryLock(60);
  expect(await (how === 'in line' ? inFlow(wait) : outer.run(wait))).toBe(false);
  expect(performance.now() - began).toBeGreaterThanOrEqual(60);
  await branch.release();
  await outer.release();
});

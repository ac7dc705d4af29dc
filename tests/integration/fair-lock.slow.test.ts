import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import type { FairLock } from '../../src/locks/fair-lock.js';
import { fairAliveKey, fairQueueKey, fairTimeoutsKey } from '../../src/redis/keys.js';
import * as scripts from '../../src/redis/scripts/fair-lock.js';
import { startWorker, type Worker } from '../support/processes/child.js';
import { elapsed } from '../support/time/elapsed.js';
import { JvmWaiter } from '../support/java/jvm-fair-lock.js';
import {
  answered,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  outcome,
  pause,
  TestClock,
} from '../support/clients/lock-clients.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { PARKED_MS, QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import type { ClientSettings } from '../support/clients/lock-clients.js';

/** Delay that two busy cores may cause. */
const SLACK_MS = 250;
const REFRESH_MS = 1_000;
/** Time for which a leaving waiter must have been in the queue. */
const QUEUED_MS = 600;

const workers: Worker[] = [];

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
  await closeClients();
});

async function worker(options: ClientSettings = {}): Promise<Worker> {
  const started = await startWorker();
  workers.push(started);
  await started.createClient({ url: testRedisUrl(), ...options });
  return started;
}

/** So that the first of each is not counted twice. */
async function loadScripts(server: RedisServer): Promise<void> {
  for (const { script } of Object.values(scripts)) await server.command('SCRIPT', 'LOAD', script!.source);
}

/** Waits until all waiters at this server are subscribed and the first of each of `lines` clients has tried again. */
async function parked(
  server: RedisServer,
  waiters: number,
  lines: number,
  clients: readonly LockClient[],
): Promise<void> {
  await until(async () => (await server.channels()).length === waiters, 'all listen');
  const scripts = async (): Promise<number> => (await server.commandStats()).get('evalsha') ?? 0;
  await until(async () => (await scripts()) >= waiters + lines, 'each has sent a try, and the first another one');
  await Promise.all(clients.map(answered));
}

const queue = (name: string): Promise<string[]> => admin().lrange(fairQueueKey(name), 0, -1);

/** Queues, and returns when it has its place. */
async function queued<T>(name: string, place: number, call: () => Promise<T>): Promise<{ result: Promise<T> }> {
  const result = inFlow(call);
  result.catch(() => undefined); // looked at by the test, later
  await until(async () => (await queue(name)).length === place, `place ${place} is taken`);
  return { result };
}

const spec = (name: string): { factory: string; name: string } => ({ factory: 'getFairLock', name });

interface Bench {
  readonly client: LockClient;
  readonly lock: FairLock;
  readonly name: string;
}

async function open(options: ClientSettings = {}, name = freshName('fair')): Promise<Bench> {
  const client = await openClient(options);
  return { client, lock: client.getFairLock(name), name };
}

describe('R26: the order of arrival', () => {
  test('holds over four processes for ten rounds', async () => {
    const { lock, name } = await open();
    const others = await Promise.all([worker(), worker(), worker()]);
    const hold = await holdElsewhere(lock);
    const order: number[] = [];
    const waits: Promise<unknown>[] = [];
    for (let at = 0; at < 40; at += 1) {
      const other = others[at % 4];
      const { result } = await queued(name, at + 1, async () => {
        if (other === undefined) return lock.withLock(() => void order.push(at));
        const flow = other.flow(`flow ${at}`);
        const held = await flow.acquire(spec(name));
        order.push(at);
        await flow.release(held);
      });
      waits.push(result);
    }
    await hold.release();
    await Promise.all(waits);
    expect(order).toEqual(Array.from({ length: 40 }, (_, at) => at));
  });

  test('is the order in which the server received the calls, while calls of two processes come and go', async () => {
    const server = await startServer();
    try {
      const log = await server.monitor();
      const name = 'fifo';
      const client = await openClient({ url: server.url });
      const lock = client.getFairLock(name);
      const other = await worker();
      await other.createClient({ url: server.url }, 'there');
      let inside = 0;
      let value = 0;
      const here = Array.from({ length: 6 }, (_, at) =>
        inFlow(async () => {
          for (let round = 0; round < 20; round += 1) {
            const held = await lock.tryAcquire({ waitTime: at === 0 ? 5 : 20_000 });
            if (held === null) continue;
            expect((inside += 1)).toBe(1);
            const seen = value;
            await pause(round % 2);
            value = seen + 1;
            inside -= 1;
            await held.release();
          }
        }),
      );
      const there = Array.from({ length: 4 }, async (_, at) => {
        const flow = other.flow(`flow ${at}`, 'there');
        for (let round = 0; round < 10; round += 1) await flow.release(await flow.acquire(spec(name)));
      });
      await Promise.all([...here, ...there]);
      const waiting: string[] = [];
      let grants = 0;
      let waited = 0;
      for (const { command, args } of await log.settle()) {
        if (command === 'RPUSH') waiting.push(args[1]!);
        if (command === 'LREM') waiting.splice(waiting.indexOf(args[2]!), 1);
        if (command !== 'HSET' || args[0] !== name) continue;
        grants += 1;
        if (waiting.length === 0) continue;
        expect(args[1]).toBe(waiting.shift());
        waited += 1;
      }
      expect(waiting).toEqual([]);
      expect(grants).toBeGreaterThanOrEqual(140);
      expect(waited).toBeGreaterThan(100);
      expect(value).toBe(grants - 40);
      await client.close();
      await other.closeClient({}, 'there');
      expect(await server.keys()).toEqual([]);
    } finally {
      await server.stop();
    }
  });

  test('includes a waiter of Redisson between two waiters of this client', async () => {
    const { lock, name } = await open();
    const jvm = new JvmWaiter(admin(), name);
    const hold = await holdElsewhere(lock);
    const first = await queued(name, 1, async () => lock.acquire());
    expect(await jvm.tryOrQueue()).toBe(false);
    const last = await queued(name, 3, async () => lock.acquire());
    await hold.release();
    const second = await first.result;
    expect(await jvm.tryOrQueue()).toBe(false);
    await second.release();
    await pause(PARKED_MS);
    expect(await jvm.tryOrQueue()).toBe(true);
    await jvm.release();
    await (await last.result).release();
  });

  test('also holds for a free lock with a queue: a call without a wait time is refused', async () => {
    const { lock, name } = await open();
    const jvm = new JvmWaiter(admin(), name);
    await admin().hset(name, '8743c9c0-0795-4907-87fd-6c719a6b4586:1', '1');
    expect(await jvm.tryOrQueue()).toBe(false);
    await admin().del(name);
    expect(await inFlow(() => lock.tryLock())).toBe(false);
    expect(await inFlow(() => lock.tryLock(50))).toBe(false);
    expect(await jvm.tryOrQueue()).toBe(true);
    await jvm.release();
  });
});

describe('R26: a client that is killed', () => {
  test.each([
    ['its waiter at the head', 1],
    ['ten of its waiters at the head: once, not ten times', 10],
  ])('%s blocks the next waiter for at most fairWaiterTimeout and one second', async (_, dead) => {
    const fairWaiterTimeout = 2_000;
    const { lock, name } = await open({ fairWaiterTimeout });
    const doomed = await worker({ fairWaiterTimeout });
    const hold = await holdElsewhere(lock);
    for (let at = 0; at < dead; at += 1) {
      await queued(name, at + 1, () => doomed.flow(`flow ${at}`).acquire(spec(name)));
    }
    const { result } = await queued(name, dead + 1, async () => lock.acquire());
    await doomed.kill9();
    const killed = performance.now();
    await hold.release();
    const next = await result;
    const after = performance.now() - killed;
    const afterMs = elapsed(killed);
    // Its last sign of life may be a refresh old.
    expect(after).toBeGreaterThan(fairWaiterTimeout - REFRESH_MS);
    expect(afterMs).toBeLessThan(fairWaiterTimeout + REFRESH_MS + SLACK_MS);
    await next.release();
  });

  test('is skipped by a release, which wakes the Redisson waiter behind it', async () => {
    const fairWaiterTimeout = 1_000;
    const { lock, name } = await open({ fairWaiterTimeout });
    const doomed = await worker({ fairWaiterTimeout });
    const jvm = new JvmWaiter(admin(), name);
    const hold = await holdElsewhere(lock);
    await queued(name, 1, () => doomed.flow('flow').acquire(spec(name)));
    expect(await jvm.tryOrQueue()).toBe(false);
    await doomed.kill9();
    await pause(fairWaiterTimeout + 50);
    await hold.release();
    expect(await jvm.tryOrQueue()).toBe(true);
    await jvm.release();
  });

  test('costs the waiters behind it only the one command per second of each client', async () => {
    const server = await startServer();
    try {
      const name = 'dead-head';
      await loadScripts(server);
      const doomed = await worker();
      await doomed.createClient({ url: server.url, fairWaiterTimeout: 30_000 }, 'there');
      const clients = await Promise.all([openClient({ url: server.url }), openClient({ url: server.url })]);
      const hold = await holdElsewhere(clients[0].getFairLock(name));
      const dead = doomed.flow('flow', 'there').acquire(spec(name));
      dead.catch(() => undefined);
      await until(async () => (await server.command('LLEN', fairQueueKey(name))) === 1, 'it is queued');
      const waits = clients.flatMap((client) =>
        Array.from({ length: 20 }, () => inFlow(() => client.getFairLock(name).withLock(() => undefined))),
      );
      await parked(server, 41, 3, clients);
      await doomed.kill9();
      await hold.release();
      await pause(PARKED_MS);
      const began = performance.now();
      const log = await server.monitor();
      await pause(4_000);
      const sent = (await log.settle()).filter(({ source }) => source !== 'lua');
      const seconds = (performance.now() - began) / 1_000;
      const scripts = sent.filter(({ command }) => command === 'EVALSHA');
      // One a second of each client, and a tick may come at either end.
      expect(scripts.length).toBeGreaterThanOrEqual(2 * 3);
      expect(scripts.length).toBeLessThanOrEqual(2 * Math.floor(seconds + 1));
      expect(sent.filter(({ command }) => !['EVALSHA', 'PING', 'TIME'].includes(command))).toEqual([]);
      expect(await server.command('EXISTS', name)).toBe(0);
      log.stop();
      const [head] = (await server.command('LRANGE', fairQueueKey(name), 0, 0)) as string[];
      await server.command('ZADD', fairAliveKey(name), 0, head!);
      await Promise.all(waits);
      await Promise.all(clients.map((client) => client.close()));
      expect(await server.keys()).toEqual([]);
    } finally {
      await server.stop();
    }
  });
});

describe('R26: a waiter that leaves has no place in the queue one second later', () => {
  const gone = (name: string): Promise<void> =>
    until(
      async () => (await admin().exists([fairQueueKey(name), fairAliveKey(name), fairTimeoutsKey(name)])) === 0,
      'it is out',
      1_000,
    );

  test.each<[string, (bench: Bench, abort: AbortController) => Promise<unknown>, unknown]>([
    ['a tryLock whose time is up', ({ lock }) => lock.tryLock(QUEUED_MS), 'ok'],
    ['an acquire whose time is up', ({ lock }) => lock.acquire({ waitTime: QUEUED_MS }), 'ERR_LOCK_TIMEOUT'],
    [
      'a lock() that is aborted',
      ({ lock }, abort) => (setTimeout(() => abort.abort(), QUEUED_MS), lock.lock({ signal: abort.signal })),
      'ERR_LOCK_ABORTED',
    ],
    [
      'a lock() whose client is closed',
      ({ client, lock }) => (setTimeout(() => void client.close(), QUEUED_MS), lock.lock()),
      'ERR_LOCK_CLIENT_CLOSED',
    ],
  ])('%s', async (_, call, expected) => {
    const holder = await open();
    const bench = await open({}, holder.name);
    const hold = await holdElsewhere(holder.lock);
    const { result } = await queued(holder.name, 1, () => call(bench, new AbortController()));
    expect(await outcome(result)).toBe(expected);
    await gone(holder.name);
    await hold.release();
    expect(await inFlow(() => holder.lock.tryLock())).toBe(true);
    await holder.lock.forceUnlock();
  });

  test('a waiter that leaves subtracts only its own wait from the timeouts', async () => {
    const { lock, name } = await open();
    const hold = await holdElsewhere(lock);
    const scores = async (): Promise<Record<string, number>> => {
      const pairs = await admin().zrange(fairTimeoutsKey(name), '0', '-1', 'WITHSCORES');
      return Object.fromEntries(pairs.flatMap((each, at) => (at % 2 === 0 ? [[each, Number(pairs[at + 1])]] : [])));
    };
    const abort = new AbortController();
    const before = await queued(name, 1, async () => lock.acquire());
    await queued(name, 2, async () => lock.acquire({ signal: abort.signal, waitTime: 9_000 }));
    const behind = await queued(name, 3, async () => lock.acquire({ waitTime: 8_000 }));
    const [first, second, third] = await queue(name);
    const then = await scores();
    abort.abort();
    await until(async () => (await queue(name)).length === 2, 'it is out');
    expect(await scores()).toEqual({ [first!]: then[first!], [third!]: then[third!]! - 300_000 });
    expect(then[second!]! - then[first!]!).toBe(300_000);
    await hold.release();
    await (await before.result).release();
    await (await behind.result).release();
  });

  test('R21: a head that leaves at the moment of the release passes the free lock to the next waiter', async () => {
    const holder = await open();
    const { lock, name } = await open({}, holder.name);
    for (let round = 0; round < 30; round += 1) {
      const hold = await holdElsewhere(holder.lock);
      const abort = new AbortController();
      const head = await queued(name, 1, async () => lock.acquire({ signal: abort.signal }));
      const next = await queued(name, 2, async () => holder.lock.acquire());
      const released = hold.release();
      if (round % 3 > 0) await released;
      if (round % 3 > 1) await pause(1);
      abort.abort();
      const at = performance.now();
      await head.result.then(
        (held: Hold) => held.release(),
        () => undefined,
      );
      await (await next.result).release();
      expect(elapsed(at)).toBeLessThan(200 + SLACK_MS);
      await released;
    }
  });
});

describe('R26, R30: a live waiter of this client is not evicted', () => {
  test.each([
    ['ahead', 60_000],
    ['behind', -60_000],
  ])('by Redisson with a clock that is a minute %s', async (_, aheadMs) => {
    const { lock, name } = await open();
    const jvm = new JvmWaiter(admin(), name, { aheadMs });
    const hold = await holdElsewhere(lock);
    const { result } = await queued(name, 1, async () => lock.acquire());
    const [ours] = await queue(name);
    expect(await jvm.tryOrQueue()).toBe(false);
    expect((await queue(name))[0]).toBe(ours);
    await hold.release();
    const next = await result;
    expect(next.owner).toBe(ours);
    await next.release();
    expect(await jvm.tryOrQueue()).toBe(true);
    await jvm.release();
  });

  test('by clients whose clocks are two hours apart, because all use the server time', async () => {
    const [ahead, behind] = [new TestClock(), new TestClock()];
    ahead.jumpWall(3_600_000);
    behind.jumpWall(-3_600_000);
    const { lock, name } = await open();
    const benches = [await open({ clock: ahead }, name), await open({ clock: behind }, name), { lock }];
    const hold = await holdElsewhere(lock);
    const order: number[] = [];
    const waits = [];
    for (const [at, bench] of benches.entries()) {
      waits.push(await queued(name, at + 1, () => bench.lock.withLock(() => void order.push(at))));
    }
    const ours = await queue(name);
    const scores = async (key: string): Promise<number[]> =>
      Promise.all(ours.map(async (owner) => Number(await admin().zscore(key, owner))));
    const alive = await scores(fairAliveKey(name));
    await until(
      async () => (await scores(fairAliveKey(name))).every((until, at) => until > alive[at]! + 1.5 * REFRESH_MS),
      'each has given two signs of life',
    );
    expect(await queue(name)).toEqual(ours);
    const [seconds = NaN] = await admin().time();
    const fromNow = (each: number): number => each - seconds * 1_000;
    for (const until of (await scores(fairAliveKey(name))).map(fromNow)) {
      expect(until).toBeGreaterThan(0);
      expect(until).toBeLessThan(5_000 + 1_000);
    }
    (await scores(fairTimeoutsKey(name))).map(fromNow).forEach((until, at) => {
      expect(until).toBeGreaterThan((at + 0.5) * 300_000);
      expect(until).toBeLessThan((at + 1) * 300_000 + 31_000);
    });
    await hold.release();
    await Promise.all(waits.map(({ result }) => result));
    expect(order).toEqual([0, 1, 2]);
  });

  test('during a long wait, by Redisson clients that try, give up or acquire', async () => {
    const fairLockWaitTimeout = 3_000;
    const { lock, name } = await open({ fairLockWaitTimeout });
    const jvm = new JvmWaiter(admin(), name, { waitMs: fairLockWaitTimeout });
    await admin().hset(name, '8743c9c0-0795-4907-87fd-6c719a6b4586:1', '1');
    const waits = [];
    for (let place = 1; place <= 2; place += 1) waits.push(await queued(name, place, async () => lock.acquire()));
    const [...ours] = await queue(name);
    // Each would be stale by its first timeout long before the end of this.
    const began = performance.now();
    while (performance.now() - began < 2.5 * fairLockWaitTimeout) {
      expect(await jvm.tryOrQueue()).toBe(false);
      expect((await queue(name)).slice(0, 2)).toEqual(ours);
      await pause(QUIET_MS);
    }
    await admin().del(name);
    for (const { result } of waits) await (await result).release();
    expect(await jvm.tryOrQueue()).toBe(true);
    await jvm.release();
  }, 40_000);
});

test('a waiter whose place was deleted queues again, in the order of its client, and acquires the lock', async () => {
  const { client, lock, name } = await open();
  const hold = await holdElsewhere(lock);
  const order: number[] = [];
  const waits = [];
  for (let at = 0; at < 5; at += 1) {
    waits.push(await queued(name, at + 1, () => lock.withLock(() => void order.push(at))));
  }
  const channels = async (): Promise<number> => ((await admin().pubsub('CHANNELS', `*${name}*`)) as string[]).length;
  await until(async () => (await channels()) === 5, 'all listen');
  await answered(client); // each has looked once more since
  await admin().del(fairQueueKey(name), fairTimeoutsKey(name), fairAliveKey(name));
  await until(async () => (await queue(name)).length === 5, 'all are queued again', REFRESH_MS + SLACK_MS);
  await hold.release();
  await Promise.all(waits.map(({ result }) => result));
  expect(order).toEqual([0, 1, 2, 3, 4]);
});

test('a waiter behind the head acquires the lock when the lease before it ends without a message', async () => {
  const { lock, name } = await open();
  const doomed = await worker();
  const hold = await holdElsewhere(lock);
  const head = doomed.flow('flow').acquire(spec(name), { leaseTime: 1_500 });
  await until(async () => (await queue(name)).length === 1, 'it is queued');
  const { result } = await queued(name, 2, async () => lock.acquire());
  await hold.release();
  await head;
  const at = performance.now();
  await doomed.kill9();
  const next = await result;
  expect(elapsed(at)).toBeLessThan(1_500 + SLACK_MS);
  await next.release();
});

test('many waiters of a client cost one command per second in total', async () => {
  const server = await startServer();
  try {
    await loadScripts(server);
    const client = await openClient({ url: server.url });
    const lock = client.getFairLock('idle');
    const hold = await holdElsewhere(lock);
    const abort = new AbortController();
    const waits = Array.from({ length: 300 }, () => outcome(inFlow(() => lock.lock({ signal: abort.signal }))));
    await parked(server, 300, 1, [client]);
    const began = performance.now();
    const log = await server.monitor();
    await pause(3_500);
    const sent = (await log.settle()).filter(({ source }) => source !== 'lua');
    const seconds = (performance.now() - began) / 1_000;
    expect(sent.filter(({ command }) => command === 'EVALSHA').length).toBeGreaterThanOrEqual(2);
    expect(sent.filter(({ command }) => command === 'EVALSHA').length).toBeLessThanOrEqual(Math.floor(seconds + 1));
    expect(sent.filter(({ command }) => !['EVALSHA', 'PING', 'TIME'].includes(command))).toEqual([]);
    abort.abort();
    expect(new Set(await Promise.all(waits))).toEqual(new Set(['ERR_LOCK_ABORTED']));
    await hold.release();
    await client.close();
    expect(await server.keys()).toEqual([]);
  } finally {
    await server.stop();
  }
});

test('inspect() lists the queue, head first', async () => {
  const { client, lock, name } = await open();
  const hold = await holdElsewhere(lock);
  const first = await queued(name, 1, async () => lock.acquire());
  const second = await queued(name, 2, async () => lock.acquire());
  const inspection = await client.inspect(name);
  expect(inspection).toMatchObject({ kind: 'fair', queue: await queue(name) });
  expect(inspection.owners.map(({ owner }) => owner)).toEqual([hold.owner]);
  await hold.release();
  await (await first.result).release();
  await (await second.result).release();
});

describe('the non-reentrant fair lock', () => {
  test('refuses its own owner at once in every form, and the hold stays', async () => {
    const { client, name } = await open();
    const lock = client.getNonReentrantFairLock(name);
    await lock.withLock(async () => {
      const code = 'ERR_LOCK_NON_REENTRANT';
      expect(await outcome(lock.lock())).toBe(code);
      expect(await outcome(lock.tryLock(1_000))).toBe(code);
      expect(await outcome(lock.acquire())).toBe(code);
      expect(await outcome(lock.tryAcquire())).toBe(code);
      expect(await outcome(lock.withLock(() => undefined))).toBe(code);
      expect(await lock.getHoldCount()).toBe(1);
      expect(await queue(name)).toEqual([]);
    });
    expect(await lock.isLocked()).toBe(false);
  });

  test('uses the same queue as the reentrant one', async () => {
    const { client, lock, name } = await open();
    const other = client.getNonReentrantFairLock(name);
    const hold = await holdElsewhere(lock);
    const order: string[] = [];
    const waits = [
      await queued(name, 1, () => other.withLock(() => void order.push('first'))),
      await queued(name, 2, () => lock.withLock(() => void order.push('second'))),
      await queued(name, 3, () => other.withLock(() => void order.push('third'))),
    ];
    await hold.release();
    await Promise.all(waits.map(({ result }) => result));
    expect(order).toEqual(['first', 'second', 'third']);
  });
});

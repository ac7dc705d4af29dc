import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import * as fairLock from '../../src/redis/scripts/fair-lock.js';
import { inFlow } from '../support/clients/lock-clients.js';
import { ALL_SCRIPTS } from '../support/lua/lock-scripts.js';
import { codeIn, declarations, page, publicMembers, tableUnder } from '../support/project/guide.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';

/** Enters a section and returns the function that ends it. */
type Enter = (client: LockClient, name: string) => Promise<() => Promise<unknown>>;
const giving = (hold: { release(): Promise<void> }) => () => hold.release();

interface Row {
  readonly section: Enter;
  /** The holder that has to release first, if there is one. */
  readonly holder?: Enter;
  /** Number of servers. */
  readonly servers?: number;
  /** Reads that it sends besides scripts. */
  readonly reads?: string[];
  /** Commands until it waits for a message; absent: a try, and one more when the subscription stands. */
  readonly tries?: number;
}

const ACQUIRE = fairLock.acquire.script!.sha;
const VALUES = Array.from({ length: 500 }, (_, at) => `order ${at}`);

/** The rows of the table of costs of docs/choosing.md. */
const ROWS: Record<string, Row> = {
  '`getLock`': { section: async (client, name) => giving(await client.getLock(name).acquire()) },
  '`getNonReentrantLock`': {
    section: async (client, name) => giving(await client.getNonReentrantLock(name).acquire()),
  },
  '`getFencedLock`': { section: async (client, name) => giving(await client.getFencedLock(name).acquire()) },
  '`getReadWriteLock` readers': {
    section: async (client, name) => giving(await client.getReadWriteLock(name).readLock().acquire()),
    holder: async (client, name) => giving(await client.getReadWriteLock(name).writeLock().acquire()),
  },
  '`getReadWriteLock` writer': {
    section: async (client, name) => giving(await client.getReadWriteLock(name).writeLock().acquire()),
  },
  '`getFairLock`': { section: async (client, name) => giving(await client.getFairLock(name).acquire()) },
  '`getNonReentrantFairLock`': {
    section: async (client, name) => giving(await client.getNonReentrantFairLock(name).acquire()),
  },
  '`getMultiLock` of 500 values': {
    section: async (client, name) => giving(await client.getMultiLock(name, VALUES).acquire()),
  },
  '`getMultiLock` of two locks': {
    section: async (client, name) =>
      giving(await client.getMultiLock(client.getLock(`${name}:1`), client.getLock(`${name}:2`)).acquire()),
    holder: async (client, name) => giving(await client.getLock(`${name}:1`).acquire()),
    tries: 5,
  },
  '`getRedLock` of three servers': {
    servers: 3,
    async section(client, name) {
      const locks = [client, ...others.get(client)!].map((each) => each.getLock(name));
      return giving(await client.getRedLock(...locks).acquire());
    },
    tries: 5,
  },
  '`getSpinLock`': { section: async (client, name) => giving(await client.getSpinLock(name).acquire()) },
  '`getSemaphore`': {
    async section(client, name) {
      const semaphore = client.getSemaphore(name);
      await semaphore.acquire();
      return () => semaphore.release();
    },
  },
  '`getPermitExpirableSemaphore`': {
    section: async (client, name) => giving(await client.getPermitExpirableSemaphore(name).acquirePermit()),
  },
  '`getCountDownLatch`, `await`': {
    async section(client, name) {
      await client.getCountDownLatch(name).await();
      return () => Promise.resolve();
    },
    async holder(client, name) {
      const latch = client.getCountDownLatch(name);
      await latch.trySetCount(1);
      return () => latch.countDown();
    },
    reads: ['mget'],
  },
};

const servers: RedisServer[] = [];
const clients: LockClient[] = [];
/** Those of the other servers, for a client that locks at several. */
const others = new Map<LockClient, readonly LockClient[]>();
beforeAll(async () => {
  servers.push(...(await Promise.all(Array.from({ length: 3 }, () => startServer()))));
  // An EVALSHA that fails is not counted, but Redis 6.0 does not say which have failed.
  for (const server of servers)
    for (const { source } of ALL_SCRIPTS.values()) await server.command('SCRIPT', 'LOAD', source);
});
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));
afterAll(() => Promise.all(servers.map((server) => server.stop())));

/** Commands that have run, of these names. */
async function ran(...names: string[]): Promise<number> {
  const counts = servers.map(async (server) => {
    const stats = String(await server.command('INFO', 'commandstats'));
    return names.map((name) => {
      const [, calls, failed] = new RegExp(`cmdstat_${name}:calls=(\\d+)(?:.*failed_calls=(\\d+))?`).exec(stats) ?? [];
      return Number(calls ?? 0) - Number(failed ?? 0);
    });
  });
  return (await Promise.all(counts)).flat().reduce((sum, each) => sum + each, 0);
}

/** Scripts, and reads where there are some: everything that a section sends beside its subscription. */
const requests = (read: string[] = []): Promise<number> => ran('evalsha', 'eval', ...read);

async function open(count = 1): Promise<LockClient> {
  const [client, ...rest] = servers.slice(0, count).map(({ url }) => createClient({ url })) as [
    LockClient,
    ...LockClient[],
  ];
  clients.push(client, ...rest);
  others.set(client, rest);
  await Promise.all([client, ...rest].map((each) => each.ready()));
  return client;
}

const rows = tableUnder('Primitive', page('docs/choosing.md'));
test('the documented table lists every primitive, and every measured one', () => {
  expect(rows.map(([name]) => name)).toEqual(Object.keys(ROWS));
  const named = new Set(rows.flatMap(([name]) => codeIn(name!)));
  const factories = publicMembers(declarations('src/client/lock-client.ts').get('LockClient')).filter((name) =>
    /^get/.test(name),
  );
  expect(factories.length).toBeGreaterThan(10);
  expect(factories.filter((name) => !named.has(name))).toEqual([]);
});

test.each(Object.entries(ROWS))('a section of %s sends the documented number of commands', async (name, row) => {
  const [, free, more] = rows.find(([cell]) => cell === name)!;
  const { section, holder = section, servers: over = 1, tries = 2, reads } = row;
  const [mine, other] = [await open(over), await open(over)];
  const key = `cost:${name}`;
  if (name.includes('Semaphore')) {
    // Both kinds store the free permits in the same way.
    await mine.getSemaphore(key).trySetPermits(1);
  }
  /** The sent commands. A RedLock continues after a majority of replies: the others, `least` in all, may be pending. */
  const sentBy = async <T>(least: number, what: () => Promise<T>): Promise<{ result: T; sent: number }> => {
    const before = await requests(reads);
    const result = await what();
    await until(async () => (await requests(reads)) - before >= least, 'all of it has been sent');
    return { result, sent: (await requests(reads)) - before };
  };
  const enter = (client: LockClient, how: Enter) => inFlow(() => how(client, key));
  const round = (how: Enter) => async () => (await enter(mine, how))();
  await sentBy(Number(free), round(section)); // its scripts are loaded
  if (holder !== section) await round(holder)();
  for (let at = 0; at < 5; at += 1) expect((await sentBy(Number(free), round(section))).sent).toBe(Number(free));
  if (more === 'polls') return;

  const { result: ahead } = await sentBy(over, () => enter(other, holder));
  const { sent: leaving } = await sentBy(over, ahead);
  const { result: leave } = await sentBy(over, () => enter(other, holder));
  let waits = false;
  for (const each of [mine, ...others.get(mine)!]) each.events.on('waiting', () => (waits = true));
  const began = await requests(reads);
  const entered = enter(mine, section);
  await until(() => waits, 'it waits');
  await until(async () => (await requests(reads)) - began >= tries, 'its try was refused');
  await leave();
  await (
    await entered
  )();
  const expected = Number(/^(?:at least )?(\d+)$/.exec(more!)?.[1]) + Number(free);
  const sent = async (): Promise<number> => (await requests(reads)) - began - leaving;
  await until(async () => (await sent()) >= expected, 'all of it has been sent');
  if (!more!.startsWith('at least')) expect(await sent()).toBe(expected);
});

test('single calls send the documented one command each', async () => {
  const client = await open();
  const latch = client.getCountDownLatch('cost:latch');
  const permits = client.getPermitExpirableSemaphore('cost:permits');
  let id = '';
  const calls: Record<string, () => Promise<unknown>> = {
    trySetPermits: () => permits.trySetPermits(3),
    acquireMany: async () => ([id = ''] = await permits.acquireMany(3, 5_000)),
    updateLeaseTime: () => permits.updateLeaseTime(id, 9_000),
    trySetCount: () => latch.trySetCount(1),
    countDown: () => latch.countDown(),
    await: () => latch.await(),
  };
  const [sentence = ''] =
    /`trySetPermits`, `acquireMany`,[^.]* one command each\./.exec(page('docs/choosing.md')) ?? [];
  expect(codeIn(sentence)).toEqual(Object.keys(calls));
  for (const [name, call] of Object.entries(calls)) {
    // To await is to read; the scripts of the others read as well.
    const sent = (): Promise<number> => (name === 'await' ? ran('mget') : requests());
    const before = await sent();
    await call();
    expect([name, (await sent()) - before]).toEqual([name, 1]);
  }
});

test('a waiting and an abandoned call of the fair lock send the documented commands and subscriptions', async () => {
  const [, entering, leaving] =
    /^\| a call that waits, with its unlock \| (\d+): .*; (\d+) where it gives up; \d+ less behind another .* \|$/m.exec(
      page('docs/fair-lock.md'),
    )!;
  const [mine, other] = [await open(), await open()];
  const [lock, theirs] = [mine.getFairLock('cost:queue'), other.getFairLock('cost:queue')];
  await lock.withLock(() => undefined);
  const sent = (): Promise<number> => ran('evalsha', 'eval', 'subscribe', 'unsubscribe');
  for (const waitTime of [20_000, 300]) {
    const gives = waitTime < 1_000;
    const hold = await inFlow(async () => theirs.acquire());
    const before = await sent();
    const call = inFlow(() => lock.tryLock(waitTime).then(async (taken) => (taken ? lock.unlock() : undefined)));
    await until(async () => (await sent()) - before >= 3, 'it is subscribed and has tried again');
    if (!gives) await hold.release();
    await call;
    const expected = gives ? Number(leaving) : Number(entering) + 1;
    await until(async () => (await sent()) - before >= expected, 'it has unsubscribed');
    expect((await sent()) - before).toBe(expected);
    await hold.release();
  }
});

test('a fair-lock waiter behind another waiter of its client sends two commands less', async () => {
  const [, less] = /(\d+) less behind another/.exec(page('docs/fair-lock.md'))!;
  const [mine, other] = [await open(), await open()];
  const name = 'cost:behind';
  const hold = await inFlow(async () => other.getFairLock(name).acquire());
  const monitor = await servers[0]!.monitor();
  const subscribed = async (count: number): Promise<boolean> => {
    const channels = await servers[0]!.command('PUBSUB', 'CHANNELS', `*{${name}}*`);
    return (channels as string[]).length === count;
  };
  const calls: Promise<void>[] = [];
  for (const waiters of [1, 2, 3]) {
    calls.push(inFlow(() => mine.getFairLock(name).withLock(() => undefined)));
    await until(() => subscribed(waiters), `${waiters} are subscribed`);
  }
  await hold.release();
  await Promise.all(calls);
  const lines = await monitor.settle();
  monitor.stop();
  const tries = lines.filter(({ source, args }) => source !== 'lua' && args.includes(ACQUIRE) && args.includes(name));
  // Each waiter tries when it comes. The first one also tries when its subscription is confirmed, and when it is woken. The
  // others get the lock by a hand-over.
  expect(tries).toHaveLength(3 * 3 - 2 * Number(less));
});

test('commands of one turn of the event loop reach the server together, also on an idle connection', async () => {
  const client = await open();
  const turn = (): Promise<unknown> =>
    Promise.all(Array.from({ length: 10 }, (_, at) => client.getLock(`cost:turn:${at}`).isLocked()));
  const reads = async (): Promise<number> =>
    Number(/total_reads_processed:(\d+)/.exec(String(await servers[0]!.command('INFO', 'stats')))![1]);
  await turn();
  const before = await reads();
  for (let turns = 0; turns < 100; turns += 1) await turn();
  expect((await reads()) - before).toBeLessThan(1.2 * 100);
});

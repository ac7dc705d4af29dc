import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { runFixture } from '../support/processes/fixture-process.js';
import { SharedCounter } from '../support/processes/shared-counter.js';
import { freshName } from '../support/redis.js';
import { expectNoOverlap } from '../support/serious.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { LONG_MS, until } from '../support/time/until.js';

/* One name at several servers, which processes name differently. A server that hangs is one that is stopped (SIGSTOP). */

const INFO_REFUSED = ['default on nopass ~* &* +@all -info'];

let servers: RedisServer[];
let refusing: RedisServer[];
const clients: LockClient[] = [];

beforeAll(async () => {
  const users = { users: INFO_REFUSED };
  const started = await Promise.all([startServer(), startServer(), startServer(users), startServer(users)]);
  [servers, refusing] = [started.slice(0, 2), started.slice(2)];
});
afterAll(() => Promise.all([...servers, ...refusing].map((server) => server.stop())));
afterEach(async () => {
  for (const server of servers) server.resume();
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  for (const server of servers) await until(async () => (await server.keys()).length === 0, 'no key is left');
});

const address = ({ port }: RedisServer): string => `redis://127.0.0.1:${port}`;
const alias = ({ port }: RedisServer): string => `redis://localhost:${port}?family=4`;

function open(...urls: string[]): LockClient[] {
  const opened = urls.map((url) => createClient({ url, commandTimeout: 900 }));
  clients.push(...opened);
  return opened;
}

/** Notes each wait in the line of a member, by the place of its client. The tries before it are no waits. */
function notedWaits(...given: LockClient[]): number[] {
  const waits: number[] = [];
  for (const [at, client] of given.entries()) client.events.on('waiting', () => waits.push(at));
  return waits;
}

const ownersAt = (server: RedisServer, name: string): Promise<unknown> => server.command('HKEYS', name);

describe('two processes that name the servers differently', () => {
  test.each([
    ['take their sections in the order of the run ids', () => servers, 300],
    ['begin again where Redis refuses INFO', () => refusing, 8],
  ])('%s', async (_, at, sections) => {
    const [a, b] = at() as [RedisServer, RedisServer];
    const counter = await SharedCounter.start();
    const name = freshName();
    const run = (who: string, ...urls: string[]): Promise<{ ms: number }> =>
      runFixture('two-servers.mjs', [name, who, String(counter.port), String(sections), ...urls], [], LONG_MS);
    await Promise.all([run('one', address(a), alias(b)), run('two', alias(a), address(b))]);
    expectNoOverlap(counter.overlaps);
    expect(counter.value(name)).toBe(2 * sections);
    await counter.close();
  });
});

test('two calls that hold what the other one waits for both get on, where Redis refuses INFO', async () => {
  const [a, b] = refusing as [RedisServer, RedisServer];
  const name = freshName();
  const holders = open(address(a), address(b));
  const busy = await Promise.all(holders.map((client) => inFlow(() => client.getFairLock(name).acquire())));
  // The names of the servers sort the one way for the first call, and the other way for the second one.
  const pairs = [open(address(a), alias(b)), open(alias(a), address(b))] as [LockClient, LockClient][];
  const waits = pairs.map((pair) => notedWaits(...pair));
  const calls = pairs.map(([one, other]) =>
    inFlow(() => one.getMultiLock(one.getFairLock(name), other.getFairLock(name)).acquire()).then((hold) =>
      hold.release(),
    ),
  );
  await until(() => waits.every(({ length }) => length === 1), 'both wait');
  expect(waits).toEqual([[0], [1]]);
  await busy[0]!.release();
  await until(() => waits[0]!.length === 2, 'the first call has its first member, and waits behind the second call');
  await busy[1]!.release();
  await until(() => waits[1]!.length === 2, 'the second call has its first member, and waits for the first call');
  await Promise.all(calls);
});

describe('a call that waits for a member while it holds another one of the name', () => {
  async function waiting(): Promise<{ name: string; first: RedisServer; second: RedisServer; end(): Promise<void> }> {
    const [a, b] = servers as [RedisServer, RedisServer];
    const name = freshName();
    const [one, two] = open(address(a), address(b)) as [LockClient, LockClient];
    const busy = await Promise.all([one, two].map((client) => inFlow(() => client.getLock(name).acquire())));
    const [mine, other] = open(address(a), address(b)) as [LockClient, LockClient];
    const waits = notedWaits(mine, other);
    const call = inFlow(() => mine.getMultiLock(mine.getLock(name), other.getLock(name)).acquire());
    await until(() => waits.length === 1, 'it waits for the first member');
    const at = waits[0]!;
    await busy[at]!.release();
    await until(() => waits.length === 2, 'it waits for the second member');
    return {
      name,
      first: [a, b][at]!,
      second: [a, b][1 - at]!,
      end: async () => {
        await busy[1 - at]!.release();
        await (await call).release();
      },
    };
  }

  test('keeps it as long as the servers are those of the order', async () => {
    const { name, first, end } = await waiting();
    const owners = await ownersAt(first, name);
    // Longer than the longest time after which a call begins again.
    await pause(2_500);
    expect(await ownersAt(first, name)).toEqual(owners);
    await end();
  });

  test('begins again when a connection was made anew: the server may be another one', async () => {
    const { name, first, second, end } = await waiting();
    const owners = await ownersAt(first, name);
    await second.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until(async () => {
      const now = (await ownersAt(first, name)) as string[];
      return now.length === 1 && JSON.stringify(now) !== JSON.stringify(owners);
    }, 'another owner of the call has the first member');
    await end();
  });

  test('sleeps through an outage of a server, longer than a command deadline', async () => {
    const [a, b] = servers as [RedisServer, RedisServer];
    const name = freshName();
    const holders = open(address(a), address(b));
    const busy = await Promise.all(holders.map((client) => inFlow(() => client.getLock(name).acquire())));
    const ways = await Promise.all([a, b].map((server) => FaultProxy.start(server.address)));
    const [mine, other] = open(...ways.map(({ url }) => url)) as [LockClient, LockClient];
    const waits = notedWaits(mine, other);
    const call = inFlow(() => mine.getMultiLock(mine.getLock(name), other.getLock(name)).acquire());
    await until(() => waits.length === 1, 'it waits for the first member');
    await busy[waits[0]!]!.release();
    await until(() => waits.length === 2, 'it waits for the second member');
    const way = ways[waits[1]!]!;
    const refused = way.refuse('reset');
    way.cut();
    // Longer than the longest time between two looks, and a command deadline.
    await pause(3_500);
    refused.lift();
    await busy[waits[1]!]!.release();
    await (await call).release();
    await Promise.all([mine, other].map((client) => client.close()));
    await Promise.all(ways.map((each) => each.close()));
  });

  test('ends by its signal, and by its time', async () => {
    const [a, b] = servers as [RedisServer, RedisServer];
    const name = freshName();
    const holder = open(address(a), address(b));
    const busy = await Promise.all(holder.map((client) => inFlow(() => client.getLock(name).acquire())));
    const [mine, other] = open(address(a), address(b)) as [LockClient, LockClient];
    const waits = notedWaits(mine, other);
    const lock = mine.getMultiLock(mine.getLock(name), other.getLock(name));
    const abort = new AbortController();
    const calls = [{ waitTime: 3_000 }, { signal: abort.signal }].map((options) =>
      outcome(inFlow(() => lock.acquire(options))),
    );
    await until(() => waits.length === 2, 'they wait');
    await busy[waits[0]!]!.release();
    await until(() => waits.length === 3, 'one has the first member, and waits for the second one');
    expect(await calls[0]).toBe('ERR_LOCK_TIMEOUT');
    await until(() => waits.length === 4, 'the other one has it now');
    abort.abort();
    expect(await calls[1]).toBe('ERR_LOCK_ABORTED');
    await Promise.all(busy.map((hold) => hold.release()));
  });
});

describe('one server under two names is given twice', () => {
  const TWICE = /is given twice, because .* are one server/;

  test.each<[string, (client: LockClient, other: LockClient, name: string) => Promise<unknown>]>([
    ['tryLock()', (client, other, name) => both(client, other, name).tryLock()],
    ['acquire()', (client, other, name) => both(client, other, name).acquire()],
    ['a wait', (client, other, name) => both(client, other, name).tryLock(5_000, 30_000)],
  ])('for %s of a multi-lock', async (_, call) => {
    const [a] = servers as [RedisServer];
    const [client, other] = open(address(a), alias(a)) as [LockClient, LockClient];
    await expect(inFlow(() => call(client, other, freshName()))).rejects.toThrow(TWICE);
    expect(client.holds()).toEqual([]);
  });

  test('but two databases of it are two', async () => {
    const [a] = servers as [RedisServer];
    const [client, other] = open(address(a), `${address(a)}/1`) as [LockClient, LockClient];
    const name = freshName();
    const busy = await inFlow(() => other.getLock(name).acquire());
    const call = inFlow(() => both(client, other, name).acquire());
    await until(() => other.stats().waiting === 1, 'it waits for the member in the other database');
    await busy.release();
    await (await call).release();
  });

  test('for a RedLock, and a server that hangs does not delay that', async () => {
    const [a, hangs] = servers as [RedisServer, RedisServer];
    const [one, again, third] = open(address(a), alias(a), address(hangs)) as [LockClient, LockClient, LockClient];
    const name = freshName();
    const red = one.getRedLock(...[one, again, third].map((client) => client.getLock(name)));
    await Promise.all([one, again, third].map((client) => client.ready()));
    await hangs.pause();
    // It can wait for ever: one of its two servers is always busy for it, and the third one hangs.
    await expect(inFlow(() => red.acquire())).rejects.toThrow(TWICE);
    await expect(inFlow(() => red.tryLock())).rejects.toThrow(TWICE);
    hangs.resume();
    await until(async () => (await hangs.keys()).length === 0, 'the server that hung keeps nothing');
  });

  test('for a RedLock of read locks, although the server would grant both', async () => {
    const [a, b] = servers as [RedisServer, RedisServer];
    const [one, again, third, writer] = open(address(a), alias(a), address(b), address(b));
    const name = freshName();
    const writing = await inFlow(() => writer!.getReadWriteLock(name).writeLock().acquire());
    const reads = [one!, again!, third!].map((client) => client.getReadWriteLock(name).readLock());
    // Two of three readers are at one server, and the writer has the other one.
    await expect(inFlow(() => one!.getRedLock(...reads).tryAcquire())).rejects.toThrow(TWICE);
    await writing.release();
  });

  const both = (client: LockClient, other: LockClient, name: string): ReturnType<LockClient['getMultiLock']> =>
    client.getMultiLock(client.getLock(name), other.getLock(name));
});

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { ClientOptions } from '../../src/options.js';
import type { Lock } from '../../src/locks/lock.js';
import * as semaphores from '../../src/redis/scripts/semaphore.js';
import { elapsed } from '../support/time/elapsed.js';
import { answered, block, holdElsewhere, inFlow, outcome, pause, ready } from '../support/clients/lock-clients.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { allChannels } from '../support/servers/server-version.js';
import { startServer, type RedisServer, type ServerOptions } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';
import { reach, topology } from '../support/servers/topology.mjs';

const DEADLINE_MS = 600;
const SLACK_MS = 250;
const BACK_MS = 5_000;

const servers: RedisServer[] = [];
const clients: LockClient[] = [];
const proxies: FaultProxy[] = [];
let names = 0;
let server: RedisServer;

beforeAll(async () => {
  // Time that a script may run before other commands get a BUSY error.
  server = await startServer({ config: { 'lua-time-limit': '50' } });
});

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  await until(async () => (await server.keys()).length === 0, 'nothing is left');
  await Promise.all(servers.splice(0).map((each) => each.stop()));
});

afterAll(() => server.stop());

async function serverWith(options: ServerOptions): Promise<RedisServer> {
  const started = await startServer(options);
  servers.push(started);
  return started;
}

async function clientAt(url: string, options: ClientOptions = {}): Promise<LockClient> {
  const client = createClient({ ...reach(url), commandTimeout: DEADLINE_MS, ...options });
  clients.push(client);
  await ready(client);
  return client;
}

const freshName = (): string => `state:${++names}`;

/** Everything that a client does with Redis, once: each of its scripts runs, each kind of wake-up comes. */
async function everything(client: LockClient, other: LockClient): Promise<void> {
  const lock = client.getLock(freshName());
  const theirs = other.getLock(lock.name);
  // Two flows and their hand-off, and a waiter of another client.
  const order: string[] = [];
  const first = await holdElsewhere(lock);
  const local = inFlow(() => lock.withLock(() => order.push('local')));
  const remote = inFlow(() => theirs.withLock(() => order.push('remote')));
  await pause(30);
  await first.run(() => lock.withLock(() => order.push('nested')));
  await first.extend(40_000);
  expect(await theirs.isLocked()).toBe(true);
  expect(await lock.isHeldBy(first.owner)).toBe(true);
  await first.release();
  await Promise.all([local, remote]);
  expect(order[0]).toBe('nested');
  expect(order).toHaveLength(3);
  await holdElsewhere(theirs);
  expect((await client.inspect(lock.name)).owners).toHaveLength(1);
  expect(await lock.forceUnlock()).toBe(true);
  expect(await lock.isLocked()).toBe(false);
}

test('R6: no call notices a SCRIPT FLUSH at any moment', async () => {
  const options = { lockWatchdogTimeout: 1_500, commandTimeout: 3_000 };
  const [client, other] = [await clientAt(server.url, options), await clientAt(server.url, options)];
  const failures: unknown[] = [];
  client.events.on('renewFailed', (event) => failures.push(event));
  client.events.on('leaseLost', (event) => failures.push(event));
  const held = await holdElsewhere(client.getLock(freshName()));
  let flushes = 0;
  let over = false;
  const flushing = (async () => {
    for (; !over; flushes++) {
      await server.scriptFlush();
      await pause(flushes % 4);
    }
  })();
  for (let round = 0; round < 20; round++) await everything(client, other);
  over = true;
  await flushing;
  expect(flushes).toBeGreaterThan(50);
  expect(held.validFor()).toBeGreaterThan(0);
  await held.release();
  expect(failures).toEqual([]);
});

/** Begins a state of the server that answers scripts with an error; the result ends it. */
type State = (proxy: FaultProxy) => Promise<() => Promise<void>>;

const answering =
  (error: string): State =>
  async (proxy) => {
    const fault = proxy.answer({ command: ['EVALSHA', 'EVAL'], times: Infinity }, `-${error}\r\n`);
    return async () => fault.lift();
  };

const states: Readonly<Record<string, State>> = {
  // In a cluster a master is demoted by its replica; tests/topologies has that.
  ...(topology !== 'cluster' && {
    'READONLY, from a demoted master': async () => {
      await server.replicaOf({ host: '127.0.0.1', port: 1 });
      return () => server.replicaOf(undefined);
    },
  }),
  'BUSY, behind a script of another client': async () => {
    const ended = server.command('EVAL', 'while true do end', 0).catch(() => undefined);
    await until(async () => (await busyAnswer()) !== undefined, 'the server is busy');
    return async () => {
      await killScript();
      await ended;
    };
  },
  LOADING: answering('LOADING Redis is loading the dataset in memory'),
  MASTERDOWN: answering("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
  CLUSTERDOWN: answering('CLUSTERDOWN The cluster is down'),
  TRYAGAIN: answering('TRYAGAIN Multiple keys request during rehashing of slot'),
};

/** Uses a separate connection, because the connection of the bench is busy. */
async function asked(...words: [string, ...string[]]): Promise<unknown> {
  const { Redis } = await import('ioredis');
  const redis = new Redis({ ...server.address, enableReadyCheck: false, disableClientInfo: true, protocol: 2 });
  try {
    return await redis.call(...words);
  } finally {
    redis.disconnect();
  }
}

const busyAnswer = (): Promise<unknown> =>
  asked('GET', 'x').then(
    () => undefined,
    (error: unknown) => error,
  );

const killScript = (): Promise<unknown> => asked('SCRIPT', 'KILL');

describe('R6: a server that temporarily refuses to run scripts', () => {
  test.each(Object.entries(states))(
    'R6: %s: calls succeed when it ends, or report that Redis is unavailable',
    async (_, begin) => {
      const proxy = await FaultProxy.start(server.address);
      proxies.push(proxy);
      const client = await clientAt(proxy.url);
      const patient = await clientAt(proxy.url, { commandTimeout: 3_000 });
      const held = await holdElsewhere(client.getLock(freshName()), 20_000);
      const patientHold = await holdElsewhere(patient.getLock(freshName()), 20_000);
      const forced = await holdElsewhere(client.getLock(freshName()), 20_000);

      const end = await begin(proxy);
      const at = performance.now();
      // These outlast it, ...
      const through = [
        outcome(inFlow(async () => patient.getLock(freshName()).tryLock())),
        outcome(patientHold.extend(30_000)),
        outcome(patientHold.run(() => patient.getLock(patientHold.lockName).withLock(() => undefined))),
      ];
      // ... and these do not.
      const away = [
        outcome(inFlow(async () => client.getLock(freshName()).tryLock())),
        outcome(held.extend(30_000)),
        outcome(client.getLock(forced.lockName).forceUnlock()),
      ];
      const unavailable = 'ERR_LOCK_REDIS_UNAVAILABLE';
      expect(await Promise.all(away)).toEqual([unavailable, unavailable, unavailable]);
      expect(elapsed(at)).toBeLessThan(DEADLINE_MS + SLACK_MS);
      await end();
      const endedAt = performance.now();
      expect(await Promise.all(through)).toEqual(['ok', 'ok', 'ok']);
      await everything(client, patient);
      expect(elapsed(endedAt)).toBeLessThan(BACK_MS);
      expect(held.validFor()).toBeGreaterThan(0);
      await held.release();
      await patientHold.release();
      // Where an attempt was not answered it may have been forced open, and is taken for lost.
      expect(['ok', 'ERR_LOCK_LOST']).toContain(await outcome(forced.release()));
    },
  );
});

test('R19: a call that begins to wait while the server accepts no more clients is woken all the same', async () => {
  const full = await serverWith({});
  const options = { commandTimeout: 3_000 };
  const [client, other] = [await clientAt(full.url, options), await clientAt(full.url, options)];
  const name = freshName();
  // With all connections but the one that a wait is the first to want.
  await inFlow(() => client.getLock(freshName()).withLock(() => undefined));
  const held = await holdElsewhere(other.getLock(name), 20_000);
  const connected = /connected_clients:(\d+)/.exec(String(await full.command('INFO', 'clients')))?.[1];
  await full.command('CONFIG', 'SET', 'maxclients', Number(connected));
  const turnedAway = async (): Promise<number> =>
    Number(/rejected_connections:(\d+)/.exec(String(await full.command('INFO', 'stats')))?.[1]);
  const waiting = inFlow(() => client.getLock(name).acquire({ waitTime: 20_000 }));
  const inside = waiting.then(() => performance.now());
  let [since, came] = [0, 0];
  await until(async () => {
    since = performance.now();
    return (came = await turnedAway()) > 0;
  }, 'its subscriber is refused');
  // It comes less and less often, though each time it was connected.
  const pauses = [25, 50, 100, 200, 400, 500];
  await until(async () => (await turnedAway()) > pauses.length, 'it has come six times more');
  const atLeast = pauses.slice(came).reduce((sum, each) => sum + each, 0);
  // In a cluster, the server also refuses the connection that reads the slot map.
  if (topology !== 'cluster') expect(performance.now() - since).toBeGreaterThan(0.8 * atLeast);
  await full.command('CONFIG', 'SET', 'maxclients', 1_000);
  await until(async () => (await full.channels()).some((channel) => channel.includes(name)), 'it listens');
  const freeAt = performance.now();
  await held.release();
  expect((await inside) - freeAt).toBeLessThan(200 + SLACK_MS);
  await (await waiting).release();
});

test('R19: waiters reject with the error of a password that became wrong, although commands still pass', async () => {
  const changed = await serverWith({ users: [`app on >one ~* ${allChannels()} +@all`] });
  const url = changed.url.replace('//', '//app:one@');
  const [client, other] = [await clientAt(url), await clientAt(url)];
  const [first, second] = [
    await holdElsewhere(other.getLock(freshName())),
    await holdElsewhere(other.getLock(freshName())),
  ];
  const waits = (name: string): Promise<unknown> =>
    outcome(inFlow(async () => (await client.getLock(name).acquire({ waitTime: 20_000 })).release()));
  const listening = waits(first.lockName);
  await until(async () => (await changed.channels()).length === 1, 'it listens');
  const connected = async (): Promise<number | undefined> =>
    String(await changed.command('CLIENT', 'LIST')).match(/ user=app /g)?.length;
  const all = await connected();
  await changed.command('ACL', 'SETUSER', 'app', 'resetpass', '>two');
  await changed.killPubsub();
  const at = performance.now();
  expect(await Promise.all([listening, waits(second.lockName)])).toEqual(['ERR_LOCK_REFUSED', 'ERR_LOCK_REFUSED']);
  expect(elapsed(at)).toBeLessThan(1_000 + SLACK_MS);
  await changed.command('ACL', 'SETUSER', 'app', 'resetpass', '>one');
  await until(async () => (await connected()) === all, 'it has come again');
  const again = waits(first.lockName);
  await until(async () => (await changed.channels()).length === 1, 'it listens again');
  await first.release();
  expect(await again).toBe('ok');
  await second.release();
});

test('R13: a reply that arrived while the event loop was blocked for a command deadline is read before the time-out', async () => {
  const own = await serverWith({});
  const client = await clientAt(own.url, { commandTimeout: 300 });
  const lock = client.getLock(freshName());
  await inFlow(() => lock.withLock(() => undefined));
  const connections = async (): Promise<string[]> =>
    String(await own.command('CLIENT', 'LIST')).match(/^id=\d+/gm) ?? [];
  const before = await connections();
  await own.resetCommandStats();
  // All that is due now is written; nothing is read.
  const written = (): Promise<void> => new Promise((resume) => process.nextTick(resume));
  const taken = inFlow(() => lock.acquire());
  await written();
  block(400);
  const hold = await taken;
  const released = outcome(hold.release());
  await written();
  block(400);
  expect(await released).toBe('ok');
  // No request was repeated, and no connection was considered dead.
  expect((await own.commandStats()).get('evalsha')).toBe(2);
  expect(await connections()).toEqual(before);
});

test('a key that an ACL forbids does not lose the other locks of its renewal batch', async () => {
  const own = await serverWith({ users: [`app on >one ~* ${allChannels()} +@all`] });
  const lockWatchdogTimeout = 900;
  const client = await clientAt(own.url.replace('//', '//app:one@'), { lockWatchdogTimeout });
  const lost: string[] = [];
  client.events.on('leaseLost', ({ lockName }) => lost.push(lockName));
  const names = Array.from({ length: 21 }, (_, i) => `state:${i === 13 ? 'forbidden' : `allowed:${i}`}`);
  const holds = await Promise.all(names.map((name) => holdElsewhere(client.getLock(name))));
  // Another kind in a key refuses the script that reads it, too.
  await own.command('SET', 'state:allowed:7', 'no lock');
  await own.command('ACL', 'SETUSER', 'app', 'resetkeys', '~state:allowed:*');
  await until(() => lost.length === 2, 'both are lost');
  await pause(3 * lockWatchdogTimeout);
  expect(lost.sort()).toEqual(['state:allowed:7', 'state:forbidden']);
  for (const hold of holds) {
    expect(await outcome(hold.release())).toBe(lost.includes(hold.lockName) ? 'ERR_LOCK_LOST' : 'ok');
  }
  await own.command('DEL', 'state:allowed:7');
});

test.each(['getLock', 'getFencedLock', 'getNonReentrantLock'] as const)(
  '%s: at maxmemory an unlock frees the lock although a hand-over was planned',
  async (kind) => {
    const own = await serverWith({});
    const client = await clientAt(own.url);
    const lock = client[kind](freshName());
    const hold = await holdElsewhere(lock);
    const waiting = outcome(holdElsewhere(lock));
    await until(async () => (await own.channels()).length === 1, 'it waits');
    await answered(client); // a waiter with a pending try gets no hand-over
    await own.setMaxmemory(1);
    const released = outcome(hold.release());
    expect(await released).toBe('ok');
    expect(await own.keys()).not.toContain(lock.name);
    expect(await waiting).toBe('ERR_LOCK_REFUSED');
    await own.setMaxmemory(0);
    await (await holdElsewhere(lock)).release();
  },
);

const NESTING: Readonly<Record<string, (client: LockClient, name: string) => Lock>> = {
  'a lock': (client, name) => client.getLock(name),
  'a fenced lock': (client, name) => client.getFencedLock(name),
  'a fair lock': (client, name) => client.getFairLock(name),
  'a spin lock': (client, name) => client.getSpinLock(name),
  'a read lock': (client, name) => client.getReadWriteLock(name).readLock(),
  'a write lock': (client, name) => client.getReadWriteLock(name).writeLock(),
  'a group multi-lock': (client, name) => client.getMultiLock(name, ['a', 'b']),
};
test.each(Object.entries(NESTING))(
  '%s: at maxmemory a nested unlock succeeds, and the remaining holds are renewed',
  async (_, lockOf) => {
    const own = await serverWith({});
    const lockWatchdogTimeout = 900;
    const client = await clientAt(own.url, { lockWatchdogTimeout });
    const lost: unknown[] = [];
    client.events.on('leaseLost', (event) => lost.push(event));
    client.events.on('renewFailed', (event) => lost.push(event));
    const lock = lockOf(client, freshName());
    await inFlow(async () => {
      const outer = await lock.acquire();
      const inner = await lock.acquire();
      await own.setMaxmemory(1);
      expect(await outcome(inner.release())).toBe('ok');
      expect(await lock.getHoldCount()).toBe(1);
      await pause(2 * lockWatchdogTimeout); // the lease has ended unless it is renewed
      expect(outer.validFor()).toBeGreaterThan(0);
      expect(await outcome(outer.release())).toBe('ok');
    });
    expect(lost).toEqual([]);
    expect(await own.keys()).not.toContain(lock.name);
    await own.setMaxmemory(0);
  },
);

test('at maxmemory permits are released, also those of an acquire of unknown outcome', async () => {
  const own = await serverWith({});
  const proxy = await FaultProxy.start({ host: own.host, port: own.port });
  proxies.push(proxy);
  const client = await clientAt(proxy.url);
  const [plain, expirable] = [freshName(), freshName()];
  const semaphore = client.getSemaphore(plain);
  await semaphore.trySetPermits(5);
  await semaphore.acquire(5);
  const others = client.getPermitExpirableSemaphore(expirable);
  await others.trySetPermits(2);
  const permit = await others.acquirePermit();
  await own.setMaxmemory(1);
  expect(await outcome(semaphore.release(3))).toBe('ok');
  expect(await outcome(permit.release())).toBe('ok');
  expect(await own.command('GET', expirable)).toBe('2');
  expect(await outcome(semaphore.tryAcquire())).toBe('ERR_LOCK_REFUSED');
  await own.setMaxmemory(0);
  const cut = proxy.cutAfter({ sha: semaphores.acquire.script!.sha, times: Infinity });
  const taken = outcome(semaphore.tryAcquire(2));
  await cut.executed;
  await own.setMaxmemory(1);
  expect(await taken).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  await until(async () => (await own.command('GET', plain)) === '3', 'they are back');
  await own.setMaxmemory(0);
});

describe('R6: a server that permanently refuses commands', () => {
  test('R6: WAIT, INFO, CLIENT and SCRIPT: everything works', async () => {
    const { url } = await serverWith({ renameCommands: { WAIT: '', INFO: '', CLIENT: '', SCRIPT: '' } });
    const [client, other] = [await clientAt(url), await clientAt(url)];
    const events: unknown[] = [];
    client.events.on('clockUnavailable', (event) => events.push(event));
    client.events.on('connectionError', (event) => events.push(event));
    await everything(client, other);
    expect(events).toEqual([]);
  });

  test('R6: PUBSUB, so that other waiters are unknown: everything works', async () => {
    const { url } = await serverWith({ renameCommands: { PUBSUB: '' } });
    const options = { handOff: { maxSections: 1 } };
    await everything(await clientAt(url, options), await clientAt(url, options));
  });

  test('R6: TIME: everything works, and the client warns once that it cannot detect late requests', async () => {
    const { url } = await serverWith({ users: [`default on nopass ~* ${allChannels()} +@all -time`] });
    const client = createClient({ ...reach(url), commandTimeout: DEADLINE_MS });
    clients.push(client);
    let told = 0;
    client.events.on('clockUnavailable', () => (told += 1));
    await ready(client);
    await everything(client, await clientAt(url));
    expect(told).toBe(1);
  });
});

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { ClientOptions } from '../../src/options.js';
import type { FencedLock } from '../../src/locks/fenced-lock.js';
import { acquire, handOff } from '../../src/redis/scripts/lock.js';
import { contend } from '../support/clients/contention.js';
import { elapsed } from '../support/time/elapsed.js';
import { inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { SentinelSetup } from '../support/servers/sentinel.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { QUIET_MS, STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { expectNoOverlap } from '../support/serious.js';

const TIMEOUT_MS = 400;
let master: RedisServer;
let replica: RedisServer;
const clients: LockClient[] = [];

async function inStep(of = master): Promise<void> {
  await until(async () => String(await of.command('INFO', 'replication')).includes('state=online'), 'in step');
  // It may be there and not have said yet how far it is.
  await of.command('SET', 'in step', 1, 'PX', 1);
  await until(async () => (await of.command('WAIT', 1, 1_000)) === 1, 'it confirms');
}

beforeAll(async () => {
  master = await startServer();
  replica = await startServer({ replicaOf: master.address });
  await inStep();
});
afterAll(() => Promise.all([master.stop(), replica.stop()]));
afterEach(async () => {
  replica.resume();
  await inStep();
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  await until(async () => (await master.keys()).length === 0, 'no key is left');
  await until(async () => (await master.channels()).length === 0, 'no channel is left');
});

async function open(options: ClientOptions & { url?: string } = {}): Promise<LockClient> {
  const replicas = { acks: 1, timeout: TIMEOUT_MS };
  const client = createClient({ url: master.url, lockWatchdogTimeout: 1_500, replicas, ...options });
  clients.push(client);
  await client.ready();
  return client;
}

let names = 0;
const freshName = (label: string): string => `${label}:${(names += 1)}`;

test('a granted lock is on the replica', async () => {
  const client = await open();
  for (let i = 0; i < 50; i++) {
    const hold = await inFlow(() => client.getLock(freshName('confirmed')).acquire());
    expect(await replica.command('EXISTS', hold.lockName)).toBe(1);
    await hold.release();
  }
});

test('acquires of one turn share a WAIT, and flows exclude each other', async () => {
  const client = await open();
  await inFlow(() => client.getLock(freshName('warm')).withLock(() => undefined));
  await master.resetCommandStats();
  const holds = await inFlow(() =>
    Promise.all(Array.from({ length: 20 }, () => client.getLock(freshName('common')).acquire())),
  );
  expect((await master.commandStats()).get('wait')).toBeLessThanOrEqual(5); // their replies come in a few parts
  await Promise.all(holds.map((hold) => hold.release()));
  const locks = ['a', 'b', 'c'].map(freshName);
  const result = await contend({ clients: [client, await open()], names: locks, flows: 20, sections: 10 });
  expectNoOverlap(result.overlaps);
  expect(result.values).toEqual(result.entered);
});

test('R35: with a hanging replica 20 concurrent acquires fail within two time-outs, and the client releases them', async () => {
  const client = await open({ lockWatchdogTimeout: 60_000 });
  await inFlow(() => client.getLock(freshName('warm')).withLock(() => undefined));
  await replica.pause();
  const asked = performance.now();
  expect(await outcome(inFlow(() => client.getLock(freshName('alone')).tryLock()))).toBe('ERR_LOCK_NOT_REPLICATED');
  expect(performance.now() - asked).toBeGreaterThanOrEqual(TIMEOUT_MS - 1);
  expect(elapsed(asked)).toBeLessThan(TIMEOUT_MS + 1_000);
  const together = performance.now();
  const outcomes = await inFlow(() =>
    Promise.all(Array.from({ length: 20 }, () => outcome(client.getLock(freshName('many')).acquire()))),
  );
  expect(new Set(outcomes)).toEqual(new Set(['ERR_LOCK_NOT_REPLICATED']));
  expect(elapsed(together)).toBeLessThan(2 * TIMEOUT_MS + 1_000);
  await until(async () => (await master.keys()).length === 0, 'they are released');
});

test('R35: with a hanging replica held locks are renewed on time and released in one round trip', async () => {
  const timeout = 2_000;
  const client = await open({ lockWatchdogTimeout: 3_000, replicas: { acks: 1, timeout } });
  const lost: string[] = [];
  let renewals = 0;
  client.events.on('leaseLost', ({ lockName }) => lost.push(lockName));
  const holds = await inFlow(() =>
    Promise.all(Array.from({ length: 10 }, () => client.getLock(freshName('held')).acquire())),
  );
  await replica.pause();
  // Others keep the connection that waits busy all the time.
  let stop = false;
  const others = Array.from({ length: 5 }, () =>
    inFlow(async () => {
      while (!stop) await outcome(client.getLock(freshName('other')).tryLock());
    }),
  );
  client.events.on('renewed', () => (renewals += 1));
  await until(() => renewals >= 4 * holds.length || lost.length > 0, 'they are renewed for longer than a lease');
  expect(lost).toEqual([]);
  const took: number[] = [];
  for (const hold of holds) {
    const asked = performance.now();
    await hold.release();
    took.push(elapsed(asked));
  }
  // This machine may be busy now and then; behind a WAIT each would take its whole time.
  expect(took.filter((ms) => ms < timeout / 2).length).toBeGreaterThan(took.length / 2);
  stop = true;
  await Promise.all(others);
});

test.each(['granted', 'handed over'])(
  'R11: a hold that is %s and waits for its replica during a forceUnlock() of its client is lost from the start',
  async (how) => {
    const client = await open({ replicas: { acks: 1, timeout: 5_000 } });
    const lock = client.getLock(freshName('forced'));
    for (const { script } of [acquire, handOff]) await master.command('SCRIPT', 'LOAD', script!.source);
    const owners = async (): Promise<string[]> => (await master.command('HKEYS', lock.name)) as string[];
    const before = how === 'granted' ? undefined : await inFlow(async () => lock.acquire());
    const lost: unknown[] = [];
    client.events.on('leaseLost', (event) => lost.push(event));
    await replica.pause();
    const asked = inFlow(async () => lock.acquire());
    const released = before?.release();
    await until(async () => (await owners()).some((owner) => owner !== before?.owner), 'the master has it');
    expect(await lock.forceUnlock()).toBe(true);
    replica.resume();
    const hold = await asked;
    await released;
    expect(hold.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'forced' });
    expect(lost).toMatchObject([{ owner: hold.owner, reason: 'forced' }]);
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
  },
);

test('R35: a waiter gets an event, and acquires the lock when the replica is back', async () => {
  const client = await open();
  const name = freshName('handed');
  const hold = await inFlow(() => client.getLock(name).acquire());
  const waiting = inFlow(() => outcome(client.getLock(name).acquire({ waitTime: 10_000 })));
  await pause(QUIET_MS);
  await replica.pause();
  await hold.release();
  // A call with time left tries again.
  const undone = async (): Promise<boolean> => ((await master.commandStats()).get('wait') ?? 0) >= 2;
  await until(undone, 'no replica has confirmed its first grant');
  expect(await outcome(inFlow(() => client.getLock(freshName('late')).acquire({ waitTime: 1_000 })))).toBe(
    'ERR_LOCK_NOT_REPLICATED',
  );
  replica.resume();
  expect(await waiting).toBe('ok');
  await client.getLock(name).forceUnlock();
  await inStep();
  await until(async () => (await master.keys()).length === 0, 'it was released');
  await inFlow(() => client.getLock(name).withLock({ waitTime: 10_000 }, () => undefined));
});

test('R35: a call settles by its own deadline, also if the time for replicas is longer', async () => {
  const client = await open({ commandTimeout: 600, replicas: { acks: 1, timeout: 5_000 } });
  await inFlow(() => client.getLock(freshName('warm')).withLock(() => undefined));
  await replica.pause();
  const asked = performance.now();
  const error = await inFlow(() => client.getLock(freshName('late')).tryLock()).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE', outcome: 'unknown' });
  expect(elapsed(asked)).toBeLessThan(600 + 1_000);
  await until(async () => (await master.keys()).length === 0, 'it is released');
});

test('hazard 9: an unanswered WAIT is not replaced by one that does not cover its grant', async () => {
  const proxy = await FaultProxy.start(master.address);
  const client = await open({ url: proxy.url, commandTimeout: 3_000 });
  await inFlow(() => client.getLock(freshName('warm')).withLock(() => undefined));
  await replica.pause();
  // The grant was run; on another connection that has written nothing a WAIT is true at once.
  const cut = proxy.cutBefore({ command: 'WAIT' });
  expect(await outcome(inFlow(() => client.getLock(freshName('unconfirmed')).tryLock()))).toBe(
    'ERR_LOCK_NOT_REPLICATED',
  );
  expect(cut.count).toBe(1);
  await until(async () => (await master.keys()).length === 0, 'it was released');
  await client.close();
  await proxy.close();
});

test('nothing is granted if more acknowledgements are required than replicas exist', async () => {
  const client = await open({ replicas: { acks: 2, timeout: 2 * TIMEOUT_MS } });
  const error = await inFlow(() =>
    client
      .getLock(freshName('too-many'))
      .acquire()
      .catch((reason: unknown) => reason),
  );
  expect(error).toMatchObject({ code: 'ERR_LOCK_NOT_REPLICATED', acks: 2, confirmed: 1 });
});

test('R31: a grant confirmed by the replica survives its promotion', async () => {
  const client = await open();
  const hold = await inFlow(() => client.getLock(freshName('survives')).acquire({ leaseTime: 60_000 }));
  const promoted = await startServer({ replicaOf: master.address });
  try {
    await until(
      async () => String(await promoted.command('INFO', 'replication')).includes('link_status:up'),
      'in step',
    );
    await promoted.replicaOf(undefined);
    const stranger = createClient({ url: promoted.url });
    expect(await inFlow(() => stranger.getLock(hold.lockName).tryLock())).toBe(false);
    await stranger.close();
  } finally {
    await promoted.stop();
    await hold.release();
  }
});

test.each(['counter', 'clock'] as const)(
  'R31: a failover that loses the lock grants a second owner, the first learns of the loss, and tokens by %s',
  async (tokens) => {
    const [old, next] = [await startServer(), await startServer()];
    const [proxy, link] = [await FaultProxy.start(old.address), await FaultProxy.start(old.address, { opaque: true })];
    const terms = { lockWatchdogTimeout: 3_000, replicas: { acks: 0 } };
    const [first, second] = [createClient({ url: proxy.url, ...terms }), createClient({ url: next.url, ...terms })];
    clients.push(first, second);
    try {
      await next.replicaOf(link);
      await until(async () => String(await old.command('INFO', 'replication')).includes('state=online'), 'in step');
      const [lock, theirs] = [first, second].map((client) => client.getFencedLock('lost', { tokens })) as [
        FencedLock,
        FencedLock,
      ];
      await inFlow(() => lock.withLock(() => undefined)); // a token that both have
      await old.command('SET', 'in step', 1, 'PX', 1);
      await until(async () => (await old.command('WAIT', 1, 1_000)) === 1, 'it confirms');
      link.refuse('reset');
      link.cut();
      const hold = await inFlow(() => lock.acquire());
      await old.kill9();
      await next.replicaOf(undefined);
      const other = await inFlow(() => theirs.acquire({ waitTime: 0, leaseTime: 60_000 }));
      if (tokens === 'clock') expect(other.token).toBeGreaterThan(hold.token);
      else expect(other.token).toBe(hold.token);
      // By Redis's word, at its next renewal.
      proxy.retarget(next.address);
      await until(() => hold.signal.aborted, 'the first owner learns of the loss');
      expect(hold.validFor()).toBe(0);
      expect(hold.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST' });
      await outcome(hold.release());
      expect(other.validFor()).toBeGreaterThan(50_000);
      await other.release();
      // The counter is meant to last.
      await next.command('DEL', 'redisson_lock_token:{lost}');
    } finally {
      await Promise.all([proxy.close(), link.close(), old.stop(), next.stop()]);
    }
  },
);

test('R6: the client leaves a demoted master for the one that its name points to', async () => {
  const [old, next] = [await startServer(), await startServer()];
  const name = await FaultProxy.start(old.address);
  const client = createClient({ url: name.url, replicas: { acks: 0 } });
  try {
    const lock = client.getLock('renamed');
    await inFlow(() => lock.withLock(() => undefined));
    // Existing connections stay, and only a new connection reaches the new master.
    name.retarget(next.address);
    await old.replicaOf(next.address);
    const demoted = performance.now();
    while ((await outcome(inFlow(() => lock.withLock(() => undefined)))) !== 'ok') {
      expect(elapsed(demoted)).toBeLessThan(6_000);
      await pause(STARTED_MS);
    }
    expect((await next.commandStats()).get('hset')).toBeGreaterThan(0);
  } finally {
    await client.close();
    await name.close();
    await Promise.all([old.stop(), next.stop()]);
  }
}, 30_000);

describe('R6: no grant is reported if a server cannot confirm the state of its replicas', () => {
  const BUSY = '-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n';
  /** Begins with the call. */
  const states: Record<string, (server: RedisServer, proxy: FaultProxy, copy: RedisServer) => unknown> = {
    'demoted while it waits for them': async (server) => {
      await until(async () => /blocked_clients:1\b/.test(String(await server.command('INFO', 'clients'))), 'it waits');
      await server.replicaOf({ host: '127.0.0.1', port: 1 });
    },
    'without replicas, and demoted, when its replicas are counted': (server, proxy, copy) => {
      proxy.answer({ command: 'WAIT', times: Infinity }, ':0\r\n');
      const asked = proxy.holdCommand({ command: 'INFO' });
      const replaced = async (): Promise<void> => {
        copy.resume();
        await copy.replicaOf(undefined);
        await until(async () => !String(await server.command('INFO', 'replication')).includes('slave0'), 'it has left');
        await server.replicaOf(copy.address);
        asked.lift();
      };
      // A client with required acknowledgements does not count the replicas.
      asked.applied.then(replaced).catch(() => undefined);
    },
    'busy at WAIT': (_, proxy) => proxy.answer({ command: 'WAIT', times: Infinity }, BUSY),
    'busy when its replicas are counted': (_, proxy) => {
      proxy.answer({ command: 'WAIT', times: Infinity }, ':0\r\n');
      proxy.answer({ command: 'INFO', times: Infinity }, BUSY);
    },
  };

  test.each(
    Object.entries(states).flatMap(([state, begin]) =>
      [undefined, { acks: 1, timeout: 1_000 }].map((replicas) => [state, replicas, begin] as const),
    ),
  )(
    'R6: %s (replicas: %j)',
    async (_, replicas, begin) => {
      const setup = await SentinelSetup.start({ replicas: 1, sentinels: 1, downAfterMs: 60_000 });
      const [server, copy] = setup.servers as [RedisServer, RedisServer];
      await inStep(server);
      const proxy = await FaultProxy.start(server.address);
      const natMap = { [`${server.host}:${server.port}`]: { host: proxy.host, port: proxy.port } };
      const redis = setup.connection({ natMap });
      const client = createClient({ redis, commandTimeout: 1_500, replicas });
      try {
        await client.ready();
        await inFlow(() => client.getLock('warm').withLock(() => undefined));
        await copy.pause();
        const begun = begin(server, proxy, copy);
        const told = await outcome(inFlow(() => client.getLock('unconfirmed').acquire()));
        expect(['ERR_LOCK_REDIS_UNAVAILABLE', 'ERR_LOCK_NOT_REPLICATED']).toContain(told);
        await begun;
      } finally {
        await client.close();
        await proxy.close();
        await setup.stop();
      }
    },
    60_000,
  );
});

test('a replica that was added while the client was idle counts for the next acquire', async () => {
  const setup = await SentinelSetup.start({ replicas: 0, sentinels: 1, downAfterMs: 60_000 });
  const [server] = setup.servers as [RedisServer];
  const late = await startServer();
  const client = createClient({ redis: setup.connection(), commandTimeout: 1_500 });
  try {
    await client.ready();
    await inFlow(() => client.getLock('alone').withLock(() => undefined));
    await late.replicaOf(server.address);
    await inStep(server);
    // For so long a server is believed to have none.
    await pause(5_000);
    await late.pause();
    expect(await outcome(inFlow(() => client.getLock('accompanied').acquire()))).toBe('ERR_LOCK_NOT_REPLICATED');
    late.resume();
    await inFlow(() => client.getLock('accompanied').acquire());
    expect(await late.command('EXISTS', 'accompanied')).toBe(1);
  } finally {
    await client.close();
    await late.stop();
    await setup.stop();
  }
}, 60_000);

test('R6: SCRIPT FLUSH is invisible with replicas, too', async () => {
  const client = await open();
  for (let i = 0; i < 5; i++) {
    await master.scriptFlush();
    await inFlow(() => client.getLock(freshName('flushed')).withLock(() => undefined));
  }
});

test('an error says clearly that a server refuses the configured WAIT', async () => {
  const refusing = await startServer({ renameCommands: { WAIT: '' } });
  const client = createClient({ url: refusing.url, replicas: { acks: 1 } });
  try {
    const error = await inFlow(() =>
      client
        .getLock('refused')
        .acquire()
        .catch((reason: unknown) => reason),
    );
    expect(error).toMatchObject({ code: 'ERR_LOCK_REFUSED', message: expect.stringContaining('WAIT') });
    await until(async () => (await refusing.keys()).length === 0, 'it was released');
  } finally {
    await client.close();
    await refusing.stop();
  }
});

test('a kept lock is not entered without a request after the connection that granted it was cut', async () => {
  const client = await open({ lockWatchdogTimeout: 30_000, handOff: { local: 20_000, keep: 20_000 } });
  const lock = client.getLock(freshName('kept'));
  await inFlow(() => lock.withLock(() => undefined));
  const requests = async (): Promise<number> => {
    await master.resetCommandStats();
    await inFlow(() => lock.withLock(() => undefined));
    return (await master.commandStats()).get('evalsha') ?? 0;
  };
  expect(await requests()).toBe(0);
  // The releases take another connection, which stays.
  const connections = async (): Promise<(readonly [id: string, last: string])[]> =>
    [...String(await master.command('CLIENT', 'LIST')).matchAll(/^id=(\d+) .*name=holdfast:.* cmd=(\S+)/gm)].map(
      ([, id, last]) => [id!, last!],
    );
  const before = await connections();
  const [granted] = before.find(([, last]) => last === 'wait')!;
  await master.command('CLIENT', 'KILL', 'ID', granted);
  await until(async () => (await connections()).some(([id]) => !before.some(([old]) => old === id)), 'it is back');
  await client.ready();
  expect(await requests()).toBeGreaterThan(0);
});

test('the only replica behind Sentinel that hangs counts as none after 5 s, unless the user asks for it', async () => {
  const setup = await SentinelSetup.start({ replicas: 1, sentinels: 1, downAfterMs: 60_000 });
  const [server, copy] = setup.servers as [RedisServer, RedisServer];
  const [client, strict] = [undefined, { acks: 1 }].map((replicas) =>
    createClient({ redis: setup.connection(), ...(replicas && { replicas }) }),
  ) as [LockClient, LockClient];
  try {
    await inStep(server);
    await Promise.all([client.ready(), strict.ready()]);
    await inFlow(() => client.getLock('warm').withLock(() => undefined));
    await copy.pause();
    const wanted = outcome(inFlow(() => strict.getLock('strict').acquire({ waitTime: 8_000 })));
    expect(await outcome(inFlow(() => client.getLock('late').acquire({ waitTime: 20_000 })))).toBe('ok');
    expect(await outcome(inFlow(() => client.getLock('next').acquire()))).toBe('ok');
    expect(await wanted).toBe('ERR_LOCK_NOT_REPLICATED');
  } finally {
    copy.resume();
    await Promise.all([client, strict].map((each) => each.close({ releaseHolds: true })));
    await setup.stop();
  }
}, 60_000);

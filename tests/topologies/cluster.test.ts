import { expect, test } from '@jest/globals';
import { createClient } from '../../src/client/create-client.js';
import { keySlot } from '../../src/redis/cluster-slots.js';
import { lockChannel } from '../../src/redis/keys.js';
import { release } from '../../src/redis/scripts/lock.js';
import { nameOn } from '../support/servers/cluster.js';
import { ClusterClients } from '../support/clients/cluster-clients.js';
import { elapsed } from '../support/time/elapsed.js';
import { inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import { expectPassedOn } from '../support/clients/passed-on.js';
import { serverMajor } from '../support/servers/server-version.js';
import type { RedisServer } from '../support/servers/servers.js';
import { PARKED_MS, QUIET_MS, STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const bench = new ClusterClients();

test('R8: keys and channel of a lock are in one slot for every possible name, and other names are refused', async () => {
  const client = await bench.open();
  const waiter = await bench.open();
  for (const name of ['plain', 'a:b:c', 'with space', 'ünïcödé-鍵', '{tag}:x', 'x:{tag}', 'x{a}y{b}z', '{a}}']) {
    const hold = await inFlow(() => client.getLock(name).acquire());
    const waiting = inFlow(() => waiter.getLock(name).acquire({ waitTime: 5_000 }));
    await pause(QUIET_MS);
    await expectPassedOn(hold, waiting, 1_500);
  }
  for (const name of ['a{b', '{}x', 'a}b', '}{', 'x{}{a}', '}{a}']) {
    expect(() => client.getLock(name)).toThrow(expect.objectContaining({ code: 'ERR_LOCK_INVALID_ARGUMENT' }));
  }
});

test('R26: a fair lock keeps the order of two clients, each waiter woken on its own channel', async () => {
  const both = [await bench.open(), await bench.open()];
  for (const name of [bench.freshName('fair'), `{tag}:${bench.freshName('fair')}`]) {
    const hold = await inFlow(() => both[0]!.getFairLock(name).acquire());
    const order: number[] = [];
    const waits: Promise<void>[] = [];
    for (let at = 0; at < 6; at += 1) {
      waits.push(inFlow(() => both[at % 2]!.getFairLock(name).withLock(() => void order.push(at))));
      await until(async () => (await both[0]!.inspect(name)).queue.length === at + 1, 'it is queued');
    }
    await pause(PARKED_MS);
    const released = performance.now();
    await hold.release();
    await Promise.all(waits);
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
    // Without a message each would wait for the next sign of life.
    expect(elapsed(released)).toBeLessThan(2_500);
  }
});

test('R8: keys and channel of permits and latches are in one slot, waiters are woken, and a latch with a tag is refused', async () => {
  const client = await bench.open({ redis: bench.cluster.connection() });
  for (const name of ['permits', 'of:{42}:x']) {
    const semaphore = client.getSemaphore(name);
    await semaphore.trySetPermits(0);
    const taken = semaphore.acquire();
    await semaphore.release();
    await taken;
    await (await bench.cluster.shardOf(name)).master.command('DEL', name);
    const expirable = client.getPermitExpirableSemaphore(name);
    await expirable.trySetPermits(1);
    const permit = await expirable.acquirePermit({ leaseTime: 20_000 });
    const next = expirable.acquirePermit({ leaseTime: 200 });
    await permit.release();
    await next;
    await (await expirable.acquirePermit()).release();
    await (await bench.cluster.shardOf(name)).master.command('DEL', name);
  }
  const latch = client.getCountDownLatch('latch');
  await latch.trySetCount(1);
  const opened = latch.await(5_000);
  await latch.countDown();
  expect(await opened).toBe(true);
  // Hazard 40: its channel would be in another slot than its key.
  for (const name of ['{a}b', 'a{b}c']) {
    expect(() => client.getCountDownLatch(name)).toThrow(
      expect.objectContaining({ code: 'ERR_LOCK_INVALID_ARGUMENT' }),
    );
  }
});

test('R8: a keyPrefix is part of the name', async () => {
  const client = await bench.open({ redis: bench.cluster.connection({ keyPrefix: 'app:' }) });
  const hold = await inFlow(() => client.getLock('prefixed').acquire());
  expect((await bench.cluster.leftovers()).keys).toEqual(['app:prefixed']);
  await hold.release();
  const bad = await bench.open({ redis: bench.cluster.connection({ keyPrefix: '{app' }) });
  expect(() => bad.getLock('x')).toThrow(/tag/);
});

/** Redis 6.0 does not count them. */
async function errorCount(server: RedisServer, kind: string): Promise<number> {
  const info = String(await server.command('INFO', 'errorstats'));
  return Number(new RegExp(`errorstat_${kind}:count=(\\d+)`).exec(info)?.[1] ?? 0);
}

test('one command frees a lock of several possible owners while its slot migrates', async () => {
  const name = bench.freshName('either');
  const { master } = await bench.cluster.shardOf(name);
  await master.command('HSET', name, 'a', 1);
  const move = await bench.cluster.beginMove(keySlot(name), await bench.otherMaster(master));
  const args = ['PUBLISH', lockChannel(name), -1, '', '', 1, '', 0, 'a', 'b'];
  const released = master.command('EVAL', release.script!.source, 1, name, ...args);
  expect(await released).toBe(1);
  expect(await master.command('EXISTS', name).catch(String)).toContain('ASK');
  await move.finish();
}, 60_000);

test('MOVED and ASK are followed within the attempt', async () => {
  const client = await bench.open();
  const name = bench.freshName('redirected');
  const { master: from } = await bench.cluster.shardOf(name);
  const to = await bench.otherMaster(from);
  const lock = client.getLock(name);
  // Warm: both nodes know the scripts, so that nothing but the redirection is counted.
  for (const server of [from, to]) {
    const warm = client.getLock(await nameOn(bench.cluster, server, 'warm'));
    expect(await warm.tryLock()).toBe(true);
    await warm.unlock();
  }
  const move = await bench.cluster.beginMove(keySlot(name), to);
  await Promise.all([from, to].map((server) => server.resetCommandStats()));
  expect(await lock.tryLock()).toBe(true); // the key is not at the old node: ASK
  expect((await to.commandStats()).get('asking')).toBe(1);
  if (serverMajor() >= 7) expect(await errorCount(from, 'ASK')).toBe(1);
  expect(await bench.cluster.keysOn(to)).toEqual([name]);
  await move.finish();
  await to.resetCommandStats();
  await lock.unlock(); // the client's map is old: MOVED
  expect((await to.commandStats()).get('evalsha')).toBe(1);
  if (serverMajor() >= 7) expect(await errorCount(from, 'MOVED')).toBe(1);
  expect(await bench.cluster.keysOn(to)).toEqual([]);
});

test('R6: SCRIPT FLUSH on any node is invisible', async () => {
  const client = await bench.open();
  for (let i = 0; i < 20; i++) {
    for (const server of await bench.cluster.masters()) await server.scriptFlush();
    const lock = client.getLock(bench.freshName('flushed'));
    expect(await lock.tryLock()).toBe(true);
    await lock.unlock();
  }
});

test('R6: locks of unserved slots are unavailable, and calls succeed when a node serves them', async () => {
  const client = await bench.open({ commandTimeout: 1_500 });
  const name = bench.freshName('unserved');
  const slot = keySlot(name);
  const { master } = await bench.cluster.shardOfSlot(slot);
  for (const server of bench.cluster.servers) await server.command('CLUSTER', 'DELSLOTS', slot).catch(() => undefined);
  const asked = performance.now();
  expect(await outcome(client.getLock(name).tryLock())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  expect(elapsed(asked)).toBeLessThan(1_500 + 1_000);
  await master.command('CLUSTER', 'ADDSLOTS', slot);
  const served = performance.now();
  while ((await outcome(client.getLock(name).withLock(() => undefined))) !== 'ok') await pause(PARKED_MS);
  expect(elapsed(served)).toBeLessThan(6_000);
}, 60_000);

test('R12: locks of a migrating slot are renewed while some of them have moved', async () => {
  const client = await bench.open({ lockWatchdogTimeout: 3_000, commandTimeout: 600 });
  const tag = bench.freshName('split');
  const names = ['a', 'b', 'c'].map((part) => `{${tag}}:${part}`);
  const lost: unknown[] = [];
  client.events.on('leaseLost', (event) => lost.push(event));
  const holds = await Promise.all(names.map((name) => inFlow(() => client.getLock(name).acquire())));
  const { master } = await bench.cluster.shardOf(`{${tag}}`);
  const to = await bench.otherMaster(master);
  const move = await bench.cluster.beginMove(keySlot(`{${tag}}`), to);
  await master.command('MIGRATE', to.host, to.port, '', 0, 5_000, 'KEYS', names[0] as string);
  await pause(7_000);
  await move.finish();
  expect(lost).toEqual([]);
  for (const hold of holds) await hold.release();
}, 60_000);

test('R12: the groups of a multi-lock in several slots are each renewed', async () => {
  const client = await bench.open({ lockWatchdogTimeout: 1_500 });
  const groups = [bench.freshName('group'), bench.freshName('group'), bench.freshName('group')];
  expect(new Set(groups.map(keySlot)).size).toBe(3);
  const renewed = new Map(groups.map((group) => [group, 0]));
  client.events.on('renewed', ({ lockName }) => renewed.set(lockName, renewed.get(lockName)! + 1));
  const lock = client.getMultiLock(...groups.map((group) => client.getMultiLock(group, ['a', 'b'])));
  const hold = await inFlow(() => lock.acquire());
  await until(() => [...renewed.values()].every((times) => times >= 4), 'each was renewed for longer than one lease');
  expect(hold.signal.aborted).toBe(false);
  await hold.release();
}, 60_000);

test('R12: while one shard hangs, calls and renewals on the others continue', async () => {
  const client = await bench.open({ lockWatchdogTimeout: 3_000 });
  const [hung, ...healthy] = await bench.cluster.masters();
  const losses: string[] = [];
  client.events.on('leaseLost', ({ lockName }) => losses.push(lockName));
  const locked = await Promise.all(
    healthy.map(async (server) => client.getLock(await nameOn(bench.cluster, server, bench.freshName('healthy')))),
  );
  const lost = client.getLock(await nameOn(bench.cluster, hung as RedisServer, bench.freshName('hung')));
  const holds = await inFlow(() => Promise.all([...locked, lost].map((lock) => lock.acquire())));
  const others = await Promise.all(healthy.map((server) => nameOn(bench.cluster, server, bench.freshName('other'))));
  await (hung as RedisServer).pause();
  const paused = performance.now();
  let slowest = 0;
  while (performance.now() - paused < 4_000) {
    for (const name of others) {
      const asked = performance.now();
      expect(await inFlow(() => client.getLock(name).withLock(() => 'in'))).toBe('in');
      slowest = Math.max(slowest, elapsed(asked));
    }
    await pause(STARTED_MS);
  }
  expect(slowest).toBeLessThan(2_500); // of a command deadline of 3,000
  expect(losses.filter((name) => name !== lost.name)).toEqual([]);
  expect(holds.slice(0, -1).every((hold) => hold.validFor() > 0)).toBe(true);
  await Promise.all(holds.map((hold) => outcome(hold.release())));
}, 60_000);

test('R3: after a master hangs, calls succeed within 5 s of its replica taking over', async () => {
  const client = await bench.open();
  const name = bench.freshName('taken-over');
  const { master, replicas } = await bench.cluster.shardOf(name);
  const lock = client.getLock(name);
  await lock.withLock(() => undefined);
  await master.pause();
  const deadline = performance.now();
  await outcome(inFlow(() => lock.withLock({ waitTime: 500 }, () => undefined)));
  expect(elapsed(deadline)).toBeLessThan(500 + 4_000);
  await bench.cluster.promoted(replicas[0] as RedisServer);
  const promoted = performance.now();
  while ((await outcome(lock.withLock(() => undefined))) !== 'ok') await pause(STARTED_MS);
  expect(elapsed(promoted)).toBeLessThan(6_000);
}, 60_000);

test('R3: with a hanging master ready() waits for the replica that takes over', async () => {
  const [hung, ...others] = (await bench.cluster.masters()) as [RedisServer, ...RedisServer[]];
  await hung.pause();
  const client = createClient({ redis: bench.cluster.connection(), commandTimeout: 20_000 });
  try {
    const ready = outcome(client.ready());
    await until(
      async () => {
        const running = bench.cluster.servers.filter((server) => server !== hung);
        const roles = await Promise.all(running.map((server) => server.command('INFO', 'replication')));
        return roles.filter((role) => String(role).includes('role:master')).length > others.length;
      },
      'its replica has taken over',
      15_000,
    );
    const promoted = performance.now();
    expect(await ready).toBe('ok');
    expect(elapsed(promoted)).toBeLessThan(6_000);
  } finally {
    await client.close();
  }
}, 60_000);

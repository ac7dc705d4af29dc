import { describe, expect, test } from '@jest/globals';
import { Cluster } from 'ioredis';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { keySlot } from '../../src/redis/cluster-slots.js';
import { nameOn } from '../support/servers/cluster.js';
import { elapsed } from '../support/time/elapsed.js';
import { inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import { natMapOf } from '../support/proxy/nat-map.js';
import { ProxiedCluster } from '../support/proxy/proxied-cluster.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { serverMajor } from '../support/servers/server-version.js';
import type { RedisServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';

/*
 * The replies of a cluster that does not serve a slot, or redirects in a circle. Every node is behind a proxy that sees
 * all requests.
 */

const COUNTED_MS = 3_000;
const MOST_A_SECOND = 10;

const behind = new ProxiedCluster();

async function open(): Promise<LockClient> {
  const client = behind.open();
  await client.ready();
  return client;
}

/** All that was sent to each node so far, and the tries among it. */
const sent = (): { asked: number; tried: number }[] =>
  behind.proxies.map(({ log }) => ({
    asked: log.length,
    tried: log.filter(({ name }) => name.startsWith('EVAL')).length,
  }));

/**
 * Runs one waiter while the cluster replies so, until its grant. Returns the highest number of requests per second of a
 * node.
 */
async function waitsPolitely(
  name: string,
  begin: () => Promise<unknown>,
  end: () => Promise<unknown>,
): Promise<number> {
  const client = await open();
  await client.getLock(name).withLock(() => undefined); // it knows every node that it will ask
  await begin();
  const before = sent();
  const began = performance.now();
  const waiting = outcome(
    inFlow(async () => (await client.getLock(name).acquire({ waitTime: 30_000, leaseTime: 20_000 })).release()),
  );
  await pause(COUNTED_MS);
  const each = sent().map(({ asked, tried }, at) => ({
    asked: asked - before[at]!.asked,
    tried: tried - before[at]!.tried,
  }));
  const tries = each.reduce((sum, { tried }) => sum + tried, 0);
  const seconds = (performance.now() - began) / 1_000;
  expect(tries).toBeGreaterThan(0);
  expect(tries / seconds).toBeLessThanOrEqual(MOST_A_SECOND);
  await end();
  expect(await waiting).toBe('ok');
  return Math.max(...each.map(({ asked }) => asked)) / seconds;
}

describe('R22: a waiter sends at most 10 commands a second', () => {
  test('R22: while no node serves its slot: CLUSTERDOWN', async () => {
    const name = 'unserved';
    const slot = keySlot(name);
    const { master } = await behind.cluster.shardOfSlot(slot);
    const asked = await waitsPolitely(
      name,
      () => Promise.all(behind.cluster.servers.map((server) => server.command('CLUSTER', 'DELSLOTS', slot))),
      async () => {
        await master.command('CLUSTER', 'ADDSLOTS', slot);
        await behind.cluster.settled();
      },
    );
    // Most requests are reads of the slot map, one for all waiters.
    expect(asked).toBeLessThanOrEqual(MOST_A_SECOND);
  });

  test('R22: while its node redirects to a missing node: MOVED', async () => {
    const [named] = behind.cluster.servers as [RedisServer];
    const name = await nameOn(behind.cluster, named, 'astray');
    await waitsPolitely(
      name,
      async () =>
        behind.proxies[0]!.answer(
          { command: ['EVAL', 'EVALSHA'], contains: name, times: Infinity },
          `-MOVED ${keySlot(name)} 127.0.0.1:1\r\n`,
        ),
      async () => behind.proxies[0]!.lift(),
    );
  });

  test.each([2, 3])('R22: while %i nodes redirect in a circle: MOVED', async (nodes) => {
    const circle = behind.cluster.servers.slice(0, nodes);
    const name = await nameOn(behind.cluster, circle[0] as RedisServer, 'circle');
    const moved = circle.map((_, at): [FaultProxy, string] => {
      const { host, port } = circle[(at + 1) % nodes] as RedisServer;
      return [behind.proxies[at] as FaultProxy, `-MOVED ${keySlot(name)} ${host}:${port}\r\n`];
    });
    await waitsPolitely(
      name,
      async () => {
        for (const [proxy, answer] of moved)
          proxy.answer({ command: ['EVAL', 'EVALSHA'], contains: name, times: Infinity }, answer);
      },
      async () => {
        for (const proxy of behind.proxies) proxy.lift();
      },
    );
  });
});

test('a node that is busy at the check for sharded channels is checked again', async () => {
  if (serverMajor() < 7) return; // none of them can
  // Each of the three gets a request at once.
  const busy = behind.proxies.map((proxy) =>
    proxy.answer({ command: 'PUBSUB' }, '-BUSY Redis is busy running a script.\r\n'),
  );
  const addresses = behind.proxies.map(({ host, port }) => ({ host, port }));
  const natMap = natMapOf(behind.cluster.servers, behind.proxies);
  await using client = createClient({ redis: new Cluster(addresses, { lazyConnect: true, natMap }) });
  await client.ready();
  expect(busy.map(({ count }) => count)).toEqual([1, 1, 1]);
  const hold = await inFlow(() => client.getLock('by slot').acquire());
  const other = await open();
  const waiting = inFlow(async () => (await other.getLock('by slot').acquire({ waitTime: 10_000 })).release());
  const { master } = await behind.cluster.shardOf('by slot');
  await until(
    async () => ((await master.command('PUBSUB', 'SHARDCHANNELS')) as string[]).length === 1,
    'the other one listens for messages by slot',
  );
  const released = performance.now();
  await hold.release();
  await waiting;
  expect(elapsed(released)).toBeLessThan(2_000); // of a lease of 30 s
});

test('R18: a waiter does not wait for the end of the lease when its slot moves to a node without subscriptions', async () => {
  const { cluster, proxies } = behind;
  const [client, other] = [await open(), await open()];
  const name = 'unheard';
  const { master } = await cluster.shardOf(name);
  const to = cluster.servers.find((server) => server !== master)!;
  const known = await nameOn(cluster, to, 'known');
  for (const each of [client, other]) await inFlow(() => each.getLock(known).withLock(() => undefined));
  const hold = await inFlow(() => other.getLock(name).acquire({ leaseTime: 60_000 }));
  const waiting = inFlow(async () => {
    const entered = await client.getLock(name).acquire({ leaseTime: 20_000 });
    const at = performance.now();
    await entered.release();
    return at;
  });
  await until(async () => (await cluster.leftovers()).channels.length > 0, 'the waiter is subscribed');
  // The connections for commands are there.
  const refused = proxies[cluster.servers.indexOf(to)]!.refuse('reset');
  await cluster.moveSlot(keySlot(name), to);
  await refused.appliedTimes(1);
  await hold.release();
  const freeAt = performance.now();
  expect(elapsed(freeAt, await waiting)).toBeLessThan(3_000);
}, 60_000);

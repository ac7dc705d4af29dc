import { expect, test } from '@jest/globals';
import { nameOn } from '../support/servers/cluster.js';
import { elapsed } from '../support/time/elapsed.js';
import { inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import { ProxiedCluster } from '../support/proxy/proxied-cluster.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import type { RedisServer } from '../support/servers/servers.js';
import { LONG_QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const DEADLINE_MS = 900;
const SLACK_MS = 1_000;

const behind = new ProxiedCluster();

test.each([
  ['whose handshake is not answered', (proxy: FaultProxy) => proxy.stall({ direction: 'to-client' })],
  ['that receives no request in time', (proxy: FaultProxy) => proxy.stall({ direction: 'to-server' })],
  ['that accepts no connection', (proxy: FaultProxy) => proxy.refuse('reset')],
])('R2: no request of a call at a node %s takes effect after the rejection', async (_, away) => {
  const { cluster, proxies } = behind;
  const node = cluster.servers[1] as RedisServer;
  const proxy = proxies[1]!;
  const stalled = away(proxy);
  // The map comes from another node; to this one the client has no connection yet.
  const client = behind.open({ commandTimeout: DEADLINE_MS, lockWatchdogTimeout: 1_500 });
  const name = await nameOn(cluster, node, 'unconnected');
  const log = await node.monitor();
  const called = performance.now();
  const settled = await Promise.all([
    outcome(inFlow(() => client.getLock(name).acquire({ waitTime: 0 }))),
    outcome(inFlow(() => client.getLock(name).tryLock())),
  ]);
  expect(elapsed(called)).toBeLessThan(2 * DEADLINE_MS + SLACK_MS);
  expect(settled).toEqual(['ERR_LOCK_REDIS_UNAVAILABLE', 'ERR_LOCK_REDIS_UNAVAILABLE']);
  const rejected = (await log.settle()).length;
  stalled.lift();
  // The connection comes about now, and all that was kept for it is delivered or given up.
  await until(async () => (await outcome(client.getLock(name).isLocked())) === 'ok', 'the node is reached');
  await pause(LONG_QUIET_MS);
  const changed = (await log.settle())
    .slice(rejected)
    .filter(({ source, command, args }) => source === 'lua' && command === 'HSET' && args[0] === name);
  expect(changed).toEqual([]);
  expect(await node.keys()).toEqual([]);
  log.stop();
});

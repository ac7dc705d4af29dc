import { expect, test } from '@jest/globals';
import { keySlot } from '../../src/redis/cluster-slots.js';
import { ClusterClients } from '../support/clients/cluster-clients.js';
import { contend } from '../support/clients/contention.js';
import { pause } from '../support/clients/lock-clients.js';
import type { RedisServer } from '../support/servers/servers.js';
import { PARKED_MS, STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { expectNoOverlap } from '../support/serious.js';

const bench = new ClusterClients();

test('100 flows on 30 locks while slots move and masters change: no overlap, and no flow waits for 10 s', async () => {
  const all = [await bench.open({ lockWatchdogTimeout: 10_000 }), await bench.open({ lockWatchdogTimeout: 10_000 })];
  const locks = Array.from({ length: 30 }, () => bench.freshName('nemesis'));
  let moves = 0;
  let failovers = 0;
  const enough = (): boolean => failovers >= 2 && moves >= 10;
  let over = false;
  const nemesis = (async () => {
    while (!enough()) {
      for (let i = 0; i < 5; i++) {
        const slot = keySlot(locks[Math.floor(Math.random() * locks.length)] as string);
        const { master } = await bench.cluster.shardOfSlot(slot);
        const move = await bench.cluster.beginMove(slot, await bench.otherMaster(master));
        await pause(PARKED_MS);
        await move.moveKeys();
        await pause(STARTED_MS);
        await move.finish();
        moves += 1;
      }
      const masters = await bench.cluster.masters();
      await bench.cluster.failover(masters[failovers % masters.length] as RedisServer);
      await bench.cluster.settled();
      failovers += 1;
    }
  })().finally(() => (over = true));
  const more = (): boolean => !over;
  const load = contend({ clients: all, names: locks, flows: 100, sections: 40, holdMs: 5, more });
  const [result] = await Promise.all([load, nemesis]);
  expectNoOverlap(result.overlaps);
  expect(result.values).toEqual(result.entered);
  expect(result.longestWaitMs).toBeLessThan(10_000);
  expect(result.failures).toBe(0);
}, 120_000);

test('a master is added under load, gets slots and leaves: no overlap, and no flow waits for 10 s', async () => {
  const all = [await bench.open({ lockWatchdogTimeout: 10_000 }), await bench.open({ lockWatchdogTimeout: 10_000 })];
  const locks = Array.from({ length: 12 }, () => bench.freshName('guest'));
  const slots = locks.map(keySlot);
  let over = false;
  const load = contend({ clients: all, names: locks, flows: 48, sections: 1, holdMs: 5, more: () => !over });
  const changes = (async () => {
    const guest = await bench.cluster.addMaster();
    for (const slot of slots) await bench.cluster.moveSlot(slot, guest);
    await guest.resetCommandStats();
    await until(async () => ((await guest.commandStats()).get('evalsha') ?? 0) > 200, 'locks are taken at the guest');
    const host = await bench.otherMaster(guest);
    for (const slot of slots) {
      const move = await bench.cluster.beginMove(slot, host);
      await pause(STARTED_MS);
      await move.moveKeys();
      await pause(STARTED_MS);
      await move.finish();
    }
    await bench.cluster.removeNode(guest);
    await host.resetCommandStats();
    await until(async () => ((await host.commandStats()).get('evalsha') ?? 0) > 200, 'locks are taken without it');
  })().finally(() => (over = true));
  const [result] = await Promise.all([load, changes]);
  expectNoOverlap(result.overlaps);
  expect(result).toMatchObject({ told: 0, failures: 0, values: result.entered });
  expect(Math.min(...result.entered)).toBeGreaterThan(0);
  expect(result.longestWaitMs).toBeLessThan(10_000);
}, 120_000);

import { describe, expect, test } from '@jest/globals';
import type { Hold } from '../../src/holding/hold.js';
import { keySlot } from '../../src/redis/cluster-slots.js';
import { ClusterClients } from '../support/clients/cluster-clients.js';
import { contend } from '../support/clients/contention.js';
import { elapsed } from '../support/time/elapsed.js';
import { inFlow, pause } from '../support/clients/lock-clients.js';
import { expectPassedOn } from '../support/clients/passed-on.js';
import { serverMajor } from '../support/servers/server-version.js';
import type { RedisServer } from '../support/servers/servers.js';
import { LONG_QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { expectNoOverlap } from '../support/serious.js';

const bench = new ClusterClients();

const KINDS: [string, boolean | 'auto'][] = [
  ['classic', false],
  ['detected', 'auto'],
];
if (serverMajor() >= 7) KINDS.push(['sharded', true]);

describe.each(KINDS)('%s messages', (_kind, shardedSubscriptions) => {
  test('flows of two clients exclude each other, and a release wakes across nodes', async () => {
    const both = [await bench.open({ shardedSubscriptions }), await bench.open({ shardedSubscriptions })];
    const locks = Array.from({ length: 6 }, () => bench.freshName('contended'));
    const result = await contend({ clients: both, names: locks, flows: 24, sections: 10 });
    expectNoOverlap(result.overlaps);
    expect(result.values).toEqual(result.entered);
    expect(result.entered.reduce((a, b) => a + b)).toBe(240);
    expect(result.longestWaitMs).toBeLessThan(10_000);
  });

  test('R33: a waiter of another client acquires within 3 s beside 50 local waiters, once in 40 sections if sharded', async () => {
    const [crowd, lone] = [await bench.open({ shardedSubscriptions }), await bench.open({ shardedSubscriptions })];
    const name = bench.freshName('fair-share');
    let sections = 0;
    let stop = false;
    const workers = Array.from({ length: 50 }, () =>
      inFlow(async () => {
        while (!stop) {
          await crowd.getLock(name).withLock(() => pause(1));
          sections += 1;
        }
      }),
    );
    await until(() => sections > 100, 'the crowd is at work');
    for (let i = 0; i < 5; i++) {
      const before = sections;
      const asked = performance.now();
      const hold = await inFlow(() => lone.getLock(name).acquire({ waitTime: 10_000 }));
      expect(elapsed(asked)).toBeLessThan(4_000);
      // Before its first reply, one series of local sections may end and another begin.
      if (shardedSubscriptions !== false && serverMajor() >= 7) expect(sections - before).toBeLessThanOrEqual(2 * 40);
      await hold.release();
    }
    stop = true;
    await Promise.all(workers);
  });

  test('a subscription follows its slot to another node, and the waiter acquires within 1 s of the release', async () => {
    const [holder, waiter] = [await bench.open({ shardedSubscriptions }), await bench.open({ shardedSubscriptions })];
    const name = bench.freshName('moving');
    const { master } = await bench.cluster.shardOf(name);
    const hold = await inFlow(() => holder.getLock(name).acquire({ leaseTime: 60_000 }));
    const waiting = inFlow(() => waiter.getLock(name).acquire({ waitTime: 20_000 }));
    await pause(LONG_QUIET_MS);
    await bench.cluster.moveSlot(keySlot(name), await bench.otherMaster(master));
    await pause(1_000);
    await expectPassedOn(hold, waiting, 2_000);
  }, 60_000);

  test('locks of a migrating slot are acquired, nested, handed over and released, and wake their waiters', async () => {
    const [holder, waiter] = [await bench.open({ shardedSubscriptions }), await bench.open({ shardedSubscriptions })];
    const name = bench.freshName('on-its-way');
    const { master } = await bench.cluster.shardOf(name);
    const lock = holder.getLock(name);
    const passedOn: boolean[] = [];
    holder.events.on('acquired', ({ handedOff }) => handedOff && passedOn.push(handedOff));
    const section = async (limitMs: number, held = 0, terms = {}): Promise<void> => {
      const asked = performance.now();
      await lock.withLock(terms, async () => {
        await lock.withLock(async () => expect(await lock.getHoldCount()).toBe(held + 2));
        expect(await lock.getHoldCount()).toBe(held + 1);
      });
      expect(elapsed(asked)).toBeLessThan(limitMs);
    };
    const woken = async (hold: Hold): Promise<void> => {
      // As long as the hold's, or it is no heir and may come after the other client.
      const local = inFlow(() => section(5_000, 0, { leaseTime: 60_000 }));
      const remote = inFlow(() => waiter.getLock(name).acquire({ waitTime: 20_000 }));
      await pause(200);
      const released = performance.now();
      await hold.release();
      await local;
      const second = await remote;
      expect(elapsed(released)).toBeLessThan(2_000);
      await second.release();
    };
    await inFlow(() => section(2_000)); // the connections are open
    const here = await inFlow(() => lock.acquire({ leaseTime: 60_000 }));
    const move = await bench.cluster.beginMove(keySlot(name), await bench.otherMaster(master));
    // The key is still at the old node; then a new one appears at the new node.
    await here.run(() => section(2_000, 1));
    await woken(here);
    await inFlow(() => section(2_000));
    await woken(await inFlow(() => lock.acquire({ leaseTime: 60_000 })));
    expect(passedOn).toEqual([true, true]);
    await move.finish();
    await inFlow(() => section(2_000));
  }, 60_000);

  test('a subscription follows its slot when the master dies', async () => {
    const [holder, waiter] = [await bench.open({ shardedSubscriptions }), await bench.open({ shardedSubscriptions })];
    const name = bench.freshName('dying');
    const { master, replicas } = await bench.cluster.shardOf(name);
    const hold = await inFlow(() => holder.getLock(name).acquire({ leaseTime: 60_000 }));
    const waiting = inFlow(() => waiter.getLock(name).acquire({ waitTime: 30_000 }));
    await pause(LONG_QUIET_MS);
    await master.command('WAIT', 1, 1_000);
    await master.kill9();
    await bench.cluster.promoted(replicas[0] as RedisServer);
    await pause(1_500);
    await expectPassedOn(hold, waiting, 2_000);
  }, 60_000);
});

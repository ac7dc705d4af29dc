import { afterEach, expect, test } from '@jest/globals';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { LockClient } from '../../src/client/create-client.js';
import { YIELD_MS } from '../../src/timing.js';
import { elapsed } from '../support/time/elapsed.js';
import { FakeClock } from '../support/time/fake-clock.js';
import { closeClients, holdElsewhere, inFlow, openClient, openProxy, pause } from '../support/clients/lock-clients.js';
import { parked } from '../support/clients/parked.js';
import { Random } from '../support/random.js';
import { reaped, reapWithUs } from '../support/processes/reaper.js';
import { freshName, testRedisUrl } from '../support/redis.js';

const CROWD = fileURLToPath(new URL('./fixtures/crowd.mjs', import.meta.url));
const SLACK_MS = 250;
const CROWD_MS = 2_000;

afterEach(() => closeClients());

test.each([0, 20])(
  'R33: a waiter beside a process of 50 waiters that hold the lock for %i ms acquires it in time',
  async (holdMs) => {
    const random = new Random(`R33 ${holdMs}`);
    const client = await openClient();
    const lock = client.getLock(freshName());
    const crowd = fork(CROWD, [testRedisUrl(), lock.name, String(holdMs), String(CROWD_MS)], { execArgv: [] });
    reapWithUs(crowd.pid!);
    const exited = once(crowd, 'exit');
    try {
      await once(crowd, 'message');
      const entered = once(crowd, 'message') as Promise<[number[]]>;
      const endsAt = performance.now() + CROWD_MS - 500;
      await pause(200);
      const waits: { from: number; until: number }[] = [];
      while (performance.now() < endsAt) {
        const from = performance.now();
        await inFlow(async () => {
          const hold = await lock.acquire();
          waits.push({ from, until: performance.now() });
          await hold.release();
        });
        await pause(random.below(30));
      }
      const [sections] = await entered;
      const begun = sections.map((at) => at - performance.timeOrigin);
      expect(sections.length).toBeGreaterThan(50);
      expect(waits.length).toBeGreaterThan(3);
      expect(Math.max(...waits.map(({ from, until }) => elapsed(from, until)))).toBeLessThan(1_000 + SLACK_MS);
      // Except sections in which this process had to wait for a processor. Most of these are recognizable.
      const between = waits
        .filter(({ from, until }) => elapsed(from, until) === until - from)
        .map(({ from, until }) => begun.filter((at) => at > from && at < until).length);
      const mostly = between.sort((a, b) => a - b).slice(0, Math.ceil(0.9 * between.length));
      expect(Math.max(...mostly)).toBeLessThanOrEqual(40);
    } finally {
      crowd.kill('SIGKILL');
      await exited;
      reaped(crowd.pid!);
    }
  },
);

test('R33: a waiter of the releasing client leaves other clients time to try first', async () => {
  const clock = new FakeClock(); // time does not pass there, unless the test says so
  const [{ proxy: ourWay, url: by }, { proxy, url }] = [await openProxy(), await openProxy()];
  const [here, there] = [await openClient({ url: by, clock, handOff: false }), await openClient({ url })];
  const name = freshName();
  const hold = await holdElsewhere(here.getLock(name));
  const order: string[] = [];
  const enter = (client: LockClient, label: string): Promise<void> =>
    inFlow(() => client.getLock(name).withLock(() => void order.push(label)));
  const ours = enter(here, 'here');
  await parked(ourWay, here, name);
  const theirs = enter(there, 'there');
  await parked(proxy, there, name);
  const late = proxy.stall({ kind: 'subscriber', direction: 'to-client' });
  await hold.release();
  // It uses the same connection as an earlier try, so the try would have arrived before.
  expect(await inFlow(() => here.getLock(name).isLocked())).toBe(false);
  expect(order).toEqual([]);
  late.lift();
  await theirs;
  expect(order).toEqual(['there']);
  await clock.advance(YIELD_MS);
  await ours;
  expect(order).toEqual(['there', 'here']);
});

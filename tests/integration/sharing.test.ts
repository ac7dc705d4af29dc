import { afterEach, expect, test } from '@jest/globals';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { closeClients, inFlow, openClient, pause } from '../support/lock-clients.js';
import { Random } from '../support/random.js';
import { reaped, reapWithUs } from '../support/reaper.js';
import { expectNothingLeft, freshName, testRedisUrl } from '../support/redis.js';

const CROWD = fileURLToPath(new URL('./fixtures/crowd.mjs', import.meta.url));
const SLACK_MS = 250;
const CROWD_MS = 2_000;

afterEach(async () => {
  await closeClients();
  await expectNothingLeft();
});

const stamp = (): number => performance.timeOrigin + performance.now();

test.each([0, 20])(
  'R33: beside a process of 50 waiters that hold it for %i ms, a waiter gets in in time',
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
      const endsAt = stamp() + CROWD_MS - 500;
      await pause(200);
      const waits: { from: number; until: number }[] = [];
      while (stamp() < endsAt) {
        const from = stamp();
        await inFlow(async () => {
          const hold = await lock.acquire();
          waits.push({ from, until: stamp() });
          await hold.release();
        });
        await pause(random.below(30));
      }
      const [sections] = await entered;
      const between = waits.map(({ from, until }) => sections.filter((at) => at > from && at < until).length);
      expect(sections.length).toBeGreaterThan(50);
      expect(waits.length).toBeGreaterThan(3);
      expect(Math.max(...waits.map(({ from, until }) => until - from))).toBeLessThan(1_000 + SLACK_MS);
      // But for those in which this process had to wait for a processor.
      const mostly = between.sort((a, b) => a - b).slice(0, Math.ceil(0.9 * between.length));
      expect(Math.max(...mostly)).toBeLessThanOrEqual(40);
    } finally {
      crowd.kill('SIGKILL');
      await exited;
      reaped(crowd.pid!);
    }
  },
);

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Queue, QueueEvents, Worker } from 'bullmq';
import type { LockClient } from '../../src/client/create-client.js';
import { currentHolds } from '../../src/ownership/flow.js';
import { LockContext, lockContext } from '../../src/ownership/lock-context.js';
import { reschedule } from '../unit/ownership/rescheduling.js';
import { scenarioSets } from '../unit/ownership/scenarios/index.js';
import { Section, exclusive, nested, outcome, type OwnershipAdapter } from '../unit/ownership/scenarios/scenario.js';
import { closeClients, openClient, pause } from '../support/clients/lock-clients.js';
import { admin, expectNothingLeft, freshName, testRedisUrl } from '../support/redis.js';
import { serverMajor } from '../support/servers/server-version.js';
import { until } from '../support/time/until.js';

let client: LockClient;
let adapter: OwnershipAdapter;

// In a separate block, so that it ends before the connection of the file.
describe('the flow inside each hold', () => {
  beforeAll(async () => {
    client = await openClient();
    adapter = { newLock: (name) => client.getLock(name), lockContext };
  });
  afterAll(async () => {
    await closeClients();
    await expectNothingLeft();
  });

  describe.each(Object.entries(scenarioSets))('on real locks: %s', (_, set) => {
    test.each(set.map((scenario) => [scenario.name, scenario] as const))('R24: %s', async (name, scenario) => {
      expect(await scenario.run(adapter, freshName(name))).toEqual(scenario.expected);
      expect(currentHolds()).toEqual([]);
      expect(client.holds()).toEqual([]);
    });
  });

  // It wants Redis 6.2 at least.
  if (serverMajor() >= 7)
    describe('BullMQ', () => {
      const address = (): { host: string; port: number; db: number; maxRetriesPerRequest: null } => {
        const { hostname, port, pathname } = new URL(testRedisUrl());
        return { host: hostname, port: Number(port), db: Number(pathname.slice(1)), maxRetriesPerRequest: null };
      };

      /** Runs a number of jobs with a worker of concurrency 3 and returns their results. */
      async function jobs(
        makeWorker: (start: () => Worker) => Promise<Worker> | Worker,
        work: () => Promise<unknown>,
      ): Promise<unknown[]> {
        const name = freshName('queue').replaceAll(':', '-');
        const connection = address();
        const queue = new Queue(name, { connection });
        const events = new QueueEvents(name, { connection });
        await events.waitUntilReady();
        const worker = await makeWorker(() => new Worker(name, work, { connection, concurrency: 3 }));
        const added = await queue.addBulk(Array.from({ length: 9 }, (_, i) => ({ name: `job ${i}`, data: {} })));
        try {
          return await Promise.all(added.map((job): Promise<unknown> => job.waitUntilFinished(events)));
        } finally {
          await worker.close();
          await events.close();
          await queue.obliterate({ force: true });
          await queue.close();
        }
      }

      test('R24: jobs exclude each other and re-enter', async () => {
        const lock = client.getLock(freshName());
        const section = new Section();
        const answers = await jobs(
          (start) => start(),
          async () => {
            if (!(await lock.tryLock(10_000))) return 'busy';
            try {
              await section.work(2);
              return (await nested(client.getLock(lock.name))) ? 'nested' : 'nested call refused';
            } finally {
              await lock.unlock();
            }
          },
        );
        expect(answers).toEqual(Array.from({ length: 9 }, () => 'nested'));
        expect(section.facts()).toEqual(exclusive(9));
        expect(await lock.isLocked()).toBe(false);
      });

      test('R24: the jobs of a worker created through lockContext.run are outside of the hold around its creation', async () => {
        const lock = client.getLock(freshName());
        const work = (): Promise<boolean> => nested(client.getLock(lock.name));
        await lock.lock();
        const outside = await jobs((start) => lockContext.run(start), work);
        await lock.unlock();
        expect(new Set(outside)).toEqual(new Set([false]));
      });
    });

  test('R24: twelve branches at random moments inside a hold, and siblings outside, never overlap', async () => {
    const lock = client.getLock(freshName());
    const section = new Section();
    const branch = async (at: number): Promise<void> => {
      await pause((at * 5) % 7);
      await lock.withLock({ leaseTime: 10_000 }, async () => {
        await section.work(at % 3);
        await Promise.all([0, 1].map(() => lock.withLock(() => undefined)));
      });
    };
    const siblings = Array.from({ length: 6 }, (_, at) => lockContext.run(() => branch(at)));
    await lock.lock();
    await Promise.all(Array.from({ length: 12 }, (_, at) => branch(at)));
    await lock.unlock();
    await Promise.all(siblings);
    expect(section.facts()).toEqual(exclusive(18));
    expect(await admin().exists(lock.name)).toBe(0);
  });

  test('R24: an explicit owner unlocks from another async stack', async () => {
    const context = new LockContext();
    const name = freshName();
    const lock = client.getLock(name, { context });
    await lockContext.run(() => lock.lock());
    expect(await client.getLock(name).tryLock()).toBe(false);
    expect(await lock.tryLock()).toBe(true);
    expect(await lock.getHoldCount()).toBe(2);
    expect(await client.getLock(name).isHeldBy(context)).toBe(true);
    const done = new Promise((resolve) => setTimeout(() => resolve(outcome(lock.unlock())), 5));
    expect(await done).toBe('ok');
    expect(await lockContext.run(() => outcome(client.getLock(name).unlock({ context })))).toBe('ok');
    expect(await outcome(lock.unlock())).toBe('ERR_LOCK_NOT_OWNER');
    expect(await admin().exists(name)).toBe(0);
  });

  test('R24: a job that re-schedules itself from its section does not grow the store or the heap', async () => {
    const result = await reschedule(client.getLock(freshName()), () => currentHolds().length, 600);
    expect(result).toMatchObject({ rounds: 600, longestStore: 1 });
    expect(result.reachable).toBeLessThan(10);
    expect(result.heapGrowthBytes).toBeLessThan(2_000_000);
  });

  test('R25: unlock() by a stranger says where the lock is held and what to do, and the holder keeps it', async () => {
    const lock = client.getLock(freshName());
    const hold = await lockContext.run(async () => ({ hold: await lock.acquire() }));
    await expect(lock.unlock()).rejects.toThrow(
      new RegExp(
        `does not hold lock "${lock.name}".*held in this process since ownership\\.test\\.ts:\\d+.*await lock\\.acquire\\(\\)`,
      ),
    );
    expect(await admin().hgetall(lock.name)).toEqual({ [hold.hold.owner]: '1' });
    await hold.hold.release();
    await expect(lock.unlock()).rejects.toThrow(
      /does not hold lock "[^"]+"\. See npx holdfast explain ERR_LOCK_NOT_OWNER/,
    );
  });

  test('R25: after a loss, no unlock of the lost hold releases a newer one', async () => {
    const lock = client.getLock(freshName());
    await lock.lock();
    await admin().del(lock.name);
    const newer = await lockContext.run(async () => ({ hold: await client.getLock(lock.name).acquire() }));
    expect(await outcome(lock.unlock())).toBe('ERR_LOCK_LOST');
    expect(await outcome(lock.unlock())).toBe('ERR_LOCK_NOT_OWNER');
    expect(await admin().hgetall(lock.name)).toEqual({ [newer.hold.owner]: '1' });
    await newer.hold.release();
    await until(async () => (await admin().exists(lock.name)) === 0, 'it is free');
  });
});

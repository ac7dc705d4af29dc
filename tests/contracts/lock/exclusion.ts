import { afterEach, expect } from '@jest/globals';
import type { Lock } from '../../../src/locks/lock.js';
import { startWorker, type Worker } from '../../support/processes/child.js';
import type { CounterClient } from '../../support/processes/counter-client.mjs';
import { elapsed } from '../../support/time/elapsed.js';
import { clientUrl, inFlow, pause } from '../../support/clients/lock-clients.js';
import { Random } from '../../support/random.js';
import { admin } from '../../support/redis.js';
import { SharedCounter } from '../../support/processes/shared-counter.js';
import { until } from '../../support/time/until.js';
import { describe, test } from '../contract-test.js';
import { open, SLACK_MS, startWaiting, WAKE_MS, type LockKind } from '../lock-kind.js';
import { expectNoOverlap } from '../../support/serious.js';

type Section = (lock: Lock, work: () => Promise<void>) => Promise<void>;

/** Every way to go through a section. */
const SECTIONS: readonly (readonly [string, Section])[] = [
  [
    'lock() and unlock()',
    async (lock, work) => {
      await lock.lock();
      try {
        await work();
      } finally {
        await lock.unlock();
      }
    },
  ],
  [
    'tryLock(wait, lease) and unlock()',
    async (lock, work) => {
      if (!(await lock.tryLock(20_000, 20_000))) throw new Error('busy for too long');
      try {
        await work();
      } finally {
        await lock.unlock();
      }
    },
  ],
  ['withLock()', (lock, work) => lock.withLock(work)],
  [
    'await using',
    async (lock, work) => {
      await using _ = await lock.acquire({ leaseTime: 20_000 });
      await work();
    },
  ],
  [
    'nested calls',
    (lock, work) =>
      lock.withLock(async () => {
        await lock.lock();
        await work();
        await lock.unlock();
      }),
  ],
];

export function exclusionContract(kind: LockKind): void {
  let counter: SharedCounter | undefined;
  const workers: Worker[] = [];
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.close()));
    await counter?.close();
    counter = undefined;
  });

  async function startCounter(): Promise<{ counter: SharedCounter; client: CounterClient }> {
    counter = await SharedCounter.start();
    return { counter, client: await counter.open() };
  }

  async function worker(options: { lockWatchdogTimeout?: number } = {}): Promise<Worker> {
    const started = await startWorker();
    workers.push(started);
    await started.createClient({ url: clientUrl(), ...options });
    return started;
  }

  describe('one at a time', () => {
    test('without the lock sections overlap and updates are lost: the check can fail', async () => {
      const { counter, client } = await startCounter();
      const work = Array.from({ length: 10 }, (_, flow) => client.section('none', `#${flow}`, () => pause(1)));
      await Promise.all(work);
      expect(counter.overlaps.length).toBeGreaterThan(0);
      expect(counter.value('none')).toBeLessThan(10);
      client.close();
    });

    test.each(SECTIONS)('R20: by %s, in two clients with eight flows each', async (_, section) => {
      const { counter, client } = await startCounter();
      const first = await open(kind);
      const second = await open(kind, { name: first.name });
      const random = new Random('exclusion');
      const go = async ({ lock }: { lock: Lock }, who: string): Promise<void> => {
        for (let round = 0; round < 6; round += 1) {
          await section(lock, () => client.section(first.name, who, () => (random.below(3) ? undefined : pause(1))));
          if (random.below(4) === 0) await pause(1);
        }
      };
      const flows = Array.from({ length: 8 }, (_, at) => [
        inFlow(() => go(first, `first#${at}`)),
        inFlow(() => go(second, `second#${at}`)),
      ]);
      await Promise.all(flows.flat());
      expectNoOverlap(counter.overlaps);
      expect({ value: counter.value(first.name), most: counter.mostHolders(first.name) }).toEqual({
        value: 96,
        most: 1,
      });
      expect(first.events.waiting.length + second.events.waiting.length).toBeGreaterThan(0);
      expect([...first.events.leaseLost, ...second.events.leaseLost]).toEqual([]);
      client.close();
    });

    test('in two processes that contend with this one, nested', async () => {
      const { counter, client } = await startCounter();
      const bench = await open(kind);
      const { name, lock } = bench;
      const others = await Promise.all([worker(), worker()]);
      const load = { locks: [kind.spec(name)], port: counter.port, flows: 5, rounds: 8, workMs: 1 };
      const here = Array.from({ length: 5 }, (_, at) =>
        inFlow(async () => {
          for (let round = 0; round < 8; round += 1) {
            await lock.withLock(() => lock.withLock(() => client.section(name, `here#${at}`, () => pause(1))));
          }
        }),
      );
      const results = await Promise.all([
        others[0].contend({ ...load, form: 'lock', nested: true }),
        others[1].contend({ ...load, form: 'tryLock', waitTime: 20_000, leaseTime: 20_000 }),
      ]);
      await Promise.all(here);
      expect(results.map(({ sections, failures }) => ({ sections, failures }))).toEqual([
        { sections: 40, failures: {} },
        { sections: 40, failures: {} },
      ]);
      expectNoOverlap(counter.overlaps);
      expect({ value: counter.value(name), most: counter.mostHolders(name) }).toEqual({ value: 120, most: 1 });
      client.close();
    });
  });

  test('R16: after kill -9 of a holder the lock is free within one watchdog timeout, and not before its lease ends', async () => {
    const lockWatchdogTimeout = 1_000;
    const bench = await open(kind, { lockWatchdogTimeout });
    const doomed = await worker({ lockWatchdogTimeout });
    const hold = await doomed.flow('holder').acquire(kind.spec(bench.name));
    const { result } = await startWaiting(bench, () => bench.lock.acquire());
    // Past its first lease: only the watchdog has kept it.
    await pause(lockWatchdogTimeout + 100);
    expect(await bench.lock.isHeldBy(hold.owner)).toBe(true);
    await doomed.kill9();
    const killed = performance.now();
    const left = await admin().pttl(bench.name);
    const next = await result;
    expect(performance.now() - killed).toBeGreaterThanOrEqual(left - 1);
    expect(elapsed(killed)).toBeLessThan(lockWatchdogTimeout + WAKE_MS + SLACK_MS);
    await next.release();
  });

  test('a stopped process reports its loss when it continues, before any call of its holder succeeds', async () => {
    const bench = await open(kind);
    const stopped = await worker({ lockWatchdogTimeout: 600 });
    const flow = stopped.flow('holder');
    await flow.lock(kind.spec(bench.name));
    await stopped.pause();
    const next = await inFlow(() => bench.lock.acquire());
    stopped.resume();
    await expect(flow.call(kind.spec(bench.name), 'tryLock')).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    await stopped.nextEvent('leaseLost');
    await expect(flow.unlock(kind.spec(bench.name))).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    expect(await bench.lock.isHeldBy(next.owner)).toBe(true);
    await next.release();
    await until(async () => !(await bench.lock.isLocked()), 'it is free');
  });
}

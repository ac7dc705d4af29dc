import { expect } from '@jest/globals';
import { LockContext } from '../../../src/ownership/lock-context.js';
import type { Hold } from '../../../src/holding/hold.js';
import { LockLostError } from '../../../src/errors.js';
import { elapsed } from '../../support/time/elapsed.js';
import { holdElsewhere, inFlow, openProxy, pause } from '../../support/clients/lock-clients.js';
import { admin } from '../../support/redis.js';
import { LONG_QUIET_MS } from '../../support/time/pauses.js';
import { until } from '../../support/time/until.js';
import { describe, test } from '../contract-test.js';
import { errorOf, open, SLACK_MS, startWaiting, WAKE_MS, type LockKind, memberError } from '../lock-kind.js';

const WATCHDOG_MS = 30_000;
const HOUR_MS = 3_600_000;

async function expectTtl(name: string, most: number): Promise<void> {
  const left = await admin().pttl(name);
  expect(left).toBeGreaterThan(most - 1_000);
  expect(left).toBeLessThanOrEqual(most + 1);
}

export function leasesContract(kind: LockKind): void {
  describe('R15: the lease belongs to the hold', () => {
    test('after two of three holds of 10 s are released, 9 to 10 s are left', async () => {
      const { lock, name } = await open(kind);
      for (let hold = 0; hold < 3; hold += 1) await lock.lock(10_000);
      await lock.unlock();
      await lock.unlock();
      await expectTtl(name, 10_000);
      await lock.unlock();
    });

    test('after a hold of one hour ends, the next hold without a lease starts at the watchdog timeout', async () => {
      const { lock, name } = await open(kind);
      await lock.lock(HOUR_MS);
      await lock.unlock();
      await lock.lock();
      await expectTtl(name, WATCHDOG_MS);
      await lock.unlock();
    });

    test('a hold of 200 ms inside one of 30 s leaves 30 s, and its end ends nothing else', async () => {
      const { lock, name } = await open(kind);
      await lock.lock(30_000);
      await lock.lock(200);
      const inner = lock.currentHold()!;
      await expectTtl(name, 30_000);
      await pause(250);
      expect(inner.signal.aborted).toBe(false);
      expect(inner.validFor()).toBeGreaterThan(28_000);
      await lock.unlock();
      await expectTtl(name, 30_000);
      await lock.unlock();
    });

    test('a release in any order keeps the remaining leases of the other holds', async () => {
      const { lock, name } = await open(kind);
      const leases = [5_000, 40_000, 10_000, undefined];
      for (const order of permutations([0, 1, 2, 3])) {
        const holds: Hold[] = [];
        for (const leaseTime of leases) {
          const take = (): Promise<Hold> => lock.acquire({ leaseTime });
          holds.push(await (holds.at(-1)?.run(take) ?? inFlow(take)));
        }
        const left = new Set(order);
        for (const given of order) {
          await holds[given]!.release();
          left.delete(given);
          if (left.size > 0) await expectTtl(name, Math.max(...[...left].map((at) => leases[at] ?? WATCHDOG_MS)));
        }
        expect(await admin().exists(name)).toBe(0);
      }
    });

    test('a nested release after the outer lease has ended frees the lock, wakes a waiter and reports the outer loss', async () => {
      const bench = await open(kind);
      const { lock, name, events } = bench;
      const other = await open(kind, { name });
      const outer = await holdElsewhere(lock, 400);
      const inner = await outer.run(() => lock.acquire({ leaseTime: 20_000 }));
      const waiting = await startWaiting(other, () => other.lock.acquire());
      await pause(450);
      // As long as the inner one keeps the lock, the outer one is inside as well.
      expect(outer.validFor()).toBeGreaterThan(15_000);
      expect(outer.signal.aborted).toBe(false);
      await inner.release();
      const freed = performance.now();
      const next = await waiting.result;
      expect(elapsed(freed)).toBeLessThan(WAKE_MS + SLACK_MS);
      expect(outer.signal.aborted).toBe(true);
      expect(outer.validFor()).toBe(0);
      expect(events.leaseLost).toMatchObject([{ owner: outer.owner, reason: 'expired' }]);
      expect(await errorOf(outer.release())).toBeInstanceOf(LockLostError);
      expect(events.leaseLost).toHaveLength(1);
      expect(await other.lock.isHeldBy(next.owner)).toBe(true);
      await next.release();
    });

    test('contexts that share a handle do not influence each other', async () => {
      const { lock, name } = await open(kind);
      const [first, second] = [new LockContext(), new LockContext()];
      await lock.lock(HOUR_MS, { context: first });
      await lock.unlock({ context: first });
      await lock.lock(undefined, { context: second });
      await expectTtl(name, WATCHDOG_MS);
      expect(await errorOf(lock.unlock({ context: first }))).toMatchObject({ code: 'ERR_LOCK_NOT_OWNER' });
      expect(await lock.tryLock(0, 100, { context: first })).toBe(false);
      await expectTtl(name, WATCHDOG_MS);
      await lock.lock(1_000, { context: second });
      await lock.unlock({ context: second });
      await expectTtl(name, WATCHDOG_MS);
      await lock.unlock({ context: second });
    });

    test('an extend during a partial release of unknown outcome sets no deadline after the expiry of the key', async () => {
      const { proxy, url } = await openProxy();
      const { lock, name } = await open(kind, { url, commandTimeout: 600 });
      const outer = await holdElsewhere(lock, 3_000);
      const inner = await outer.run(() => lock.acquire({ leaseTime: 30_000 }));
      const held = proxy.holdCommand({ contains: name, sha: kind.partialRelease, times: Infinity });
      const released = errorOf(inner.release());
      await held.applied;
      const extended = errorOf(outer.extend(20_000).then(() => Promise.reject(new Error('extended'))));
      expect(memberError(kind, await released)).toMatchObject({
        code: 'ERR_LOCK_REDIS_UNAVAILABLE',
        outcome: 'unknown',
      });
      held.lift();
      await extended;
      const validFor = outer.validFor();
      expect(await admin().pttl(name)).toBeGreaterThanOrEqual(Math.floor(validFor) - 5);
      await outer.release();
    });

    test('a renewal during an unanswered partial release moves no deadline past the expiry of the key', async () => {
      const { proxy, url } = await openProxy();
      const { lock, name, events } = await open(kind, { url, lockWatchdogTimeout: 1_500, commandTimeout: 6_000 });
      const outer = await holdElsewhere(lock);
      const inner = await outer.run(() => lock.acquire({ leaseTime: 30_000 }));
      // Late between two ticks the outer hold has less left than the next renewal will give it.
      for (let renewed = 0; renewed < events.renewed.length || renewed === 0;) {
        await until(() => events.renewed.length > renewed, 'it was renewed');
        renewed = events.renewed.length;
        await pause(LONG_QUIET_MS);
      }
      // The attempt lies somewhere on its way, while a new connection carries renewals and their answers.
      const held = proxy.holdCommand({ contains: name, sha: kind.partialRelease });
      const repeated = proxy.answer({ sha: kind.partialRelease, nth: 2, times: Infinity }, '-LOADING\r\n');
      const releasing = inner.release();
      releasing.catch(() => undefined);
      await held.applied;
      proxy.cut({ kind: 'command', side: 'client' });
      const before = events.renewed.length;
      await until(() => events.renewed.length > before, 'a renewal was answered meanwhile');
      held.lift(); // the first attempt runs last, with the shorter lease
      let left = Infinity;
      await until(async () => (left = await admin().pttl(name)) < 2_000, 'it has run');
      expect(left).toBeLessThan(1_300);
      expect(outer.validFor()).toBeLessThanOrEqual(Math.max(0, left));
      repeated.lift();
      await releasing.catch(() => undefined);
      await outer.release().catch(() => undefined);
      await until(async () => (await admin().exists(name)) === 0, 'the lock is free');
    });
  });
}

function permutations<T>(of: readonly T[]): T[][] {
  if (of.length === 0) return [[]];
  return of.flatMap((first, at) => permutations(of.toSpliced(at, 1)).map((rest) => [first, ...rest]));
}

import { expect } from '@jest/globals';
import type { Hold } from '../../../src/holding/hold.js';
import { LockContext } from '../../../src/ownership/lock-context.js';
import { elapsed } from '../../support/time/elapsed.js';
import { block, holdElsewhere, inFlow } from '../../support/clients/lock-clients.js';
import { admin } from '../../support/redis.js';
import { until } from '../../support/time/until.js';
import { describe, test } from '../contract-test.js';
import { channelOf, errorOf, open, SLACK_MS, startWaiting, WAKE_MS, type Bench, type LockKind } from '../lock-kind.js';
import { expectAtMost } from '../../support/serious.js';

/** Everything that ends a hold; `made` is how the holder has to take it. */
const ENDS: readonly (readonly [string, (holder: Bench) => Promise<() => Promise<unknown>>])[] = [
  [
    'unlock()',
    async ({ lock }) => {
      const context = new LockContext();
      await lock.lock({ context });
      return () => lock.unlock({ context });
    },
  ],
  [
    'hold.release()',
    async ({ lock }) => {
      const hold = await holdElsewhere(lock);
      return () => hold.release();
    },
  ],
  [
    'the end of withLock()',
    async ({ lock }) => {
      let leave!: () => void;
      let over!: Promise<void>;
      await new Promise<void>((entered) => {
        over = inFlow(() =>
          lock.withLock(() => {
            entered();
            return new Promise<void>((resolve) => (leave = resolve));
          }),
        );
      });
      return () => (leave(), over);
    },
  ],
  [
    'forceUnlock()',
    async ({ lock }) => {
      const hold = await holdElsewhere(lock);
      return () => lock.forceUnlock().then(() => errorOf(hold.release()));
    },
  ],
];

export function wakingContract(kind: LockKind): void {
  describe('R21: a waiter acquires the lock within 200 ms', () => {
    for (const [end, hold] of ENDS) {
      test.each(['of the same client', 'of another client'])(`after ${end}, a waiter %s`, async (where) => {
        const holder = await open(kind);
        const waiter = where === 'of the same client' ? holder : await open(kind, { name: holder.name });
        const finish = await hold(holder);
        const { result } = await startWaiting(waiter, () => waiter.lock.acquire());
        const ended = performance.now();
        await Promise.all([finish(), result]);
        expect(elapsed(ended)).toBeLessThan(WAKE_MS + SLACK_MS);
        await (await result).release();
      });
    }

    test('after the end of a lease without a release', async () => {
      const holder = await open(kind);
      const waiter = await open(kind, { name: holder.name });
      const hold = await holdElsewhere(holder.lock, 400);
      const { result } = await startWaiting(waiter, () => waiter.lock.acquire());
      const next = await result;
      expect(hold.signal.aborted).toBe(true);
      await next.release();
    });

    test('after the end of a lease without a watchdog, and never before', async () => {
      const waiter = await open(kind);
      const taken = performance.now();
      await kind.holdFromOutside(waiter.name, 400);
      const next = await inFlow(() => waiter.lock.acquire());
      const afterMs = elapsed(taken);
      expect(performance.now() - taken).toBeGreaterThanOrEqual(399);
      expect(afterMs).toBeLessThan(400 + WAKE_MS + SLACK_MS);
      await next.release();
    });

    test('after the key was deleted and a message was published', async () => {
      const holder = await open(kind);
      const waiter = await open(kind, { name: holder.name });
      const hold = await holdElsewhere(holder.lock);
      const { result } = await startWaiting(waiter, () => waiter.lock.acquire());
      const channel = await channelOf(holder.name);
      await admin().del(holder.name);
      const published = performance.now();
      await admin().publish(channel, '0');
      await (await result).release();
      expect(elapsed(published)).toBeLessThan(WAKE_MS + SLACK_MS);
      await errorOf(hold.release());
    });

    test('one after the other, 30 waiters at two clients', async () => {
      const first = await open(kind);
      const second = await open(kind, { name: first.name });
      const hold = await holdElsewhere(first.lock);
      const waits: Promise<number>[] = [];
      let freedAt = 0;
      let inside = 0;
      const wait = async ({ lock }: Bench): Promise<number> => {
        const own: Hold = await lock.acquire();
        const after = elapsed(freedAt);
        inside += 1;
        expectAtMost(inside);
        inside -= 1;
        freedAt = performance.now();
        await own.release();
        return after;
      };
      for (let at = 0; at < 15; at += 1)
        waits.push(
          inFlow(() => wait(first)),
          inFlow(() => wait(second)),
        );
      await until(() => first.events.waiting.length === 15 && second.events.waiting.length === 15, 'all wait');
      freedAt = performance.now();
      await hold.release();
      for (const after of await Promise.all(waits)) expect(after).toBeLessThan(WAKE_MS + SLACK_MS);
    });
  });

  test('a waiter that leaves consumes no wake-up', async () => {
    const holder = await open(kind);
    const waiter = await open(kind, { name: holder.name });
    for (let round = 0; round < 20; round += 1) {
      const hold = await holdElsewhere(holder.lock);
      const controller = new AbortController();
      const head = await startWaiting(waiter, () => waiter.lock.acquire({ signal: controller.signal }));
      const next = await startWaiting(waiter, () => waiter.lock.acquire());
      const released = hold.release();
      if (round % 2 === 0) await released;
      controller.abort();
      const ended = performance.now();
      const left = await head.result.catch(() => undefined);
      await left?.release();
      await (await next.result).release();
      expect(elapsed(ended)).toBeLessThan(WAKE_MS + SLACK_MS);
      await released;
    }
  });

  test('a holder with a blocked event loop is no longer inside when another owner acquires the lock', async () => {
    const holder = await open(kind);
    const other = await open(kind, { name: holder.name });
    const hold = await holdElsewhere(holder.lock, 250);
    block(300);
    const next = await inFlow(() => other.lock.acquire());
    expect(hold.validFor()).toBe(0);
    expect(hold.signal.aborted).toBe(true);
    expect(await errorOf(hold.run(() => holder.lock.tryLock()))).toMatchObject({ code: 'ERR_LOCK_LOST' });
    expect(await errorOf(hold.release())).toMatchObject({ code: 'ERR_LOCK_LOST' });
    expect(await other.lock.isHeldBy(next.owner)).toBe(true);
    await next.release();
  });
}

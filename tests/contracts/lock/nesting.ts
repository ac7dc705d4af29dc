import { expect } from '@jest/globals';
import { LockTimeoutError, NotOwnerError } from '../../../src/errors.js';
import type { Hold } from '../../../src/holding/hold.js';
import { holdElsewhere, inFlow, pause } from '../../support/clients/lock-clients.js';
import { Random } from '../../support/random.js';
import { describe, test } from '../contract-test.js';
import { errorOf, open, startWaiting, type LockKind } from '../lock-kind.js';
import { expectAtMost } from '../../support/serious.js';

export function nestingContract(kind: LockKind): void {
  describe('inside a hold', () => {
    test('every form re-enters at once, also while others wait, and counts one hold', async () => {
      const bench = await open(kind);
      const { lock, name } = bench;
      const other = await open(kind, { name });
      await lock.lock();
      const waiters = [
        await startWaiting(bench, () => lock.acquire()),
        await startWaiting(other, () => other.lock.acquire()),
      ];
      await lock.lock(5_000);
      expect(await lock.tryLock()).toBe(true);
      expect(await lock.tryLock(1_000, 5_000)).toBe(true);
      const acquired = [await lock.acquire(), (await lock.tryAcquire())!];
      await lock.withLock(async () => expect(await lock.getHoldCount()).toBe(7));
      expect(await lock.getHoldCount()).toBe(6);
      for (const hold of acquired.reverse()) await hold.release();
      for (const left of [3, 2, 1]) {
        await lock.unlock();
        expect(await lock.getHoldCount()).toBe(left);
      }
      for (const { result } of waiters) void result.then((hold) => hold.release());
      await lock.unlock();
      await Promise.all(waiters.map(({ result }) => result));
    });

    test('a parent may be released before its child: the child keeps the lock, and the parent flow is a stranger', async () => {
      const { lock, name } = await open(kind);
      const other = await open(kind, { name });
      await lock.lock();
      const child = await lock.acquire();
      await lock.unlock();
      expect(await other.lock.tryLock()).toBe(false);
      expect(await lock.isHeldBy(child.owner)).toBe(true);
      expect(child.validFor()).toBeGreaterThan(0);
      expect(await errorOf(inFlow(() => lock.unlock()))).toBeInstanceOf(NotOwnerError);
      await child.release();
      expect(await other.lock.tryLock()).toBe(true);
      await other.lock.forceUnlock();
    });

    test('branches acquire the lock one after the other, and do not wait for the hold around them', async () => {
      const { lock } = await open(kind);
      let inside = 0;
      let most = 0;
      const branch = async (): Promise<void> => {
        await lock.lock();
        inside += 1;
        most = Math.max(most, inside);
        expect(await lock.getHoldCount()).toBe(2);
        await pause(5);
        inside -= 1;
        await lock.unlock();
      };
      await lock.lock();
      await Promise.all([branch(), branch(), branch(), lock.withLock(() => pause(5))]);
      expectAtMost(most);
      expect(most).toBe(1);
      await lock.unlock();
    });

    test('a branch waits for its turn no longer than its wait time', async () => {
      const { lock } = await open(kind);
      const outer = await holdElsewhere(lock);
      const first = await outer.run(() => lock.acquire());
      const began = performance.now();
      const calls = [
        outer.run(() => lock.tryLock()),
        outer.run(() => lock.tryLock(100)),
        outer.run(() => lock.tryAcquire({ waitTime: 100 })),
        outer.run(() => errorOf(lock.acquire({ waitTime: 100 }))),
      ];
      const [once, waited, none, error] = await Promise.all(calls);
      expect([once, waited, none]).toEqual([false, false, null]);
      expect(error).toBeInstanceOf(LockTimeoutError);
      expect(performance.now() - began).toBeGreaterThanOrEqual(100);
      await first.release();
      const second = await outer.run(() => lock.acquire());
      await second.release();
      await outer.release();
    });

    test('a branch whose parent is released while it waits for its turn contends as a stranger', async () => {
      const { lock } = await open(kind);
      const outer = await holdElsewhere(lock);
      const first = await outer.run(() => lock.acquire());
      const second = outer.run(() => lock.acquire());
      await outer.release();
      await pause(10);
      expect(await lock.isHeldBy(first.owner)).toBe(true);
      await first.release();
      const stranger = await second;
      expect(stranger.owner).not.toBe(outer.owner);
      await stranger.release();
    });

    test('random trees of holds, released in any order, have the count of the open holds', async () => {
      const { lock } = await open(kind);
      const random = new Random('trees of holds');
      for (let round = 0; round < 30; round += 1) {
        const root = await holdElsewhere(lock);
        const open: Hold[] = [root];
        for (let depth = random.below(5); depth > 0; depth -= 1) {
          // Directly inside one hold only one is open at a time: a chain.
          const leaf = open.at(-1)!;
          open.push(await leaf.run(() => lock.acquire()));
        }
        while (open.length > 0) {
          const [given] = open.splice(random.below(open.length), 1);
          await given!.release();
          const [some] = open;
          if (some) expect(await some.run(() => lock.getHoldCount())).toBe(open.length);
          else expect(await lock.isLocked()).toBe(false);
        }
      }
    });

    test('several holds released at the same time report no false loss and free the lock', async () => {
      const { lock, events } = await open(kind);
      for (let round = 0; round < 20; round += 1) {
        const outer = await holdElsewhere(lock);
        const middle = await outer.run(() => lock.acquire());
        const inner = await middle.run(() => lock.acquire());
        await Promise.all([outer.release(), inner.release(), middle.release()]);
        expect(await lock.isLocked()).toBe(false);
      }
      expect(events.leaseLost).toEqual([]);
    });
  });
}

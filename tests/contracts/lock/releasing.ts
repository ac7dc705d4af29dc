import { expect } from '@jest/globals';
import { LockLostError, NotOwnerError } from '../../../src/errors.js';
import { elapsed } from '../../support/time/elapsed.js';
import { holdElsewhere, inFlow } from '../../support/clients/lock-clients.js';
import { admin } from '../../support/redis.js';
import { topology } from '../../support/servers/topology.mjs';
import { until } from '../../support/time/until.js';
import { describe, test } from '../contract-test.js';
import { errorOf, open, SLACK_MS, startWaiting, WAKE_MS, type LockKind } from '../lock-kind.js';

export function releasingContract(kind: LockKind): void {
  describe('unlock()', () => {
    test('R25: of a free lock is refused', async () => {
      const { lock, name } = await open(kind);
      const error = await errorOf(lock.unlock());
      expect(error).toBeInstanceOf(NotOwnerError);
      expect(error).toMatchObject({ code: 'ERR_LOCK_NOT_OWNER', lockName: name });
    });

    test('R25: by a stranger, also through the same handle, is refused, and the holder keeps the lock', async () => {
      const bench = await open(kind);
      const { lock, name } = bench;
      const other = await open(kind, { name });
      const hold = await holdElsewhere(lock);
      const before = await admin().hgetall(name);
      for (const stranger of [lock, kind.make(bench.client, name), other.lock]) {
        expect(await errorOf(inFlow(() => stranger.unlock()))).toBeInstanceOf(NotOwnerError);
      }
      expect(await admin().hgetall(name)).toEqual(before);
      expect(hold.validFor()).toBeGreaterThan(0);
      expect(bench.events.released).toEqual([]);
      await hold.release();
    });

    test('by a stranger names the call site of the hold and says what to do instead', async () => {
      const { lock } = await open(kind);
      const hold = await holdElsewhere(lock);
      const error = (await errorOf(lock.unlock())) as Error;
      expect(error.message).toContain(lock.name);
      expect(error.message).toMatch(/held in this process since .*lock-clients\.ts:\d+/);
      expect(error.message).toContain('lock.acquire()');
      await hold.release();
    });

    test('a second time is refused', async () => {
      const { lock } = await open(kind);
      await lock.lock();
      expect(await lock.unlock()).toBeUndefined();
      expect(await errorOf(lock.unlock())).toBeInstanceOf(NotOwnerError);
    });

    test('R25: never ends a hold of withLock, of acquire or of another flow', async () => {
      const { lock } = await open(kind);
      await lock.withLock(async () => {
        expect(await errorOf(lock.unlock())).toBeInstanceOf(NotOwnerError);
        expect(await lock.getHoldCount()).toBe(1);
      });
      const hold = await lock.acquire();
      expect(await errorOf(lock.unlock())).toBeInstanceOf(NotOwnerError);
      expect(await lock.getHoldCount()).toBe(1);
      const started = lock.lock().then(() => 'taken');
      expect(await started).toBe('taken');
      expect(await errorOf(hold.run(() => inFlow(() => lock.unlock())))).toBeInstanceOf(NotOwnerError);
      await lock.forceUnlock();
      await errorOf(hold.release());
    });

    test('releases the innermost hold of lock or tryLock, and skips other holds', async () => {
      const { lock } = await open(kind);
      await lock.lock(5_000);
      const outer = lock.currentHold()!;
      await lock.withLock(async (inner) => {
        expect(await lock.getHoldCount()).toBe(2);
        await lock.unlock();
        expect(await lock.getHoldCount()).toBe(1);
        expect(outer.validFor()).toBe(0);
        expect(inner.validFor()).toBeGreaterThan(0);
      });
      expect(await lock.isLocked()).toBe(false);
    });

    test.each(['lost on its own', 'taken by another since'])(
      'R25: of a hold that was %s reports the loss once and releases no newer hold',
      async (how) => {
        const bench = await open(kind);
        const { lock, name } = bench;
        const other = await open(kind, { name });
        await lock.lock();
        await admin().del(name);
        const newer = how === 'lost on its own' ? undefined : await holdElsewhere(other.lock);
        const owners = await admin().hgetall(name);
        const error = await errorOf(lock.unlock());
        expect(error).toBeInstanceOf(LockLostError);
        expect(error).toMatchObject({ code: 'ERR_LOCK_LOST', lockName: name, reason: 'gone' });
        expect(await errorOf(lock.unlock())).toBeInstanceOf(NotOwnerError);
        expect(await admin().hgetall(name)).toEqual(owners);
        expect(bench.events.leaseLost).toHaveLength(1);
        await newer?.release();
      },
    );

    test('of a lost hold lets its flow acquire the lock again; before, calls inside the hold reject', async () => {
      const { lock, name, events } = await open(kind);
      await lock.lock(250);
      await inFlow(async () => lock.withLock(() => undefined)); // when the lease has ended
      for (const call of [() => lock.lock(), () => lock.tryLock(), () => lock.acquire(), () => lock.tryAcquire()]) {
        expect(await errorOf(call())).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'expired' });
      }
      expect(await errorOf(lock.withLock(() => undefined))).toBeInstanceOf(LockLostError);
      expect(await errorOf(lock.unlock())).toBeInstanceOf(LockLostError);
      expect(await lock.tryLock()).toBe(true);
      expect(await lock.getHoldCount()).toBe(1);
      await lock.unlock();
      expect(await admin().exists(name)).toBe(0);
      expect(events.leaseLost).toHaveLength(1);
    });
  });

  describe('forceUnlock()', () => {
    test('of a free lock does nothing', async () => {
      const { lock } = await open(kind);
      expect(await lock.forceUnlock()).toBe(false);
    });

    test('frees a lock of another client with any hold count, wakes a waiter, and its holder learns of the loss', async () => {
      const holder = await open(kind);
      const { name } = holder;
      const waiter = await open(kind, { name });
      await holder.lock.lock();
      await holder.lock.lock();
      const { result } = await startWaiting(waiter, () => waiter.lock.acquire());
      const forcer = await open(kind, { name });
      expect(await forcer.lock.forceUnlock()).toBe(true);
      const forced = performance.now();
      const next = await result;
      expect(elapsed(forced)).toBeLessThan(WAKE_MS + SLACK_MS);
      for (let hold = 0; hold < 2; hold += 1) {
        expect(await errorOf(holder.lock.unlock())).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'gone' });
      }
      expect(await errorOf(holder.lock.unlock())).toBeInstanceOf(NotOwnerError);
      expect(await waiter.lock.isHeldBy(next.owner)).toBe(true);
      expect(await forcer.lock.forceUnlock()).toBe(true);
      expect(await forcer.lock.forceUnlock()).toBe(false);
      await errorOf(next.release());
    });

    test('of the own client reports the loss to every hold at once', async () => {
      const { lock, client, events } = await open(kind);
      const hold = await holdElsewhere(lock);
      const nested = await hold.run(() => lock.acquire());
      expect(await lock.forceUnlock()).toBe(true);
      for (const each of [hold, nested]) {
        expect(each.signal.aborted).toBe(true);
        expect(each.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'forced' });
        expect(each.validFor()).toBe(0);
      }
      expect(events.leaseLost.map(({ reason }) => reason)).toEqual(['forced', 'forced']);
      expect(client.holds()).toEqual([]);
      expect(await errorOf(hold.release())).toBeInstanceOf(LockLostError);
      expect(await errorOf(nested.release())).toBeInstanceOf(LockLostError);
    });

    test('R11: of the own client reports the loss to a hold whose grant was pending', async () => {
      const { lock, events } = await open(kind);
      await lock.isLocked(); // connected: commands run in the order in which they are sent
      const taken = inFlow(() => lock.acquire());
      // With replicas that have to confirm it, it uses a separate connection.
      if (topology !== 'single') await until(() => lock.isLocked(), 'Redis has it');
      const forced = lock.forceUnlock();
      const hold = await taken;
      expect(await forced).toBe(true);
      expect(hold.validFor()).toBe(0);
      expect(events.leaseLost.map(({ reason }) => reason)).toEqual(['forced']);
      expect(await errorOf(hold.release())).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'forced' });
    });

    test('wakes a waiter of the own client', async () => {
      const bench = await open(kind);
      const hold = await holdElsewhere(bench.lock);
      const { result } = await startWaiting(bench, () => bench.lock.acquire());
      const began = performance.now();
      expect(await bench.lock.forceUnlock()).toBe(true);
      await (await result).release();
      expect(elapsed(began)).toBeLessThan(WAKE_MS + SLACK_MS);
      await errorOf(hold.release());
    });
  });
}

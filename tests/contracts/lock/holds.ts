import { expect } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { LockLostError, NotOwnerError } from '../../../src/errors.js';
import { block, holdElsewhere, inFlow, pause } from '../../support/clients/lock-clients.js';
import { admin, freshName } from '../../support/redis.js';
import { STARTED_MS } from '../../support/time/pauses.js';
import { until } from '../../support/time/until.js';
import { describe, test } from '../contract-test.js';
import { errorOf, open, SLACK_MS, type LockKind } from '../lock-kind.js';

export function holdsContract(kind: LockKind): void {
  describe('a hold', () => {
    test('names its lock and owner: nested holds share the owner, outermost holds never do', async () => {
      const { lock, client, name } = await open(kind);
      const owners = new Set<string>();
      for (let round = 0; round < 3; round += 1) {
        const hold = await holdElsewhere(lock);
        expect(hold.lockName).toBe(name);
        expect(hold.owner).toMatch(new RegExp(`^${client.id}:\\d+$`));
        owners.add(hold.owner);
        const nested = await hold.run(() => lock.acquire());
        expect(nested.owner).toBe(hold.owner);
        await hold.release();
        await nested.release();
      }
      expect(owners.size).toBe(3);
    });

    test('R11: is valid for its lease less 1 %, at least 5 ms and at most 1 s, and for 0 ms after its end', async () => {
      const { lock } = await open(kind);
      for (const [leaseTime, margin] of [
        [300, 5],
        [20_000, 200],
        [86_400_000, 1_000],
      ] as const) {
        const began = performance.now();
        const hold = await holdElsewhere(lock, leaseTime);
        const validFor = hold.validFor();
        expect(Number.isInteger(validFor)).toBe(true); // for AbortSignal.timeout(), which takes nothing else
        expect(validFor).toBeLessThanOrEqual(leaseTime - margin);
        expect(validFor).toBeGreaterThan(leaseTime - margin - (performance.now() - began) - 1);
        await pause(STARTED_MS);
        expect(hold.validFor()).toBeLessThanOrEqual(Math.max(0, validFor - 19));
        await hold.release().catch(() => undefined); // the shortest lease may have ended
        expect(hold.validFor()).toBe(0);
      }
    });

    test('has one signal, which aborts once with the reason when the hold is lost', async () => {
      const bench = await open(kind);
      const hold = await holdElsewhere(bench.lock, 400);
      const { signal } = hold;
      expect(signal.aborted).toBe(false);
      expect(hold.signal).toBe(signal);
      let aborts = 0;
      signal.addEventListener('abort', () => (aborts += 1));
      await until(() => signal.aborted, 'the hold is lost', 400 + SLACK_MS);
      expect(signal.reason).toBeInstanceOf(LockLostError);
      expect(signal.reason).toMatchObject({ lockName: bench.name, owner: hold.owner, reason: 'expired' });
      const error = await errorOf(hold.release());
      expect(error).toBe(signal.reason);
      expect(aborts).toBe(1);
      expect(bench.events.leaseLost).toMatchObject([
        { lockName: bench.name, owner: hold.owner, reason: 'expired', cause: undefined },
      ]);
    });

    test('checks the clock before it returns signal and validFor()', async () => {
      const { lock, client } = await open(kind);
      const [first, second] = [
        await holdElsewhere(lock, 250),
        await holdElsewhere(kind.make(client, freshName()), 250),
      ];
      block(270); // no timer has run in between
      expect(first.signal.aborted).toBe(true);
      expect(second.validFor()).toBe(0);
      await errorOf(first.release());
      await errorOf(second.release());
    });

    test('does not abort its signal at the release', async () => {
      const { lock } = await open(kind);
      const hold = await holdElsewhere(lock);
      const { signal } = hold;
      await hold.release();
      expect(signal.aborted).toBe(false);
      expect(hold.signal.aborted).toBe(false);
      expect(getEventListeners(signal, 'abort')).toEqual([]);
    });
  });

  describe('extend()', () => {
    test('extends the lease for the holder and in Redis', async () => {
      const { lock, name } = await open(kind);
      const hold = await holdElsewhere(lock, 1_000);
      await hold.extend(20_000);
      expect(await admin().pttl(name)).toBeGreaterThan(19_000);
      expect(hold.validFor()).toBeGreaterThan(19_000 - 200);
      // 1 % of the lease that counts now.
      expect(hold.validFor()).toBeLessThanOrEqual(20_000 - 200);
      await hold.release();
    });

    test('never shortens', async () => {
      const { lock, name } = await open(kind);
      const hold = await holdElsewhere(lock, 20_000);
      await hold.extend(500);
      expect(await admin().pttl(name)).toBeGreaterThan(18_000);
      expect(hold.validFor()).toBeGreaterThan(18_000);
      const nested = await hold.run(() => lock.acquire({ leaseTime: 5_000 }));
      await nested.extend(6_000);
      expect(await admin().pttl(name)).toBeGreaterThan(18_000);
      await hold.release();
      const left = await admin().pttl(name);
      expect(left).toBeGreaterThan(5_000);
      expect(left).toBeLessThanOrEqual(6_000);
      await nested.release();
    });

    test('extends a hold without a lease, and the following renewals do not shorten it', async () => {
      const { lock, name, events } = await open(kind, { lockWatchdogTimeout: 300 });
      const hold = await holdElsewhere(lock);
      await hold.extend(20_000);
      await until(() => events.renewed.length >= 2, 'it was renewed twice');
      expect(await admin().pttl(name)).toBeGreaterThan(18_000);
      expect(hold.validFor()).toBeGreaterThan(18_000);
      await hold.release();
    });

    test('of a lost or released hold rejects and extends nothing', async () => {
      const { lock, name } = await open(kind);
      const lost = await holdElsewhere(lock);
      await admin().del(name);
      const newer = await holdElsewhere(lock, 5_000);
      expect(await errorOf(lost.extend(20_000))).toBeInstanceOf(LockLostError);
      expect(await errorOf(lost.extend(20_000))).toBeInstanceOf(LockLostError);
      expect(lost.signal.aborted).toBe(true);
      await errorOf(lost.release());
      expect(await admin().pttl(name)).toBeLessThanOrEqual(5_000);
      await newer.release();
      // The hold is released and not lost, so no loss is reported.
      expect(await errorOf(newer.extend(20_000))).toBeInstanceOf(NotOwnerError);
      expect(await lock.isLocked()).toBe(false);
    });
  });

  describe('release()', () => {
    test('every call returns the promise of the first one', async () => {
      const { lock, events } = await open(kind);
      const hold = await holdElsewhere(lock);
      const first = hold.release();
      expect(hold.release()).toBe(first);
      expect(await first).toBeUndefined();
      expect(hold.release()).toBe(first);
      const newer = await holdElsewhere(lock);
      expect(hold.release()).toBe(first);
      expect(newer.validFor()).toBeGreaterThan(0);
      expect(events.released).toHaveLength(1);
      await newer.release();
    });

    test('of a lost hold rejects, every time with the same promise', async () => {
      const { lock, name } = await open(kind);
      const hold = await holdElsewhere(lock);
      await admin().del(name);
      const first = hold.release();
      expect(await errorOf(first)).toBeInstanceOf(LockLostError);
      expect(hold.release()).toBe(first);
    });

    test('works from any flow, and the acquiring flow is outside of the hold at once', async () => {
      const { lock } = await open(kind);
      const hold = await lock.acquire();
      await inFlow(async () => hold.release());
      expect(lock.currentHold()).toBeUndefined();
      expect(await lock.tryLock()).toBe(true);
      expect(await lock.getHoldCount()).toBe(1);
      await lock.unlock();
    });
  });

  describe('run()', () => {
    test('runs the function inside the hold and resolves with its result', async () => {
      const { lock } = await open(kind);
      const hold = await holdElsewhere(lock);
      expect(lock.currentHold()).toBeUndefined();
      expect(hold.run(() => lock.currentHold())).toBe(hold);
      const thrown = new Error('of the body');
      const fails = (): never => {
        throw thrown;
      };
      expect(() => hold.run(fails)).toThrow(thrown);
      await hold.run(async () => {
        await lock.lock();
        expect(await lock.getHoldCount()).toBe(2);
        await lock.unlock();
      });
      expect(lock.currentHold()).toBeUndefined();
      await hold.release();
      expect(hold.run(() => lock.currentHold())).toBeUndefined();
    });
  });

  describe('await using', () => {
    test('releases the hold at the end of the block, also after an error', async () => {
      const { lock } = await open(kind);
      {
        await using hold = await lock.acquire();
        expect(hold.validFor()).toBeGreaterThan(0);
        expect(lock.currentHold()).toBe(hold);
      }
      expect(await lock.isLocked()).toBe(false);
      const thrown = new Error('of the block');
      const failing = async (): Promise<void> => {
        await using hold = await lock.acquire();
        expect(await lock.isHeldBy(hold.owner)).toBe(true);
        throw thrown;
      };
      expect(await errorOf(failing())).toBe(thrown);
      expect(await lock.isLocked()).toBe(false);
    });

    test('of a lost hold rejects at the end of the block', async () => {
      const { lock, name } = await open(kind);
      const losing = async (): Promise<void> => {
        await using hold = await lock.acquire();
        await admin().del(hold.lockName);
      };
      expect(await errorOf(losing())).toMatchObject({ code: 'ERR_LOCK_LOST', lockName: name });
    });

    test('of null, the result of tryAcquire() for a busy lock, does nothing', async () => {
      const { lock } = await open(kind);
      const hold = await holdElsewhere(lock);
      {
        await using none = await lock.tryAcquire();
        expect(none).toBeNull();
      }
      expect(hold.validFor()).toBeGreaterThan(0);
      await hold.release();
    });
  });
}

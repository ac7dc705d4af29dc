import { expect } from '@jest/globals';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LockContext } from '../../../src/ownership/lock-context.js';
import { ConcurrentContextError, NotOwnerError } from '../../../src/errors.js';
import { holdElsewhere, inFlow } from '../../support/clients/lock-clients.js';
import { describe, test } from '../contract-test.js';
import { errorOf, open, startWaiting, type LockKind } from '../lock-kind.js';

export function contextsContract(kind: LockKind): void {
  describe('a LockContext', () => {
    test('on the call owns the hold, from any flow, and no flow enters it', async () => {
      const { lock } = await open(kind);
      const context = new LockContext();
      await lock.lock({ context });
      expect(lock.currentHold()).toBeUndefined();
      expect(await lock.tryLock()).toBe(false);
      expect(await errorOf(lock.unlock())).toBeInstanceOf(NotOwnerError);
      expect(await inFlow(() => lock.tryLock({ context }))).toBe(true);
      expect(await lock.isHeldBy(context)).toBe(true);
      await inFlow(() => lock.unlock({ context }));
      await lock.unlock({ context });
      expect(await lock.isLocked()).toBe(false);
      expect(await errorOf(lock.unlock({ context }))).toBeInstanceOf(NotOwnerError);
    });

    test('on the handle applies to its calls, and one on the call has precedence', async () => {
      const { client, name, lock } = await open(kind);
      const [first, second] = [new LockContext(), new LockContext()];
      const handle = kind.make(client, name, { context: first });
      await handle.lock();
      expect(await handle.isHeldByCurrentContext()).toBe(true);
      expect(await handle.getHoldCount()).toBe(1);
      expect(handle.currentHold()?.validFor()).toBeGreaterThan(0);
      expect(lock.currentHold()).toBeUndefined();
      expect(await handle.tryLock()).toBe(true);
      expect(await handle.getHoldCount()).toBe(2);
      expect(await handle.tryLock({ context: second })).toBe(false);
      expect(await errorOf(handle.unlock({ context: second }))).toBeInstanceOf(NotOwnerError);
      await handle.unlock();
      await lock.unlock({ context: first });
      expect(await handle.isHeldByCurrentContext()).toBe(false);
      expect(await handle.getHoldCount()).toBe(0);
      expect(handle.currentHold()).toBeUndefined();
    });

    test('is accepted by every acquiring call', async () => {
      const { lock } = await open(kind);
      const context = new LockContext();
      const outer = await lock.acquire({ context });
      const inner = (await lock.tryAcquire({ context, leaseTime: 5_000 }))!;
      expect(inner.owner).toBe(outer.owner);
      expect(await lock.tryLock(0, undefined, { context })).toBe(true);
      await lock.withLock({ context }, async (hold) => {
        expect(hold.owner).toBe(outer.owner);
        expect(await hold.run(() => lock.getHoldCount())).toBe(4);
      });
      await lock.unlock({ context });
      await inner.release();
      await outer.release();
      expect(await lock.isLocked()).toBe(false);
    });

    test('can release from another async stack', async () => {
      const { lock } = await open(kind);
      const context = new LockContext();
      const begin = async (): Promise<void> => lock.lock({ context });
      const end = async (): Promise<void> => lock.unlock({ context });
      await inFlow(begin);
      await inFlow(end);
      expect(await lock.isLocked()).toBe(false);
    });

    test('allows one pending acquisition of a lock: a second one is refused and acquires nothing', async () => {
      const bench = await open(kind);
      const { lock } = bench;
      const another = await open(kind);
      const context = new LockContext();
      const hold = await holdElsewhere(lock);
      const { result } = await startWaiting(bench, () => lock.acquire({ context }));
      for (const second of [
        () => lock.lock({ context }),
        () => lock.tryLock({ context }),
        () => lock.tryLock(100, undefined, { context }),
        () => lock.acquire({ context }),
        () => lock.tryAcquire({ context }),
        () => lock.withLock({ context }, () => undefined),
      ]) {
        const error = await errorOf(second());
        expect(error).toBeInstanceOf(ConcurrentContextError);
        expect(error).toMatchObject({
          code: 'ERR_LOCK_CONCURRENT_CONTEXT',
          lockName: lock.name,
          contextId: context.id,
        });
      }
      // Another lock, or another context, is no business of it.
      expect(await another.lock.tryLock({ context })).toBe(true);
      await another.lock.unlock({ context });
      expect(await lock.tryLock({ context: new LockContext() })).toBe(false);
      await hold.release();
      const first = await result;
      await first.release();
      expect(await lock.tryLock({ context })).toBe(true);
      await lock.unlock({ context });
    });

    test('has a readable id and a new owner for each outermost hold', async () => {
      const { lock } = await open(kind);
      const context = new LockContext();
      expect(context.id).not.toBe(new LockContext().id);
      const first = await lock.acquire({ context });
      await first.release();
      const second = await lock.acquire({ context });
      expect(second.owner).not.toBe(first.owner);
      await second.release();
    });

    test('keeps nothing of released holds', async () => {
      const { client, name } = await open(kind);
      const context = new LockContext();
      const collected = new FinalizationRegistry(() => (gone += 1));
      let gone = 0;
      const round = async (at: number): Promise<void> => {
        const lock = kind.make(client, `${name}:${at}`);
        const hold = await lock.acquire({ context });
        collected.register(hold, at);
        await hold.release();
      };
      for (let at = 0; at < 50; at += 1) await round(at);
      setFlagsFromString('--expose-gc');
      const gc = runInNewContext('gc') as () => void;
      for (let turn = 0; turn < 10 && gone < 40; turn += 1) {
        gc();
        await new Promise((resume) => setImmediate(resume));
      }
      expect(gone).toBeGreaterThanOrEqual(40);
    });
  });
}

import { expect } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { LockContext } from '../../../src/ownership/lock-context.js';
import { LockAbortedError } from '../../../src/errors.js';
import type { Lock } from '../../../src/locks/lock.js';
import { elapsed } from '../../support/time/elapsed.js';
import { holdElsewhere, inFlow, openProxy, pause } from '../../support/clients/lock-clients.js';
import { Random } from '../../support/random.js';
import { admin, expectNothingLeft, freshName } from '../../support/redis.js';
import { PARKED_MS, STARTED_MS } from '../../support/time/pauses.js';
import { until } from '../../support/time/until.js';
import { describe, test } from '../contract-test.js';
import { ATTEMPT_MS, errorOf, open, SLACK_MS, startWaiting, type LockKind } from '../lock-kind.js';

type Waiting = readonly [string, (lock: Lock, signal: AbortSignal) => Promise<unknown>];

const FORMS: readonly Waiting[] = [
  ['lock(lease, { signal })', (lock, signal) => lock.lock(5_000, { signal })],
  ['lock({ signal })', (lock, signal) => lock.lock({ signal })],
  ['tryLock(wait, lease, { signal })', (lock, signal) => lock.tryLock(8_000, 5_000, { signal })],
  ['tryLock({ signal })', (lock, signal) => lock.tryLock({ waitTime: 8_000, signal })],
  ['acquire({ signal })', (lock, signal) => lock.acquire({ signal })],
  ['acquire({ waitTime, signal })', (lock, signal) => lock.acquire({ waitTime: 8_000, signal })],
  ['tryAcquire({ signal })', (lock, signal) => lock.tryAcquire({ waitTime: 8_000, signal })],
  ['withLock({ signal }, fn)', (lock, signal) => lock.withLock({ signal }, () => undefined)],
  ['acquire({ signal, context })', (lock, signal) => lock.acquire({ signal, context: new LockContext() })],
];

function expectAborted(error: unknown, reason: unknown): void {
  expect(error).toBeInstanceOf(LockAbortedError);
  expect(error).toMatchObject({ code: 'ERR_LOCK_ABORTED', name: 'AbortError' });
  expect((error as Error).cause).toBe(reason);
}

export function abortingContract(kind: LockKind): void {
  describe('R23: a signal', () => {
    test.each(FORMS)('that is already aborted before %s prevents every command', async (_, call) => {
      const { proxy, url } = await openProxy();
      const { lock, name } = await open(kind, { url });
      const before = proxy.log.length;
      const reason = new Error('of the user');
      expectAborted(await errorOf(call(lock, AbortSignal.abort(reason))), reason);
      expect(proxy.log.slice(before)).toEqual([]);
      expect(await admin().exists(name)).toBe(0);
    });

    test.each(FORMS)('that aborts while %s waits ends the wait at once and leaves nothing behind', async (_, call) => {
      const holder = await open(kind);
      const waiter = await open(kind, { name: holder.name });
      const hold = await holdElsewhere(holder.lock);
      const controller = new AbortController();
      const { result } = await startWaiting(waiter, () => call(waiter.lock, controller.signal));
      await pause(STARTED_MS);
      const fired = performance.now();
      controller.abort();
      expectAborted(await errorOf(result), controller.signal.reason);
      expect(elapsed(fired)).toBeLessThan(50 + SLACK_MS);
      expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
      expect(hold.validFor()).toBeGreaterThan(0);
      await hold.release();
      expect(await inFlow(() => holder.lock.tryLock(1_000))).toBe(true);
      await holder.lock.forceUnlock();
    });

    test('that aborts all waiters leaves no subscription and no timer behind', async () => {
      const holder = await open(kind);
      const waiter = await open(kind, { name: holder.name });
      const hold = await holdElsewhere(holder.lock);
      const controller = new AbortController();
      const calls = FORMS.map(([, call]) => errorOf(inFlow(() => call(waiter.lock, controller.signal))));
      await pause(PARKED_MS);
      controller.abort('enough');
      for (const error of await Promise.all(calls)) expectAborted(error, 'enough');
      expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
      await hold.release();
      await expectNothingLeft();
      // A connection's own, for an attempt that has been answered, runs out with it.
      await until(() => waiter.clock.timers <= 1, 'no timer of theirs is left', ATTEMPT_MS + SLACK_MS);
    });

    test('of one waiter ends no other wait', async () => {
      const holder = await open(kind);
      const waiter = await open(kind, { name: holder.name });
      const hold = await holdElsewhere(holder.lock);
      const controller = new AbortController();
      const first = await startWaiting(waiter, () => waiter.lock.acquire({ signal: controller.signal }));
      const second = await startWaiting(waiter, () => waiter.lock.acquire());
      controller.abort();
      expectAborted(await errorOf(first.result), controller.signal.reason);
      await hold.release();
      await (await second.result).release();
    });

    test('that aborts a pending acquire, 400 times, rejects the call and leaves no key', async () => {
      const { proxy, url } = await openProxy();
      const random = new Random('R23');
      const { client, clock, lock: first } = await open(kind, { url });
      // A client has one timer for the pending attempts of each connection, and one for its holds.
      await inFlow(async () => (await first.acquire()).release());
      const ofAClient = clock.timers;
      proxy.delay(() => random.below(4), { kind: 'command' });
      let calls = 0;
      let aborted = 0;
      const run = async (withinMs: number): Promise<void> => {
        calls += 1;
        const lock = kind.make(client, freshName('r23'));
        const controller = new AbortController();
        const call = inFlow(() => lock.acquire({ signal: controller.signal }));
        const abort = (): void => controller.abort();
        const after = random.below(withinMs);
        if (after === 0) queueMicrotask(abort);
        else setTimeout(abort, after - 1);
        const outcome = await call.catch((error: unknown) => error);
        if (outcome instanceof LockAbortedError) aborted += 1;
        else await (outcome as Awaited<typeof call>).release();
      };
      // The answers come at another time on each topology: from before all of them to after most of them.
      for (let batch = 1; batch <= 8 || aborted === calls; batch += 1)
        await Promise.all(Array.from({ length: 50 }, () => run(12 * batch)));
      proxy.lift();
      expect(calls).toBeGreaterThanOrEqual(400);
      expect(aborted).toBeGreaterThan(100);
      await expectNothingLeft();
      expect(client.holds()).toEqual([]);
      await until(() => clock.timers <= ofAClient, 'no timer of a call is left');
    });

    test('that aborts after the lock was acquired does nothing', async () => {
      const { lock } = await open(kind);
      const controller = new AbortController();
      const { signal } = controller;
      await lock.lock({ signal });
      const nested = await lock.acquire({ signal });
      expect(getEventListeners(signal, 'abort')).toEqual([]);
      controller.abort();
      await pause(STARTED_MS);
      expect(nested.validFor()).toBeGreaterThan(0);
      expect(nested.signal.aborted).toBe(false);
      expect(await lock.getHoldCount()).toBe(2);
      await nested.release();
      await lock.unlock();
    });

    test('that aborts while a branch waits for its turn ends that wait, and the others continue', async () => {
      const { lock } = await open(kind);
      const outer = await holdElsewhere(lock);
      const first = await outer.run(() => lock.acquire());
      const controller = new AbortController();
      const aborted = outer.run(() => errorOf(lock.acquire({ signal: controller.signal })));
      const third = outer.run(() => lock.acquire());
      await pause(10);
      controller.abort();
      expectAborted(await aborted, controller.signal.reason);
      expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
      await first.release();
      await (await third).release();
      await outer.release();
    });

    test('that aborts a pending nested acquire leaves the outer hold unchanged', async () => {
      const { proxy, url } = await openProxy();
      const { lock } = await open(kind, { url });
      const outer = await holdElsewhere(lock);
      const reply = proxy.holdReply({ contains: lock.name });
      const controller = new AbortController();
      const nested = outer.run(() => errorOf(lock.acquire({ signal: controller.signal })));
      await reply.executed;
      controller.abort();
      reply.lift();
      expectAborted(await nested, controller.signal.reason);
      expect(outer.validFor()).toBeGreaterThan(0);
      expect(await outer.run(() => lock.getHoldCount())).toBe(1);
      await outer.release();
      expect(await lock.isLocked()).toBe(false);
    });
  });
}

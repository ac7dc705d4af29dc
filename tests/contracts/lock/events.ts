import { expect } from '@jest/globals';
import { holdElsewhere, pause } from '../../support/clients/lock-clients.js';
import { admin } from '../../support/redis.js';
import { until } from '../../support/time/until.js';
import { describe, test } from '../contract-test.js';
import { channelOf, errorOf, open, startWaiting, type LockKind } from '../lock-kind.js';

export function eventsContract(kind: LockKind): void {
  describe('events report', () => {
    test('each acquired and released hold, with the hold count of its owner', async () => {
      const { lock, name, events } = await open(kind);
      await lock.lock();
      const { owner } = lock.currentHold()!;
      await lock.lock();
      await lock.unlock();
      await lock.unlock();
      const of = { lockName: name, owner };
      expect(events.acquired).toMatchObject([
        { ...of, holdCount: 1, handedOff: false },
        { ...of, holdCount: 2, handedOff: false },
      ]);
      expect(events.released).toMatchObject([
        { ...of, holdCount: 1 },
        { ...of, holdCount: 0 },
      ]);
    });

    test('each waiting call once, regardless of the number of tries', async () => {
      const holder = await open(kind);
      const waiter = await open(kind, { name: holder.name });
      const hold = await holdElsewhere(holder.lock);
      const controller = new AbortController();
      const { signal } = controller;
      const first = await startWaiting(waiter, () => waiter.lock.acquire({ signal }));
      const second = await startWaiting(waiter, () => waiter.lock.acquire({ signal }));
      const channel = await channelOf(holder.name);
      for (let wake = 0; wake < 5; wake += 1) {
        await admin().publish(channel, '0');
        await pause(10);
      }
      expect(waiter.events.waiting).toEqual([
        { lockName: holder.name, waiters: 1 },
        { lockName: holder.name, waiters: 2 },
      ]);
      controller.abort();
      for (const { result } of [first, second])
        expect(await errorOf(result)).toMatchObject({ code: 'ERR_LOCK_ABORTED' });
      await hold.release();
    });

    test('each renewal, with the remaining lease', async () => {
      const { lock, name, events } = await open(kind, { lockWatchdogTimeout: 900 });
      const hold = await holdElsewhere(lock);
      await until(() => events.renewed.length >= 2, 'it was renewed twice');
      expect(events.renewed[0]).toEqual({ lockName: name, owner: hold.owner, remaining: expect.any(Number) });
      expect(events.renewed[0]!.remaining).toBeLessThanOrEqual(900);
      expect(events.renewed[0]!.remaining).toBeGreaterThan(600);
      await hold.release();
    });

    test('each lost hold once', async () => {
      const { lock, name, events } = await open(kind, { lockWatchdogTimeout: 900 });
      const outer = await holdElsewhere(lock);
      const inner = await outer.run(() => lock.acquire());
      await admin().del(name);
      await until(() => events.leaseLost.length >= 2, 'both are lost');
      await errorOf(inner.release());
      await errorOf(outer.release());
      await pause(350);
      const lost = { lockName: name, owner: outer.owner, reason: 'gone', cause: undefined };
      expect(events.leaseLost).toMatchObject([lost, lost]);
    });

    test('to current listeners only', async () => {
      const { client, lock } = await open(kind);
      let heard = 0;
      const listener = (): void => void (heard += 1);
      client.events.on('acquired', listener);
      await (await holdElsewhere(lock)).release();
      client.events.off('acquired', listener);
      await (await holdElsewhere(lock)).release();
      expect(heard).toBe(1);
    });

    test('outside of every hold', async () => {
      const { client, lock } = await open(kind);
      let inside: unknown = 'not reported';
      client.events.on('acquired', ({ holdCount }) => holdCount === 2 && (inside = lock.currentHold()));
      const outer = await holdElsewhere(lock);
      const inner = await outer.run(() => lock.acquire());
      expect(inside).toBeUndefined();
      await inner.release();
      await outer.release();
    });
  });
}

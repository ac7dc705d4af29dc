import { expect } from '@jest/globals';
import { LockContext } from '../../../src/ownership/lock-context.js';
import { holdElsewhere, inFlow, openProxy } from '../../support/clients/lock-clients.js';
import { admin } from '../../support/redis.js';
import { describe, test } from '../contract-test.js';
import { errorOf, open, type LockKind } from '../lock-kind.js';

export function readingContract(kind: LockKind): void {
  test('the name is the given one', async () => {
    const { lock, name } = await open(kind);
    expect(lock.name).toBe(name);
  });

  test('isLocked() and remainTimeToLive() report on the lock of any owner', async () => {
    const { lock, name } = await open(kind);
    const other = await open(kind, { name });
    expect(await lock.isLocked()).toBe(false);
    expect(await lock.remainTimeToLive()).toBe(-2);
    const hold = await holdElsewhere(other.lock, 20_000);
    expect(await lock.isLocked()).toBe(true);
    const left = await lock.remainTimeToLive();
    expect(left).toBeGreaterThan(19_000);
    expect(left).toBeLessThanOrEqual(20_000);
    if (kind.endsByKey !== false) {
      await admin().persist(name);
      expect(await lock.remainTimeToLive()).toBe(-1);
    }
    await hold.release();
  });

  test('inside a hold isHeldByCurrentContext() and getHoldCount() return the current state in Redis', async () => {
    const { lock, name } = await open(kind);
    for (const count of [1, 2, 3]) {
      await lock.lock();
      expect(await lock.isHeldByCurrentContext()).toBe(true);
      expect(await lock.getHoldCount()).toBe(count);
    }
    expect(await inFlow(() => lock.isHeldByCurrentContext())).toBe(false);
    expect(await inFlow(() => lock.getHoldCount())).toBe(0);
    await admin().del(name);
    expect(await lock.isHeldByCurrentContext()).toBe(false);
    expect(await lock.getHoldCount()).toBe(0);
    for (let hold = 0; hold < 3; hold += 1) await errorOf(lock.unlock());
    expect(await lock.getHoldCount()).toBe(0);
  });

  test('outside of a hold isHeldByCurrentContext(), getHoldCount() and currentHold() send no command', async () => {
    const { proxy, url } = await openProxy();
    const { lock } = await open(kind, { url });
    const hold = await holdElsewhere(lock);
    const before = proxy.log.length;
    expect(await lock.isHeldByCurrentContext()).toBe(false);
    expect(await lock.getHoldCount()).toBe(0);
    expect(lock.currentHold()).toBeUndefined();
    expect(proxy.log.slice(before)).toEqual([]);
    await hold.release();
  });

  describe('isHeldBy()', () => {
    test('finds an owner of any client by its id', async () => {
      const { lock, name } = await open(kind);
      const other = await open(kind, { name });
      const hold = await holdElsewhere(lock);
      const nested = await hold.run(() => lock.acquire());
      expect(await lock.isHeldBy(hold.owner)).toBe(true);
      expect(await lock.isHeldBy(nested.owner)).toBe(true);
      expect(await other.lock.isHeldBy(hold.owner)).toBe(true);
      expect(await lock.isHeldBy(`${other.client.id}:1`)).toBe(false);
      await nested.release();
      expect(await lock.isHeldBy(hold.owner)).toBe(true);
      await hold.release();
      expect(await lock.isHeldBy(hold.owner)).toBe(false);
    });

    test('finds a context by its open hold of this lock', async () => {
      const { lock, client } = await open(kind);
      const another = await open(kind);
      const context = new LockContext();
      expect(await lock.isHeldBy(context)).toBe(false);
      await lock.lock({ context });
      expect(await lock.isHeldBy(context)).toBe(true);
      expect(await lock.isHeldBy(new LockContext())).toBe(false);
      expect(await another.lock.isHeldBy(context)).toBe(false);
      expect(await kind.make(client, lock.name, { context }).isHeldByCurrentContext()).toBe(true);
      await lock.unlock({ context });
      expect(await lock.isHeldBy(context)).toBe(false);
    });
  });

  test('currentHold() returns the innermost hold around the caller without a command', async () => {
    const { lock } = await open(kind);
    expect(lock.currentHold()).toBeUndefined();
    await lock.lock();
    const outer = lock.currentHold()!;
    const inner = await lock.acquire();
    expect(lock.currentHold()).toBe(inner);
    await lock.withLock((hold) => expect(lock.currentHold()).toBe(hold));
    expect(await inFlow(async () => lock.currentHold())).toBeUndefined();
    expect(lock.currentHold()).toBe(inner);
    await inner.release();
    expect(lock.currentHold()).toBe(outer);
    await lock.unlock();
    expect(lock.currentHold()).toBeUndefined();
  });

  test('currentHold() returns a lost hold until its release', async () => {
    const { lock, name } = await open(kind);
    const hold = await lock.acquire();
    await admin().del(name);
    await errorOf(lock.acquire());
    expect(lock.currentHold()).toBe(hold);
    await errorOf(hold.release());
    expect(lock.currentHold()).toBeUndefined();
  });
}

import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { LockEvents } from '../../src/events.js';
import { closeClients, holdElsewhere, openClient, outcome } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

afterEach(() => closeClients());

function heard<K extends keyof LockEvents>(client: LockClient, type: K): LockEvents[K][] {
  const events: LockEvents[K][] = [];
  client.events.on(type, (event) => events.push(event));
  return events;
}

describe('events say enough for metrics', () => {
  test('`acquired` has the waiting time, and `released` the time of the hold', async () => {
    const client = await openClient();
    const lock = client.getReadWriteLock(freshName()).writeLock();
    const [acquired, released] = [heard(client, 'acquired'), heard(client, 'released')];
    const called = performance.now();
    const first = await holdElsewhere(lock);
    const granted = performance.now();
    const second = lock.acquire();
    await until(() => client.stats().waits === 1, 'it waits');
    const since = performance.now();
    await until(() => performance.now() - since > 20, 'some time has passed');
    await first.release();
    await (await second).release();
    const common = { lockName: lock.name, kind: 'read-write', mode: 'exclusive' };
    expect(acquired).toMatchObject([common, common]);
    expect(acquired[1]!.waited).toBeGreaterThan(20);
    expect(acquired[0]!.waited).toBeLessThanOrEqual(granted - called);
    expect(released).toMatchObject([common, common]);
    expect(released[0]!.held).toBeGreaterThan(20);
  });

  test('`leaseLost` has the time of the hold', async () => {
    const client = await openClient();
    const lock = client.getReadWriteLock(freshName()).readLock();
    const lost = heard(client, 'leaseLost');
    const hold = await lock.acquire();
    await lock.forceUnlock();
    await outcome(hold.release());
    expect(lost).toMatchObject([{ kind: 'read-write', mode: 'shared', reason: 'forced', held: expect.any(Number) }]);
  });

  test('an acquisition that gets nothing ends with one `notAcquired`', async () => {
    const client = await openClient();
    const lock = client.getFencedLock(freshName());
    const hold = await holdElsewhere(lock);
    const missed = heard(client, 'notAcquired');
    expect(await lock.tryLock()).toBe(false);
    expect(await outcome(lock.acquire({ waitTime: 30 }))).toBe('ERR_LOCK_TIMEOUT');
    expect(await outcome(lock.acquire({ signal: AbortSignal.abort() }))).toBe('ERR_LOCK_ABORTED');
    const waiting = outcome(lock.acquire());
    await until(() => client.stats().waits === 2, 'it waits');
    await client.close({ releaseHolds: true });
    expect(await waiting).toBe('ERR_LOCK_CLIENT_CLOSED');
    await outcome(hold.release());
    const common = { lockName: lock.name, kind: 'fenced', mode: 'exclusive' };
    expect(missed).toMatchObject([
      { ...common, outcome: 'busy', cause: { code: 'ERR_LOCK_TIMEOUT' } },
      { ...common, outcome: 'busy' },
      { ...common, outcome: 'aborted', cause: { code: 'ERR_LOCK_ABORTED' } },
      { ...common, outcome: 'failed', cause: { code: 'ERR_LOCK_CLIENT_CLOSED' } },
    ]);
    expect(missed[1]!.waited).toBeGreaterThan(25);
    expect(client.stats().waiting).toBe(0);
  });

  test('grants and releases of permits are told with their number', async () => {
    const client = await openClient();
    const semaphore = client.getSemaphore(freshName(), { permits: 3 });
    const [acquired, released, missed] = [
      heard(client, 'permitsAcquired'),
      heard(client, 'permitsReleased'),
      heard(client, 'notAcquired'),
    ];
    await semaphore.acquire(2);
    expect(await semaphore.tryAcquire(2)).toBe(false);
    const passedOn = semaphore.acquire(2);
    await until(() => client.stats().waits === 1, 'it waits');
    await semaphore.release(2);
    await passedOn;
    expect(await semaphore.drainPermits()).toBe(1);
    expect(await semaphore.releaseIfExists(3)).toBe(true);
    const common = { lockName: semaphore.name, kind: 'semaphore' };
    expect(acquired).toMatchObject([
      { ...common, permits: 2, handedOff: false },
      { ...common, permits: 2, handedOff: true, waited: expect.any(Number) },
      { ...common, permits: 1, handedOff: false },
    ]);
    expect(released).toEqual([
      { ...common, permits: 2 },
      { ...common, permits: 3 },
    ]);
    expect(missed).toMatchObject([{ ...common, mode: 'shared', outcome: 'busy' }]);
    await admin().del(semaphore.name);
  });

  test('so are permits with an id', async () => {
    const client = await openClient();
    const semaphore = client.getPermitExpirableSemaphore(freshName(), { permits: 3 });
    const [acquired, released] = [heard(client, 'permitsAcquired'), heard(client, 'permitsReleased')];
    const ids = await semaphore.acquireMany(2);
    await semaphore.release(ids);
    expect(await semaphore.tryRelease(ids)).toBe(false);
    const common = { lockName: semaphore.name, kind: 'permit-expirable-semaphore', permits: 2 };
    expect(acquired).toMatchObject([common]);
    expect(released).toEqual([common]);
    await admin().del(semaphore.name);
  });

  test('a count-down of a latch and the end of a wait for it are told', async () => {
    const client = await openClient();
    const latch = client.getCountDownLatch(freshName());
    const [passed, counted] = [heard(client, 'latchPassed'), heard(client, 'latchCountedDown')];
    await latch.trySetCount(1);
    expect(await latch.await(0)).toBe(false);
    const open = latch.await();
    await until(() => client.stats().waits === 1, 'it waits');
    await latch.countDown();
    await open;
    expect(counted).toEqual([{ lockName: latch.name }]);
    expect(passed).toEqual([{ lockName: latch.name, waited: expect.any(Number) }]);
    expect(client.stats().acquisitions.latch).toEqual({ granted: 1, busy: 1, aborted: 0, failed: 0 });
  });
});

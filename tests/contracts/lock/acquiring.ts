import { expect } from '@jest/globals';
import { Hold } from '../../../src/holding/hold.js';
import { LockTimeoutError } from '../../../src/errors.js';
import type { Lock } from '../../../src/locks/lock.js';
import { elapsed } from '../../support/time/elapsed.js';
import { holdElsewhere, inFlow, openProxy, pause } from '../../support/clients/lock-clients.js';
import { admin, expectNothingLeft } from '../../support/redis.js';
import { STARTED_MS } from '../../support/time/pauses.js';
import { until } from '../../support/time/until.js';
import { describe, test } from '../contract-test.js';
import {
  ATTEMPT_MS,
  errorOf,
  open,
  SLACK_MS,
  startWaiting,
  timed,
  WAKE_MS,
  type LockKind,
  memberError,
} from '../lock-kind.js';

const WATCHDOG_MS = 30_000;
const LEASE_MS = 5_000;
const HUGE = Number.MAX_SAFE_INTEGER;

type Form = readonly [string, (lock: Lock) => Promise<unknown>];

/** Every way to ask for a hold without a lease. */
const WATCHED: readonly Form[] = [
  ['lock()', (lock) => lock.lock()],
  ['lock(-1)', (lock) => lock.lock(-1)],
  ['lock(undefined, {})', (lock) => lock.lock(undefined, {})],
  ['lock({})', (lock) => lock.lock({})],
  ['lock({ leaseTime: -1 })', (lock) => lock.lock({ leaseTime: -1 })],
  ['tryLock()', (lock) => lock.tryLock()],
  ['tryLock(100)', (lock) => lock.tryLock(100)],
  ['tryLock(100, -1)', (lock) => lock.tryLock(100, -1)],
  ['tryLock(-1, -1, {})', (lock) => lock.tryLock(-1, -1, {})],
  ['tryLock(Infinity)', (lock) => lock.tryLock(Infinity)],
  ['tryLock(2^53 - 1)', (lock) => lock.tryLock(HUGE)],
  ['tryLock({})', (lock) => lock.tryLock({})],
  ['tryLock({ waitTime })', (lock) => lock.tryLock({ waitTime: 100 })],
  ['acquire()', (lock) => lock.acquire()],
  ['acquire({ waitTime })', (lock) => lock.acquire({ waitTime: 100 })],
  ['tryAcquire()', (lock) => lock.tryAcquire()],
  ['tryAcquire({ waitTime, leaseTime: -1 })', (lock) => lock.tryAcquire({ waitTime: 100, leaseTime: -1 })],
];

/** Every way to ask for a hold with one. */
const LEASED: readonly Form[] = [
  ['lock(lease)', (lock) => lock.lock(LEASE_MS)],
  ['lock(lease, options)', (lock) => lock.lock(LEASE_MS, { signal: new AbortController().signal })],
  ['lock({ leaseTime })', (lock) => lock.lock({ leaseTime: LEASE_MS })],
  ['tryLock(0, lease)', (lock) => lock.tryLock(0, LEASE_MS)],
  ['tryLock(undefined, lease)', (lock) => lock.tryLock(undefined, LEASE_MS)],
  ['tryLock(100, lease, options)', (lock) => lock.tryLock(100, LEASE_MS, {})],
  ['tryLock({ leaseTime })', (lock) => lock.tryLock({ leaseTime: LEASE_MS })],
  ['tryLock({ waitTime, leaseTime })', (lock) => lock.tryLock({ waitTime: Infinity, leaseTime: LEASE_MS })],
  ['acquire({ leaseTime })', (lock) => lock.acquire({ leaseTime: LEASE_MS })],
  ['tryAcquire({ leaseTime })', (lock) => lock.tryAcquire({ leaseTime: LEASE_MS })],
];

/** The result of each call when the lock stays busy. Waiting calls wait for `waitTime`. */
const BUSY: readonly (readonly [string, number, (lock: Lock) => Promise<unknown>, unknown])[] = [
  ['tryLock()', 0, (lock) => lock.tryLock(), false],
  ['tryLock(0)', 0, (lock) => lock.tryLock(0), false],
  ['tryLock(-1)', 0, (lock) => lock.tryLock(-1), false],
  ['tryLock(-2^53 + 1)', 0, (lock) => lock.tryLock(-HUGE), false],
  ['tryLock(0, lease)', 0, (lock) => lock.tryLock(0, LEASE_MS), false],
  ['tryLock({})', 0, (lock) => lock.tryLock({}), false],
  ['tryLock({ waitTime: 0 })', 0, (lock) => lock.tryLock({ waitTime: 0 }), false],
  ['tryLock(wait)', 150, (lock) => lock.tryLock(150), false],
  ['tryLock(wait, lease)', 150, (lock) => lock.tryLock(150, LEASE_MS), false],
  ['tryLock({ waitTime })', 150, (lock) => lock.tryLock({ waitTime: 150 }), false],
  ['tryAcquire()', 0, (lock) => lock.tryAcquire(), null],
  ['tryAcquire({ waitTime: -1 })', 0, (lock) => lock.tryAcquire({ waitTime: -1 }), null],
  ['tryAcquire({ waitTime })', 150, (lock) => lock.tryAcquire({ waitTime: 150 }), null],
  ['acquire({ waitTime: 0 })', 0, (lock) => lock.acquire({ waitTime: 0 }), LockTimeoutError],
  ['acquire({ waitTime })', 150, (lock) => lock.acquire({ waitTime: 150 }), LockTimeoutError],
  ['withLock({ waitTime: 0 }, fn)', 0, (lock) => lock.withLock({ waitTime: 0 }, never), LockTimeoutError],
  ['withLock({ waitTime }, fn)', 150, (lock) => lock.withLock({ waitTime: 150 }, never), LockTimeoutError],
];

const WAITS: readonly Form[] = [
  ['lock()', (lock) => lock.lock()],
  ['lock(lease)', (lock) => lock.lock(LEASE_MS)],
  ['lock({ leaseTime })', (lock) => lock.lock({ leaseTime: LEASE_MS })],
  ['tryLock(wait)', (lock) => lock.tryLock(8_000)],
  ['tryLock(Infinity)', (lock) => lock.tryLock(Infinity)],
  ['tryLock(2^53 - 1, lease)', (lock) => lock.tryLock(HUGE, LEASE_MS)],
  ['tryLock({ waitTime })', (lock) => lock.tryLock({ waitTime: 8_000 })],
  ['acquire()', (lock) => lock.acquire()],
  ['acquire({ waitTime })', (lock) => lock.acquire({ waitTime: 8_000 })],
  ['tryAcquire({ waitTime })', (lock) => lock.tryAcquire({ waitTime: 8_000 })],
];

function never(): void {
  throw new Error('the body of a call that did not get the lock was run');
}

/** The result of a call that acquired the lock. */
function granted(form: string): unknown {
  if (form.startsWith('lock')) return undefined;
  return form.startsWith('tryLock') ? true : expect.any(Hold);
}

async function releaseHeld(lock: Lock, result: unknown): Promise<void> {
  await (result instanceof Hold ? result.release() : lock.unlock());
}

export function acquiringContract(kind: LockKind): void {
  describe('a free lock', () => {
    for (const [forms, leaseMs] of [
      [WATCHED, WATCHDOG_MS],
      [LEASED, LEASE_MS],
    ] as const) {
      test.each(forms)('is acquired by %s once, for its lease, and released', async (form, take) => {
        const { lock, name } = await open(kind);
        const result = await take(lock);
        expect(result).toEqual(granted(form));
        expect(await lock.getHoldCount()).toBe(1);
        const left = await admin().pttl(name);
        expect(left).toBeGreaterThan(leaseMs - 1_000);
        expect(left).toBeLessThanOrEqual(leaseMs);
        await releaseHeld(lock, result);
        expect(await lock.isLocked()).toBe(false);
      });
    }

    test('R7: is not acquired with a lease shorter than the round trip: the call rejects in time and leaves nothing', async () => {
      const { proxy, url } = await openProxy();
      proxy.delay(40, { direction: 'to-client', kind: 'command' });
      const { lock, name } = await open(kind, { url, commandTimeout: 800 });
      for (const call of [() => lock.acquire({ leaseTime: 30 }), () => lock.tryAcquire({ leaseTime: 30 })]) {
        const before = proxy.log.length;
        const { value, ownMs } = await timed(() => errorOf(inFlow(call)));
        expect(memberError(kind, value)).toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE', outcome: 'none' });
        expect(ownMs).toBeLessThan(800 + 400 + SLACK_MS);
        // Not in a circle as fast as Redis answers.
        expect(proxy.log.length - before).toBeLessThan(20);
      }
      await until(async () => (await admin().exists(name)) === 0, 'the late grant is released');
      expect(await inFlow(async () => lock.tryLock(0, 5_000).then((taken) => taken && lock.forceUnlock()))).toBe(true);
    });

    test('R7: is acquired for 2^53 - 1 ms, and by another caller only after its release', async () => {
      const bench = await open(kind);
      const { lock } = bench;
      const other = await open(kind, { name: bench.name });
      const hold = await holdElsewhere(lock, HUGE);
      expect(hold.validFor()).toBeGreaterThan(HUGE / 2);
      expect(await other.lock.tryLock()).toBe(false);
      expect(await other.lock.remainTimeToLive()).toBeGreaterThan(HUGE - 10_000);
      const waiting = await startWaiting(other, () => other.lock.acquire());
      await hold.release();
      await (await waiting.result).release();
    });

    test('R7: allows nested holds inside a hold of 2^53 - 1 ms', async () => {
      const { lock, name } = await open(kind);
      await lock.lock(HUGE);
      await lock.lock(1_000);
      await lock.lock();
      await lock.unlock();
      await lock.unlock();
      expect(await admin().pttl(name)).toBeGreaterThan(HUGE - 10_000);
      await lock.unlock();
    });
  });

  describe('a busy lock', () => {
    test.each(BUSY)('stays unchanged after %s (%i ms)', async (_, waitTime, call, answer) => {
      const { lock, name } = await open(kind);
      const other = await open(kind, { name });
      const hold = await holdElsewhere(lock, 20_000);
      const before = await admin().hgetall(name);
      const { value, ms, ownMs } = await timed(() => call(other.lock).catch((error: unknown) => error));
      if (answer === LockTimeoutError) {
        expect(value).toBeInstanceOf(LockTimeoutError);
        expect(value).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', lockName: name, waitTime });
      } else {
        expect(value).toBe(answer);
      }
      expect(ms).toBeGreaterThanOrEqual(waitTime);
      expect(ownMs).toBeLessThan(waitTime + SLACK_MS);
      expect(await admin().hgetall(name)).toEqual(before);
      expect(hold.signal.aborted).toBe(false);
      await hold.release();
    });

    test('keeps nothing of waiters that give up', async () => {
      const { lock, name } = await open(kind);
      const other = await open(kind, { name });
      const hold = await holdElsewhere(lock, 20_000);
      await Promise.all(BUSY.map(([, , call]) => inFlow(() => call(other.lock).catch(() => undefined))));
      await hold.release();
      // Before the client is closed, only the subscription remains for a short time.
      await expectNothingLeft();
      // A connection's own, for an attempt that has been answered, runs out with it.
      await until(() => other.clock.timers <= 1, 'no timer of theirs is left', ATTEMPT_MS + SLACK_MS);
      expect(other.client.holds()).toEqual([]);
    });

    test.each(WAITS)('is acquired by %s after its release', async (form, call) => {
      const bench = await open(kind);
      const other = await open(kind, { name: bench.name });
      const hold = await holdElsewhere(bench.lock);
      const ready = startWaiting(other, () => call(other.lock));
      const { result } = await ready;
      await pause(STARTED_MS);
      expect(other.events.acquired).toEqual([]);
      const released = performance.now();
      await hold.release();
      const value = await result;
      expect(elapsed(released)).toBeLessThan(WAKE_MS + SLACK_MS);
      expect(value).toEqual(granted(form));
      await releaseHeld(other.lock, value);
    });
  });

  test('a hold without a lease outlasts the watchdog timeout, and one with a lease ends', async () => {
    const watched = await open(kind, { lockWatchdogTimeout: 900 });
    const leased = await open(kind, { lockWatchdogTimeout: 900 });
    const [kept, ended] = [await holdElsewhere(watched.lock), await holdElsewhere(leased.lock, 900)];
    await pause(1_000);
    expect(kept.validFor()).toBeGreaterThan(0);
    expect(await watched.lock.isLocked()).toBe(true);
    expect(ended.validFor()).toBe(0);
    expect(await leased.lock.isLocked()).toBe(false);
    await kept.release();
  });
}

import { expect } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { LockAbortedError } from '../../src/errors.js';
import { elapsed } from '../support/time/elapsed.js';
import { holdElsewhere, inFlow, outcome, pause } from '../support/clients/lock-clients.js';
import { admin } from '../support/redis.js';
import { until } from '../support/time/until.js';
import { SLACK_MS, WAKE_MS } from './lock-kind.js';
import { expectAtMost } from '../support/serious.js';

/** A busy machine may hold a renewal up for two thirds of it, and the hold is still there. */
export const WATCHDOG_MS = 900;
const FLOWS = 5;
const ROUNDS = 4;

/**
 * Two clients contend for one lock in every way that needs a message, a script, a read or a renewal to arrive. The
 * watchdog timeout of both is WATCHDOG_MS.
 *
 * @param key  key of the lock in Redis
 */
export async function contend(clients: readonly [LockClient, LockClient], name: string, key: string): Promise<void> {
  const [first, second] = clients;
  const locks = clients.map((client) => client.getLock(name));
  const lost: unknown[] = [];
  const waiting: unknown[] = [];
  for (const client of clients) {
    client.events.on('leaseLost', (event) => lost.push(event));
    client.events.on('waiting', (event) => waiting.push(event));
  }

  // One at a time, nested, and no update of their counter is lost.
  let inside = 0;
  let counter = 0;
  const go = async (at: number): Promise<void> => {
    const lock = locks[at % 2]!;
    for (let round = 0; round < ROUNDS; round += 1) {
      if (!(await lock.tryLock(10_000, round % 2 ? 10_000 : undefined))) throw new Error('busy for too long');
      inside += 1;
      expectAtMost(inside);
      const read = counter;
      await lock.withLock(async () => expect(await lock.getHoldCount()).toBe(2));
      counter = read + 1;
      inside -= 1;
      await lock.unlock();
    }
  };
  await Promise.all(Array.from({ length: 2 * FLOWS }, (_, at) => inFlow(() => go(at))));
  expect(counter).toBe(2 * FLOWS * ROUNDS);

  // Each is woken by the other's message, not by the end of a lease.
  for (let turn = 0; turn < 4; turn += 1) {
    const [from, to] = turn % 2 ? [second, first] : [first, second];
    const hold = await holdElsewhere(from.getLock(name), 60_000);
    expect(await admin().hgetall(key)).toEqual({ [hold.owner]: '1' });
    const before = waiting.length;
    const next = inFlow(() => to.getLock(name).acquire({ leaseTime: 60_000 }));
    await until(() => waiting.length > before, 'the other client waits');
    await pause(10);
    const released = performance.now();
    await Promise.all([hold.release(), next]);
    expect(elapsed(released)).toBeLessThan(WAKE_MS + SLACK_MS);
    await (await next).release();
  }

  // Renewal past the lease, reads, and waiters that time out or are aborted and leave nothing behind.
  const hold = await holdElsewhere(first.getLock(name));
  const other = second.getLock(name);
  const controller = new AbortController();
  const aborted = inFlow(() => outcome(other.lock({ signal: controller.signal })));
  expect(await inFlow(() => other.tryLock())).toBe(false);
  expect(await inFlow(() => other.tryLock(WATCHDOG_MS + 50))).toBe(false);
  controller.abort();
  expect(await aborted).toBe(new LockAbortedError('', undefined).code);
  expect(await outcome(inFlow(() => other.unlock()))).toBe('ERR_LOCK_NOT_OWNER');
  expect(hold.validFor()).toBeGreaterThan(0);
  expect(await other.isLocked()).toBe(true);
  expect(await other.isHeldBy(hold.owner)).toBe(true);
  expect(await other.remainTimeToLive()).toBeGreaterThan(0);
  await hold.extend(20_000);
  expect(await other.remainTimeToLive()).toBeGreaterThan(18_000);
  expect(await second.inspect(name)).toMatchObject({
    name,
    kind: 'lock',
    owners: [{ owner: hold.owner, holdCount: 1, isThisClient: false }],
  });
  expect(await other.forceUnlock()).toBe(true);
  expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
  expect(lost).toHaveLength(1);
  expect(await admin().exists(key)).toBe(0);
}

import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client.js';
import type { Hold } from '../../src/core/hold.js';
import { LockLostError } from '../../src/errors.js';
import type { LockEvents } from '../../src/events.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { startWorker } from '../support/child.js';
import { stamp } from '../support/history-recorder.mjs';
import { block, closeClients, holdElsewhere, inFlow, openClient, openProxy, outcome, pause, TestClock } from '../support/lock-clients.js';
import { Random } from '../support/random.js';
import { admin, expectNothingLeft, freshName, testRedisUrl } from '../support/redis.js';
import { until } from '../support/until.js';

const RENEW = scripts.renew.script!.sha;
const SLACK_MS = 250;

afterEach(async () => {
  await closeClients();
  await expectNothingLeft();
});

/** What the client and the hold have said of a loss, and when. */
class Told {
  readonly events: LockEvents['leaseLost'][] = [];
  aborts = 0;
  at = Infinity;

  constructor(client: LockClient, hold: Hold) {
    client.events.on('leaseLost', (event) => {
      if (event.owner === hold.owner) this.events.push(event);
    });
    hold.signal.addEventListener('abort', () => {
      this.aborts += 1;
      this.at = Math.min(this.at, performance.now());
    });
  }

  /** Once each, both with the cause, and nothing after that. */
  async once(hold: Hold, reason: string): Promise<void> {
    await until(() => this.aborts > 0, 'the loss is told');
    const { owner, lockName } = hold;
    expect(hold.validFor()).toBe(0);
    expect(hold.signal.reason).toBeInstanceOf(LockLostError);
    expect(hold.signal.reason).toMatchObject({ reason, lockName, owner });
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    await pause(50);
    expect(this.aborts).toBe(1);
    expect(this.events).toMatchObject([{ reason, lockName, owner }]);
  }
}

describe('R11: a loss is told once, with its cause, by the local deadline', () => {
  test.each([200, 1_000])('R11: a lease of %i ms that ends', async (leaseMs) => {
    const client = await openClient();
    const before = performance.now();
    const hold = await holdElsewhere(client.getLock(freshName()), leaseMs);
    const told = new Told(client, hold);
    expect(hold.validFor()).toBeLessThanOrEqual(leaseMs - Math.max(5, leaseMs / 100));
    await told.once(hold, 'expired');
    expect(told.at - before).toBeLessThanOrEqual(leaseMs - Math.max(5, leaseMs / 100) + SLACK_MS);
    expect(told.at - before).toBeGreaterThan(leaseMs - Math.max(5, leaseMs / 100) - 20);
  });

  test('R11: renewals that are not answered', async () => {
    const lockWatchdogTimeout = 900;
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, lockWatchdogTimeout });
    const name = freshName();
    const hold = await holdElsewhere(client.getLock(name));
    const told = new Told(client, hold);
    let confirmedAt = 0;
    client.events.on('renewed', () => (confirmedAt = performance.now()));
    await until(() => confirmedAt > 0, 'a renewal has confirmed the hold');
    proxy.stall({ direction: 'to-client' });
    const deadline = confirmedAt + lockWatchdogTimeout - 9;
    await until(() => told.aborts > 0, 'the loss is told');
    expect(told.at).toBeLessThanOrEqual(deadline + SLACK_MS);
    // The server had renewed it meanwhile: the hold ended here first.
    expect(await admin().exists(name)).toBe(1);
    proxy.lift();
    await told.once(hold, 'expired');
    await until(async () => (await admin().exists(name)) === 0, 'what the server still had is given back', 1_500);
  });

  test('R11: a key that was deleted', async () => {
    const client = await openClient({ lockWatchdogTimeout: 600 });
    const hold = await holdElsewhere(client.getLock(freshName()));
    const told = new Told(client, hold);
    const at = performance.now();
    await admin().del(hold.lockName);
    await told.once(hold, 'gone');
    expect(told.at - at).toBeLessThanOrEqual(200 + SLACK_MS);
  });

  test('R11: forced open by another client', async () => {
    const client = await openClient({ lockWatchdogTimeout: 600 });
    const other = await openClient();
    const hold = await holdElsewhere(client.getLock(freshName()));
    const told = new Told(client, hold);
    const at = performance.now();
    expect(await other.getLock(hold.lockName).forceUnlock()).toBe(true);
    await told.once(hold, 'gone');
    expect(told.at - at).toBeLessThanOrEqual(200 + SLACK_MS);
  });

  test('R11: forced open by the same client', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const hold = await holdElsewhere(lock);
    const told = new Told(client, hold);
    expect(await lock.forceUnlock()).toBe(true);
    expect(told.aborts).toBe(1);
    await told.once(hold, 'forced');
  });

  test('R11: found out by the release', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const hold = await holdElsewhere(lock);
    const events: LockEvents['leaseLost'][] = [];
    client.events.on('leaseLost', (event) => events.push(event));
    await admin().del(lock.name);
    await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'gone' });
    expect(events).toMatchObject([{ lockName: lock.name, owner: hold.owner, reason: 'gone' }]);
  });

  test('R11: every hold of a nest is told once, and every one rejects its release', async () => {
    const client = await openClient({ lockWatchdogTimeout: 600 });
    const lock = client.getLock(freshName());
    const events: LockEvents['leaseLost'][] = [];
    client.events.on('leaseLost', (event) => events.push(event));
    await inFlow(async () => {
      const holds = [await lock.acquire(), await lock.acquire(), await lock.acquire()];
      await admin().del(lock.name);
      await until(() => holds.every(({ signal }) => signal.aborted), 'all are told', 200 + SLACK_MS);
      expect(await outcome(lock.tryLock())).toBe('ERR_LOCK_LOST');
      for (const hold of holds) expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
      expect(events).toHaveLength(3);
    });
  });
});

test('R11: a listener that is slow, and one that throws, disturb no other renewal', async () => {
  const client = await openClient({ lockWatchdogTimeout: 600 });
  const kept = await Promise.all(Array.from({ length: 20 }, () => holdElsewhere(client.getLock(freshName()))));
  const doomed = await Promise.all(Array.from({ length: 5 }, () => holdElsewhere(client.getLock(freshName()))));
  const seen: string[] = [];
  client.events.on('leaseLost', () => block(30));
  client.events.on('leaseLost', ({ lockName }) => seen.push(lockName));
  for (const { signal } of doomed) signal.addEventListener('abort', () => block(20));
  await admin().del(...doomed.map(({ lockName }) => lockName));
  await until(() => doomed.every(({ signal }) => signal.aborted), 'the losses are told');
  await pause(900);
  expect(seen.sort()).toEqual(doomed.map(({ lockName }) => lockName).sort());
  expect(kept.filter(({ signal }) => signal.aborted)).toEqual([]);
  await Promise.allSettled(doomed.map((hold) => hold.release()));

  // Jest takes an uncaught exception for its own: where listeners throw, the process is another.
  const worker = await startWorker();
  try {
    const result = await worker.throwing(testRedisUrl(), [freshName(), freshName(), freshName()]);
    expect(result).toEqual({ uncaught: 4, told: 2, kept: true, keptFor: expect.any(Number) });
  } finally {
    await worker.close();
  }
});

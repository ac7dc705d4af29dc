import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { LockLostError } from '../../src/errors.js';
import { takenPermitsKey } from '../../src/redis/keys.js';
import { release } from '../../src/redis/scripts/permit-expirable-semaphore.js';
import { startWorker, type Worker } from '../support/processes/child.js';
import { elapsed } from '../support/time/elapsed.js';
import { closeClients, openClient, openProxy, outcome, pause, TestClock } from '../support/clients/lock-clients.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { PARKED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const made: string[] = [];
const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
  await closeClients();
  for (const name of made.splice(0)) await admin().del(name);
});

async function semaphoreOf(permits: number, client?: LockClient) {
  const name = freshName('permits');
  made.push(name);
  const semaphore = (client ?? (await openClient())).getPermitExpirableSemaphore(name);
  if (permits >= 0) await semaphore.trySetPermits(permits);
  return { name, semaphore, other: (await openClient()).getPermitExpirableSemaphore(name) };
}

/** Ends the lease of a permit `ms` from now, without a wait for it. */
async function endsIn(name: string, id: string, ms: number): Promise<void> {
  const [seconds, micros] = await admin().time();
  const now = Math.floor(Number(seconds) * 1_000 + Number(micros) / 1_000);
  await admin().zadd(takenPermitsKey(name), 'XX', now + ms, Buffer.from(id, 'hex'));
}

test('R11: while one of two updates of a lease is unanswered, a permit is valid for the shorter of both', async () => {
  const { proxy, url } = await openProxy();
  const { semaphore } = await semaphoreOf(1, await openClient({ url }));
  const permit = await semaphore.acquirePermit({ leaseTime: 5_000 });
  await permit.updateLeaseTime(4_000); // the server knows the script by now
  const shorter = proxy.holdReply({ contains: '1234' });
  const updates = [permit.updateLeaseTime(60_000), permit.updateLeaseTime(1_234)];
  await shorter.executed;
  await updates[0];
  expect(permit.validFor()).toBeLessThanOrEqual(1_234);
  shorter.lift();
  await updates[1];
  expect(permit.validFor()).toBeLessThanOrEqual(1_234);
  // Later requests count separately.
  await permit.updateLeaseTime(30_000);
  expect(permit.validFor()).toBeGreaterThan(29_000);
  await permit.release();
});

test.each([
  ['an AbortError', () => new DOMException('stopped', 'AbortError')],
  ['the error of the release', (release: unknown) => new Error('outer', { cause: release })],
])('withPermit() rejects with a LockLostError caused by the error of a body without a permit: %s', async (_, of) => {
  const { name, semaphore } = await semaphoreOf(1);
  let thrown: unknown;
  const failing = semaphore.withPermit(async (permit) => {
    await semaphore.release(permit.id);
    thrown = of(await permit.release().catch((error: unknown) => error));
    throw thrown;
  });
  const error = await failing.catch((rejected: unknown) => rejected);
  expect(error).toBeInstanceOf(LockLostError);
  expect(error).toMatchObject({ lockName: name, reason: 'gone' });
  expect((error as LockLostError).cause).toBe(thrown);
});

test('withPermit() rejects with the unchanged error of a body that failed without a permit for another reason', async () => {
  const { semaphore } = await semaphoreOf(1);
  const thrown = new Error('of the body');
  const failing = semaphore.withPermit(async ({ id }) => {
    await semaphore.release(id);
    throw thrown;
  });
  expect(await failing.catch((rejected: unknown) => rejected)).toBe(thrown);
});

test('a background release of permits does not wait for the end of another lease', async () => {
  const { proxy, url } = await openProxy();
  const { name, semaphore, other } = await semaphoreOf(3, await openClient({ url }));
  await semaphore.withPermit(() => undefined); // the server has the scripts
  const [kept, short, alsoKept] = [await semaphore.acquire(), await semaphore.acquire(), await semaphore.acquire()];
  const noPerm = "-NOPERM this user has no permissions to run the 'evalsha' command\r\n";
  const refused = proxy.answer({ sha: release.script!.sha, times: Infinity }, noPerm);
  expect(await outcome(semaphore.release([kept, short, alsoKept]))).toBe('ERR_LOCK_REFUSED');
  await endsIn(name, short, -1);
  refused.lift();
  await until(async () => (await other.acquiredPermits()) === 0, 'the others are released');
  expect(await admin().get(name)).toBe('3');
});

test('permits whose release Redis refuses are released as soon as Redis allows it', async () => {
  const { proxy, url } = await openProxy();
  const { semaphore, other } = await semaphoreOf(2, await openClient({ url }));
  await semaphore.withPermit(() => undefined); // the server has the scripts
  const permit = await semaphore.acquirePermit({ permits: 2 });
  const noPerm = "-NOPERM this user has no permissions to run the 'evalsha' command\r\n";
  const refused = proxy.answer({ sha: release.script!.sha, times: Infinity }, noPerm);
  expect(await outcome(permit.release())).toBe('ERR_LOCK_REFUSED');
  expect(await other.availablePermits()).toBe(0);
  refused.lift();
  await until(async () => (await other.availablePermits()) === 2, 'both are free');
});

describe('a release whose reply was lost', () => {
  async function cutAway() {
    const { proxy, url } = await openProxy();
    const each = await semaphoreOf(3, await openClient({ url }));
    await admin().script('LOAD', release.script!.source);
    return { ...each, cut: proxy.cutAfter({ sha: release.script!.sha }) };
  }

  test('R4: of several ids, one of them not taken, rejects and releases none', async () => {
    const { semaphore, other, cut } = await cutAway();
    const [id, gone] = await semaphore.acquireMany(2);
    await other.release(gone!);
    expect(await outcome(semaphore.release([id!, gone!]))).toBe('ERR_LOCK_UNKNOWN_PERMIT');
    expect(cut.count).toBe(1);
    expect(await other.acquiredPermits()).toBe(1);
    expect(await other.tryRelease(id!)).toBe(true);
  });

  test('R4: is repeated, and reports that the lease had expired before', async () => {
    const { semaphore, cut } = await cutAway();
    const outlived = semaphore.withPermit({ leaseTime: 100 }, async (permit) => {
      await pause(150);
      return permit.validFor();
    });
    await expect(outlived).rejects.toMatchObject({ code: 'ERR_LOCK_LOST', result: 0 });
    expect(cut.count).toBe(1);
    expect(await semaphore.availablePermits()).toBe(3);
  });

  test('R4: is repeated, and succeeds during the lease', async () => {
    const { semaphore, cut } = await cutAway();
    const permit = await semaphore.acquirePermit({ permits: 2, leaseTime: 20_000 });
    expect(await outcome(permit.release())).toBe('ok');
    expect(cut.count).toBe(1);
    expect(await semaphore.availablePermits()).toBe(3);
  });
});

describe('ids', () => {
  test('a permit can be released by its id once, from any client', async () => {
    const { semaphore, other } = await semaphoreOf(2);
    const id = await semaphore.acquire();
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(await other.tryAcquire()).not.toBe(id);
    await other.release(id.toUpperCase());
    await expect(semaphore.release(id)).rejects.toMatchObject({
      code: 'ERR_LOCK_UNKNOWN_PERMIT',
      permitIds: [id],
    });
    expect(await semaphore.tryRelease(id)).toBe(false);
    expect(await semaphore.availablePermits()).toBe(1);
    expect(await semaphore.acquiredPermits()).toBe(1);
    expect(await semaphore.getPermits()).toBe(2);
    for (const { id: rest } of (await (await openClient()).inspect(semaphore.name)).permits) await other.release(rest);
  });

  test('several permits are taken and released as all or none', async () => {
    const { semaphore, other } = await semaphoreOf(3);
    const two = await semaphore.acquireMany(2, 20_000);
    expect(new Set(two).size).toBe(2);
    expect(await other.tryAcquireMany(2)).toEqual([]);
    expect(await other.tryRelease([...two, '0'.repeat(32)])).toBe(false);
    await expect(other.release(['0'.repeat(32), two[0]!])).rejects.toMatchObject({ code: 'ERR_LOCK_UNKNOWN_PERMIT' });
    expect(await semaphore.acquiredPermits()).toBe(2);
    await other.release([two[0]!, two[1]!, two[0]!]);
    expect(await semaphore.availablePermits()).toBe(3);
  });

  test.each(['', 5, undefined, null, [], [5], ['']])('R7: %j is refused as an id', async (ids) => {
    const { semaphore } = await semaphoreOf(-1);
    const id = ids as never;
    for (const call of [
      () => semaphore.release(id),
      () => semaphore.tryRelease(id),
      () => semaphore.getLeaseTime(id),
      () => semaphore.updateLeaseTime(id),
    ]) {
      expect(await outcome(call())).toBe('ERR_LOCK_INVALID_ARGUMENT');
    }
  });

  test.each<[string, (taken: string) => string]>([
    ['a word', () => 'xyz'],
    ['too short', (taken) => taken.slice(1)],
    ['one that goes on after its end', (taken) => `${taken}zz`],
  ])('an id that was never issued (%s) is unknown, and the taken permit stays', async (_, idFrom) => {
    const { semaphore } = await semaphoreOf(1);
    const taken = await semaphore.acquire(20_000);
    const id = idFrom(taken);
    for (const call of [
      () => semaphore.release(id),
      () => semaphore.release([taken, id]),
      () => semaphore.getLeaseTime(id),
    ]) {
      await expect(call()).rejects.toMatchObject({
        code: 'ERR_LOCK_UNKNOWN_PERMIT',
        permitIds: expect.arrayContaining([id]),
      });
    }
    expect(await semaphore.tryRelease([id, taken])).toBe(false);
    expect(await semaphore.updateLeaseTime(id, 5_000)).toBe(false);
    expect(await semaphore.acquiredPermits()).toBe(1);
    await semaphore.release(taken);
  });

  test('R7: invalid leases and numbers are refused', async () => {
    const { semaphore } = await semaphoreOf(-1);
    for (const call of [
      () => semaphore.acquire(0),
      () => semaphore.acquire(9),
      () => semaphore.acquire(1.5),
      () => semaphore.tryAcquire(0, -2),
      () => semaphore.acquireMany(10_001),
      () => semaphore.acquirePermit({ permits: 0 }),
      () => semaphore.updateLeaseTime('0'.repeat(32), 0),
      () => semaphore.setPermits(-1),
      () => semaphore.trySetPermits(-1),
      () => semaphore.withPermit(5 as never),
    ]) {
      expect(await outcome(call())).toBe('ERR_LOCK_INVALID_ARGUMENT');
    }
  });

  test('inspect() lists each taken permit and its remaining lease', async () => {
    const client = await openClient();
    const { name, semaphore } = await semaphoreOf(5, client);
    const ids = [await semaphore.acquire(20_000), await semaphore.acquire()];
    const { kind, value, permits } = await client.inspect(name);
    expect({ kind, value }).toEqual({ kind: 'permits', value: '3' });
    expect(permits.map(({ id }) => id)).toEqual(ids);
    expect(permits[0]!.remaining).toBeGreaterThan(19_000);
    expect(permits[1]!.remaining).toBe(-1);
    await semaphore.release(ids);
  });
});

describe('leases', () => {
  test('a lease lasts as requested, can be changed to a longer or shorter one, or has no end', async () => {
    const { semaphore, other } = await semaphoreOf(2);
    const id = await semaphore.acquire(20_000);
    expect(await other.getLeaseTime(id)).toBeGreaterThan(19_000);
    expect(await other.updateLeaseTime(id, 40_000)).toBe(true);
    expect(await semaphore.getLeaseTime(id)).toBeGreaterThan(39_000);
    expect(await other.updateLeaseTime(id, 5_000)).toBe(true);
    expect(await semaphore.getLeaseTime(id)).toBeLessThanOrEqual(5_000);
    expect(await other.updateLeaseTime(id)).toBe(true);
    expect(await semaphore.getLeaseTime(id)).toBe(-1);
    await semaphore.release(id);
    expect(await other.updateLeaseTime(id, 5_000)).toBe(false);
    await expect(other.getLeaseTime(id)).rejects.toMatchObject({ code: 'ERR_LOCK_UNKNOWN_PERMIT' });
  });

  test('after its lease a permit is free again, and its id is unknown', async () => {
    const { name, semaphore } = await semaphoreOf(1);
    const id = await semaphore.acquire(60_000);
    await endsIn(name, id, 0);
    await expect(semaphore.release(id)).rejects.toMatchObject({ code: 'ERR_LOCK_UNKNOWN_PERMIT' });
    expect(await semaphore.availablePermits()).toBe(1);
  });

  test('R16: after kill -9 of a process its permit is free at the end of the lease, and not before', async () => {
    const { name, semaphore } = await semaphoreOf(1);
    const doomed = await startWorker();
    workers.push(doomed);
    await doomed.createClient({ url: testRedisUrl() });
    await doomed.flow('holder').call({ factory: 'getPermitExpirableSemaphore', name }, 'acquire', 1_500);
    const taken = performance.now();
    await doomed.kill9();
    const id = await semaphore.acquire();
    expect(performance.now() - taken).toBeGreaterThan(1_300);
    expect(elapsed(taken)).toBeLessThan(1_500 + 450);
    await semaphore.release(id);
  });

  test('R30: clients whose clocks are an hour apart agree on when a lease ends', async () => {
    const [ahead, behind] = [new TestClock(), new TestClock()];
    ahead.jumpWall(3_600_000);
    behind.jumpWall(-3_600_000);
    const { name, semaphore } = await semaphoreOf(1, await openClient({ clock: ahead }));
    const other = (await openClient({ clock: behind })).getPermitExpirableSemaphore(name);
    const first = await semaphore.acquire(30_000);
    expect(await other.tryAcquire()).toBeNull();
    expect(await other.getLeaseTime(first)).toBeGreaterThan(29_000);
    await semaphore.release(first);
    const second = await other.acquire(30_000);
    expect(await semaphore.tryAcquire()).toBeNull();
    expect(await semaphore.getLeaseTime(second)).toBeLessThanOrEqual(30_000);
    await semaphore.release(second);
  });

  test('R13: a reply that arrives after the lease grants nothing, and the client releases the permit', async () => {
    const { proxy, url } = await openProxy();
    const { name, semaphore } = await semaphoreOf(1, await openClient({ url }));
    await semaphore.release(await semaphore.acquire());
    proxy.holdReply({ command: 'EVALSHA', contains: takenPermitsKey(name) }, 300);
    await expect(semaphore.tryAcquire(0, 100)).rejects.toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE' });
    await until(async () => (await semaphore.availablePermits()) === 1, 'it is back');
  });

  test('hazard 42: an expiry of the semaphore also applies to its taken permits, and addPermits keeps it', async () => {
    const { name, semaphore } = await semaphoreOf(2);
    await admin().pexpire(name, 60_000);
    const id = await semaphore.acquire();
    await semaphore.addPermits(1);
    const left = await Promise.all([name, takenPermitsKey(name)].map((key) => admin().pttl(key)));
    for (const ms of left) expect(ms).toBeGreaterThan(58_000);
    await semaphore.release(id);
  });
});

describe('waiting', () => {
  test('R21: a waiter, and then the next one, gets a permit when a lease ends without a message (hazard 41)', async () => {
    const { semaphore, other } = await semaphoreOf(1);
    const began = performance.now();
    await other.acquire(400);
    const taken = performance.now();
    // The second knows of the lease of the first only from the answer that gave it the permit.
    const first = semaphore.acquire(400);
    const second = semaphore.acquire();
    await first;
    const firstAt = performance.now();
    const id = await second;
    const secondAt = performance.now();
    // Each lease began between the asking and the answer.
    expect(firstAt - began).toBeGreaterThan(400 - 5);
    expect(elapsed(taken, firstAt)).toBeLessThan(400 + 200 + 250);
    expect(secondAt - began).toBeGreaterThan(400 + 400 - 5);
    expect(elapsed(firstAt, secondAt)).toBeLessThan(400 + 200 + 250);
    await semaphore.release(id);
  });

  test('R21: a waiter for few permits gets them when the waiter for more before it times out', async () => {
    const { semaphore, other } = await semaphoreOf(3);
    const taken = await other.acquireMany(2);
    const more = outcome(semaphore.acquireMany(3, undefined, { waitTime: 300 }));
    const less = semaphore.acquire();
    expect(await more).toBe('ERR_LOCK_TIMEOUT');
    const leftAt = performance.now();
    await semaphore.release(await less);
    expect(elapsed(leftAt)).toBeLessThan(200 + 250);
    await other.release(taken);
  });

  test('R21: a shortened lease also ends for the waiters', async () => {
    const { name, semaphore, other } = await semaphoreOf(1);
    const id = await other.acquire(60_000);
    const waiting = semaphore.acquire();
    await until(async () => ((await admin().pubsub('CHANNELS', `*${name}*`)) as string[]).length > 0, 'it listens');
    await pause(PARKED_MS);
    const began = performance.now();
    await other.updateLeaseTime(id, 200);
    await semaphore.release(await waiting);
    expect(elapsed(began)).toBeLessThan(200 + 200 + 250);
  });

  test('a wait that is shorter than the lease times out on time', async () => {
    const { semaphore, other } = await semaphoreOf(1);
    const id = await other.acquire(20_000);
    expect(await semaphore.tryAcquire(60, 1_000)).toBeNull();
    await other.release(id);
  });

  test('after setPermits below the taken number no waiter is granted until enough permits are released', async () => {
    const { semaphore, other } = await semaphoreOf(3);
    const ids = await semaphore.acquireMany(3);
    await other.setPermits(1);
    expect(await semaphore.availablePermits()).toBe(-2);
    await semaphore.release(ids[0]!);
    await semaphore.release(ids[1]!);
    expect(await other.tryAcquire()).toBeNull();
    await semaphore.release(ids[2]!);
    expect(await semaphore.getPermits()).toBe(1);
    await semaphore.release(await semaphore.acquire());
  });
});

describe('permit objects', () => {
  test('await using releases the permit, and validFor() is known', async () => {
    const { semaphore } = await semaphoreOf(2);
    {
      await using permit = await semaphore.acquirePermit({ leaseTime: 20_000, permits: 2 });
      expect(permit.ids).toHaveLength(2);
      expect(permit.id).toBe(permit.ids[0]);
      expect(permit.semaphoreName).toBe(semaphore.name);
      expect(permit.validFor()).toBeGreaterThan(19_000);
      expect(permit.validFor()).toBeLessThanOrEqual(19_800);
      expect(AbortSignal.timeout(permit.validFor()).aborted).toBe(false);
      await permit.updateLeaseTime(5_000);
      expect(permit.validFor()).toBeLessThanOrEqual(4_950);
      expect(await semaphore.tryAcquirePermit()).toBeNull();
    }
    expect(await semaphore.availablePermits()).toBe(2);
    const forever = await semaphore.tryAcquirePermit();
    expect(forever!.validFor()).toBe(Infinity);
    expect(forever!.release()).toBe(forever!.release());
    await forever!.release();
    expect(forever!.validFor()).toBe(0);
  });

  test('a permit whose lease has ended reports that it is not valid', async () => {
    const { name, semaphore } = await semaphoreOf(1);
    const permit = await semaphore.acquirePermit({ leaseTime: 250 });
    await until(() => permit.validFor() === 0, 'its time is up');
    expect(await semaphore.acquiredPermits()).toBeLessThanOrEqual(1);
    await until(async () => (await semaphore.acquiredPermits()) === 0, 'it is back');
    await expect(permit.updateLeaseTime(1_000)).rejects.toMatchObject({ code: 'ERR_LOCK_UNKNOWN_PERMIT' });
    await expect(permit.release()).rejects.toMatchObject({ code: 'ERR_LOCK_UNKNOWN_PERMIT', lockName: name });
  });

  test('withPermit rejects with the result of its function if the lease ended before the function', async () => {
    const { name, semaphore } = await semaphoreOf(1);
    const late = semaphore.withPermit({ leaseTime: 60_000 }, async (permit) => {
      await endsIn(name, permit.id, 0);
      return 'done';
    });
    await expect(late).rejects.toMatchObject({ code: 'ERR_LOCK_LOST', result: 'done' });
    expect(await semaphore.availablePermits()).toBe(1);
  });
});

describe('R1: lost replies', () => {
  test.each(['cutBefore', 'cutAfter', 'swallow'] as const)(
    'R1: %s: a change of the semaphore or of a lease counts once',
    async (fault) => {
      const { proxy, url } = await openProxy();
      const { name, semaphore, other } = await semaphoreOf(2, await openClient({ url, commandTimeout: 900 }));
      const strike = async <T>(call: () => Promise<T>): Promise<T> => {
        const struck = proxy[fault]({ command: 'EVALSHA', contains: name });
        const result = await call();
        expect(struck.count).toBe(1);
        return result;
      };
      await semaphore.setPermits(3);
      const id = await semaphore.acquire(60_000);
      await semaphore.updateLeaseTime(id, 60_000);
      await strike(() => semaphore.addPermits(2));
      expect(await other.getPermits()).toBe(5);
      await strike(() => semaphore.setPermits(4));
      expect(await other.getPermits()).toBe(4);
      expect(await strike(() => semaphore.updateLeaseTime(id, 20_000))).toBe(true);
      expect(await other.getLeaseTime(id)).toBeLessThanOrEqual(20_000);
      expect(await strike(() => semaphore.tryRelease(id))).toBe(true);
      expect(await other.availablePermits()).toBe(4);
    },
  );
});

import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { LockContext } from '../../src/ownership/lock-context.js';
import { LockLostError } from '../../src/errors.js';
import { acquire } from '../../src/several/group/scripts.js';
import { elapsed } from '../support/time/elapsed.js';
import { heldValue, holdValues, serverNow, valueField } from '../support/lua/group-values.js';
import {
  closeClients,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
  TestClock,
} from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

afterEach(() => closeClients());

/** The values that Redis has of a group, and how often each is held. */
async function counts(group: string, values: readonly string[]): Promise<Record<string, number>> {
  const held: Record<string, number> = {};
  for (const value of values) {
    const owner = await admin().hget(group, valueField(value));
    if (owner !== null) held[value] = Number(await admin().hget(group, `${valueField(value)}:${owner}:lock_count`));
  }
  return held;
}

async function waiting(client: LockClient): Promise<void> {
  await new Promise<void>((resolve) => client.events.on('waiting', () => resolve()));
}

const ALL = ['a', 'b', 'c', 'd'];

describe('values of a group', () => {
  test('that do not overlap can be held at the same time by any owners', async () => {
    const group = freshName();
    const [one, other] = [await openClient(), await openClient()];
    const holds = await Promise.all([
      inFlow(async () => one.getMultiLock(group, ['a', 'b']).tryAcquire()),
      inFlow(async () => one.getMultiLock(group, ['c']).tryAcquire()),
      inFlow(async () => other.getMultiLock(group, ['d']).tryAcquire()),
    ]);
    expect(await counts(group, ALL)).toEqual({ a: 1, b: 1, c: 1, d: 1 });
    expect(new Set(holds.map((hold) => hold!.owner)).size).toBe(3);
    expect(await other.getMultiLock(group, ['d', 'b']).tryLock()).toBe(false);
    for (const hold of holds) await hold!.release();
  });

  test('in another order, or given twice, are the same lock', async () => {
    const group = freshName();
    const client = await openClient();
    await client.getMultiLock(group, ['b', 'a', 'b']).lock();
    const same = client.getMultiLock(group, ['a', 'b']);
    expect(await same.getHoldCount()).toBe(1);
    await same.unlock();
  });

  test('a waiter is woken only by a release that frees its values', async () => {
    const group = freshName();
    const [one, other] = [await openClient(), await openClient()];
    const hold = await inFlow(async () => one.getMultiLock(group, ['a', 'b']).acquire());
    const beside = await inFlow(async () => one.getMultiLock(group, ['c']).acquire());
    const waits = waiting(other);
    const taken = inFlow(async () => other.getMultiLock(group, ['b', 'd']).acquire());
    await waits;
    await beside.release();
    expect(await counts(group, ALL)).toEqual({ a: 1, b: 1 });
    const released = performance.now();
    await hold.release();
    await (await taken).release();
    expect(elapsed(released)).toBeLessThan(450);
  });

  test('a waiter for free values is not blocked by a waiter for other values', async () => {
    const group = freshName();
    const client = await openClient();
    const hold = await inFlow(async () => client.getMultiLock(group, ['a']).acquire());
    const waits = waiting(client);
    const taken = inFlow(async () => client.getMultiLock(group, ['a', 'b']).acquire());
    await waits;
    const free = await inFlow(async () => client.getMultiLock(group, ['c']).tryAcquire({ waitTime: 1_000 }));
    expect(free).not.toBeNull();
    await free!.release();
    await hold.release();
    await (await taken).release();
  });

  test('an empty list, or a value that is not a string, is refused', async () => {
    const client = await openClient();
    for (const values of [[], 'ab', ['a', 1], [''], undefined]) {
      expect(() => client.getMultiLock(freshName(), values as string[])).toThrow(/values/);
    }
  });
});

describe('inside a hold', () => {
  test('a call for some of its values re-enters, each value with its own count', async () => {
    const group = freshName();
    const client = await openClient();
    const outer = client.getMultiLock(group, ['a', 'b', 'c']);
    const inner = client.getMultiLock(group, ['a', 'c']);
    const innermost = client.getMultiLock(group, ['b']);
    await outer.lock();
    await inner.lock();
    await innermost.lock(); // held by the hold around the one around us
    expect(await counts(group, ALL)).toEqual({ a: 2, b: 2, c: 2 });
    expect([await outer.getHoldCount(), await inner.getHoldCount()]).toEqual([2, 2]);
    await innermost.unlock();
    await inner.unlock();
    expect(await counts(group, ALL)).toEqual({ a: 1, b: 1, c: 1 });
    expect(await outcome(inner.unlock())).toBe('ERR_LOCK_NOT_OWNER');
    await outer.unlock();
    expect(await admin().exists(group)).toBe(0);
  });

  test('a nested hold that outlives its parent keeps only its own values; the others go to a waiter', async () => {
    const group = freshName();
    const [client, other] = [await openClient(), await openClient()];
    const outer = await inFlow(async () => client.getMultiLock(group, ['a', 'b', 'c']).acquire());
    const inner = await outer.run(async () => client.getMultiLock(group, ['b']).acquire());
    const waits = waiting(other);
    const taken = inFlow(async () => other.getMultiLock(group, ['a', 'c']).acquire());
    await waits;
    await outer.release();
    const hold = await taken;
    expect(await counts(group, ALL)).toEqual({ a: 1, b: 1, c: 1 });
    expect(inner.validFor()).toBeGreaterThan(20_000);
    // By now the owner has `b` alone.
    const code = await inner.run(async () => outcome(client.getMultiLock(group, ['a']).acquire({ waitTime: 0 })));
    expect(code).toBe('ERR_LOCK_TIMEOUT');
    await inner.release();
    await hold.release();
    expect(await admin().exists(group)).toBe(0);
  });

  test('a call for some of its values and further values is refused at once', async () => {
    const group = freshName();
    const client = await openClient();
    await client.getMultiLock(group, ['a', 'b']).withLock(async () => {
      expect(await outcome(client.getMultiLock(group, ['b', 'c']).lock())).toBe('ERR_LOCK_UPGRADE');
      const beside = await client.getMultiLock(group, ['c']).acquire();
      expect(beside.owner).not.toBe(client.getMultiLock(group, ['a']).currentHold()?.owner);
      await beside.release();
    });
    const context = new LockContext();
    await client.getMultiLock(group, ['a', 'b'], { context }).lock();
    expect(await outcome(client.getMultiLock(group, ['b', 'c'], { context }).lock())).toBe('ERR_LOCK_UPGRADE');
    await client.getMultiLock(group, ['c'], { context }).lock();
    await client.getMultiLock(group, ['c'], { context }).unlock();
    await client.getMultiLock(group, ['a', 'b'], { context }).unlock();
  });

  test('a call for all values that waits inside a hold of some is refused when the hold of all values is released', async () => {
    const client = await openClient();
    const name = freshName('group');
    const [all, some] = [client.getMultiLock(name, ['a', 'b']), client.getMultiLock(name, ['a'])];
    const outer = await inFlow(async () => all.acquire());
    const inner = await inFlow(() => outer.run(async () => some.acquire()));
    const branch = await inFlow(() => inner.run(async () => some.acquire()));
    const waits = outcome(inFlow(() => inner.run(async () => all.acquire({ waitTime: 3_000 }))));
    await outer.release();
    await branch.release();
    expect(await waits).toBe('ERR_LOCK_UPGRADE'); // and not: waits for the hold that it is inside of
    await inner.release();
  });

  test('R15: all values last as long as the longest hold of their owner, and the rest after its release', async () => {
    const group = freshName();
    const client = await openClient();
    const outer = await client.getMultiLock(group, ['a', 'b']).acquire({ leaseTime: 20_000 });
    const left = async (value: string): Promise<number> => {
      const ends = await admin().hget(group, `${valueField(value)}:${outer.owner}:expire_time`);
      return Number(ends) - (await serverNow());
    };
    const lasts = async (atLeast: number, atMost: number): Promise<void> => {
      for (const value of ['a', 'b']) {
        // No hold may count for longer than any of its values is kept.
        expect(await left(value)).toBeGreaterThan(outer.validFor());
        expect(await left(value)).toBeLessThanOrEqual(atMost);
      }
      expect(outer.validFor()).toBeGreaterThan(atLeast);
    };
    const inner = await client.getMultiLock(group, ['a']).acquire({ leaseTime: 60_000 });
    await lasts(58_000, 60_000);
    await inner.extend(90_000);
    await lasts(88_000, 90_000);
    await inner.release();
    await lasts(18_000, 20_000);
    await outer.release();
  });

  test('R15: the renewal of a hold inside a hold with its own lease keeps the values of both', async () => {
    const group = freshName();
    const client = await openClient({ lockWatchdogTimeout: 1_200 });
    const outer = await client.getMultiLock(group, ['a', 'b']).acquire({ leaseTime: 900 });
    const inner = await client.getMultiLock(group, ['a']).acquire();
    await pause(2_000);
    expect(outer.signal.aborted).toBe(false);
    expect(await counts(group, ['a', 'b'])).toEqual({ a: 2, b: 1 });
    expect(await (await openClient()).getMultiLock(group, ['b']).tryLock()).toBe(false);
    await inner.release().catch(() => undefined);
    await outer.release().catch(() => undefined);
  });
});

describe('hazard 46', () => {
  test('a hold that loses one value is lost: the loss is reported, and the other values are released', async () => {
    const group = freshName();
    const [client, other] = [await openClient(), await openClient()];
    const hold = await inFlow(async () => client.getMultiLock(group, ['a', 'b']).acquire());
    expect(await other.getMultiLock(group, ['b']).forceUnlock()).toBe(true);
    expect(await counts(group, ALL)).toEqual({ a: 1 });
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    await until(async () => (await admin().exists(group)) === 0, 'nothing of it is left');
  });

  test('forceUnlock() of free values is no error, and it reports whether it freed a value', async () => {
    const group = freshName();
    const client = await openClient();
    const lock = client.getMultiLock(group, ['a', 'b']);
    expect(await lock.forceUnlock()).toBe(false);
    await holdValues(group, ['a', 'b'], 10_000);
    expect(await lock.forceUnlock()).toBe(true);
    expect(await lock.isLocked()).toBe(false);
  });

  test('forceUnlock() reports the loss to the hold of this client at once, and to no other hold', async () => {
    const group = freshName();
    const client = await openClient();
    const hit = await inFlow(async () => client.getMultiLock(group, ['a', 'b']).acquire());
    const spared = await inFlow(async () => client.getMultiLock(group, ['c']).acquire());
    const { signal } = hit;
    await client.getMultiLock(group, ['b', 'd']).forceUnlock();
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect((signal.reason as LockLostError).reason).toBe('forced');
    await hit.release().catch(() => undefined);
    await until(async () => (await counts(group, ALL))['a'] === undefined, 'the rest of it is released');
    expect(spared.validFor()).toBeGreaterThan(0);
    await spared.release();
  });

  test('the first value counts like the others', async () => {
    const group = freshName();
    const client = await openClient();
    await client.getMultiLock(group, ALL).withLock(async () => {
      for (const value of ALL) {
        const owner = client.getMultiLock(group, ALL).currentHold()!.owner;
        await admin().hset(group, valueField(value), 'x:1');
        expect(await client.getMultiLock(group, ALL).isHeldByCurrentContext()).toBe(false);
        await admin().hset(group, valueField(value), owner);
      }
      expect(await client.getMultiLock(group, ALL).isHeldByCurrentContext()).toBe(true);
    });
  });

  test('R30: a client whose clock is an hour off neither acquires held values nor loses its own', async () => {
    const group = freshName();
    const clock = new TestClock();
    clock.jumpWall(3_600_000);
    const [ahead, other] = [await openClient({ clock }), await openClient()];
    const hold = await inFlow(async () => other.getMultiLock(group, ['a']).acquire({ leaseTime: 30_000 }));
    expect(await ahead.getMultiLock(group, ['a']).tryLock()).toBe(false);
    await hold.release();
    await ahead.getMultiLock(group, ['a']).withLock({ leaseTime: 20_000 }, async () => {
      const left = await other.getMultiLock(group, ['a']).remainTimeToLive();
      expect(left).toBeLessThanOrEqual(20_000);
      expect(left).toBeGreaterThan(15_000);
    });
  });
});

describe('500 values', () => {
  const values = Array.from({ length: 500 }, (_, i) => `order:${i}`);

  test('are locked and unlocked by one command each', async () => {
    const group = freshName();
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    await client.getMultiLock(group, values).withLock(() => undefined); // the scripts are known from here on
    const sent = proxy.observe({ command: ['EVAL', 'EVALSHA'], times: Infinity });
    await client.getMultiLock(group, values).withLock(async () => {
      expect(await admin().hlen(group)).toBe(1_500);
    });
    expect(sent.count).toBe(2);
  });

  test('are renewed together, and kept for as long as they are held', async () => {
    const group = freshName();
    const client = await openClient({ lockWatchdogTimeout: 1_500 });
    const hold = await inFlow(async () => client.getMultiLock(group, values).acquire());
    let renewals = 0;
    await new Promise<void>((resolve) =>
      client.events.on('renewed', () => {
        renewals += 1;
        if (renewals === 6) resolve();
      }),
    );
    expect(hold.signal.aborted).toBe(false);
    expect(await client.getMultiLock(group, values).isLocked()).toBe(true);
    await hold.release();
    expect(await admin().exists(group)).toBe(0);
  });
});

test('R1, R4: after lost replies no value is taken twice and nothing is left behind', async () => {
  const group = freshName();
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 900 });
  const lock = client.getMultiLock(group, ['a', 'b']);
  await lock.withLock(() => undefined);
  for (let round = 0; round < 3; round += 1) {
    const taking = proxy.swallow({ command: 'EVALSHA' });
    const hold = await lock.acquire();
    expect(taking.count).toBe(1);
    expect(await counts(group, ALL)).toEqual({ a: 1, b: 1 });
    const giving = proxy.swallow({ command: 'EVALSHA' });
    await hold.release();
    expect(giving.count).toBe(1);
    expect(await admin().exists(group)).toBe(0);
  }
});

test('R4: an attempt that arrives after the release of its hold takes no value again beside a nested hold', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout: 6_000 });
  const group = freshName();
  await admin().script('LOAD', acquire.script!.source);
  const late = proxy.holdCommand({ sha: acquire.script!.sha });
  const asked = inFlow(async () => client.getMultiLock(group, ['a', 'b']).acquire());
  await late.applied;
  proxy.cut({ kind: 'command', side: 'client' });
  const outer = await asked;
  const inner = await inFlow(() => outer.run(async () => client.getMultiLock(group, ['a']).acquire()));
  await outer.release();
  late.lift();
  await late.executed;
  expect(await counts(group, ALL)).toEqual({ a: 1 });
  await inner.release();
});

test('inspect() recognizes a group by its fields', async () => {
  const group = freshName();
  const client = await openClient();
  const lock = client.getMultiLock(group, ['a', 'b']);
  await lock.withLock(async (hold) => {
    await client.getMultiLock(group, ['a']).withLock(async () => {
      const { kind, owners } = await client.inspect(group);
      expect({ kind, owners }).toEqual({
        kind: 'group',
        owners: [{ owner: hold.owner, holdCount: 2, mode: 'exclusive', isThisClient: true }],
      });
    });
  });
});

test('a value that Redisson holds stays with its Redisson owner', async () => {
  const group = freshName();
  const client = await openClient();
  const began = performance.now();
  await holdValues(group, ['a'], 400);
  await client.getMultiLock(group, ['a', 'b']).withLock(async (hold) => {
    expect(performance.now() - began).toBeGreaterThan(395);
    expect(elapsed(began)).toBeLessThan(1_000);
    const now = await serverNow();
    const fields = await admin().hgetall(group);
    // The expired values of Redisson are gone from the hash.
    expect(Object.keys(fields).sort()).toEqual(
      Object.keys({ ...heldValue('a', hold.owner, 1, ''), ...heldValue('b', hold.owner, 1, '') }).sort(),
    );
    expect(Number(fields[`${valueField('a')}:${hold.owner}:expire_time`])).toBeGreaterThan(now + 20_000);
  });
});

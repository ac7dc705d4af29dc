import { afterEach, describe, expect, jest, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { SemaphoreOptions } from '../../src/index.js';
import { LONG_WAIT_MS } from '../../src/timing.js';
import { answered, closeClients, openClient, openProxy, outcome, TestClock } from '../support/clients/lock-clients.js';
import { admin, freshName, leavesKeys } from '../support/redis.js';
import { elapsed } from '../support/time/elapsed.js';
import { LONG_MS, until } from '../support/time/until.js';

/** Both kinds store the free permits in the same way. */
const KINDS = {
  getSemaphore: (client: LockClient, name: string, options?: SemaphoreOptions) => {
    const semaphore = client.getSemaphore(name, options);
    const take = (waitTime?: number) => semaphore.tryAcquire(1, waitTime);
    return { semaphore, take, hold: () => semaphore.acquirePermits() };
  },
  getPermitExpirableSemaphore: (client: LockClient, name: string, options?: SemaphoreOptions) => {
    const semaphore = client.getPermitExpirableSemaphore(name, options);
    const take = async (waitTime?: number) => (await semaphore.tryAcquire(waitTime, 60_000)) !== null;
    return { semaphore, take, hold: () => semaphore.acquirePermit() };
  },
};

afterEach(async () => {
  jest.restoreAllMocks();
  await closeClients();
});
leavesKeys('semaphores and latches stay until they are deleted');

/** Its timers of 5 s (a long wait, and others) fire when the test says so. */
class WaitedLong extends TestClock {
  readonly #fns = new Set<() => void>();

  override setTimer(ms: number, fn: () => void): ReturnType<TestClock['setTimer']> {
    if (ms !== 5_000) return super.setTimer(ms, fn);
    this.#fns.add(fn);
    return { cancel: () => void this.#fns.delete(fn) };
  }

  passes(): void {
    const fns = [...this.#fns];
    this.#fns.clear();
    for (const fn of fns) fn();
  }
}

/** Redis loses the data of the semaphore, as by a restart without persistence. */
const lose = (name: string): Promise<number> => admin().del(name, `{${name}}:timeout`);

const warnings = () => {
  const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  return () => warned.mock.calls.map(([message, options]) => ({ message, ...(options as { code: string }) }));
};

describe.each(Object.entries(KINDS))('%s', (kind, make) => {
  test('a wait of 5 s for permits that were never set warns once and says what to call', async () => {
    const warned = warnings();
    const [clock, name] = [new WaitedLong(), freshName('permits')];
    const { proxy, url } = await openProxy();
    const client = await openClient({ clock, url });
    const { semaphore, take } = make(client, name);
    const asked = (): number => proxy.log.filter((each) => each.name === 'EXISTS' && each.args.includes(name)).length;
    const both = [take(60_000), take(60_000)];
    await until(() => (clock.passes(), warned().length > 0), 'it warns');
    const message: unknown = expect.stringMatching(new RegExp(`"${name}".*trySetPermits.*permits: n`));
    expect(warned()).toEqual([{ code: 'HOLDFAST_NOT_SET_UP', message }]);
    expect(asked()).toBe(1);
    await semaphore.trySetPermits(2);
    expect(await Promise.all(both)).toEqual([true, true]);
    await lose(name);
    const again = take(60_000);
    await until(() => (clock.passes(), asked() === 2), 'it has waited long again');
    await answered(client);
    await semaphore.trySetPermits(1);
    expect(await again).toBe(true);
    expect(warned()).toHaveLength(1);
  });

  test('a wait for taken permits does not warn, and a settled wait sends no request', async () => {
    const warned = warnings();
    const [clock, name] = [new WaitedLong(), freshName('permits')];
    const { proxy, url } = await openProxy();
    const client = await openClient({ clock, url });
    const { semaphore, take } = make(client, name);
    const asked = (): number => proxy.log.filter((each) => each.name === 'EXISTS' && each.args.includes(name)).length;
    await semaphore.trySetPermits(0);
    expect(await take(20)).toBe(false);
    clock.passes();
    await answered(client);
    const before = asked();
    const waiting = take(60_000);
    await until(() => (clock.passes(), asked() > before), 'it has waited long');
    await answered(client);
    await semaphore.addPermits(1);
    expect(await waiting).toBe(true);
    expect([before, warned()]).toEqual([0, []]);
  });

  test('the declared permits of a handle are set once, at the first use, unless the semaphore exists', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const [name, other] = [freshName('permits'), freshName('permits')];
    const sections = Array.from({ length: 5 }, () => make(client, name, { permits: 2 }).take());
    expect((await Promise.all(sections)).filter(Boolean)).toHaveLength(2);
    expect(await make(client, name, { permits: 7 }).semaphore.availablePermits()).toBe(0);
    const before = proxy.log.length;
    await make(client, name, { permits: 2 }).take();
    expect(proxy.log.length - before).toBe(1);
    await admin().set(other, 1);
    expect(await make(client, other, { permits: 3 }).semaphore.availablePermits()).toBe(1);
  });

  test.each(['availablePermits', 'addPermits', 'release'] as const)('%s may be the first use', async (call) => {
    const client = await openClient();
    const { semaphore } = make(client, freshName('permits'), { permits: 3 });
    if (call === 'addPermits') await semaphore.addPermits(1);
    else if (call === 'release' && 'drainPermits' in semaphore) await semaphore.release(1);
    expect(await semaphore.availablePermits()).toBe(call === 'addPermits' ? 4 : 3);
  });

  test('a first use that cannot set the permits rejects, and the next one sets them', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 400 });
    const { take } = make(client, freshName('permits'), { permits: 1 });
    const held = proxy.swallow({ contains: 'permits', kind: 'command', times: Infinity });
    expect(await outcome(take())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    held.lift();
    await until(async () => (await outcome(take())) === 'ok', 'it is set up');
  });

  test('declared permits that were deleted are set again for a call that has waited 5 s', async () => {
    const warned = warnings();
    const clock = new WaitedLong();
    const client = await openClient({ clock });
    const name = freshName('permits');
    const { take } = make(client, name, { permits: 1 });
    expect(await take()).toBe(true);
    await admin().del(name, `{${name}}:timeout`);
    const waiting = take(60_000);
    await until(async () => (clock.passes(), (await admin().exists(name)) === 1), 'it is set again');
    expect(await waiting).toBe(true);
    expect(warned()).toEqual([]);
  });

  test.each([undefined, 2_000])(
    'after a loss of its data, a call with the wait time %s sets it up again',
    async (wait) => {
      const client = await openClient();
      const name = freshName('permits');
      const { semaphore, take } = make(client, name, { permits: 3 });
      await take();
      await lose(name);
      expect(await take(wait)).toBe(true);
      expect(await semaphore.availablePermits()).toBe(2);
      await semaphore.expire(1);
      await until(async () => (await admin().exists(name)) === 0, 'it has expired');
      expect(await semaphore.availablePermits()).toBe(3);
      expect(await take(wait)).toBe(true);
      expect(await semaphore.availablePermits()).toBe(2);
    },
  );

  test('a permit that was out at a loss of data leaves the declared number, and not fewer', async () => {
    const client = await openClient();
    const name = freshName('permits');
    const { semaphore, hold, take } = make(client, name, { permits: 3 });
    const permit = await hold();
    await lose(name);
    expect(await outcome(permit.release())).toBe('drainPermits' in semaphore ? 'ok' : 'ERR_LOCK_UNKNOWN_PERMIT');
    expect(await Promise.all([take(), take(), take(), take()])).toEqual([true, true, true, false]);
  });

  test('a call that has waited long gets a permit although Redis lost the data later', async () => {
    const clock = new WaitedLong();
    const client = await openClient({ clock });
    const name = freshName('permits');
    const { proxy, url } = await openProxy();
    const other = await openClient({ clock, url });
    await make(client, name, { permits: 1 }).take();
    const asked = (): number => proxy.log.filter((each) => each.name === 'EXISTS' && each.args.includes(name)).length;
    const waiting = make(other, name, { permits: 1 }).take(60_000);
    await until(() => (clock.passes(), asked() > 1), 'it has looked more than once');
    await lose(name);
    await until(async () => (clock.passes(), (await admin().exists(name)) === 1), 'it is set again');
    expect(await waiting).toBe(true);
  });

  test('a call that declares permits gets one behind a waiting call that declares none', async () => {
    const client = await openClient();
    const name = freshName('permits');
    const both = [make(client, name).take(60_000), make(client, name, { permits: 2 }).take(60_000)];
    expect(await Promise.all(both)).toEqual([true, true]);
    await lose(name);
    let waiting = 0;
    client.events.on('waiting', () => (waiting += 1));
    const first = make(client, name).take(60_000);
    await until(() => waiting === 1, 'the first call waits');
    expect(await make(client, name, { permits: 2 }).take(60_000)).toBe(true);
    expect(await first).toBe(true);
    expect(await admin().get(name)).toBe('0');
  });

  test('declared permits that are too few for their own call are set for the calls before it', async () => {
    const client = await openClient({ clock: new WaitedLong() });
    const name = freshName('permits');
    const first = make(client, name).take(60_000);
    const declares = make(client, name, { permits: 0 });
    const behind = declares.take(60_000);
    await until(async () => (await admin().get(name)) === '0', 'it is set up');
    await declares.semaphore.addPermits(2);
    expect(await Promise.all([first, behind])).toEqual([true, true]);
  });

  test('the reply to a call that declares none does not decide a call that does', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const name = freshName('permits');
    await make(client, freshName('permits'), { permits: 1 }).take();
    proxy.holdReply({ contains: name }, 300);
    const both = [make(client, name).take(60_000), make(client, name, { permits: 2 }).take(50)];
    expect(await Promise.all(both)).toEqual([true, true]);
  });

  test('declared permits are set again after 5 s if a call that declares none came first, and was warned of', async () => {
    const warned = warnings();
    const clock = new WaitedLong();
    const { proxy, url } = await openProxy();
    const client = await openClient({ clock, url });
    const name = freshName('permits');
    const asked = (): number => proxy.log.filter((each) => each.name === 'EXISTS' && each.args.includes(name)).length;
    const first = make(client, name).take(60_000);
    await until(() => (clock.passes(), warned().length > 0), 'it warns');
    const behind = make(client, name, { permits: 0 }).take(60_000);
    await until(async () => (await admin().exists(name)) === 1, 'it is set up');
    await lose(name);
    await until(() => (clock.passes(), asked() > 1), 'it looks again');
    await until(async () => (await admin().exists(name)) === 1, 'it is set again');
    await make(client, name).semaphore.addPermits(2);
    expect(await Promise.all([first, behind])).toEqual([true, true]);
  });

  test('the first use with a wait time waits through an outage', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 400 });
    const { take } = make(client, freshName('permits'), { permits: 1 });
    const outage = proxy.swallow({ contains: 'permits', kind: 'command', times: Infinity });
    const taken = outcome(take(20_000));
    // A command deadline has passed, and the call has tried again.
    const tries = () => new Set(proxy.log.filter(({ name }) => /EVAL/.test(name)).map(({ args }) => args.join())).size;
    await until(() => tries() >= 2, 'it tries again');
    outage.lift();
    expect(await taken).toBe('ok');
  });

  test('a call without permits warns once if the semaphore is not in Redis and the handle declares none', async () => {
    const warned = warnings();
    const client = await openClient();
    const name = freshName('permits');
    const { semaphore, take } = make(client, name);
    await semaphore.trySetPermits(1);
    expect(await take()).toBe(true);
    expect(await take()).toBe(false);
    expect(warned()).toEqual([]);
    await lose(name);
    expect([await take(), await take(20)]).toEqual([false, false]);
    const message: unknown = expect.stringMatching(new RegExp(`"${name}".*not in Redis.*trySetPermits.*permits: n`));
    expect(warned()).toEqual([{ code: 'HOLDFAST_NOT_SET_UP', message }]);
  });

  test('handles of one process that declare different numbers warn once', async () => {
    const warned = warnings();
    const client = await openClient();
    const name = freshName('permits');
    await make(client, name, { permits: 3 }).take();
    const other = make(client, name, { permits: 10 });
    await other.take();
    await other.take();
    const message: unknown = expect.stringMatching(new RegExp(`"${name}".*permits: 10.*declares 3.*addPermits`));
    expect(warned()).toEqual([{ code: 'HOLDFAST_OTHER_PERMITS', message }]);
  });

  test('a handle warns once of a semaphore that certainly has another number of permits', async () => {
    const warned = warnings();
    // Of a semaphore without ids, Redis does not know how many permits are taken.
    const declared = kind === 'getSemaphore' ? 1 : 10;
    const clock = new WaitedLong();
    const [client, other, third] = [await openClient(), await openClient({ clock }), await openClient({ clock })];
    const name = freshName('permits');
    await make(client, name, { permits: 3 }).semaphore.trySetPermits(3);
    const { take, semaphore } = make(other, name, { permits: declared });
    const theirs = make(third, name, { permits: 3 });
    expect([await theirs.take(), await take(), await take()]).toEqual([true, true, true]);
    const waiting = [take(60_000), theirs.take(60_000)];
    await until(() => (clock.passes(), warned().length > 0), 'it warns', 2 * LONG_MS);
    const message: unknown = expect.stringMatching(new RegExp(`"${name}".*permits: ${declared}.*addPermits`));
    expect(warned()).toEqual([{ code: 'HOLDFAST_OTHER_PERMITS', message }]);
    await semaphore.addPermits(2);
    expect(await Promise.all(waiting)).toEqual([true, true]);
  });

  test('permits that other processes hold are no reason for a warning', async () => {
    const warned = warnings();
    const clock = new WaitedLong();
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ clock, url }), await openClient()];
    const name = freshName('permits');
    const { take } = make(client, name, { permits: 3 });
    const theirs = make(other, name, { permits: 3 });
    expect([await theirs.take(), await take(), await take()]).toEqual([true, true, true]);
    const asked = (): number => proxy.log.filter((each) => each.name === 'EXISTS' && each.args.includes(name)).length;
    const begun = performance.now();
    const waiting = take(60_000);
    const isLong = (): boolean => (clock.passes(), elapsed(begun) > LONG_WAIT_MS && asked() >= 2);
    await until(isLong, 'the client has compared twice', LONG_MS);
    await answered(client);
    expect(warned()).toEqual([]);
    await theirs.semaphore.addPermits(1);
    expect(await waiting).toBe(true);
  });

  test.each([{ permits: -1 }, { permits: 1.5 }, { permits: '2' }, { permit: 1 }, 5, null, []])(
    'the options %j are refused',
    async (options) => {
      const client = await openClient();
      expect(() => make(client, 'never', options as never)).toThrow(
        expect.objectContaining({ code: 'ERR_LOCK_INVALID_ARGUMENT' }),
      );
    },
  );
});

test('a release of permits that this client acquired warns if Redis has lost the semaphore', async () => {
  const warned = warnings();
  const client = await openClient();
  const [name, fresh] = [freshName('permits'), freshName('permits')];
  const semaphore = client.getSemaphore(name);
  await semaphore.trySetPermits(3);
  await semaphore.acquire();
  await lose(name);
  await semaphore.release();
  // A release may create a semaphore on purpose.
  await client.getSemaphore(fresh).release();
  const message: unknown = expect.stringMatching(new RegExp(`lost semaphore "${name}".*addPermits.*permits: n`));
  expect(warned()).toEqual([{ code: 'HOLDFAST_NOT_SET_UP', message }]);
});

test('a release on a handle that declares permits creates no fewer than it declares, and no fewer than it releases', async () => {
  const client = await openClient();
  const name = freshName('permits');
  for (const [permits, released, free] of [
    [3, 1, 3],
    [0, 1, 1],
    [2, 5, 5],
  ] as const) {
    await lose(name);
    await client.getSemaphore(name, { permits }).release(released);
    expect(await admin().get(name)).toBe(String(free));
    await lose(name);
    expect(await client.getSemaphore(name, { permits }).releaseIfExists(released)).toBe(true);
    expect(await admin().get(name)).toBe(String(free));
  }
  await lose(name);
  expect(await client.getSemaphore(name).releaseIfExists()).toBe(false);
});

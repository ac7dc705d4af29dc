import { afterEach, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import * as scripts from '../../src/redis/scripts/semaphore.js';
import { elapsed } from '../support/time/elapsed.js';
import type { SeenCommand } from '../support/proxy/fault.js';
import { outcome, ready } from '../support/clients/lock-clients.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName, leavesKeys, testRedisUrl } from '../support/redis.js';
import { until } from '../support/time/until.js';

const ACQUIRE = scripts.acquire.script!.sha;
const CANCEL = scripts.cancel.script!.sha;

const clients: LockClient[] = [];
const proxies: FaultProxy[] = [];
const open = (url = testRedisUrl(), options = {}): LockClient => {
  const client = createClient({ url, ...options });
  clients.push(client);
  return client;
};
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});
leavesKeys('semaphores and latches stay until they are deleted');

async function proxied(options = {}): Promise<{ client: LockClient; proxy: FaultProxy }> {
  const { hostname, port, pathname } = new URL(testRedisUrl());
  const proxy = await FaultProxy.start({ host: hostname, port: Number(port) });
  proxies.push(proxy);
  const client = open(proxy.url + pathname, options);
  await ready(client);
  return { client, proxy };
}

/** Starts a call and resolves when it is subscribed; `done` is the call. */
async function parked<T>(name: string, call: () => Promise<T>): Promise<{ done: Promise<T> }> {
  const done = call();
  await until(async () => ((await admin().pubsub('CHANNELS', `*${name}*`)) as string[]).length > 0, 'it subscribes');
  return { done };
}

describe('semaphore', () => {
  test('permits as an object are released once, at the end of the block, or not acquired in time', async () => {
    const name = freshName();
    const client = open(testRedisUrl());
    const semaphore = client.getSemaphore(name);
    await semaphore.trySetPermits(3);
    {
      await using held = await semaphore.acquirePermits({ permits: 2 });
      expect([held.semaphoreName, held.permits, await semaphore.availablePermits()]).toEqual([name, 2, 1]);
      expect(await semaphore.tryAcquirePermits({ permits: 2, waitTime: 20 })).toBeNull();
      await using one = await semaphore.tryAcquirePermits();
      expect([one?.permits, await semaphore.availablePermits()]).toEqual([1, 0]);
    }
    expect(await semaphore.availablePermits()).toBe(3);
    const held = await semaphore.acquirePermits();
    expect(held.release()).toBe(held.release());
    await held.release();
    expect(await semaphore.availablePermits()).toBe(3);
    await expect(semaphore.acquirePermits({ permits: -1 })).rejects.toThrow(/^permits/);
    await expect(semaphore.acquirePermits({ leaseTime: 1 } as never)).rejects.toThrow(/leaseTime/);
  });

  test.each(['cutBefore', 'cutAfter', 'swallow'] as const)('R1: %s: every request counts once', async (fault) => {
    const { client, proxy } = await proxied({ commandTimeout: 1_500 });
    const name = freshName('semaphore');
    const semaphore = client.getSemaphore(name);
    await semaphore.trySetPermits(5);
    const strike = async (call: () => Promise<unknown>): Promise<void> => {
      proxy[fault]({ contains: `holdfast_requests:{${name}}` });
      await call();
    };
    await strike(() => semaphore.acquire(2));
    expect(await semaphore.availablePermits()).toBe(3);
    await strike(() => semaphore.release(2));
    expect(await semaphore.availablePermits()).toBe(5);
    await strike(() => semaphore.addPermits(1));
    expect(await semaphore.availablePermits()).toBe(6);
    await strike(() => semaphore.drainPermits().then((drained) => expect(drained).toBe(6)));
    expect(await semaphore.availablePermits()).toBe(0);
  });

  test('a client uses no more lanes than it had concurrent requests', async () => {
    const name = freshName('semaphore');
    const client = open();
    const semaphore = client.getSemaphore(name);
    await semaphore.trySetPermits(2);
    for (let i = 0; i < 20; i += 1) await semaphore.withPermits(() => undefined);
    expect(await admin().hlen(`holdfast_requests:{${name}}:${client.id}`)).toBe(1);
  });

  describe('permits that are released while other flows wait', () => {
    const free = async (name: string): Promise<unknown> => admin().get(name);

    /** Until the client has sent so many requests of the semaphore, and they have been answered. */
    async function asked(client: LockClient, proxy: FaultProxy, name: string, times: number): Promise<void> {
      const sent = (): number => proxy.log.filter(({ args }) => args.some((arg) => arg.includes(name))).length;
      await until(() => sent() >= times, `it has sent ${times} tries`);
      await client.getSemaphore(name).availablePermits();
    }

    test('go to the first waiter without a request, and to a next waiter for more only as a whole', async () => {
      const { client, proxy } = await proxied();
      const name = freshName('semaphore');
      const semaphore = client.getSemaphore(name);
      await semaphore.trySetPermits(3);
      await semaphore.acquire(3);
      const order: string[] = [];
      const waiter = async (label: string, permits: number): Promise<void> => {
        await semaphore.acquire(permits);
        order.push(label);
      };
      const { done: one } = await parked(name, () => waiter('one', 1));
      const [two, last] = [waiter('two', 2), waiter('last', 1)];
      await asked(client, proxy, name, 5); // made, taken, tried, listened to, tried
      const before = proxy.log.length;
      await semaphore.release(1);
      await one;
      expect(proxy.log.length).toBe(before);
      expect(await free(name)).toBe('0');
      // Too few for the second waiter: the permit goes to Redis, and the last waiter, which wants fewer, takes it there.
      await semaphore.release(1);
      await last;
      expect(proxy.log.length).toBeGreaterThan(before);
      expect(order).toEqual(['one', 'last']);
      await semaphore.release(1);
      await Promise.all([two, semaphore.release(1)]);
      expect(order).toEqual(['one', 'last', 'two']);
      expect(await free(name)).toBe('0');
      await semaphore.release(3);
      expect(await free(name)).toBe('3');
    });

    test.each([
      ['was refused', 0],
      ['was granted', 1],
    ])('go to the first waiter even while its request is pending, and the %s there is not lost', async (_, added) => {
      const { client, proxy } = await proxied();
      const name = freshName('semaphore');
      const semaphore = client.getSemaphore(name);
      await semaphore.trySetPermits(1);
      await semaphore.acquire();
      const order: string[] = [];
      const waiter = (label: string) => async (): Promise<void> => {
        await semaphore.acquire();
        order.push(label);
      };
      const one = await parked(name, waiter('one'));
      await asked(client, proxy, name, 5); // made, taken, tried, listened to, tried
      const two = waiter('two')();
      // The replies to the first waiter are late from here on.
      const stalled = proxy.stall({ direction: 'to-client', kind: 'command' });
      const before = proxy.log.length;
      if (added > 0) await open().getSemaphore(name).addPermits(added);
      else await admin().publish(`redisson_sc:{${name}}`, '1');
      await until(() => proxy.log.length > before, 'the first waiter sends a try');
      await semaphore.release();
      await one.done;
      expect(order).toEqual(['one']);
      stalled.lift();
      if (added === 0) await semaphore.release();
      await two;
      expect(order).toEqual(['one', 'two']);
      // Its grant goes to the next waiter directly, and nothing goes back to Redis.
      expect(proxy.log.slice(before).filter(({ args }) => args[0] === CANCEL)).toEqual([]);
      for (let given = 0; given <= added; given += 1) await semaphore.release();
      await until(async () => (await free(name)) === String(1 + added), 'every permit is there again');
    });

    test.each(['gives up', 'runs out of time'])(
      'R21: a waiter for few permits gets them when the waiter for more before it %s',
      async (how) => {
        const { client, proxy } = await proxied();
        const name = freshName();
        const semaphore = client.getSemaphore(name);
        await semaphore.trySetPermits(1);
        const controller = new AbortController();
        const options = how === 'gives up' ? { signal: controller.signal } : { waitTime: 300 };
        const { done: more } = await parked(name, () => outcome(semaphore.acquire(3, options)));
        const less = semaphore.acquire(1);
        await asked(client, proxy, name, 4); // made, tried, listened to, tried
        controller.abort();
        expect(await more).toBe(how === 'gives up' ? 'ERR_LOCK_ABORTED' : 'ERR_LOCK_TIMEOUT');
        const leftAt = performance.now();
        await less;
        expect(elapsed(leftAt)).toBeLessThan(200 + 250);
        await semaphore.release();
      },
    );

    test('that a try acquired for a served waiter go back as a whole if the next waiter wants another number', async () => {
      const { client, proxy } = await proxied();
      const name = freshName('semaphore');
      const semaphore = client.getSemaphore(name);
      await semaphore.trySetPermits(2);
      await semaphore.acquire(2);
      const one = await parked(name, () => semaphore.acquire(2));
      await asked(client, proxy, name, 5); // made, taken, tried, listened to, tried
      const two = semaphore.acquire();
      const stalled = proxy.stall({ direction: 'to-client', kind: 'command' });
      const before = proxy.log.length;
      await open().getSemaphore(name).addPermits(2);
      await until(() => proxy.log.length > before, 'the first waiter sends a try and is granted both');
      await until(async () => (await free(name)) === '0', 'it has them');
      await semaphore.release(2);
      await one.done;
      stalled.lift();
      await two;
      await semaphore.release();
      await semaphore.release(2);
      await until(async () => (await free(name)) === '4', 'every permit is there again, once');
      expect(await semaphore.availablePermits()).toBe(4);
    });

    test('go back to Redis after a number of sections or a time, and other clients get them', async () => {
      const name = freshName('semaphore');
      const [client, other] = [open(undefined, { handOff: { maxSections: 5, maxTime: 60_000 } }), open()];
      const semaphore = client.getSemaphore(name);
      await semaphore.trySetPermits(1);
      await semaphore.acquire();
      let sections = 0;
      let busy = true;
      const flow = async (): Promise<void> => {
        while (busy) await semaphore.withPermits(() => (sections += 1));
      };
      const flows = [flow(), flow(), flow()];
      const { done } = await parked(name, () => other.getSemaphore(name).acquire());
      await until(async () => Number((await admin().pubsub('NUMSUB', `redisson_sc:{${name}}`))[1]) === 2, 'both wait');
      expect(sections).toBe(0);
      await semaphore.release();
      await done;
      const inBetween = sections;
      expect(inBetween).toBeGreaterThan(0);
      expect(inBetween).toBeLessThanOrEqual(3 * 5); // a chance after every five
      await until(async () => (await free(name)) === '0' && sections === inBetween, "the permit is the other client's");
      busy = false;
      await other.getSemaphore(name).release();
      await Promise.all(flows);
      expect(await free(name)).toBe('1');
    });

    test('go to Redis if no flow of this client takes them', async () => {
      const name = freshName('semaphore');
      const { client, proxy: between } = await proxied();
      const { done } = await parked(name, () => client.getSemaphore(name).acquire());
      await asked(client, between, name, 3); // tried, listened to, tried
      expect(await free(name)).toBeNull();
      await client.getSemaphore(name).release(); // made by this
      await done;
      expect(await free(name)).toBe('0');
      const { client: plain, proxy } = await proxied({ handOff: false });
      const semaphore = plain.getSemaphore(freshName('semaphore'));
      await semaphore.trySetPermits(1);
      await semaphore.acquire();
      const waits = await parked(semaphore.name, () => semaphore.acquire());
      const before = proxy.log.length;
      await semaphore.release();
      expect(proxy.log.length).toBeGreaterThan(before);
      await waits.done;
    });
  });

  test('R21: a waiter with an unanswered try tries again, also after a busy reply to a call for more permits', async () => {
    const name = freshName('semaphore');
    const other = open().getSemaphore(name);
    await other.trySetPermits(1);
    await other.acquire();
    const { client, proxy } = await proxied({ commandTimeout: 1_500 });
    const asks = ({ args }: SeenCommand): boolean => args[0] === ACQUIRE && args[2] === name && args[4] === '1';
    const requests = (): number => new Set(proxy.log.filter(asks).map(({ args }) => `${args[8]}:${args[9]}`)).size;
    const { done } = await parked(name, () => client.getSemaphore(name).tryAcquire(1, 20_000));
    await until(() => requests() === 2, 'it looks once more');
    await client.getSemaphore(name).availablePermits(); // that is answered
    const failing = proxy.answer({ where: asks, times: Infinity }, '-LOADING later\r\n');
    await other.release();
    await failing.applied;
    // A newer reply that says nothing about fewer permits.
    expect(await client.getSemaphore(name).tryAcquire(2)).toBe(false);
    await until(() => requests() > 3, 'it tries again', 5_000);
    failing.lift();
    expect(await done).toBe(true);
    expect(await admin().get(name)).toBe('0');
    await client.getSemaphore(name).release();
  });
});

describe('count-down latch', () => {
  test('R21: the last count-down resumes all waiters in every process', async () => {
    const name = freshName('latch');
    const [first, second] = [open(), open()];
    await first.getCountDownLatch(name).trySetCount(2);
    const all: Promise<boolean>[] = [];
    for (const client of [first, second, first]) {
      all.push((await parked(name, () => client.getCountDownLatch(name).await())).done);
    }
    await second.getCountDownLatch(name).countDown();
    expect(await first.getCountDownLatch(name).getCount()).toBe(1);
    await second.getCountDownLatch(name).countDown();
    expect(await Promise.all(all)).toEqual([true, true, true]);
  });

  test('R21: delete opens it', async () => {
    const name = freshName('latch');
    const client = open();
    await client.getCountDownLatch(name).trySetCount(9);
    const { done } = await parked(name, () => client.getCountDownLatch(name).await());
    expect(await open().getCountDownLatch(name).delete()).toBe(true);
    expect(await done).toBe(true);
    expect(await client.getCountDownLatch(name).delete()).toBe(false);
  });

  test('R22: 1,000 waiters send one read in total', async () => {
    const name = freshName('latch');
    const { client, proxy } = await proxied();
    const latch = client.getCountDownLatch(name);
    await latch.trySetCount(1);
    const all = [await parked(name, () => latch.await())];
    for (let i = 1; i < 1_000; i += 1) all.push({ done: latch.await() });
    const before = proxy.log.length;
    await open().getCountDownLatch(name).countDown();
    await Promise.all(all.map(({ done }) => done));
    expect(proxy.log.length - before).toBeLessThanOrEqual(2);
  });

  test.each(['countDown', 'delete'] as const)(
    'waiters notice a zero even if a new count is set before they can read it: %s',
    async (opening) => {
      const name = freshName('latch');
      const { client, proxy } = await proxied();
      const [latch, other] = [client.getCountDownLatch(name), open().getCountDownLatch(name)];
      for (let round = 0; round < 2; round += 1) {
        await other.trySetCount(1);
        const { done } = await parked(name, () => latch.await());
        // The look that follows the subscription has been answered.
        expect(await latch.await(20)).toBe(false);
        const late = proxy.stall({ kind: 'subscriber', direction: 'to-client' });
        await other[opening]();
        expect(await other.trySetCount(1)).toBe(true);
        late.lift();
        expect(await done).toBe(true);
        expect(await latch.await(30)).toBe(false);
        await other.delete();
      }
    },
  );

  test('a reply that was pending when the latch was closed again resumes no later call', async () => {
    const name = freshName('latch');
    const { client, proxy } = await proxied();
    const [latch, other] = [client.getCountDownLatch(name), open().getCountDownLatch(name)];
    const late = proxy.holdReply({ contains: name, kind: 'command' });
    const early = latch.await();
    await late.applied;
    expect(await other.trySetCount(1)).toBe(true);
    // Closed before these calls were made.
    const calls = [latch.await(), latch.await(100), latch.await(0)];
    late.lift();
    expect(await early).toBe(true);
    expect(await Promise.all(calls.slice(1))).toEqual([false, false]);
    await other.countDown();
    expect(await calls[0]).toBe(true);
  });

  test('R20: a waiter that the message of the last count-down resumes leaves no subscription behind', async () => {
    const name = freshName('latch');
    const latch = open().getCountDownLatch(name);
    await latch.trySetCount(1);
    const { done } = await parked(name, () => latch.await());
    await latch.countDown();
    expect(await done).toBe(true);
    await until(
      async () => ((await admin().pubsub('CHANNELS', `*${name}*`)) as string[]).length === 0,
      'the subscription ends while the client is open',
    );
  });

  test('await() returns at once on an open latch and times out on a closed one', async () => {
    const latch = open().getCountDownLatch(freshName('latch'));
    expect(await latch.await()).toBe(true);
    expect(await latch.trySetCount(1)).toBe(true);
    expect(await latch.trySetCount(2)).toBe(false);
    expect(await latch.await(30)).toBe(false);
    expect(await latch.await(0)).toBe(false);
    await latch.countDown();
    await latch.countDown();
    expect(await latch.getCount()).toBe(0);
  });

  test.each(['cutBefore', 'cutAfter', 'swallow'] as const)(
    'R1: %s: a set, a count-down and a delete each count once',
    async (fault) => {
      const { client, proxy } = await proxied({ commandTimeout: 1_500 });
      const name = freshName('latch');
      const latch = client.getCountDownLatch(name);
      const strike = async <T>(call: () => Promise<T>): Promise<T> => {
        const struck = proxy[fault]({ contains: `holdfast_requests:{${name}}` });
        const result = await call();
        expect(struck.count).toBe(1);
        return result;
      };
      expect(await strike(() => latch.trySetCount(5))).toBe(true);
      await strike(() => latch.countDown());
      expect(await latch.getCount()).toBe(4);
      expect(await strike(() => latch.delete())).toBe(true);
      expect(await latch.getCount()).toBe(0);
    },
  );

  test('R2: a count-down that has rejected does not take effect later', async () => {
    const { client, proxy } = await proxied({ commandTimeout: 600 });
    const name = freshName('latch');
    const latch = client.getCountDownLatch(name);
    await latch.trySetCount(5);
    const held = proxy.holdCommand({ contains: `holdfast_requests:{${name}}`, kind: 'command', times: Infinity });
    await expect(latch.countDown()).rejects.toMatchObject({ outcome: 'unknown' });
    held.lift();
    const said = (): Promise<string[]> => admin().hvals(`holdfast_requests:{${name}}:${client.id}`);
    await until(async () => (await said()).some((each) => each.endsWith(':-4')), 'it is cancelled');
    expect(await latch.getCount()).toBe(5);
  });

  test.each([0, -1, 1.5, NaN])('R7: a count of %p is refused', async (count) => {
    await expect(open('redis://127.0.0.1:1').getCountDownLatch('never').trySetCount(count)).rejects.toMatchObject({
      code: 'ERR_LOCK_INVALID_ARGUMENT',
    });
  });
});

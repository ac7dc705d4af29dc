import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { answered, closeClients, openClient, openProxy } from '../support/clients/lock-clients.js';
import { admin, freshName, leavesKeys } from '../support/redis.js';
import { until } from '../support/time/until.js';

/** Both kinds have one order of their waiters. */
const KINDS = {
  getSemaphore: (client: LockClient, name: string) => {
    const semaphore = client.getSemaphore(name);
    return { semaphore, acquire: (permits: number) => semaphore.acquirePermits({ permits }) };
  },
  getPermitExpirableSemaphore: (client: LockClient, name: string) => {
    const semaphore = client.getPermitExpirableSemaphore(name);
    return { semaphore, acquire: (permits: number) => semaphore.acquirePermit({ permits }) };
  },
};

afterEach(closeClients);
leavesKeys('semaphores stay until they are deleted');

const parked = (name: string) =>
  until(async () => (await admin().pubsub('NUMSUB', `redisson_sc:{${name}}`))[1] === 1, 'it waits');

describe.each(Object.entries(KINDS))('%s', (_, make) => {
  test("a request for fewer permits passes a waiting one for more, as in Redisson's testAcquireAfterAddPermits", async () => {
    const client = await openClient();
    const name = freshName('permits');
    const { semaphore, acquire } = make(client, name);
    await semaphore.addPermits(1);
    let large = false;
    const both = acquire(2).then((permits) => ((large = true), permits));
    await parked(name);
    const one = await acquire(1);
    await one.release();
    await answered(client);
    expect(large).toBe(false);
    await semaphore.addPermits(1);
    expect((await both) !== undefined).toBe(true);
    expect(await semaphore.availablePermits()).toBe(0);
  });

  test('requests for the same number keep their order behind a larger one, and a release serves the first that fits', async () => {
    const client = await openClient();
    const name = freshName('permits');
    const { semaphore, acquire } = make(client, name);
    await semaphore.trySetPermits(1);
    const held = await acquire(1);
    const order: string[] = [];
    const waiter = async (label: string, permits: number) => {
      const taken = await acquire(permits);
      order.push(label);
      return taken;
    };
    const five = waiter('five', 5);
    await parked(name);
    const waiting = [waiter('three', 3), waiter('one', 1), waiter('another', 1)];
    await answered(client);
    await held.release();
    const first = await waiting[1]!;
    await first.release();
    const second = await waiting[2]!;
    expect(order).toEqual(['one', 'another']);
    await semaphore.addPermits(2);
    await second.release();
    await waiting[0];
    expect(order).toEqual(['one', 'another', 'three']);
    await semaphore.addPermits(5);
    await five;
    expect(await semaphore.availablePermits()).toBe(0);
  });

  test('R22: waiting requests that do not fit cost two tries for a message, however many wait', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const name = freshName('permits');
    const { semaphore, acquire } = make(client, name);
    await semaphore.trySetPermits(0);
    const all = [acquire(2)];
    await parked(name);
    for (let i = 0; i < 200; i += 1) all.push(acquire(i % 2 === 0 ? 1 : 2));
    const tries = () => proxy.log.filter(({ name: command }) => command === 'EVALSHA').length;
    const settled = async (): Promise<number> => {
      for (let before = -1; before !== tries(); await answered(client)) before = tries();
      return tries();
    };
    const before = await settled();
    await admin().publish(`redisson_sc:{${name}}`, '1');
    await until(() => tries() >= before + 2, 'it has tried');
    expect(await settled()).toBe(before + 2);
    await semaphore.addPermits(400);
    await Promise.all(all);
  });
});

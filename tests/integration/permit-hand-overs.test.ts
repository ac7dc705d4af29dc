import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { PermitExpirableSemaphore } from '../../src/synchronizers/expirable-semaphore.js';
import { semaphoreChannel } from '../../src/redis/keys.js';
import { acquire, handOff, release } from '../../src/redis/scripts/permit-expirable-semaphore.js';
import { answered, closeClients, openClient, openProxy, outcome } from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName, leavesKeys } from '../support/redis.js';
import { until } from '../support/time/until.js';

afterEach(() => closeClients());
leavesKeys('semaphores stay until they are deleted');

const [ACQUIRE, HAND_OFF, RELEASE] = [acquire, handOff, release].map(({ script }) => script!.sha) as [
  string,
  string,
  string,
];

interface Stage {
  readonly client: LockClient;
  readonly proxy: FaultProxy;
  readonly name: string;
  readonly semaphore: PermitExpirableSemaphore;
  /** The same, of another client. */
  readonly other: PermitExpirableSemaphore;
}

async function stage(permits: number, options = {}): Promise<Stage> {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, ...options });
  const name = freshName('permits');
  const semaphore = client.getPermitExpirableSemaphore(name);
  await semaphore.trySetPermits(permits);
  // The server has the scripts.
  for (const { script } of [acquire, handOff, release]) await admin().script('LOAD', script!.source);
  return { client, proxy, name, semaphore, other: (await openClient()).getPermitExpirableSemaphore(name) };
}

/** Scripts that the client has sent, of these and of all, since a moment. */
const sent = ({ proxy }: Stage, since: number, ...shas: string[]): number =>
  proxy.log
    .slice(since)
    .filter(({ name, args }) => name === 'EVALSHA' && (shas.length === 0 || shas.includes(args[0]!))).length;

/** Waits until the head of the line is subscribed and has got a busy reply after that. */
async function parked({ client, proxy, name }: Stage): Promise<void> {
  const channel = semaphoreChannel(name);
  await until(() => {
    const subscribed = proxy.log.findIndex((each) => each.name === 'SUBSCRIBE' && each.args.includes(channel));
    if (subscribed < 0) return false;
    const since = proxy.log.slice(subscribed).filter(({ args }) => args[0] === ACQUIRE);
    return since.some(({ answeredAt }) => answeredAt !== undefined);
  }, 'the head is parked');
  await answered(client);
}

/** Two waiters, `one` and `two`, and the order in which they were granted. */
function waiters({ semaphore }: Stage): { order: string[]; one: Promise<void>; two: Promise<void> } {
  const order: string[] = [];
  const enter = (label: string): Promise<void> =>
    semaphore.withPermit({ leaseTime: 30_000 }, () => void order.push(label));
  return { order, one: enter('one'), two: enter('two') };
}

test('a released permit goes to the next waiter in one request, under a new id and with the lease of the waiter', async () => {
  const on = await stage(1);
  const { client, semaphore, proxy, name } = on;
  const told: string[] = [];
  const id = await semaphore.acquire(20_000);
  client.events.on('permitsReleased', () => told.push('released'));
  client.events.on('permitsAcquired', ({ handedOff }) => told.push(`acquired ${handedOff}`));
  const next = semaphore.acquirePermit({ leaseTime: 30_000 });
  await parked(on);
  const before = proxy.log.length;
  await semaphore.release(id);
  const permit = await next;
  expect(told).toEqual(['released', 'acquired true']);
  expect(sent(on, before)).toBe(1);
  expect(permit.id).not.toBe(id);
  expect(permit.validFor()).toBeLessThanOrEqual(30_000);
  expect(permit.validFor()).toBeGreaterThan(29_000);
  expect(await semaphore.getLeaseTime(permit.id)).toBeGreaterThan(29_000);
  expect(await outcome(semaphore.getLeaseTime(id))).toBe('ERR_LOCK_UNKNOWN_PERMIT');
  expect(await admin().get(name)).toBe('0');
  await permit.release();
  expect(await semaphore.availablePermits()).toBe(1);
});

test('of several released permits the next waiter gets those that it wants, and the others are free', async () => {
  const on = await stage(3);
  const { semaphore, other } = on;
  const three = await semaphore.acquireMany(3);
  const two = semaphore.acquireMany(2);
  await parked(on);
  await semaphore.release(three);
  expect(await two).toHaveLength(2);
  expect(await other.availablePermits()).toBe(1);
  expect(await other.acquiredPermits()).toBe(2);
  await semaphore.release(await two);
});

test('two releases of one permit in the same turn give it to one waiter, and the second release fails', async () => {
  const on = await stage(1);
  const { semaphore, other } = on;
  const id = await semaphore.acquire(20_000);
  const next = [1, 2].map(() => semaphore.acquire(20_000));
  await parked(on);
  expect(await Promise.all([semaphore.tryRelease(id), semaphore.tryRelease(id)])).toEqual([true, false]);
  const first = await next[0]!;
  expect(await other.acquiredPermits()).toBe(1);
  await semaphore.release(first);
  await semaphore.release(await next[1]!);
  expect(await other.availablePermits()).toBe(1);
});

test('releases of one turn of the event loop share a request, and an id that is not taken fails its own call', async () => {
  const on = await stage(3);
  const { semaphore, other, proxy } = on;
  const taken = await semaphore.acquireMany(3);
  const next = Array.from({ length: 4 }, () => semaphore.acquire(20_000));
  await parked(on);
  const before = proxy.log.length;
  const calls = [taken[0]!, '0'.repeat(32), taken[1]!, taken[2]!].map((id) => outcome(semaphore.release(id)));
  expect(await Promise.all(calls)).toEqual(['ok', 'ERR_LOCK_UNKNOWN_PERMIT', 'ok', 'ok']);
  const ids = await Promise.all(next.slice(0, 3));
  expect(sent(on, before)).toBe(1);
  expect(new Set([...taken, ...ids]).size).toBe(6);
  expect(await other.acquiredPermits()).toBe(3);
  await semaphore.release(ids[0]!);
  for (const id of [ids[1]!, ids[2]!, await next[3]!]) await semaphore.release(id);
  expect(await other.availablePermits()).toBe(3);
});

test('releases of different numbers of permits in one turn do not share a request', async () => {
  const on = await stage(3);
  const { semaphore, other, proxy } = on;
  const taken = await semaphore.acquireMany(3);
  const next = [semaphore.acquire(), semaphore.acquire()];
  await parked(on);
  const before = proxy.log.length;
  await Promise.all([semaphore.release(taken.slice(0, 2)), semaphore.release(taken[2]!)]);
  for (const id of await Promise.all(next)) await semaphore.release(id);
  expect(sent(on, before, HAND_OFF)).toBe(2);
  expect(await other.availablePermits()).toBe(3);
});

test('no waiter gets a permit of an id that is not taken', async () => {
  const on = await stage(1);
  const { semaphore, other } = on;
  const id = await other.acquire(20_000);
  const next = semaphore.acquire();
  await parked(on);
  expect(await outcome(semaphore.release('0'.repeat(32)))).toBe('ERR_LOCK_UNKNOWN_PERMIT');
  expect(await outcome(semaphore.release([id, '0'.repeat(32)]))).toBe('ERR_LOCK_UNKNOWN_PERMIT');
  expect(await other.acquiredPermits()).toBe(1);
  await other.release(id);
  await semaphore.release(await next);
});

describe('the order of the waiters', () => {
  test('R21: a permit is handed over although the first waiter has a pending try, and no waiter is overtaken', async () => {
    const on = await stage(1);
    const { semaphore, other, proxy, client } = on;
    const id = await semaphore.acquire();
    const { order, one, two } = waiters(on);
    await parked(on);
    const stalled = proxy.stall({ direction: 'to-client', kind: 'command' });
    const before = proxy.log.length;
    await other.addPermits(1);
    await until(() => sent(on, before, ACQUIRE) === 1, 'the first waiter tries');
    const released = semaphore.release(id);
    await until(() => sent(on, before, HAND_OFF) === 1, 'the permit is handed over');
    stalled.lift();
    await Promise.all([released, one, two]);
    expect(order).toEqual(['one', 'two']);
    await answered(client);
    expect(await semaphore.availablePermits()).toBe(2);
  });

  test('R21: what a try acquired for a waiter that was granted meanwhile goes to the next waiter', async () => {
    const on = await stage(1);
    const { semaphore, other, proxy } = on;
    const id = await semaphore.acquire();
    const order: string[] = [];
    const [one, two] = ['one', 'two'].map(async (label) => {
      const permit = await semaphore.acquirePermit();
      order.push(label);
      return permit;
    });
    await parked(on);
    const [handedOver, tried] = [proxy.holdReply({ sha: HAND_OFF }), proxy.holdReply({ sha: ACQUIRE })];
    const before = proxy.log.length;
    const released = semaphore.release(id);
    await until(() => sent(on, before, HAND_OFF) === 1, 'the permit is handed over');
    await other.addPermits(1);
    await until(async () => (await other.acquiredPermits()) === 2, 'the first waiter tries and is granted');
    handedOver.lift();
    await released;
    const first = await one!;
    tried.lift();
    const permits = [first, await two!];
    expect(order).toEqual(['one', 'two']);
    expect(sent(on, before, RELEASE)).toBe(0);
    for (const permit of permits) await permit.release();
    expect(await semaphore.availablePermits()).toBe(2);
  });

  test('R21: a waiter for more permits gets what is released for it at once, before a later one for fewer', async () => {
    const on = await stage(2);
    const { semaphore } = on;
    const [first, second] = await semaphore.acquireMany(2);
    const order: string[] = [];
    const more = semaphore.acquireMany(2).then((ids) => (order.push('more'), ids));
    await parked(on);
    const less = semaphore.acquireMany(1).then((ids) => (order.push('less'), ids));
    await Promise.all([semaphore.release(first!), semaphore.release(second!)]);
    await semaphore.release(await more);
    await semaphore.release(await less);
    expect(order).toEqual(['more', 'less']);
    expect(await semaphore.availablePermits()).toBe(2);
  });
});

describe('a waiter that leaves while the reply is pending', () => {
  test.each(['one', 'another'])('leaves the permit to the next waiter, or to Redis: %s waits', async (who) => {
    const on = await stage(1);
    const { semaphore, proxy, other } = on;
    const id = await semaphore.acquire();
    const controller = new AbortController();
    const leaves = outcome(semaphore.acquire(undefined, { signal: controller.signal }));
    const stays = who === 'another' ? semaphore.acquire() : undefined;
    await parked(on);
    const held = proxy.holdReply({ sha: HAND_OFF });
    const released = semaphore.release(id);
    await held.executed;
    controller.abort();
    expect(await leaves).toBe('ERR_LOCK_ABORTED');
    held.lift();
    await released;
    if (stays !== undefined) await semaphore.release(await stays);
    await until(async () => (await other.availablePermits()) === 1, 'the permit is free again');
    expect(await other.acquiredPermits()).toBe(0);
  });

  test('because the client closes: its permit is released', async () => {
    const on = await stage(1);
    const { semaphore, proxy, other, client } = on;
    const id = await semaphore.acquire();
    const waits = outcome(semaphore.acquire());
    await parked(on);
    const held = proxy.holdReply({ sha: HAND_OFF });
    const released = outcome(semaphore.release(id));
    await held.executed;
    const closed = client.close();
    expect(await waits).toBe('ERR_LOCK_CLIENT_CLOSED');
    held.lift();
    await closed;
    await released;
    expect(await other.availablePermits()).toBe(1);
  });
});

describe('a hand-over', () => {
  test.each(['cutAfter', 'cutBefore'] as const)(
    'R4: whose reply is lost (%s) is repeated, and done once',
    async (fault) => {
      const on = await stage(1);
      const { semaphore, proxy } = on;
      const id = await semaphore.acquire(20_000);
      const next = semaphore.acquirePermit({ leaseTime: 30_000 });
      await parked(on);
      const cut = proxy[fault]({ sha: HAND_OFF });
      await semaphore.release(id);
      const permit = await next;
      expect(cut.count).toBe(1);
      expect(await semaphore.acquiredPermits()).toBe(1);
      expect(await semaphore.getLeaseTime(permit.id)).toBeGreaterThanOrEqual(permit.validFor());
      await permit.release();
      expect(await semaphore.availablePermits()).toBe(1);
    },
  );

  test('R4: that no server answers goes on as a release of both ids, and the waiter tries again', async () => {
    const on = await stage(1, { commandTimeout: 600 });
    const { semaphore, proxy, other } = on;
    const id = await semaphore.acquire();
    const next = semaphore.acquirePermit({ waitTime: 30_000 });
    await parked(on);
    const cut = proxy.cutAfter({ sha: HAND_OFF, times: Infinity });
    const failing = proxy.answer({ sha: RELEASE, times: Infinity }, '-LOADING later\r\n');
    expect(await outcome(semaphore.release(id))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    expect(await other.acquiredPermits()).toBe(1);
    cut.lift();
    failing.lift();
    const permit = await next;
    expect(await other.acquiredPermits()).toBe(1);
    await permit.release();
    expect(await other.availablePermits()).toBe(1);
  });

  test('that Redis refuses is a release, and the waiter tries', async () => {
    const on = await stage(1);
    const { semaphore, proxy } = on;
    const id = await semaphore.acquire();
    const next = semaphore.acquire();
    await parked(on);
    proxy.answer({ sha: HAND_OFF }, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    const before = proxy.log.length;
    await semaphore.release(id);
    await semaphore.release(await next);
    expect(sent(on, before, HAND_OFF)).toBe(1);
    expect(await semaphore.availablePermits()).toBe(1);
  });

  test('R33: other clients get a permit after a number of sections', async () => {
    const on = await stage(1, { handOff: { maxSections: 5, maxTime: 60_000 } });
    const { semaphore, other, name } = on;
    const id = await semaphore.acquire();
    let sections = 0;
    let busy = true;
    const flow = async (): Promise<void> => {
      while (busy) await semaphore.withPermit({ leaseTime: 60_000 }, () => void (sections += 1));
    };
    const flows = [flow(), flow(), flow()];
    const theirs = other.acquire();
    const subscribers = async (): Promise<number> =>
      Number((await admin().pubsub('NUMSUB', semaphoreChannel(name)))[1]);
    await until(async () => (await subscribers()) === 2, 'both clients wait');
    await semaphore.release(id);
    const taken = await theirs;
    expect(sections).toBeLessThanOrEqual(3 * 6); // a chance after every five
    busy = false;
    await other.release(taken);
    await Promise.all(flows);
    expect(await semaphore.availablePermits()).toBe(1);
  });

  test('leaves permits to Redis while there are too many', async () => {
    const on = await stage(2);
    const { semaphore, other } = on;
    const [first, second] = await semaphore.acquireMany(2);
    await semaphore.setPermits(1);
    const next = semaphore.acquire();
    await parked(on);
    await semaphore.release(first!);
    expect(await other.acquiredPermits()).toBe(1);
    await semaphore.release(second!);
    await semaphore.release(await next);
    expect(await semaphore.getPermits()).toBe(1);
  });

  test('does not happen with handOff: false', async () => {
    const on = await stage(1, { handOff: false });
    const { semaphore, proxy } = on;
    const id = await semaphore.acquire();
    const next = semaphore.acquire();
    await parked(on);
    const before = proxy.log.length;
    await semaphore.release(id);
    await semaphore.release(await next);
    expect(sent(on, before, HAND_OFF)).toBe(0);
  });
});

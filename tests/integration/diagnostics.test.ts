import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { AcquireMessage, HoldMessage } from '../../src/diagnostics/channels.js';
import type { Lock } from '../../src/locks/lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import {
  answered,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
} from '../support/clients/lock-clients.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { until } from '../support/time/until.js';

const acquires = tracingChannel<unknown, AcquireMessage>('holdfast:acquire');
const holds = tracingChannel<unknown, HoldMessage>('holdfast:hold');

/** What a tracing channel published: the names of the events in order, and each message once. */
class Published<M extends object> {
  readonly events: string[] = [];
  readonly messages = new Set<M>();
  readonly #subscribers: Record<string, (message: M) => void> = {};

  constructor(private readonly traced: ReturnType<typeof tracingChannel<unknown, M>>) {
    for (const event of ['start', 'end', 'asyncStart', 'asyncEnd', 'error']) {
      this.#subscribers[event] = (message) => {
        this.events.push(event);
        this.messages.add(message);
      };
    }
    traced.subscribe(this.#subscribers as never);
  }

  get all(): M[] {
    return [...this.messages];
  }

  stop(): void {
    this.traced.unsubscribe(this.#subscribers as never);
  }
}

let acquired: Published<AcquireMessage>;
let held: Published<HoldMessage>;
beforeEach(() => {
  acquired = new Published(acquires);
  held = new Published(holds);
});
afterEach(async () => {
  acquired.stop();
  held.stop();
  await closeClients();
});

const KINDS: Record<string, (client: LockClient, name: string) => Lock> = {
  lock: (client, name) => client.getLock(name),
  'non-reentrant': (client, name) => client.getNonReentrantLock(name),
  fair: (client, name) => client.getFairLock(name),
  fenced: (client, name) => client.getFencedLock(name),
  spin: (client, name) => client.getSpinLock(name),
  'read-write': (client, name) => client.getReadWriteLock(name).writeLock(),
  group: (client, name) => client.getMultiLock(name, ['a', 'b']),
  multi: (client, name) => client.getMultiLock(client.getLock(`${name}:1`), client.getLock(`${name}:2`)),
  red: (client, name) => client.getRedLock(client.getLock(name)),
};

describe('holdfast:acquire and holdfast:hold', () => {
  test.each(Object.keys(KINDS))('a section under a %s lock is one acquisition and one hold', async (kind) => {
    const client = await openClient();
    const lock = KINDS[kind]!(client, freshName());
    await lock.withLock({ waitTime: 1_000, leaseTime: 20_000 }, () => undefined);
    const common = { name: lock.name, kind, mode: 'exclusive', clientId: client.id };
    expect(acquired.all).toEqual([
      {
        ...common,
        ...{ waitTime: 1_000, leaseTime: 20_000, nested: false, outcome: 'granted', handedOff: false, holdCount: 1 },
        owner: expect.stringContaining(client.id),
        waited: expect.any(Number),
      },
    ]);
    const { owner } = acquired.all[0]!;
    expect(held.all).toEqual([{ ...common, owner, holdCount: 1, end: 'released', held: expect.any(Number) }]);
    for (const { events } of [acquired, held]) expect(events).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
  });

  test('a reader is shared, and a nested acquisition says so', async () => {
    const client = await openClient();
    const lock = client.getReadWriteLock(freshName()).readLock();
    await lock.withLock(() => lock.withLock(() => undefined));
    expect(acquired.all).toMatchObject([
      { kind: 'read-write', mode: 'shared', nested: false, holdCount: 1 },
      { kind: 'read-write', mode: 'shared', nested: true, holdCount: 2 },
    ]);
  });

  test.each<[string, (lock: Lock) => Promise<void>]>([
    ['lock()', async (lock) => (await lock.lock(), lock.unlock())],
    ['tryLock()', async (lock) => (await lock.tryLock(), lock.unlock())],
    ['acquire()', async (lock) => (await lock.acquire()).release()],
    ['tryAcquire()', async (lock) => (await lock.tryAcquire())!.release()],
  ])('a hold of %s ends with its release', async (_, section) => {
    const client = await openClient();
    await section(client.getLock(freshName()));
    expect(acquired.all).toMatchObject([{ outcome: 'granted' }]);
    expect(held.all).toMatchObject([{ end: 'released' }]);
    expect(held.events).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
  });

  test('a busy, an aborted and a failed acquisition have their outcome and no hold', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 1_500 });
    const lock = client.getLock(freshName());
    const hold = await holdElsewhere(lock);
    acquired.messages.clear();
    acquired.events.length = 0;
    held.messages.clear();
    expect(await lock.tryLock()).toBe(false);
    expect(acquired.events).not.toContain('error');
    const controller = new AbortController();
    const aborted = outcome(lock.acquire({ signal: controller.signal }));
    await until(() => client.stats().waits === 1, 'it waits');
    controller.abort();
    expect(await aborted).toBe('ERR_LOCK_ABORTED');
    proxy.swallow({ sha: scripts.acquire.script!.sha, times: Infinity });
    expect(await outcome(client.getLock(freshName()).acquire())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    expect(acquired.all).toMatchObject([
      { outcome: 'busy', waitTime: 0, error: { code: 'ERR_LOCK_TIMEOUT' } },
      { outcome: 'aborted', waitTime: Infinity, error: { code: 'ERR_LOCK_ABORTED' } },
      { outcome: 'failed', error: { code: 'ERR_LOCK_REDIS_UNAVAILABLE' }, waited: expect.any(Number) },
    ]);
    expect(acquired.all[2]!.waited).toBeGreaterThan(1_400);
    expect(held.all).toEqual([]);
    await hold.release();
  });

  test('a lost hold ends once, when it is lost', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const losses: unknown[] = [];
    const listener = (message: unknown): unknown => losses.push(message);
    subscribe('holdfast:lease:lost', listener);
    const hold = await lock.acquire();
    await lock.forceUnlock();
    await until(() => held.all[0]?.end !== undefined, 'its end is published');
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    unsubscribe('holdfast:lease:lost', listener);
    expect(held.all).toMatchObject([{ end: 'lost', lostReason: 'forced', error: { code: 'ERR_LOCK_LOST' } }]);
    expect(held.events).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    const { owner } = hold;
    const common = { name: lock.name, kind: 'lock', mode: 'exclusive', clientId: client.id, owner };
    expect(losses).toEqual([{ ...common, reason: 'forced', held: expect.any(Number), error: expect.any(Error) }]);
  });

  test('a hold of a closed client ends as closed, and a failed release says so', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, commandTimeout: 1_500 });
    const lock = client.getLock(freshName());
    const hold = await lock.acquire();
    const lost = proxy.swallow({ sha: scripts.release.script!.sha, times: Infinity });
    expect(await outcome(hold.release())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    lost.lift();
    await until(async () => (await admin().exists(lock.name)) === 0, 'it is free');
    const other = client.getLock(freshName());
    await other.acquire();
    await client.close();
    expect(held.all.map(({ end }) => end)).toEqual(['releaseFailed', 'closed']);
    await admin().del(other.name);
  });

  test('every release of a traced hold returns one promise, which rejects if the hold was lost', async () => {
    const client = await openClient();
    const hold = await client.getLock(freshName()).acquire();
    await client.getLock(hold.lockName).forceUnlock();
    const released = hold.release();
    expect(hold.release()).toBe(released);
    await expect(released).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
  });

  test('a lock that an owner of this client passed on is handed off', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    await Promise.all([lock.withLock(() => undefined), lock.withLock(() => undefined)]);
    expect(acquired.all.map(({ handedOff }) => handedOff)).toEqual([false, true]);
    expect(client.stats().handOvers).toBe(1);
  });

  test('a multi-lock is handed off if all its members are', async () => {
    const client = await openClient();
    const [a, b] = [client.getLock(freshName()), client.getLock(freshName())];
    /** The second of two sections: a call of this client waits for the first member, and none for the others. */
    const handedOff = async (lock: Lock): Promise<boolean | undefined> => {
      const first = await inFlow(() => lock.acquire());
      const second = inFlow(() => lock.withLock(() => undefined));
      await until(() => client.stats().waiting === 1, 'it waits');
      for (let i = 0; i < 3; i += 1) await answered(client);
      await first.release();
      await second;
      return acquired.all.at(-1)!.handedOff;
    };
    expect(await handedOff(client.getMultiLock(a))).toBe(true);
    expect(await handedOff(client.getMultiLock(a, b))).toBe(false);
  });

  test('sections that follow one another without a request are acquisitions and holds of their own', async () => {
    const client = await openClient({ handOff: { local: 5_000, maxTime: 60_000 } });
    const lock = client.getLock(freshName());
    const hold = await holdElsewhere(lock);
    const sections = Array.from({ length: 3 }, () => lock.withLock(() => admin().ping()));
    await until(() => client.stats().waits === 3, 'they wait');
    await answered(client);
    await answered(client);
    await hold.release();
    await Promise.all(sections);
    const granted = { outcome: 'granted', nested: false, holdCount: 1, owner: hold.owner };
    expect(acquired.all).toMatchObject([false, true, true, true].map((handedOff) => ({ ...granted, handedOff })));
    const ended = { end: 'released', holdCount: 1, owner: hold.owner, held: expect.any(Number) };
    expect(held.all).toMatchObject(Array.from({ length: 4 }, () => ended));
    for (const { events } of [acquired, held]) {
      for (const event of ['start', 'asyncEnd']) expect(events.filter((each) => each === event)).toHaveLength(4);
    }
  });

  test('permits and latches are acquisitions, and the body of withPermits is a hold', async () => {
    const client = await openClient();
    const [semaphore, permits] = [
      client.getSemaphore(freshName(), { permits: 2 }),
      client.getPermitExpirableSemaphore(freshName(), { permits: 1 }),
    ];
    const latch = client.getCountDownLatch(freshName());
    await semaphore.withPermits({ permits: 2 }, () => undefined);
    await permits.withPermit({ leaseTime: 5_000 }, () => undefined);
    await latch.await();
    expect(acquired.all).toMatchObject([
      { kind: 'semaphore', mode: 'shared', permits: 2, outcome: 'granted', leaseTime: undefined },
      { kind: 'permit-expirable-semaphore', permits: 1, outcome: 'granted', leaseTime: 5_000 },
      { kind: 'latch', outcome: 'granted' },
    ]);
    expect(held.all).toMatchObject([
      { kind: 'semaphore', permits: 2, owner: '', end: 'released' },
      { kind: 'permit-expirable-semaphore', permits: 1, owner: expect.stringMatching(/^\w{32}$/), end: 'released' },
    ]);
    await admin().del(semaphore.name, permits.name);
  });
});

describe('stores that are bound to the tracing channels', () => {
  test('the request runs in that of the acquisition, the body in that of the hold, and the caller in neither', async () => {
    const asked = new AsyncLocalStorage<string>();
    const inside = new AsyncLocalStorage<string>();
    const caller = new AsyncLocalStorage<string>();
    acquires.start.bindStore(asked, ({ name }) => `acquire ${name}`);
    holds.start.bindStore(inside, ({ name }) => `hold ${name}`);
    try {
      const client = await openClient();
      const lock = client.getLock(freshName());
      const requests: unknown[] = [];
      const request = (message: unknown): void => {
        const { command } = message as { command: string };
        if (/^eval/.test(command)) requests.push(asked.getStore());
      };
      subscribe('tracing:ioredis:command:start', request);
      let seen: unknown[] = [];
      await caller.run('caller', () =>
        lock.withLock(async () => {
          await admin().ping();
          seen = [asked.getStore(), inside.getStore(), caller.getStore()];
        }),
      );
      unsubscribe('tracing:ioredis:command:start', request);
      expect(seen).toEqual([undefined, `hold ${lock.name}`, 'caller']);
      expect([asked.getStore(), inside.getStore()]).toEqual([undefined, undefined]);
      // The acquire ran in the store, and the release after the section did not.
      expect([requests[0], requests.at(-1)]).toEqual([`acquire ${lock.name}`, undefined]);
    } finally {
      acquires.start.unbindStore(asked);
      holds.start.unbindStore(inside);
    }
  });

  test('an agent without a store sets `run`, and the body runs through it', async () => {
    const context = new AsyncLocalStorage<string>();
    const enter = (message: HoldMessage): void => {
      message.run = (body) => context.run(message.name, body);
    };
    subscribe('tracing:holdfast:hold:start', enter as never);
    const client = await openClient();
    const lock = client.getLock(freshName());
    expect(await lock.withLock(async () => (await admin().ping(), context.getStore()))).toBe(lock.name);
    unsubscribe('tracing:holdfast:hold:start', enter as never);
  });
});

describe('client.stats()', () => {
  test('counts acquisitions by kind and outcome, waits, hand-overs, losses, and what is held and waits now', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const hold = await holdElsewhere(lock);
    expect(await lock.tryLock()).toBe(false);
    const waiting = [lock.acquire(), lock.acquire()];
    await until(() => client.stats().waits === 2, 'both wait');
    expect(client.stats()).toMatchObject({ holding: 1, waiting: 2, handOvers: 0, losses: 0 });
    await hold.release();
    for (const each of waiting) await (await each).release();
    const fair = client.getFairLock(freshName());
    const lost = await fair.acquire();
    await fair.forceUnlock();
    await outcome(lost.release());
    expect(client.stats()).toEqual({
      acquisitions: {
        lock: { granted: 3, busy: 1, aborted: 0, failed: 0 },
        fair: { granted: 1, busy: 0, aborted: 0, failed: 0 },
      },
      // A release right after a wake-up hands nothing over.
      handOvers: expect.any(Number),
      ...{ waits: 2, losses: 1, renewals: 0, renewalFailures: 0, connectionErrors: 0 },
      ...{ holding: 0, waiting: 0 },
    });
  });

  test('a snapshot does not change later', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    await lock.withLock(() => undefined);
    const before = client.stats();
    await lock.withLock(() => undefined);
    expect(before.acquisitions.lock?.granted).toBe(1);
  });

  test('renewals and their failures are counted and published', async () => {
    const messages: string[] = [];
    const listener = (_message: unknown, name: string | symbol): unknown => messages.push(String(name));
    const names = ['holdfast:lease:renewed', 'holdfast:lease:renewFailed'];
    for (const name of names) subscribe(name, listener);
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, lockWatchdogTimeout: 3_000, commandTimeout: 600 });
    const hold = await client.getLock(freshName()).acquire();
    await until(() => client.stats().renewals > 0, 'it is renewed');
    const lost = proxy.swallow({ sha: scripts.renew.script!.sha, times: Infinity });
    await until(() => client.stats().renewalFailures > 0, 'a renewal fails');
    lost.lift();
    for (const name of names) unsubscribe(name, listener);
    expect(new Set(messages)).toEqual(new Set(names));
    await outcome(hold.release());
  });
});

test('no channel, event or statistic shows the password of a connection', async () => {
  const user = `diagnostics-${freshName().replace(/\W/g, '-')}`;
  await admin().call('ACL', 'SETUSER', user, 'on', '>geheim', '+@all', '~*', '&*');
  const shown: unknown[] = [];
  const listener = (message: unknown): unknown => shown.push(message);
  subscribe('holdfast:connection:error', listener);
  const url = new URL(testRedisUrl());
  url.username = user;
  url.password = 'geheim-falsch';
  const client = createClient({ url: url.href, commandTimeout: 300 });
  client.events.on('connectionError', listener);
  client.events.on('notAcquired', listener);
  await outcome(client.getLock(freshName()).acquire());
  await until(() => client.stats().connectionErrors > 0, 'the credentials are refused');
  shown.push(client.stats(), ...acquired.all);
  await client.close();
  unsubscribe('holdfast:connection:error', listener);
  await admin().call('ACL', 'DELUSER', user);
  expect(shown.length).toBeGreaterThan(3);
  expect(inspect(shown, { depth: 10, showHidden: true })).not.toContain('geheim');
});

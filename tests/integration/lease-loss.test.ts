import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import type { Lock } from '../../src/locks/lock.js';
import { LockLostError } from '../../src/errors.js';
import type { LockEvents } from '../../src/events.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { startWorker } from '../support/processes/child.js';
import { elapsed } from '../support/time/elapsed.js';
import { runFixture } from '../support/processes/fixture-process.js';
import {
  block,
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
  TestClock,
} from '../support/clients/lock-clients.js';
import { Random } from '../support/random.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';
import { PARKED_MS, QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const RENEW = scripts.renew.script!.sha;
const SLACK_MS = 250;

afterEach(() => closeClients());

const marginOf = (leaseMs: number): number => Math.max(5, Math.min(leaseMs / 100, 1_000));

/** The loss reports of the client and of the hold, with their times. */
class LossReports {
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
    await until(() => this.aborts > 0, 'the loss is reported');
    const { owner, lockName } = hold;
    expect(hold.validFor()).toBe(0);
    expect(hold.signal.reason).toBeInstanceOf(LockLostError);
    expect(hold.signal.reason).toMatchObject({ reason, lockName, owner });
    expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
    await pause(PARKED_MS);
    expect(this.aborts).toBe(1);
    expect(this.events).toMatchObject([{ reason, lockName, owner }]);
  }
}

describe('R11: a loss is reported once, with its cause, no later than the local deadline', () => {
  test.each([200, 1_000])('R11: a lease of %i ms that ends', async (leaseMs) => {
    const client = await openClient();
    const before = performance.now();
    const hold = await holdElsewhere(client.getLock(freshName()), leaseMs);
    const told = new LossReports(client, hold);
    expect(hold.validFor()).toBeLessThanOrEqual(leaseMs - marginOf(leaseMs));
    await told.once(hold, 'expired');
    expect(elapsed(before, told.at)).toBeLessThanOrEqual(leaseMs - marginOf(leaseMs) + SLACK_MS);
    expect(told.at - before).toBeGreaterThan(leaseMs - marginOf(leaseMs) - 20);
  });

  test('R11: unanswered renewals', async () => {
    const lockWatchdogTimeout = 900;
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, lockWatchdogTimeout });
    const name = freshName();
    const hold = await holdElsewhere(client.getLock(name));
    const told = new LossReports(client, hold);
    let confirmedAt = 0;
    client.events.on('renewed', () => (confirmedAt = performance.now()));
    await until(() => confirmedAt > 0, 'a renewal has confirmed the hold');
    proxy.stall({ direction: 'to-client' });
    const deadline = confirmedAt + lockWatchdogTimeout - 9;
    await until(() => told.aborts > 0, 'the loss is reported');
    expect(elapsed(deadline, told.at)).toBeLessThanOrEqual(SLACK_MS);
    proxy.lift();
    await told.once(hold, 'expired');
    // The server has renewed it all the while.
    await until(async () => (await admin().exists(name)) === 0, 'the rest on the server is released', 500);
  });

  test('R11: a key that was deleted', async () => {
    const client = await openClient({ lockWatchdogTimeout: 900 });
    const hold = await holdElsewhere(client.getLock(freshName()));
    const told = new LossReports(client, hold);
    const at = performance.now();
    await admin().del(hold.lockName);
    await told.once(hold, 'gone');
    expect(elapsed(at, told.at)).toBeLessThanOrEqual(300 + SLACK_MS);
  });

  test('R11: forced open by another client', async () => {
    const client = await openClient({ lockWatchdogTimeout: 900 });
    const other = await openClient();
    const hold = await holdElsewhere(client.getLock(freshName()));
    const told = new LossReports(client, hold);
    const at = performance.now();
    expect(await other.getLock(hold.lockName).forceUnlock()).toBe(true);
    await told.once(hold, 'gone');
    expect(elapsed(at, told.at)).toBeLessThanOrEqual(300 + SLACK_MS);
  });

  test('R11: forced open by the same client', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const hold = await holdElsewhere(lock);
    const told = new LossReports(client, hold);
    expect(await lock.forceUnlock()).toBe(true);
    expect(told.aborts).toBe(1);
    await told.once(hold, 'forced');
  });

  test('R11: a loss that the release finds', async () => {
    const client = await openClient();
    const lock = client.getLock(freshName());
    const hold = await holdElsewhere(lock);
    const events: LockEvents['leaseLost'][] = [];
    client.events.on('leaseLost', (event) => events.push(event));
    await admin().del(lock.name);
    await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'gone' });
    expect(events).toMatchObject([{ lockName: lock.name, owner: hold.owner, reason: 'gone' }]);
  });

  test('R11: the loss of nested holds is reported once per hold, and each release rejects', async () => {
    const client = await openClient({ lockWatchdogTimeout: 900 });
    const lock = client.getLock(freshName());
    const events: LockEvents['leaseLost'][] = [];
    client.events.on('leaseLost', (event) => events.push(event));
    await inFlow(async () => {
      const holds = [await lock.acquire(), await lock.acquire(), await lock.acquire()];
      await admin().del(lock.name);
      await until(() => holds.every(({ signal }) => signal.aborted), 'all events are reported', 300 + SLACK_MS);
      expect(await outcome(lock.tryLock())).toBe('ERR_LOCK_LOST');
      for (const hold of holds) expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
      expect(events).toHaveLength(3);
    });
  });
});

describe('R11: a waiter of another client gets a lock that expires, although it has seen a longer lease', () => {
  const SHORT_MS = 1_500;

  async function expectWoken(
    lock: Lock,
    startShort: () => Promise<unknown>,
    endLong: () => Promise<void>,
  ): Promise<void> {
    const waiting = inFlow(() => lock.acquire());
    await pause(PARKED_MS);
    const began = performance.now();
    await startShort();
    await endLong();
    const next = await waiting;
    expect(elapsed(began)).toBeLessThan(SHORT_MS + SLACK_MS);
    expect(performance.now() - began).toBeGreaterThan(SHORT_MS - 30);
    await next.release();
  }

  test('the lease of a nested hold, after the release of the outer one', async () => {
    const [client, other] = [await openClient(), await openClient()];
    const lock = client.getLock(freshName());
    const outer = await holdElsewhere(lock);
    const nest = (): Promise<Hold> => outer.run(() => lock.acquire({ leaseTime: SHORT_MS }));
    await expectWoken(other.getLock(lock.name), nest, () => outer.release());
  });

  test('the lease of a reader, after the release of another reader', async () => {
    const [client, other] = [await openClient(), await openClient()];
    const { name } = client.getLock(freshName());
    const read = client.getReadWriteLock(name).readLock();
    const long = await holdElsewhere(read);
    const short = (): Promise<Hold> => holdElsewhere(read, SHORT_MS);
    await expectWoken(other.getReadWriteLock(name).writeLock(), short, () => long.release());
  });

  test('the lease of a lock that may stay in its process', async () => {
    const [client, other] = [await openClient({ handOff: { local: 5_000 } }), await openClient()];
    const lock = client.getLock(freshName());
    const began = performance.now();
    await holdElsewhere(lock, SHORT_MS);
    const next = await inFlow(() => other.getLock(lock.name).acquire());
    expect(elapsed(began)).toBeLessThan(SHORT_MS + SLACK_MS);
    await next.release();
  });
});

test('R11: a listener that releases an inner hold on the loss of the outer one learns that it is lost, too', async () => {
  const client = await openClient();
  const lock = client.getLock(freshName());
  const outer = await holdElsewhere(lock, 300);
  const inner = await inFlow(() => outer.run(async () => lock.acquire({ leaseTime: 300 })));
  const lost: unknown[] = [];
  client.events.on('leaseLost', (event) => lost.push(event));
  let released: Promise<unknown> | undefined;
  outer.signal.addEventListener('abort', () => void (released = outcome(inner.release())));
  await until(() => released !== undefined, 'the outer hold is lost');
  expect(await released).toBe('ERR_LOCK_LOST');
  expect(await outcome(outer.release())).toBe('ERR_LOCK_LOST');
  expect(lost).toMatchObject([{ reason: 'expired' }, { reason: 'expired' }]);
});

test('R11: a slow listener and a throwing listener do not delay other renewals', async () => {
  // A quarter of a second goes to the listeners, and the rest of the machine may want some as well.
  const lockWatchdogTimeout = 1_500;
  const client = await openClient({ lockWatchdogTimeout });
  const kept = await Promise.all(Array.from({ length: 20 }, () => holdElsewhere(client.getLock(freshName()))));
  const doomed = await Promise.all(Array.from({ length: 5 }, () => holdElsewhere(client.getLock(freshName()))));
  const seen: string[] = [];
  client.events.on('leaseLost', () => block(30));
  client.events.on('leaseLost', ({ lockName }) => seen.push(lockName));
  for (const { signal } of doomed) signal.addEventListener('abort', () => block(20));
  await admin().del(...doomed.map(({ lockName }) => lockName));
  await until(() => doomed.every(({ signal }) => signal.aborted), 'the losses are reported');
  await pause(lockWatchdogTimeout + 100);
  expect(seen.sort()).toEqual(doomed.map(({ lockName }) => lockName).sort());
  expect(kept.filter(({ signal }) => signal.aborted)).toEqual([]);
  await Promise.allSettled(doomed.map((hold) => hold.release()));

  // Jest takes an uncaught exception for its own: where listeners throw, the process is another.
  const names = [freshName(), freshName(), freshName()];
  expect(await runFixture('throwing-listener.mjs', [testRedisUrl(), ...names])).toEqual({
    uncaught: true,
    told: 2,
    lost: [true, true],
    kept: true,
    renewed: true,
  });
});

test('R11: 10,000 releases that race with renewals report no false loss', async () => {
  const FLOWS = 200;
  const random = new Random('R11');
  const client = await openClient({ lockWatchdogTimeout: 900 });
  const lost: unknown[] = [];
  const renewed = new Set<string>();
  client.events.on('leaseLost', (event) => lost.push(event));
  client.events.on('renewed', ({ lockName }) => renewed.add(lockName));
  const kept = await holdElsewhere(client.getLock(freshName()));
  const flow = async (): Promise<void> => {
    const lock = client.getLock(freshName());
    for (let cycle = 0; cycle < 10_000 / FLOWS; cycle += 1) {
      const hold = await lock.acquire();
      if (random.below(3) === 0) await pause(random.below(8));
      await hold.release();
    }
  };
  await Promise.all(Array.from({ length: FLOWS }, () => inFlow(flow)));
  expect(lost).toEqual([]);
  expect(renewed).toContain(kept.lockName);
});

test('R11: nested holds that are released at the same time report no false loss', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const lost: unknown[] = [];
  client.events.on('leaseLost', (event) => lost.push(event));
  const lock = client.getLock(freshName());
  for (let held = 2; held <= 4; held += 1) {
    for (const [first, order] of [
      [0, 'inner first'],
      [0, 'outer first'],
      [1, 'inner first'],
      [1, 'outer first'],
    ] as const) {
      await inFlow(async () => {
        const holds: Hold[] = [];
        while (holds.length < held) holds.push(await lock.acquire());
        if (order === 'inner first') holds.reverse();
        const slow = proxy.holdReply({ command: 'EVALSHA' });
        const begun = holds.slice(0, first).map((hold) => outcome(hold.release()));
        if (first > 0) await slow.executed;
        const released = Promise.all([...begun, ...holds.slice(first).map((hold) => outcome(hold.release()))]);
        await slow.executed;
        // A check of the lock in between finds no loss, because the lock has no holder.
        expect(client.holds()).toEqual([]);
        slow.lift();
        expect(await released).toEqual(holds.map(() => 'ok'));
        expect(await admin().exists(lock.name)).toBe(0);
      });
    }
  }
  expect(lost).toEqual([]);
});

test('R11: of holds that are released together, only the one with an expired lease is lost', async () => {
  const client = await openClient();
  const lost: unknown[] = [];
  client.events.on('leaseLost', (event) => lost.push(event));
  const lock = client.getLock(freshName());
  await inFlow(async () => {
    const holds = [await lock.acquire(), await lock.acquire()];
    const short = await lock.acquire({ leaseTime: 400 });
    await pause(420);
    expect(await Promise.all(holds.map((hold) => outcome(hold.release())))).toEqual(['ok', 'ok']);
    expect(short.signal.aborted).toBe(true);
    expect(await outcome(short.release())).toBe('ERR_LOCK_LOST');
  });
  expect(lost).toMatchObject([{ lockName: lock.name, reason: 'expired' }]);
  expect(await admin().exists(lock.name)).toBe(0);
});

test.each(['outer first', 'inner first'])(
  'R11: holds released together with an expired inner hold, %s, are not lost',
  async (order) => {
    const client = await openClient();
    const lost: unknown[] = [];
    client.events.on('leaseLost', (event) => lost.push(event));
    const lock = client.getLock(freshName());
    await inFlow(async () => {
      const holds = [await lock.acquire(), await lock.acquire(), await lock.acquire({ leaseTime: 400 })];
      await pause(420);
      if (order === 'inner first') holds.reverse();
      const released = await Promise.all(holds.map((hold) => outcome(hold.release())));
      // With the others around it the key was kept for it, too.
      expect(released).toEqual(order === 'inner first' ? ['ok', 'ok', 'ok'] : ['ok', 'ok', 'ERR_LOCK_LOST']);
    });
    expect(lost).toHaveLength(order === 'inner first' ? 0 : 1);
    expect(await admin().exists(lock.name)).toBe(0);
  },
);

test('R13: after a block of the event loop for two leases the loss is reported before any call succeeds', async () => {
  const client = await openClient();
  const other = await openClient();
  const lock = client.getLock(freshName());
  await inFlow(async () => {
    await lock.lock(200);
    const hold = lock.currentHold()!;
    const told = new LossReports(client, hold);
    const taken = holdElsewhere(other.getLock(lock.name));
    block(400);
    // All of this happens before a timer of the client can run.
    expect(hold.validFor()).toBe(0);
    expect(hold.signal.aborted).toBe(true);
    expect(told.aborts).toBe(1);
    const calls = [
      lock.tryLock(),
      lock.acquire(),
      hold.extend(10_000),
      lock.isHeldByCurrentContext(),
      lock.getHoldCount(),
    ];
    expect(
      await Promise.all(calls.map((call) => call.catch((error: unknown) => (error as { code: string }).code))),
    ).toEqual(['ERR_LOCK_LOST', 'ERR_LOCK_LOST', 'ERR_LOCK_LOST', false, 0]);
    expect(await outcome(lock.unlock())).toBe('ERR_LOCK_LOST');
    expect(await outcome(lock.unlock())).toBe('ERR_LOCK_NOT_OWNER');
    expect(told.events).toMatchObject([{ reason: 'expired' }]);
    await (await taken).release();
  });
});

test.each(['tryLock', 'unlock', 'extend', 'validFor', 'signal'] as const)(
  'R13: the first call after the block, here %s, finds the hold lost',
  async (first) => {
    const client = await openClient({ lockWatchdogTimeout: 200 });
    const lock = client.getLock(freshName());
    const events: unknown[] = [];
    client.events.on('leaseLost', (event) => events.push(event));
    await inFlow(async () => {
      await lock.lock();
      const hold = lock.currentHold()!;
      const { signal } = hold;
      block(400);
      const ask = {
        tryLock: () => outcome(lock.tryLock()),
        unlock: () => outcome(lock.unlock()),
        extend: () => outcome(hold.extend(5_000)),
        validFor: () => hold.validFor(),
        signal: () => hold.signal.aborted,
      };
      const answer = await ask[first]();
      expect(events).toHaveLength(1);
      expect(signal.aborted).toBe(true);
      expect(answer).toBe(first === 'validFor' ? 0 : first === 'signal' ? true : 'ERR_LOCK_LOST');
      if (first !== 'unlock') expect(await outcome(lock.unlock())).toBe('ERR_LOCK_LOST');
    });
  },
);

test('R13: a process whose event loop was blocked for two leases reports its losses and nothing else', async () => {
  const worker = await startWorker();
  try {
    await worker.createClient({ url: testRedisUrl(), lockWatchdogTimeout: 900 });
    const names = [freshName(), freshName()] as const;
    const flow = worker.flow('a');
    const watched = await flow.lock(names[0]);
    const leased = await flow.lock(names[1], 900);
    const waiting = worker.flow('waiting').lock(names[0]);
    const blocked = await worker.block(1_800);
    for (const hold of [watched, leased]) {
      const signal = await worker.nextEvent(({ type, detail }) => type === 'signal' && detail.hold === hold.hold);
      expect(signal.at - blocked.until).toBeLessThan(SLACK_MS);
      await expect(flow.call(hold.lockName, 'tryLock')).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
      await expect(flow.unlock(hold.lockName)).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    }
    expect((await waiting).lost).toBe(false);
    await worker.flow('waiting').unlock(names[0]);
    const told = worker.events.filter(({ type }) => type === 'leaseLost');
    expect(told.map(({ detail }) => detail.lockName).sort()).toEqual([...names].sort());
    expect(worker.events.filter(({ type }) => type === 'unhandledRejection')).toEqual([]);
  } finally {
    await worker.close();
  }
});

test('R13: a reply that arrives after its lease has ended grants nothing, and the client releases the lock', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const lock = client.getLock(freshName());
  const late = proxy.holdReply({ contains: lock.name }, 300);
  expect(await outcome(lock.acquire({ waitTime: -1, leaseTime: 150 }))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  expect(late.count).toBe(1);
  // Answered in time but read late: the lease counts from the sending, whatever kept us.
  const read = lock.acquire({ waitTime: -1, leaseTime: 150 });
  await proxy.observe({ contains: lock.name }).applied.catch(() => undefined);
  block(300);
  expect(await outcome(read)).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  await until(async () => (await admin().exists(lock.name)) === 0, 'the lock is free', 500);
  expect(client.holds()).toEqual([]);
});

test('R13: a nested reply that arrives after its lease leaves the outer hold unchanged', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const lock = client.getLock(freshName());
  await inFlow(async () => {
    await lock.lock(20_000);
    const hold = lock.currentHold()!;
    proxy.holdReply({ contains: lock.name }, 300);
    expect(await outcome(lock.lock(150))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    expect(hold.signal.aborted).toBe(false);
    expect(hold.validFor()).toBeGreaterThan(15_000);
    expect(await admin().pttl(lock.name)).toBeGreaterThan(15_000);
    // The next request carries an absolute count again.
    await lock.lock();
    expect(await lock.getHoldCount()).toBe(2);
    await lock.unlock();
    expect(await lock.getHoldCount()).toBe(1);
    await lock.unlock();
    expect(await lock.isLocked()).toBe(false);
  });
});

const HOUR = 3_600_000;

test('R37: after the wall clock jumps an hour, no call of a holder succeeds before a renewal confirms the hold', async () => {
  const { proxy, url } = await openProxy();
  const clock = new TestClock();
  const client = await openClient({ url, clock });
  const lock = client.getLock(freshName());
  const leased = client.getLock(freshName());
  const long = client.getLock(freshName());
  await inFlow(async () => {
    await lock.lock();
    await leased.lock(20_000);
    await long.lock(3 * HOUR);
    const holds = [lock.currentHold()!, leased.currentHold()!, long.currentHold()!];
    clock.jumpWall(HOUR);
    const renewals = proxy.holdReply({ where: ({ args }) => args[0] === RENEW, times: Infinity });
    for (const hold of holds) {
      expect(hold.validFor()).toBe(0);
      expect(hold.signal.aborted).toBe(false);
    }
    let answered = 0;
    const nested = [lock.acquire(), leased.acquire(), long.acquire()];
    const calls = [...nested, holds[0]!.extend(25_000), holds[1]!.extend(25_000)];
    for (const call of calls) void call.then(() => (answered += 1));
    await renewals.appliedTimes(3);
    await pause(QUIET_MS);
    expect(answered).toBe(0);
    for (const hold of holds) expect(hold.validFor()).toBe(0);
    renewals.lift();
    await Promise.all(calls);
    for (const hold of holds) expect(hold.validFor()).toBeGreaterThan(15_000);
    for (const call of nested) await (await call).release();
    await lock.unlock();
    await leased.unlock();
    await long.unlock();
    expect(client.holds()).toEqual([]);
  });
});

test('R37: a hold that ended while the machine slept is lost and not confirmed', async () => {
  const clock = new TestClock();
  const client = await openClient({ clock });
  const lock = client.getLock(freshName());
  await inFlow(async () => {
    await lock.lock();
    const hold = lock.currentHold()!;
    const told = new LossReports(client, hold);
    await admin().del(lock.name);
    clock.jumpWall(HOUR);
    expect(hold.validFor()).toBe(0);
    expect(await outcome(lock.tryLock())).toBe('ERR_LOCK_LOST');
    await told.once(hold, 'gone');
  });
});

test('R37: a clock jump during a call grants nothing on the basis of the time before the jump', async () => {
  const { proxy, url } = await openProxy();
  const clock = new TestClock();
  const client = await openClient({ url, clock });
  const lock = client.getLock(freshName());
  const reply = proxy.holdReply({ contains: lock.name });
  const taking = holdElsewhere(lock, 20_000);
  await reply.executed;
  clock.jumpWall(HOUR);
  reply.lift();
  const hold = await taking;
  expect(hold.validFor()).toBeGreaterThan(0);
  const { deliveredAt } = proxy.log.findLast(({ name, args }) => name === 'EVALSHA' && args.includes(lock.name))!;
  expect(elapsed(deliveredAt!)).toBeLessThan(500);
  await hold.release();
});

import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import {
  answered,
  clientUrl,
  closeClients,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
} from '../support/clients/lock-clients.js';
import { objectForceUnlock } from '../../src/redis/scripts/generated.js';
import { startWorker } from '../support/processes/child.js';
import { SharedCounter } from '../support/processes/shared-counter.js';
import { admin, freshName } from '../support/redis.js';
import { PARKED_MS, QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { ACQUIRE, bench, inLine, LOCAL_MS, passes, quiet, sent, times, type Bench } from './local-hand-over-stage.js';
import { expectAtMost, expectNoOverlap } from '../support/serious.js';

/* `handOff.local`: sections of a client follow one another under one owner in Redis, without a request. */

const SHORT_MS = 100;
/** ms inside. */
const WORK_MS = 30;

afterEach(() => closeClients());

describe('sections of one client', () => {
  test('follow one another without a request, each with its own events and hold', async () => {
    const on = await bench();
    const { client, lock, name } = on;
    const first = await inFlow(() => lock.acquire());
    const told: string[] = [];
    client.events.on('acquired', ({ owner, handedOff, holdCount }) => {
      told.push(`acquired ${owner === first.owner} ${handedOff} ${holdCount}`);
    });
    client.events.on('released', ({ owner }) => told.push(`released ${owner === first.owner}`));
    const seen: unknown[] = [];
    const section = (): Promise<void> =>
      lock.withLock(async (hold) => {
        seen.push([hold.owner === first.owner, await lock.isHeldByCurrentContext(), client.holds().length]);
        expect(await admin().hgetall(name)).toEqual({ [hold.owner]: '1' });
      });
    const sections = await inLine(client, times(3, section));
    await quiet(on);
    const requests = await sent(on, async () => {
      await first.release();
      await Promise.all(sections);
    });
    expect(requests).toEqual(['release']);
    expect(seen).toEqual(Array.from({ length: 3 }, () => [true, true, 1]));
    const each = ['released true', 'acquired true true 1'];
    expect(told).toEqual([...each, ...each, ...each, 'released true']);
    expect(client.stats().handOvers).toBe(3);
  });

  test('let other events of the process have their turn', async () => {
    const { client, lock } = await bench();
    const hold = await inFlow(() => lock.acquire());
    let [sections, turns] = [0, 0];
    const flow = async (): Promise<void> => {
      for (let i = 0; i < 300; i += 1) await lock.withLock(() => (sections += 1));
    };
    const flows = await inLine(client, times(30, flow));
    await hold.release();
    let over = false;
    const count = (): void => {
      turns += 1;
      if (!over) setImmediate(count);
    };
    count();
    await Promise.all(flows);
    over = true;
    expect(sections).toBe(9_000);
    // The sections take far longer than this many turns of 2 ms each, and no request interrupts them.
    expect(turns).toBeGreaterThan(20);
  });

  test('ask Redis for each one without the option', async () => {
    const on = await bench({});
    const first = await inFlow(() => on.lock.acquire());
    const [next] = await inLine(on.client, [() => on.lock.acquire()]);
    await quiet(on);
    expect(await passes(on, first, next!)).toEqual(['hand-off']);
    await (await next!).release();
  });

  const plain = (client: LockClient, name: string): Lock => client.getLock(name);
  test.each<[string, (client: LockClient, name: string) => Lock, number, number]>([
    ['a non-reentrant lock', (client, name) => client.getNonReentrantLock(name), 1, 4],
    ['the write half of a read-write lock', (client, name) => client.getReadWriteLock(name).writeLock(), 1, 4],
    // The second member is acquired and released by requests: its calls do not wait.
    [
      'a multi-lock',
      (client, name) => client.getMultiLock(plain(client, name), plain(client, `${name}-2`)),
      3 * 8,
      3 * 8 + 4,
    ],
    ['a RedLock', (client, name) => client.getRedLock(plain(client, name)), 8, 8 + 4],
    ['a fenced lock, whose holds have a token each', (client, name) => client.getFencedLock(name), 8, Infinity],
  ])('of %s send as few requests as the kind allows', async (_, make, least, most) => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, handOff: { local: LOCAL_MS, maxTime: LOCAL_MS } });
    const lock = make(client, freshName());
    let inside = 0;
    const section = (): Promise<void> =>
      lock.withLock(async (hold) => {
        expectAtMost(++inside);
        expect(await lock.isHeldBy(hold.owner)).toBe(true);
        inside -= 1;
      });
    const reads = (): number => proxy.stats.commands.get('EVALSHA') ?? 0;
    const hold = await inFlow(() => lock.acquire());
    const sections = times(8, section).map(inFlow);
    await until(() => client.stats().waiting >= 8, 'the calls wait');
    await answered(client);
    await pause(PARKED_MS);
    const before = reads();
    await hold.release();
    await Promise.all(sections);
    const requests = reads() - before;
    expect(requests).toBeGreaterThanOrEqual(least);
    expect(requests).toBeLessThanOrEqual(most);
  });
});

describe('rule 1: a section is followed by a request', () => {
  test('after a nested hold', async () => {
    const on = await bench();
    const first = await inFlow(() => on.lock.acquire());
    const [next] = await inLine(on.client, [() => on.lock.acquire()]);
    await quiet(on);
    await first.run(() => on.lock.withLock(() => undefined));
    expect(await passes(on, first, next!)).toEqual(['hand-off']);
    expect(await admin().hvals(on.name)).toEqual(['1']);
    await (await next!).release();
  });

  test('after a renewal', async () => {
    const on = await bench({ local: 1_400, maxTime: 60_000 }, { lockWatchdogTimeout: 1_500 });
    const first = await inFlow(() => on.lock.acquire());
    const [next] = await inLine(on.client, [() => on.lock.acquire()]);
    await until(() => on.client.stats().renewals > 0, 'the hold is renewed');
    expect(await passes(on, first, next!)).toEqual(['hand-off']);
    await (await next!).release();
  });

  test('while an attempt of the acquire may still run', async () => {
    const on = await bench({ local: LOCAL_MS }, { commandTimeout: 9_000 });
    await inFlow(() => on.client.getLock(freshName()).withLock(() => undefined));
    on.proxy.cutAfter({ sha: ACQUIRE });
    const first = await inFlow(() => on.lock.acquire());
    const [next] = await inLine(on.client, [() => on.lock.acquire()]);
    await quiet(on);
    expect(await passes(on, first, next!)).toContain('hand-off');
    await (await next!).release();
  });
});

describe('rule 2: a hold that follows is covered by what Redis has confirmed', () => {
  test('the request asks for `local` ms more, and each hold ends after its own lease', async () => {
    const on = await bench({ local: 500 });
    const first = await inFlow(() => on.lock.acquire({ leaseTime: 1_000 }));
    expect(first.validFor()).toBeLessThanOrEqual(1_000);
    expect(await admin().pttl(on.name)).toBeGreaterThan(1_000);
    const calls = await inLine(
      on.client,
      times(5, () =>
        on.lock.withLock({ leaseTime: 1_000 }, async (hold) => {
          const [valid, left] = [hold.validFor(), await admin().pttl(on.name)];
          await pause(WORK_MS);
          return { valid, left };
        }),
      ),
    );
    await quiet(on);
    await first.release();
    for (const { valid, left } of await Promise.all(calls)) {
      expect(valid).toBeLessThanOrEqual(1_000);
      expect(left).toBeGreaterThan(valid - 20);
    }
  });

  test('a hold with a longer lease is asked for', async () => {
    const on = await bench();
    const first = await inFlow(() => on.lock.acquire({ leaseTime: 1_000 }));
    const [next] = await inLine(on.client, [() => on.lock.acquire({ leaseTime: 60_000 })]);
    await quiet(on);
    expect(await passes(on, first, next!)).toEqual(['hand-off']);
    expect(await admin().pttl(on.name)).toBeGreaterThan(50_000);
    await (await next!).release();
  });
});

describe('rule 3: the next section asks Redis', () => {
  test('after the connection was cut', async () => {
    const on = await bench();
    const first = await inFlow(() => on.lock.acquire());
    const [next] = await inLine(on.client, [() => on.lock.acquire()]);
    await quiet(on);
    on.proxy.cut({ kind: 'command' });
    await until(async () => (await outcome(on.client.ready())) === 'ok', 'the client has connected again');
    await answered(on.client);
    expect(await passes(on, first, next!)).toEqual(['hand-off']);
    await (await next!).release();
  });
});

describe('rule 4: a streak ends', () => {
  test('`local` ms after the confirmation', async () => {
    const on = await bench({ local: 5 * SHORT_MS });
    // The lease of the second hold would be covered for some time after the streak has ended.
    const first = await inFlow(() => on.lock.acquire({ leaseTime: 10_000 }));
    const [next] = await inLine(on.client, [() => on.lock.acquire({ leaseTime: 10_000 - 4 * SHORT_MS })]);
    await quiet(on);
    await pause(5 * SHORT_MS);
    expect(await passes(on, first, next!)).toEqual(['hand-off']);
    await (await next!).release();
  });

  test.each([
    ['after `maxSections`', { maxSections: 4 }, 4],
    ['after the default of `maxSections`, if it is set', { maxSections: 16 }, 16],
    ['after its time, and no number of sections, without `maxSections`', {}, 20],
  ])('%s, for a waiter of another client', async (_title, limit, follow) => {
    const on = await bench({ local: LOCAL_MS, maxTime: 60_000, ...limit });
    const other = await openClient();
    const first = await inFlow(() => on.lock.acquire());
    const order: string[] = [];
    const crowd = await inLine(
      on.client,
      times(20, () => on.lock.withLock(() => void order.push('here'))),
    );
    const [elsewhere] = await inLine(other, [
      () => other.getLock(on.name).withLock(() => void order.push('elsewhere')),
    ]);
    await quiet(on);
    await answered(other);
    await first.release();
    await Promise.all([...crowd, elsewhere]);
    expect(order.indexOf('elsewhere')).toBe(follow);
  });
});

describe('rule 6: a loss elsewhere', () => {
  test('lets sections begin for at most `local` ms after the confirmation, and the next request reports it', async () => {
    const on = await bench({ local: 300, maxTime: 60_000 });
    const asked = performance.now();
    const first = await inFlow(() => on.lock.acquire());
    const begun: number[] = [];
    const losses: unknown[] = [];
    on.client.events.on('leaseLost', ({ reason }) => losses.push(reason));
    const calls = await inLine(
      on.client,
      times(20, () =>
        on.lock.withLock(async (hold) => {
          if (hold.owner === first.owner) begun.push(performance.now() - asked);
          await pause(WORK_MS);
        }),
      ),
    );
    await quiet(on);
    await admin().del(on.name);
    await first.release();
    await Promise.allSettled(calls);
    expect(Math.max(0, ...begun)).toBeLessThan(300);
    expect(losses).toEqual(['gone']);
  });
});

test('no section follows an owner when Redis has given the lock to another call of this client', async () => {
  const on = await bench();
  const first = await inFlow(() => on.lock.acquire());
  const [next] = await inLine(on.client, [() => on.lock.acquire()]);
  await quiet(on);
  const held = on.proxy.holdCommand({ command: ['EVALSHA', 'EVAL'] });
  const single = inFlow(() => on.lock.tryAcquire());
  await held.applied;
  await admin().del(on.name);
  held.lift();
  const other = await single;
  expect(other).not.toBeNull();
  let begun = false;
  void next!.then(() => (begun = true));
  await outcome(first.release());
  await pause(QUIET_MS);
  expect(begun).toBe(false);
  await other?.release();
  expect((await next!).owner).not.toBe(first.owner);
  await (await next!).release();
});

describe('rule 7: forceUnlock() of this client', () => {
  test.each<[string, (on: Bench, owner: string) => Promise<unknown>]>([
    ['of the lock', ({ lock }) => lock.forceUnlock()],
    ['of an owner', ({ client, name }, owner) => client.forceUnlock(name, { ifOwner: owner })],
  ])('%s ends the streak when it is called', async (_, force) => {
    const on = await bench();
    // No reply gets through that would ask for the source.
    await admin().script('LOAD', objectForceUnlock.source);
    const first = await inFlow(() => on.lock.acquire());
    const [next] = await inLine(on.client, [() => on.lock.acquire()]);
    await quiet(on);
    const held = on.proxy.stall({ direction: 'to-client', kind: 'command' });
    const forced = force(on, first.owner);
    await until(
      async () => (await admin().exists(on.name)) === 0 || on.proxy.log.at(-1)?.name === 'HKEYS',
      'it is on its way',
    );
    let begun = false;
    void next!.then(() => (begun = true));
    const released = outcome(first.release());
    await pause(QUIET_MS);
    expect(begun).toBe(false);
    held.lift();
    await forced;
    await released;
    // A call that found another owner meanwhile has freed that one as well.
    await outcome((await next!).release());
  });
});

test('local hand-overs exclude the sections of other processes', async () => {
  const handOff = { local: 20 };
  const counter = await SharedCounter.start();
  const [name, here] = [freshName(), await openClient({ handOff })];
  const workers = await Promise.all(times(2, () => startWorker()).map((start) => start()));
  await Promise.all(workers.map((each) => each.createClient({ url: clientUrl(), handOff })));
  const load = { locks: [name], port: counter.port, flows: 5, rounds: 30, workMs: 1, form: 'lock' } as const;
  const client = await counter.open();
  const flows = times(5, async () => {
    for (let round = 0; round < 30; round += 1) {
      await here.getLock(name).withLock(() => client.section(name, 'here', () => Promise.resolve()));
    }
  });
  const results = await Promise.all([...workers.map((each) => each.contend(load)), ...flows.map(inFlow)]);
  expect(results.slice(0, 2)).toMatchObject(workers.map(() => ({ sections: 150, failures: {} })));
  expectNoOverlap(counter.overlaps);
  expect({ value: counter.value(name), most: counter.mostHolders(name) }).toEqual({ value: 450, most: 1 });
  expect(here.stats().handOvers).toBeGreaterThan(0);
  client.close();
  await Promise.all(workers.map((each) => each.close()));
  await counter.close();
});

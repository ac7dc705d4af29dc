import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import {
  answered,
  closeClients,
  inFlow,
  openClient,
  outcome,
  pause,
  TestClock,
} from '../support/clients/lock-clients.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { startServer } from '../support/servers/servers.js';
import { FakeClock } from '../support/time/fake-clock.js';
import { LONG_QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { bench, HAND_OFF, inLine, LOCAL_MS, passes, quiet, sent, times } from './local-hand-over-stage.js';

/* What ends a streak of local hand-overs. The rules are those of src/waiting/hand-overs/local-hand-over.ts. */

/** What a section lasts on the clock of the client, which passes in sections alone. */
const SECTION_MS = 100;
const LIMITS = { local: LOCAL_MS, maxTime: 60_000 };

afterEach(() => closeClients());

/** Lets the time of the client pass, for a call that has given other clients the lock and tries again after a pause. */
async function untilSettled(clock: FakeClock, calls: readonly Promise<unknown>[]): Promise<void> {
  let settled = false;
  void Promise.allSettled(calls).then(() => (settled = true));
  await until(async () => {
    await clock.advance(1);
    return settled;
  }, 'the calls have settled');
}

describe('rule 1: a section is followed by a request', () => {
  test('while an attempt of the hand-over before it may still run', async () => {
    const on = await bench(LIMITS, { commandTimeout: 9_000 });
    const first = await inFlow(() => on.lock.acquire());
    const [second, third] = await inLine(
      on.client,
      times(2, () => on.lock.acquire()),
    );
    await quiet(on);
    // A nested hold makes the first section hand over by a request.
    await first.run(() => on.lock.withLock(() => undefined));
    const cut = on.proxy.cutAfter({ sha: HAND_OFF });
    await first.release();
    const hold = await second!;
    expect(cut.count).toBe(1);
    await quiet(on);
    expect(await passes(on, hold, third!)).toContain('hand-off');
    expect(await admin().hgetall(on.name)).toEqual({ [(await third!).owner]: '1' });
    await (await third!).release();
  });

  test('after extend()', async () => {
    const on = await bench();
    const first = await inFlow(() => on.lock.acquire({ leaseTime: 10_000 }));
    const [next] = await inLine(on.client, [() => on.lock.acquire({ leaseTime: 10_000 })]);
    await quiet(on);
    await first.extend(10_000);
    expect(await passes(on, first, next!)).toEqual(['hand-off']);
    expect((await next!).owner).not.toBe(first.owner);
    await (await next!).release();
  });

  test('after release({ after }), at the end of that time', async () => {
    const on = await bench();
    const first = await inFlow(() => on.lock.acquire());
    const [next] = await inLine(on.client, [() => on.lock.acquire()]);
    await quiet(on);
    const begun = performance.now();
    const requests = await sent(on, async () => {
      await first.release({ after: LONG_QUIET_MS });
      await next;
    });
    expect(performance.now() - begun).toBeGreaterThanOrEqual(LONG_QUIET_MS);
    expect(requests).not.toEqual([]);
    const { owner } = await next!;
    expect(owner).not.toBe(first.owner);
    expect(await admin().hgetall(on.name)).toEqual({ [owner]: '1' });
    await (await next!).release();
  });
});

describe('rule 3: a waiting call does not follow', () => {
  test('while the command connection is down', async () => {
    const on = await bench();
    const first = await inFlow(() => on.lock.acquire());
    const [next] = await inLine(on.client, [() => on.lock.acquire()]);
    await quiet(on);
    const refused = on.proxy.refuse('reset');
    on.proxy.cut();
    await until(() => refused.count > 0, 'the client connects again, in vain');
    let begun = false;
    void next!.then(() => (begun = true));
    const released = outcome(first.release());
    await pause(LONG_QUIET_MS);
    expect(begun).toBe(false);
    refused.lift();
    await released;
    const hold = await next!;
    expect(hold.owner).not.toBe(first.owner);
    expect(await admin().hgetall(on.name)).toEqual({ [hold.owner]: '1' });
    await hold.release();
  });

  test('after a jump of the clock', async () => {
    const clock = new TestClock();
    const on = await bench(LIMITS, { clock });
    const first = await inFlow(() => on.lock.acquire());
    const [next] = await inLine(on.client, [() => on.lock.acquire()]);
    await quiet(on);
    clock.jumpWall(100);
    expect(await passes(on, first, next!)).toEqual(['hand-off']);
    await (await next!).release();
  });
});

describe('rule 4: of 20 waiting calls', () => {
  test.each([
    ['those follow that begin within `maxTime`', { maxTime: 2.5 * SECTION_MS }, 3],
    ['as many as `maxSections` follow', { maxTime: 60_000, maxSections: 5 }, 5],
  ])('%s, before a request asks for other clients', async (_title, limits, follow) => {
    const clock = new FakeClock();
    const on = await bench({ local: LOCAL_MS, ...limits }, { clock });
    const other = await openClient();
    const first = await inFlow(() => on.lock.acquire());
    const order: string[] = [];
    const section = (hold: Hold): Promise<void> => {
      order.push(hold.owner === first.owner ? 'followed' : 'asked');
      return clock.advance(SECTION_MS);
    };
    const crowd = await inLine(
      on.client,
      times(20, () => on.lock.withLock(section)),
    );
    const [elsewhere] = await inLine(other, [
      () => other.getLock(on.name).withLock(() => void order.push('elsewhere')),
    ]);
    await quiet(on);
    await answered(other);
    await first.release();
    await elsewhere;
    await untilSettled(clock, crowd);
    expect(order.slice(0, follow + 1)).toEqual([...Array.from({ length: follow }, () => 'followed'), 'elsewhere']);
  });
});

describe('rule 6: after a loss elsewhere', () => {
  test.each([
    ['whose message is lost, sections begin for `local` ms', Infinity, [0, 1, 2, 3, 4]],
    ['whose message wakes the next call, at most such sections begin', 0, undefined],
  ])('by forceUnlock() of another client %s, and then Redis is asked', async (_title, lost, expected) => {
    const local = 4.5 * SECTION_MS;
    const clock = new FakeClock();
    const on = await bench({ local, maxTime: 60_000 }, { clock });
    if (lost > 0) on.proxy.dropMessages({ times: lost });
    const other = await openClient();
    const confirmed = clock.monotonic();
    const first = await inFlow(() => on.lock.acquire());
    const losses: unknown[] = [];
    on.client.events.on('leaseLost', ({ reason }) => losses.push(reason));
    const begun: { after: number; known: boolean }[] = [];
    const calls = await inLine(
      on.client,
      times(10, () =>
        on.lock.withLock(async ({ owner }) => {
          const after = clock.monotonic() - confirmed;
          begun.push({ after, known: (await admin().hexists(on.name, owner)) === 1 });
          await clock.advance(SECTION_MS);
        }),
      ),
    );
    await quiet(on);
    expect(await inFlow(() => other.getLock(on.name).forceUnlock())).toBe(true);
    const released = outcome(first.release());
    if (expected !== undefined) await until(() => begun.some(({ known }) => known), 'a call has asked Redis');
    await untilSettled(clock, [...calls, released]);
    const unknown = begun.filter(({ known }) => !known).map(({ after }) => after);
    for (const after of unknown) expect(after).toBeLessThan(local);
    if (expected !== undefined) expect(unknown.map((after) => Math.floor(after / SECTION_MS))).toEqual(expected);
    expect(begun).toHaveLength(10);
    expect(losses).toEqual(['gone']);
  });

  /** A server of its own, and how the client learns of its restart. */
  test.each<[string, (proxy: FaultProxy) => { lift(): void } | undefined, number]>([
    ['closes the connection, no section follows', () => undefined, 0],
    ['leaves the connection open, sections begin for `local` ms', (proxy) => proxy.stall(), 3],
  ])('by a restart that %s', async (_title, fault, follow) => {
    const server = await startServer();
    const proxy = await FaultProxy.start(server.address);
    const clock = new FakeClock();
    let client: LockClient | undefined;
    try {
      client = await openClient({ url: proxy.url, clock, handOff: { local: 2.5 * SECTION_MS, maxTime: 60_000 } });
      const name = freshName();
      const lock = client.getLock(name);
      const first = await inFlow(() => lock.acquire());
      const begun: string[] = [];
      const calls = await inLine(
        client,
        times(6, () =>
          lock.withLock(async ({ owner }) => {
            begun.push((await server.command('HEXISTS', name, owner)) === 1 ? 'known' : 'unknown');
            await clock.advance(SECTION_MS);
          }),
        ),
      );
      await until(async () => (await server.channels()).length > 0, 'the client listens');
      await answered(client);
      await answered(client);
      const stalled = fault(proxy);
      const before = proxy.connections().map(({ id }) => id);
      await server.restart();
      const isOpen = (): boolean => proxy.connections().some(({ id }) => before.includes(id));
      if (stalled === undefined) await until(() => !isOpen(), 'the connections are closed');
      const released = outcome(first.release());
      if (stalled !== undefined) {
        await until(() => begun.length === follow, 'sections follow');
        await pause(LONG_QUIET_MS);
        expect(begun).toEqual(Array.from({ length: follow }, () => 'unknown'));
        expect(proxy.connections().map(({ id }) => id)).toEqual(before);
        stalled.lift();
      }
      await untilSettled(clock, [...calls, released]);
      expect(begun.filter((each) => each === 'unknown')).toHaveLength(follow);
      expect(begun).toHaveLength(6);
    } finally {
      await client?.close();
      await proxy.close();
      await server.stop();
    }
  });
});

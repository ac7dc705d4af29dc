import { afterEach, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { InvalidArgumentError } from '../../src/errors.js';
import type { Lock } from '../../src/locks/lock.js';
import type { HandOffOptions } from '../../src/options.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import {
  answered,
  clientUrl,
  closeClients,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
  TestClock,
} from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { startServer } from '../support/servers/servers.js';
import { elapsed } from '../support/time/elapsed.js';
import { FakeClock } from '../support/time/fake-clock.js';
import { LONG_QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

/* `handOff.keep`: a lock that no call of the client waits for stays with the client after its last section. */

const KEPT = { local: 5_000, keep: 5_000, maxTime: 60_000 };
const BRIEF_MS = 300;
const SLACK_MS = 250;
const NAMES: Readonly<Record<string, string>> = {
  [scripts.acquire.script!.sha]: 'acquire',
  [scripts.handOff.script!.sha]: 'hand-off',
  [scripts.release.script!.sha]: 'release',
};

afterEach(() => closeClients());

interface Bench {
  readonly proxy: FaultProxy;
  readonly client: LockClient;
  readonly clock: TestClock;
  readonly lock: Lock;
  readonly name: string;
}

/** A client that has kept a lock since a section. */
async function kept(handOff: HandOffOptions = KEPT): Promise<Bench> {
  const { proxy, url } = await openProxy();
  const clock = new TestClock();
  const client = await openClient({ url, clock, handOff });
  const name = freshName();
  const lock = client.getLock(name);
  await inFlow(() => lock.withLock(() => undefined));
  return { proxy, client, clock, lock, name };
}

async function sent({ proxy }: Bench, work: () => Promise<unknown>): Promise<string[]> {
  const before = proxy.log.length;
  await inFlow(work);
  return proxy.log.slice(before).flatMap(({ name, args }) => (name === 'EVALSHA' ? (NAMES[args[0]!] ?? []) : []));
}

const isFree = (name: string): Promise<void> =>
  until(async () => (await admin().exists(name)) === 0, 'the lock is free');

describe('a kept lock', () => {
  test('lets the next calls enter without a request, each with a hold and events of its own', async () => {
    const on = await kept();
    const { client, lock, name } = on;
    const told: string[] = [];
    client.events.on('acquired', ({ handedOff }) => told.push(`acquired ${handedOff}`));
    client.events.on('released', () => told.push('released'));
    const [owner] = await admin().hkeys(name);
    const requests = await sent(on, async () => {
      for (const section of [1, 2, 3]) {
        const seen = await lock.withLock((hold) => [hold.owner, client.holds().length, hold.validFor() > 0, section]);
        expect(seen).toEqual([owner, 1, true, section]);
      }
      expect(await lock.tryLock()).toBe(true);
      await lock.unlock();
    });
    expect(requests).toEqual([]);
    expect(told).toEqual(Array.from({ length: 4 }, () => ['acquired true', 'released']).flat());
    expect(client.holds()).toEqual([]);
  });

  test('is released after `keep` ms, for a waiter of another client', async () => {
    const on = await kept({ ...KEPT, keep: BRIEF_MS });
    const other = await openClient();
    const asked = performance.now();
    await other.getLock(on.name).withLock(() => undefined);
    expect(elapsed(asked)).toBeLessThan(BRIEF_MS + SLACK_MS);
  });

  test('is released `local` ms after the confirmation, however often calls come', async () => {
    const on = await kept({ ...KEPT, local: BRIEF_MS, keep: BRIEF_MS });
    const other = await openClient();
    let done = false;
    const loop = inFlow(async () => {
      while (!done) await on.lock.withLock(() => new Promise((resume) => setTimeout(resume, 1)));
    });
    const asked = performance.now();
    await other.getLock(on.name).withLock(() => undefined);
    expect(elapsed(asked)).toBeLessThan(4 * (BRIEF_MS + SLACK_MS));
    done = true;
    await loop;
  });

  test('is entered for all of `keep`, also if that is longer than the default of `maxTime`', async () => {
    const on = await kept({ local: 5_000, keep: 5_000 });
    await pause(LONG_QUIET_MS);
    expect(await sent(on, () => on.lock.withLock(() => undefined))).toEqual([]);
  });

  test('is released after a shorter `maxTime`, because no call could enter it any more', async () => {
    const on = await kept({ ...KEPT, maxTime: BRIEF_MS });
    const released = performance.now();
    await isFree(on.name);
    expect(elapsed(released)).toBeLessThan(BRIEF_MS + SLACK_MS);
  });

  test('is released when close() begins to wait for the open sections, and none is kept from then on', async () => {
    const { client, lock, name } = await kept({ local: 25_000, keep: 25_000 });
    const ends: (() => void)[] = [];
    const names = [freshName(), freshName()];
    const sections = names.map((each) =>
      inFlow(() => client.getLock(each).withLock(() => new Promise<void>((end) => ends.push(end)))),
    );
    await until(() => ends.length === names.length, 'the sections are open');
    const closing = client.close({ drain: 10_000 });
    await isFree(name);
    // The other section is still open, so close() still waits.
    ends[0]!();
    await isFree(names[0]!);
    expect(client.holds()).toHaveLength(1);
    ends[1]!();
    await Promise.all(sections);
    expect(await closing).toMatchObject({ drained: true });
    await expect(lock.tryLock()).rejects.toThrow(/closed/);
  });

  test('is released `local` ms after the confirmation, also if its section was long and `keep` has not passed', async () => {
    const clock = new FakeClock();
    const client = await openClient({ clock, handOff: KEPT });
    const name = freshName();
    // The release of the section comes when most of the time has passed.
    await inFlow(() => client.getLock(name).withLock(() => clock.advance(0.6 * KEPT.local)));
    await clock.advance(0.39 * KEPT.local);
    await answered(client);
    expect(await admin().exists(name)).toBe(1);
    await clock.advance(0.01 * KEPT.local);
    await answered(client);
    expect(await admin().exists(name)).toBe(0);
  });

  test.each<[string, (on: Bench) => unknown]>([
    ['close()', ({ client }) => client.close()],
    ['the end of the process', () => process.emit('beforeExit', 0)],
    ['forceUnlock() of this client', ({ lock }) => lock.forceUnlock()],
  ])('is released by %s', async (_, end) => {
    const on = await kept();
    await end(on);
    await isFree(on.name);
  });

  test.each<[string, (on: Bench) => unknown]>([
    [
      'a cut connection',
      async ({ client, proxy }) => {
        proxy.cut({ kind: 'command' });
        await until(async () => (await outcome(client.ready())) === 'ok', 'the client has connected again');
        await answered(client);
      },
    ],
    ['a jump of the clock', ({ clock }) => clock.jumpWall(100)],
  ])('is not entered without a request after %s', async (_, fault) => {
    const on = await kept();
    await fault(on);
    expect(await sent(on, () => on.lock.withLock(() => undefined))).not.toEqual([]);
  });

  test.each([{ waitTime: 1_000 }, { waitTime: 0 }])('is left for a longer lease by a request (%j)', async (call) => {
    const on = await kept();
    const hold = await inFlow(() => on.lock.tryAcquire({ ...call, leaseTime: 120_000 }));
    expect(hold?.validFor()).toBeGreaterThan(100_000);
    expect(await admin().pttl(on.name)).toBeGreaterThan(100_000);
    await hold?.release();
  });

  test('is released for a call of this client that wants the other half of the lock', async () => {
    const client = await openClient({ handOff: KEPT });
    const both = client.getReadWriteLock(freshName());
    await both.writeLock().withLock(() => undefined);
    const asked = performance.now();
    await both.readLock().withLock(() => undefined);
    expect(elapsed(asked)).toBeLessThan(SLACK_MS);
  });

  test.each<[string, (client: LockClient, name: string) => Lock]>([
    ['lock', (client, name) => client.getLock(name)],
    ['write lock', (client, name) => client.getReadWriteLock(name).writeLock()],
  ])(
    'of a %s is released before the next try, also if Redis asks for the script of the release again',
    async (_, of) => {
      const server = await startServer();
      try {
        const client = await openClient({ url: server.url, handOff: KEPT });
        const other = await openClient({ url: server.url });
        const lock = of(client, freshName());
        await inFlow(() => lock.withLock(() => undefined));
        await server.scriptFlush();
        // Redis knows the script of the acquire again, and not that of the release.
        const elsewhere = await inFlow(() => of(other, freshName()).acquire());
        process.emit('beforeExit', 0);
        expect(await inFlow(() => lock.tryLock())).toBe(true);
        await elsewhere.release();
        await client.close({ releaseHolds: true });
      } finally {
        await server.stop();
      }
    },
  );

  test('is not entered any more when Redis has given the lock to another call of this client', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, handOff: KEPT });
    const name = freshName();
    const lock = client.getLock(name);
    const first = await inFlow(() => lock.acquire());
    const held = proxy.holdCommand({ command: ['EVALSHA', 'EVAL'] });
    const second = inFlow(() => lock.tryAcquire());
    await held.applied;
    await first.release();
    await admin().del(name);
    held.lift();
    const hold = await second;
    expect(hold).not.toBeNull();
    expect(await inFlow(() => lock.tryAcquire())).toBeNull();
    await hold?.release();
    await inFlow(() => lock.withLock(({ owner }) => expect(owner).toBe(hold?.owner)));
    await client.close();
    await isFree(name);
  });

  test('is released when Redis has given the lock to another call of this client, and the client unsubscribes', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url, handOff: { ...KEPT, keep: BRIEF_MS } });
    const name = freshName();
    const lock = client.getLock(name);
    const channels = (): Promise<unknown[]> => admin().pubsub('CHANNELS', `*${name}*`);
    const first = await inFlow(() => lock.acquire());
    await inFlow(() => lock.tryAcquire({ waitTime: SLACK_MS }));
    expect(await channels()).toHaveLength(1);
    const held = proxy.holdCommand({ command: ['EVALSHA', 'EVAL'] });
    const second = inFlow(() => lock.tryAcquire());
    await held.applied;
    await first.release();
    await admin().del(name);
    held.lift();
    await (await second)?.release();
    await isFree(name);
    await until(async () => (await channels()).length === 0, 'the client has unsubscribed');
  });

  test('is not kept for longer than `local` allows', () => {
    expect(() => createClient({ url: clientUrl(), handOff: { local: 10, keep: 20 } })).toThrow(InvalidArgumentError);
  });
});

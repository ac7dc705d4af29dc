import { describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { answered, inFlow, ready } from '../support/clients/lock-clients.js';
import { SharedCounter } from '../support/processes/shared-counter.js';
import { until } from '../support/time/until.js';
import { clients, freeEverywhere, holders, open, servers } from './red-lock-stage.js';
import { expectAtMost, expectNoOverlap } from '../support/serious.js';

/* `handOff.local` and `handOff.keep` for the members of a RedLock: each server confirms its own owner. */

const KEPT = { local: 5_000, keep: 5_000, maxTime: 60_000 };
const LOCAL = { local: 5_000, maxTime: 60_000 };
const SECTIONS = 8;

/** The scripts that each server runs during `work`. */
async function scriptsRun(opened: readonly LockClient[], work: () => Promise<unknown>): Promise<number[]> {
  const counts = (): Promise<number[]> =>
    Promise.all(servers.map(async (server) => (await server.commandStats()).get('evalsha') ?? 0));
  const before = await counts();
  await work();
  await Promise.all(opened.map(answered));
  return (await counts()).map((count, at) => count - before[at]!);
}

/** A section of which every server knows, so that all its members can be kept. */
const wholeSection = (lock: Lock, opened: readonly LockClient[]): Promise<void> =>
  inFlow(() =>
    lock.withLock(async () => {
      await until(() => opened.every((client) => client.holds().length === 1), 'each member is held');
      await Promise.all(opened.map(answered));
      // A server that does not have a script yet is sent its source after the first reply.
      await Promise.all(opened.map(answered));
    }),
  );

describe('the sections of a RedLock with three servers', () => {
  test('that wait follow one another without a request at the server in whose line they wait', async () => {
    const { clients: opened, lock, name } = await open({ handOff: LOCAL });
    const first = await inFlow(() => lock.acquire());
    let inside = 0;
    const sections = Array.from({ length: SECTIONS }, () =>
      inFlow(() =>
        lock.withLock(async () => {
          expectAtMost(++inside);
          await until(async () => (await holders(name)).filter((held) => held === 1).length >= 2, 'a majority has it');
          inside -= 1;
        }),
      ),
    );
    await until(() => opened.some((client) => client.stats().waiting === SECTIONS), 'all of them wait');
    await Promise.all(opened.map(answered));
    const run = await scriptsRun(opened, async () => {
      await first.release();
      await Promise.all(sections);
      await freeEverywhere({ clients: opened, name });
    });
    const [least = 0, ...others] = run.sort((a, b) => a - b);
    expect(least).toBeLessThanOrEqual(4);
    for (const each of others) expect(each).toBeGreaterThanOrEqual(2 * SECTIONS);
    expect(Math.max(...opened.map((client) => client.stats().handOvers))).toBeGreaterThanOrEqual(SECTIONS - 1);
  });

  test('with `keep` follow one another without a request at any server', async () => {
    const { clients: opened, lock, name } = await open({ handOff: KEPT });
    await wholeSection(lock, opened);
    const run = await scriptsRun(opened, async () => {
      for (let i = 0; i < SECTIONS; i += 1) await wholeSection(lock, opened);
    });
    expect(run).toEqual([0, 0, 0]);
    expect(await holders(name)).toEqual([1, 1, 1]);
  });

  test('keep nothing of a call without a majority', async () => {
    const { clients: opened, lock, name } = await open({ handOff: KEPT });
    const { clients: others } = await open({ name });
    const busy = await Promise.all(others.slice(0, 2).map((client) => inFlow(() => client.getLock(name).acquire())));
    for (let i = 0; i < SECTIONS; i += 1) {
      expect(await inFlow(() => lock.tryLock())).toBe(false);
      await Promise.all(opened.map(answered));
      expect(await holders(name)).toEqual([1, 1, 0]);
    }
    await Promise.all(busy.map((hold) => hold.release()));
  });

  test('exclude another RedLock when one server has lost the key, and do not when two servers have', async () => {
    const { clients: opened, lock, name } = await open({ handOff: KEPT });
    const { lock: other, clients: others } = await open({ name });
    await wholeSection(lock, opened);
    await servers[0]!.command('DEL', name);
    await inFlow(() =>
      lock.withLock(async (hold) => {
        expect(hold.signal.aborted).toBe(false);
        expect(await inFlow(() => other.tryLock())).toBe(false);
      }),
    );
    await until(async () => (await holders(name))[0] === 0, 'the other one has left');
    await servers[1]!.command('DEL', name);
    // The kept owner is known to one server alone: the majority decides.
    expect(await inFlow(() => other.tryLock())).toBe(true);
    await freeOthers(others);
  });

  test('lose no update and no exclusion when one server loses the key in their midst', async () => {
    const counter = await SharedCounter.start();
    const handOff = { local: 40, maxTime: 60_000 };
    const { clients: here, lock, name } = await open({ handOff });
    const { clients: there, lock: other } = await open({ name, handOff });
    const client = await counter.open();
    const losses: boolean[] = [];
    let isDeleted = false;
    const flow = (each: Lock, who: string): Promise<void> =>
      inFlow(async () => {
        for (let round = 0; round < 20; round += 1) {
          const section = each.withLock({ waitTime: 60_000 }, () => client.section(name, who, () => Promise.resolve()));
          // A hold that two servers granted is lost with the key of one of them. Its section has run by then.
          await section.catch((error: unknown) => {
            expect(error).toMatchObject({ code: 'ERR_LOCK_LOST' });
            losses.push(isDeleted);
          });
        }
      });
    const flows = [lock, other].flatMap((each, at) => Array.from({ length: 3 }, (_, n) => flow(each, `${at}:${n}`)));
    await until(() => counter.value(name) > 20, 'sections pass');
    isDeleted = true;
    await servers[0]!.command('DEL', name);
    await Promise.all(flows);
    // At most the sections of the one owner that held the key then: those of one client.
    expect(losses.filter((isByDeletion) => !isByDeletion)).toEqual([]);
    expect(losses.length).toBeLessThanOrEqual(3);
    expectNoOverlap(counter.overlaps);
    expect(counter.value(name)).toBe(6 * 20);
    expect([...here, ...there].reduce((sum, each) => sum + each.stats().handOvers, 0)).toBeGreaterThan(0);
    client.close();
    await counter.close();
  });
});

/** A RedLock of the halves of read-write locks, with clients of its own. */
async function halves(name: string, half: 'readLock' | 'writeLock', handOff?: typeof KEPT) {
  const opened = servers.map((server) => createClient({ url: server.url, ...(handOff && { handOff }) }));
  clients.push(...opened);
  await ready(...opened);
  const lock = opened[0]!.getRedLock(...opened.map((client) => client.getReadWriteLock(name)[half]()));
  return { opened, lock };
}

/** The holds that their caller has left open. */
async function freeOthers(opened: readonly LockClient[]): Promise<void> {
  await Promise.all(opened.map((client) => client.close({ releaseHolds: true })));
}

describe('the reads of a RedLock with `keep`', () => {
  test('follow kept reads without a request at any server, and the kept reads go with the clients', async () => {
    const { opened, lock } = await halves('red:kept-reads', 'readLock', KEPT);
    await wholeSection(lock, opened);
    const run = await scriptsRun(opened, async () => {
      for (let i = 0; i < SECTIONS; i += 1) await wholeSection(lock, opened);
    });
    expect(run).toEqual([0, 0, 0]);
    expect(await holders('red:kept-reads')).toEqual([2, 2, 2]);
    await freeOthers(opened);
    expect(await holders('red:kept-reads')).toEqual([0, 0, 0]);
  });

  test('exclude a writer of other clients, also when one server has lost the key', async () => {
    const name = 'red:kept-reads-del';
    const { opened, lock } = await halves(name, 'readLock', KEPT);
    const { lock: writer } = await halves(name, 'writeLock');
    await wholeSection(lock, opened);
    // The key of the read hold would stay until the end of its lease.
    await servers[1]!.command('DEL', ...(await servers[1]!.keys()));
    await inFlow(() =>
      lock.withLock(async () => {
        expect(await inFlow(() => writer.tryLock())).toBe(false);
      }),
    );
    await freeOthers(opened);
    expect(await inFlow(() => writer.tryLock({ waitTime: 10_000 }))).toBe(true);
  });
});

import { describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Lock } from '../../src/locks/lock.js';
import { answered, inFlow } from '../support/clients/lock-clients.js';
import { SharedCounter } from '../support/processes/shared-counter.js';
import { until } from '../support/time/until.js';
import { freeEverywhere, holders, open, servers } from './red-lock-stage.js';
import { expectNoOverlap } from '../support/serious.js';

/* The members of a RedLock ask each server for each section, also if their clients have `handOff.local` and `handOff.keep`. */

const KEPT = { local: 5_000, keep: 5_000, maxTime: 60_000 };
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

describe('the sections of a RedLock with three servers', () => {
  test('ask each server, and keep none of its locks', async () => {
    const { clients: opened, lock, name } = await open({ handOff: KEPT });
    const everywhere = async (): Promise<void> => {
      await until(() => opened.every((client) => client.holds().length === 1), 'each member is held');
    };
    const run = await scriptsRun(opened, async () => {
      for (let i = 0; i < SECTIONS; i += 1) {
        await inFlow(() => lock.withLock(everywhere));
        await freeEverywhere({ clients: opened, name });
      }
    });
    for (const each of run) expect(each).toBeGreaterThanOrEqual(2 * SECTIONS - 2);
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

  test('lose no update and no exclusion when one server loses the key in their midst', async () => {
    const counter = await SharedCounter.start();
    const handOff = { local: 40, keep: 40, maxTime: 60_000 };
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

import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { HandOffOptions } from '../../src/options.js';
import type { Lock } from '../../src/locks/lock.js';
import { answered, closeClients, holdElsewhere, inFlow, openClient, pause } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { elapsed } from '../support/time/elapsed.js';
import { until } from '../support/time/until.js';

/* `handOff.keep` and multi-locks: a hold of several locks is kept as a whole or not at all. */

const KEPT = { local: 20_000, keep: 20_000, maxTime: 60_000 };

afterEach(() => closeClients());

interface Bench {
  readonly client: LockClient;
  readonly a: Lock;
  readonly b: Lock;
  readonly both: Lock;
  readonly names: readonly [string, string];
}

async function bench(
  handOff: HandOffOptions = KEPT,
  names: readonly [string, string] = [freshName('a'), freshName('b')],
) {
  const client = await openClient({ handOff });
  const [a, b] = [client.getLock(names[0]), client.getLock(names[1])];
  return { client, a, b, both: client.getMultiLock(a, b), names } satisfies Bench;
}

const section = (lock: Lock): Promise<string> => inFlow(() => lock.withLock(({ owner }) => owner));
const inRedis = (names: readonly string[]): Promise<number[]> => Promise.all(names.map((name) => admin().exists(name)));
const areFree = (names: readonly string[]): Promise<void> =>
  until(async () => (await inRedis(names)).every((there) => there === 0), 'the locks are free');

describe('a kept hold of two locks', () => {
  test('is entered as a whole by the next call over the same locks', async () => {
    const { both, names } = await bench();
    const owner = await section(both);
    expect(await inRedis(names)).toEqual([1, 1]);
    expect([await section(both), await section(both)]).toEqual([owner, owner]);
  });

  test.each<[string, (on: Bench) => Promise<unknown>]>([
    ['a call for one of them', ({ a }) => section(a)],
    ['a try for one of them', ({ a }) => inFlow(() => a.withLock({ waitTime: 0 }, () => undefined))],
    ['a forced unlock of one of them', ({ a }) => a.forceUnlock()],
  ])('is released as a whole by %s', async (_, end) => {
    const on = await bench();
    await section(on.both);
    await end(on);
    await areFree(on.names.slice(1));
  });

  test('does not come about while another call of the client waits for one of the locks', async () => {
    const { both, client, b, names } = await bench();
    const hold = await inFlow(() => both.acquire());
    const waits = holdElsewhere(b);
    await until(() => client.stats().waiting === 1, 'the call waits');
    await answered(client);
    await hold.release();
    const theirs = await waits;
    expect(await inRedis(names)).toEqual([0, 1]);
    await theirs.release();
  });
});

test('a try that finds one lock busy keeps none of the others', async () => {
  const { both, client, names } = await bench();
  const other = await openClient();
  const busy = await holdElsewhere(other.getLock(names[1]));
  for (let i = 0; i < 20; i += 1) {
    expect(await inFlow(() => both.tryLock())).toBe(false);
    await answered(client);
    expect(await inRedis(names)).toEqual([0, 1]);
  }
  // A lock that was kept before the try is not kept after it.
  await section(client.getLock(names[0]));
  expect(await inRedis(names)).toEqual([1, 1]);
  expect(await inFlow(() => both.tryLock())).toBe(false);
  await areFree(names.slice(0, 1));
  await busy.release();
});

test.each([0, 5])('two clients that keep two locks take turns (pauses of %i ms)', async (pauseMs) => {
  const handOff = { local: 300, keep: 150 };
  const often = await bench(handOff);
  const seldom = await bench(handOff, often.names);
  let over = false;
  const loop = (lock: Lock, restMs: number) => {
    const done = { sections: 0, longestMs: 0 };
    const run = inFlow(async () => {
      while (!over) {
        const asked = performance.now();
        await section(lock);
        done.sections += 1;
        done.longestMs = Math.max(done.longestMs, elapsed(asked));
        await pause(restMs);
      }
    });
    return { done, run };
  };
  const loops = [loop(often.both, pauseMs), loop(seldom.both, 90)] as const;
  // A waiter gets the locks `local` ms after the other client asked Redis for them, and may then follow itself.
  await until(() => loops[1].done.sections >= 10, 'the client that seldom calls has had its sections', 30_000);
  over = true;
  await Promise.all(loops.map(({ run }) => run));
  for (const { done } of loops) expect(done.longestMs).toBeLessThan(4_000);
});

import { describe, expect, test } from '@jest/globals';
import type { Timer } from '../../src/clock.js';
import { LockLostError } from '../../src/errors.js';
import type { ClientOptions } from '../../src/options.js';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { isUnresponsive } from '../../src/several/unresponsive.js';
import type { Member } from '../../src/several/members.js';
import { SingleLock } from '../../src/locks/single-lock.js';
import type { RedLock } from '../../src/several/red-lock.js';
import { inFlow, outcome, pause, ready, TestClock } from '../support/clients/lock-clients.js';
import type { RedisServer } from '../support/servers/servers.js';
import { elapsed } from '../support/time/elapsed.js';
import { STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { clients, freeEverywhere, servers } from '../integration/red-lock-stage.js';

/* Several contenders for a RedLock while one of three servers is unavailable. */

/** Longer than a pause between two rounds (50 ms), shorter than any deadline of a round (100 ms at least). */
const LONGEST_TIMER_MS = 60;

/**
 * Once frozen, it never fires the timers that would end a wait for a server that does not answer, or for a server that
 * a second owner holds while that owner waits for this one.
 */
class FreezableClock extends TestClock {
  frozen = false;

  override setTimer(ms: number, fn: () => void, keepsAlive?: boolean): Timer {
    if (this.frozen && ms > LONGEST_TIMER_MS) return { cancel: () => undefined };
    return super.setTimer(ms, fn, keepsAlive);
  }
}

const isMember = (lock: unknown): lock is Member => lock instanceof SingleLock;

interface ClientSet {
  readonly clients: readonly LockClient[];
  readonly lock: RedLock;
}

async function openSets(name: string, clock: TestClock, options: ClientOptions = {}): Promise<readonly ClientSet[]> {
  const sets = [0, 1].map(() => {
    const opened = servers.map(({ url }) => createClient({ url, ...options }, { clock }));
    return { clients: opened, lock: opened[0]!.getRedLock(...opened.map((client) => client.getLock(name))) };
  });
  for (const set of sets) clients.push(...set.clients);
  await ready(...clients);
  return sets;
}

const unavailable = [
  { how: 'hangs', strike: (server: RedisServer) => server.pause() },
  { how: 'is down', strike: (server: RedisServer) => server.kill9() },
] as const;

async function recover(server: RedisServer): Promise<void> {
  if (server.stopped) server.resume();
  if (!server.running) await server.start();
}

describe.each(unavailable)('R28: when one of three servers $how', ({ strike }) => {
  test.each([0, 1, 2])('contenders wait for no attempt at it (%i)', async (at) => {
    const name = `red:pause:${at}`;
    // An attempt takes 3,000 ms.
    const sets = await openSets(name, new TestClock(), { commandTimeout: 9_000 });
    let over = false;
    let sections = 0;
    let last = performance.now();
    let longestMs = 0;
    const flow = async ({ lock }: ClientSet): Promise<void> => {
      while (!over) {
        const section = (): void => {
          longestMs = Math.max(longestMs, elapsed(last));
          last = performance.now();
          sections += 1;
        };
        // A server that is killed forgets its vote, and with it the majority of a hold of that moment.
        await lock.withLock(section).catch((error: unknown) => {
          if (!(error instanceof LockLostError)) throw error;
        });
      }
    };
    const running = [...sets, ...sets].map((set) => inFlow(() => flow(set)));
    await until(() => sections >= 100, 'they take turns');
    try {
      longestMs = 0;
      await strike(servers[at]!);
      const before = sections;
      await until(() => sections >= before + 100, 'they still take turns', 20_000);
      expect(longestMs).toBeLessThan(2_500);
    } finally {
      over = true;
      await recover(servers[at]!);
    }
    await Promise.all(running);
    for (const { clients: opened } of sets) await freeEverywhere({ clients: opened, name });
  });
});

describe.each(unavailable)('R28: while one of three servers $how', ({ strike }) => {
  test.each([0, 1, 2])('contenders that split the other two do not wait for that server (%i)', async (at) => {
    const name = `red:contended:${at}`;
    const clock = new FreezableClock();
    const sets = await openSets(name, clock);
    let sections = 0;
    let inside = 0;
    let over = false;
    const section = async ({ lock }: ClientSet): Promise<void> => {
      const hold = await lock.acquire();
      inside += 1;
      expect(inside).toBe(1);
      sections += 1;
      await new Promise((resume) => setImmediate(resume));
      inside -= 1;
      await hold.release();
    };
    const flow = async (set: ClientSet): Promise<void> => {
      // A hold that had been granted before the server became unavailable may end without a majority.
      while (!over) if ((await outcome(section(set))) !== 'ok') await pause(STARTED_MS);
    };
    const running = [...sets, ...sets].map((set) => inFlow(() => flow(set)));
    await until(() => sections >= 20, 'they take turns');
    try {
      await strike(servers[at]!);
      const isKnown = ({ clients: opened }: ClientSet): boolean => {
        const member = opened[at]!.getLock(name);
        return isMember(member) && isUnresponsive(member);
      };
      await until(() => sets.every(isKnown), 'both know that it is unavailable');
      let before = sections;
      await until(() => sections >= before + 20, 'each contender knows it');
      clock.frozen = true;
      before = sections;
      await until(() => sections >= before + 60, 'they still take turns', 20_000);
    } finally {
      clock.frozen = false;
      over = true;
      await recover(servers[at]!);
    }
    await Promise.all(running);
    for (const { clients: opened } of sets) await freeEverywhere({ clients: opened, name });
  });
});

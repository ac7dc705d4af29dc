import { afterEach, expect, test } from '@jest/globals';
import { elapsed } from '../support/time/elapsed.js';
import { closeClients, inFlow, openClient, pause } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { PARKED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { ENABLING_LOCKS } from './enabling-locks.js';
import { ENABLING_PERMITS } from './enabling-permits.js';

/*
 * R21: every operation that can let a waiter in wakes one, or all that can enter. Each row puts something in the way,
 * lets calls of two clients wait for it, and does the one thing that clears it, at a third client where that can be.
 */

const WITHIN_MS = 200 + 250;

let used = '';
afterEach(async () => {
  await closeClients();
  await admin().del(used, `{${used}}:timeout`);
});

test.each(Object.entries({ ...ENABLING_LOCKS, ...ENABLING_PERMITS }))(
  'R21: %s',
  async (_, { prepare, wait, waiters = 1, enter = 1 }) => {
    const name = (used = freshName('enabling'));
    const clear = await inFlow(async () => prepare(name, await openClient()));
    let entered = 0;
    const waiting = new Set<string>();
    const abort: (() => Promise<unknown>)[] = [];
    const clients = [await openClient(), await openClient()];
    for (const client of clients) {
      let waits = 0;
      // A lock over several waits at each in turn, or at one of them again.
      client.events.on('waiting', () => waiting.add(`${client.id} ${Math.min((waits += 1), waiters)}`));
      for (let at = 0; at < waiters; at += 1) {
        inFlow(() => wait(name, client)).then(
          (end) => {
            entered += 1;
            abort.push(end);
          },
          () => undefined,
        );
      }
    }
    await until(() => waiting.size === waiters * clients.length, 'all wait');
    await pause(PARKED_MS); // each waiter has tried again after its subscription was confirmed: from now on only a message wakes it
    expect(entered).toBe(0);
    await clear();
    const cleared = performance.now();
    await until(() => entered >= enter, 'the waiters that can be granted are inside');
    expect(elapsed(cleared)).toBeLessThan(WITHIN_MS);
    await Promise.all(clients.map((client) => client.close({ releaseHolds: true })));
    for (const end of abort) await end().catch(() => undefined);
  },
);

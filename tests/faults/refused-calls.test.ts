import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { elapsed } from '../support/time/elapsed.js';
import { closeClients, inFlow, openClient, openProxy, outcome, pause } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { LONG_QUIET_MS } from '../support/time/pauses.js';

const HOUR_MS = 3_600_000;
const SLACK_MS = 250;

afterEach(() => closeClients());

/** Every call that takes something from a key of this name. */
const CALLS: Record<string, (client: LockClient, name: string) => Promise<unknown>> = {
  'a lock': (client, name) => client.getLock(name).tryLock(0, HOUR_MS),
  'a lock that waits': (client, name) => client.getLock(name).tryLock(HOUR_MS, HOUR_MS),
  'a non-reentrant lock': (client, name) => client.getNonReentrantLock(name).tryLock(0, HOUR_MS),
  'a fair lock': (client, name) => client.getFairLock(name).tryLock(0, HOUR_MS),
  'a fair lock that waits': (client, name) => client.getFairLock(name).tryLock(HOUR_MS, HOUR_MS),
  'a fenced lock': (client, name) => client.getFencedLock(name).tryLock(0, HOUR_MS),
  'a spin lock': (client, name) => client.getSpinLock(name).tryLock(0, HOUR_MS),
  'a read lock': (client, name) => client.getReadWriteLock(name).readLock().tryLock(0, HOUR_MS),
  'a write lock': (client, name) => client.getReadWriteLock(name).writeLock().tryLock(0, HOUR_MS),
  'a group lock': (client, name) => client.getMultiLock(name, ['a']).tryLock(0, HOUR_MS),
  'a multi-lock': (client, name) => client.getMultiLock(client.getLock(name)).tryLock(0, HOUR_MS),
  'a semaphore': (client, name) => client.getSemaphore(name).tryAcquire(),
  'all permits of a semaphore': (client, name) => client.getSemaphore(name).drainPermits(),
  'permits with ids': (client, name) => client.getPermitExpirableSemaphore(name).tryAcquire(0, HOUR_MS),
};

describe.each(Object.entries(CALLS))('%s whose key holds another type', (_, call) => {
  test('is refused, sends nothing more, and close() does not wait', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const name = freshName();
    // A list: no primitive reads or writes one under its own name.
    await admin().rpush(name, 'of the user');
    await admin().rpush(`{${name}}:timeout`, 'of the user');
    const calls = Array.from({ length: 20 }, () => inFlow(() => outcome(call(client, name))));
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ERR_LOCK_REFUSED']));
    const sent = proxy.log.length;
    await pause(LONG_QUIET_MS); // the first repetition would come after 100 ms
    expect(proxy.log.slice(sent).map(({ name: command }) => command)).toEqual([]);
    const at = performance.now();
    await client.close();
    expect(elapsed(at)).toBeLessThan(SLACK_MS);
    await admin().del(name, `{${name}}:timeout`);
  });
});

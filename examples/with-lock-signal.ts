// How does the work inside a lock learn that it has to stop, because the lock is no longer held?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient, LockLostError } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
// The watchdog renews at a third of its timeout, so it notices a deleted lock within 200 ms here.
await using client = createClient({ url: redis.url, lockWatchdogTimeout: 600 });

const lock = client.getLock('example:import');

/** Everything with an AbortSignal can be stopped: fetch, streams, timers, database drivers, your own loops. */
async function importRows(rows: number, signal: AbortSignal): Promise<number> {
  for (let row = 0; row < rows; row++) await pause(20, undefined, { signal });
  return rows;
}

const imported = await lock.withLock((hold) => importRows(10, hold.signal));
console.log(`imported ${imported} rows`);

try {
  await lock.withLock(async (hold) => {
    // An operator deletes the key of a lock that "hangs".
    await using operator = createClient({ url: redis.url });
    await operator.getLock(lock.name).forceUnlock();
    try {
      await importRows(1_000, hold.signal);
    } catch (error) {
      const { reason } = hold.signal as { reason: unknown };
      if (reason instanceof LockLostError) console.log(`stopped: ${reason.code}, ${reason.reason}`);
      throw error;
    }
  });
} catch (error) {
  // The hold was lost, and the body failed for that. Every other error of the body is rethrown unchanged.
  const { code, cause } = error as LockLostError;
  console.log(`withLock rejected with ${code}, caused by the body's ${(cause as Error).name}`);
}

// @ts-check
import { createClient, lockContext } from 'holdfast';
import { randomUUID } from 'node:crypto';

/** For ownership-runner.mjs: the built package's locks, on the server that the tests run on. */
export async function openLocks() {
  const client = createClient({ url: process.env.HOLDFAST_TEST_REDIS_URL ?? 'redis://127.0.0.1:6379' });
  await client.ready();
  const run = randomUUID();
  return {
    adapter: { newLock: (/** @type {string} */ name) => client.getLock(`${run} ${name}`), lockContext },
    close: () => client.close({ releaseHolds: true }),
  };
}

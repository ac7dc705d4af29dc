// @ts-check
import { randomInt } from 'node:crypto';
import { startRedisServer } from './redis-server.mjs';

/** @type {Awaited<ReturnType<typeof startRedisServer>> | undefined} */
export let server;

/**
 * One server for the whole run: starting one per file costs more than the tests in it.
 * What is set in the environment here is seen by every worker and by the processes they fork.
 */
export default async function globalSetup() {
  const seed = (process.env.HOLDFAST_SEED ??= String(randomInt(2 ** 31)));
  console.log(`\nRandom schedules: seed ${seed} (HOLDFAST_SEED=${seed} repeats them)`);
  // Where the suite runs on a topology, its servers are there already.
  if (process.env.HOLDFAST_TOPOLOGY !== undefined) return;
  server = await startRedisServer();
  process.env.HOLDFAST_TEST_REDIS_URL = server.url;
  process.env.HOLDFAST_TEST_REDIS_BINARY = server.binary;
}

// @ts-check
import { scriptText } from '../../../.ci/lua/script-text.cjs';
import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { startRedisServer } from '../servers/redis-server.mjs';
import { note } from './record.mjs';

/** @type {Awaited<ReturnType<typeof startRedisServer>> | undefined} */
export let server;

/**
 * One server for the whole run: starting one per file costs more than the tests in it.
 * Every worker, and the processes that it forks, see the environment that is set here.
 */
export default async function globalSetup() {
  const seed = (process.env.HOLDFAST_SEED ??= String(randomInt(2 ** 31)));
  console.log(`\nRandom schedules: seed ${seed} (HOLDFAST_SEED=${seed} repeats them)`);
  note({ what: 'run', seed });
  // Where the suite runs on a topology, its servers are there already.
  if (process.env.HOLDFAST_TOPOLOGY === undefined) {
    server = await startRedisServer();
    process.env.HOLDFAST_TEST_REDIS_URL = server.url;
    process.env.HOLDFAST_TEST_REDIS_BINARY = server.binary;
  }
  /** @type {{ others?: string[] }} */
  const { others = [] } = JSON.parse(process.env.HOLDFAST_TEST_NODES ?? '{}');
  await Promise.all(
    [process.env.HOLDFAST_TEST_REDIS_URL ?? '', ...others.map((at) => `redis://${at}`)].map(loadScripts),
  );
}

/**
 * The first run of a script on a server sends the script again, after later commands. Without this function, the
 * workers would decide which test is affected.
 *
 * @param {string} url
 */
async function loadScripts(url) {
  const redis = new Redis(url);
  const lua = new URL('../../../lua/', import.meta.url);
  const files = readdirSync(lua, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /^(?!lib\b).*\.lua$/.test(file),
  );
  await Promise.all(files.map((file) => redis.script('LOAD', scriptText(readFileSync(new URL(file, lua), 'utf8')))));
  redis.disconnect();
}

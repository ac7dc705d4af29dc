import { afterAll, beforeAll, expect } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { Redis } from 'ioredis';
import { ROLLS } from '../../src/redis/keys.js';
import { AFTER_TEST } from './jest/after-test.mjs';
import { neverAFlake } from './serious.js';
import { topology } from './servers/topology.mjs';
import { until } from './time/until.js';

/**
 * Test files run side by side on one server. Each worker has its own database, so files do not share keys. Databases
 * share channels, so every name carries the mark of its file.
 */
const mark = `${basename(expect.getState().testPath ?? 'test', '.test.ts')}-${randomBytes(4).toString('hex')}`;

/** Requests' lanes and the fencing counters outlive the holds they were made for, by design. */
const OUTLIVES = /^(holdfast_requests:|redisson_lock_token:)/;

let names = 0;
let connection: Redis | undefined;
let over = false;
const endings: (() => Promise<unknown>)[] = [];

/** Leftovers that the leak check after each test ignores, with the reason. */
interface Exemption {
  readonly of: 'keys' | 'rolls' | 'everything';
  readonly reason: string;
}
let ofFile: Exemption | undefined;
let ofTest: Exemption | undefined;

function exempt(exemption: Exemption): void {
  if (exemption.reason.trim() === '') throw new Error('an exemption from the leak check needs a reason');
  if (expect.getState().currentTestName === undefined) ofFile = exemption;
  else ofTest = exemption;
}

/** The test, or each test of the file that calls this outside of a test, leaves keys. They are deleted after it. */
export function leavesKeys(reason: string): void {
  exempt({ of: 'keys', reason });
}

/** A client dies while it is parked: its entry stays in the roll of the lock, which expires within a minute. */
export function leavesRolls(reason: string): void {
  exempt({ of: 'rolls', reason });
}

/** Something lives on between the tests of the file. A hook of the file calls `expectNothingLeft` at its end. */
export function withoutLeakCheck(reason: string): void {
  exempt({ of: 'everything', reason });
}

(globalThis as { [AFTER_TEST]?: () => Promise<void> })[AFTER_TEST] = async () => {
  const exemption = ofTest ?? ofFile;
  ofTest = undefined;
  if (exemption?.of === 'everything') return;
  if (exemption?.of === 'keys') await admin().flushdb();
  if (exemption?.of === 'rolls') await deleteRolls();
  await expectNothingLeft();
};

/** Deletes the rolls that expire. Any other roll is a leftover. */
export async function deleteRolls(): Promise<void> {
  for (const key of await admin().keys(`${ROLLS}:*`)) {
    const left = await admin().pttl(key);
    if (left > 0 && left <= 60_000) await admin().del(key);
  }
}

// Remove leftovers of an earlier file in the database of this worker.
beforeAll(() => admin().flushdb());

afterAll(async () => {
  for (const ending of endings) await ending();
  over = true;
  await connection?.quit();
});

/** Cleanup for which an `afterAll` would run too late: after the connection of `admin()` is closed. */
export function atLast(ending: () => Promise<unknown>): void {
  endings.push(ending);
}

/** The suite's server, with this worker's database in the path. */
export function testRedisUrl(): string {
  const url = process.env.HOLDFAST_TEST_REDIS_URL;
  if (!url) throw new Error('HOLDFAST_TEST_REDIS_URL is not set: run the tests with npm test or npm run jest');
  // A cluster has no databases; its suites run one after the other.
  return topology === 'cluster' ? url : `${url}/${process.env.JEST_WORKER_ID ?? '0'}`;
}

/** The binary of that server, for tests that start their own servers. */
export function testRedisBinary(): string {
  const path = process.env.HOLDFAST_TEST_REDIS_BINARY;
  if (!path) throw new Error('HOLDFAST_TEST_REDIS_BINARY is not set: run the tests with npm test or npm run jest');
  return path;
}

/** A second pair of eyes: one connection per test file, closed after its last test. */
export function admin(): Redis {
  if (over) throw new Error('no code would close another connection now: call atLast() earlier');
  connection ??= new Redis(testRedisUrl());
  return connection;
}

/** A lock name no other test has had. */
export function freshName(label = 'lock'): string {
  names += 1;
  return `${mark}:${label}:${names}`;
}

/**
 * Fails if this file has left a key or a subscription. It runs after every test. Both may still be on their way out
 * when a test ends: a release goes on in the background, a subscription lingers after its last waiter.
 */
export async function expectNothingLeft(limitMs = 2_000): Promise<void> {
  let keys: string[] = [];
  let channels: string[] = [];
  try {
    await until(
      async () => {
        keys = (await admin().keys('*')).filter((key) => !OUTLIVES.test(key));
        channels = ((await admin().pubsub('CHANNELS', `*${mark}*`)) as string[]).sort();
        return keys.length === 0 && channels.length === 0;
      },
      'nothing left',
      limitMs,
    );
  } catch (error) {
    if (keys.length + channels.length === 0) throw error;
    throw neverAFlake(`left after the test: keys ${JSON.stringify(keys)}, channels ${JSON.stringify(channels)}`);
  } finally {
    // The next test starts clean and is not blamed for this one.
    await admin().flushdb();
  }
}

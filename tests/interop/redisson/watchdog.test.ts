import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { now } from '../../../bench/monotonic.js';
import { createClient, type LockClient } from '../../../src/client/create-client.js';
import { startWorker } from '../../support/processes/child.js';
import { holdElsewhere, inFlow, pause } from '../../support/clients/lock-clients.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';
import { Jvm, REDISSON_VERSIONS } from './jvm.js';

/* Each kind keeps its own holds alive, and only those. */

const version = process.env.HOLDFAST_REDISSON ?? REDISSON_VERSIONS[0];
const WATCHDOG_MS = 3_000;
/** Until 4.4 Redisson renewed the read holds of all owners in the hash (wire protocol, section 16). */
const RENEWS_STRANGERS = version.startsWith('3.');

let server: RedisServer;
let client: LockClient;

beforeAll(async () => {
  server = await startServer();
  client = createClient({ url: server.url, lockWatchdogTimeout: WATCHDOG_MS });
});

afterAll(async () => {
  await client.close({ releaseHolds: true });
  await server.stop();
});

// Also those of a test that has failed: they would outlive it.
const ending: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0)) await end();
});

async function startJvm(): Promise<Jvm> {
  const jvm = await Jvm.start();
  ending.push(() => jvm.kill9());
  await jvm.createClient({ addresses: [server.url], lockWatchdogTimeout: WATCHDOG_MS });
  return jvm;
}

const lock = (name: string): { kind: string; name: string } => ({ kind: 'lock', name });
const read = (name: string): { kind: string; name: string } => ({ kind: 'read', name });
const readHolds = (name: string, owner: string): Promise<string[]> =>
  server.admin.keys(`{${name}}:${owner}:rwlock_timeout:*`);

describe(`watchdogs side by side with Redisson ${version}`, () => {
  test('holds of both kinds outlive several leases, and only the holds of a killed JVM become free', async () => {
    const jvm = await startJvm();
    const thread = jvm.thread('holder');
    const owner = await thread.owner();
    await thread.call(lock('of-jvm'), 'lock');
    await thread.call(read('shared'), 'lock');
    const ours = await holdElsewhere(client.getLock('of-node'));
    const reading = await holdElsewhere(client.getReadWriteLock('shared').readLock());
    await pause(2.5 * WATCHDOG_MS);
    expect(await server.admin.hgetall('of-jvm')).toEqual({ [owner]: '1' });
    expect(await server.admin.hgetall('of-node')).toEqual({ [ours.owner]: '1' });
    expect(await readHolds('shared', owner)).toHaveLength(1);
    expect(await readHolds('shared', reading.owner)).toHaveLength(1);
    expect(ours.signal.aborted || reading.signal.aborted).toBe(false);

    const waiting = holdElsewhere(client.getLock('of-jvm'));
    await until(async () => client.getLock('of-jvm').isLocked(), 'the JVM still holds it');
    const killedAt = now();
    await jvm.kill9();
    const taken = await waiting;
    const freeAfter = now() - killedAt;
    await until(
      async () => (await readHolds('shared', owner)).length === 0,
      "the dead reader's key has gone",
      WATCHDOG_MS + 250,
    );
    console.log(`kill -9 of a JVM (${version}): free for Node after ${freeAfter.toFixed(0)} ms of ${WATCHDOG_MS}`);
    expect(freeAfter).toBeLessThan(WATCHDOG_MS + 250);
    // Long enough to see a renewal by Holdfast that restores it, and the end of a Holdfast hold without a renewal.
    await pause(WATCHDOG_MS);
    expect(await readHolds('shared', owner)).toEqual([]);
    expect(await readHolds('shared', reading.owner)).toHaveLength(1);
    expect(ours.signal.aborted || reading.signal.aborted).toBe(false);

    await taken.release();
    await ours.release();
    await reading.release();
    expect(await server.admin.exists('shared', 'of-node', 'of-jvm')).toBe(0);
  });

  test('the holds of a killed Node.js process become free for Redisson', async () => {
    const jvm = await startJvm();
    const thread = jvm.thread('holder');
    const worker = await startWorker();
    ending.push(() => worker.kill9());
    await worker.createClient({ url: server.url, lockWatchdogTimeout: WATCHDOG_MS });
    const flow = worker.flow('holder');
    await flow.lock('of-worker');
    const reading = await flow.acquire({ factory: 'getReadWriteLock', name: 'shared', half: 'readLock' });
    await thread.call(read('shared'), 'lock');
    await thread.call(lock('of-thread'), 'lock');
    const waiting = jvm.thread('waiter').call(lock('of-worker'), 'lock');
    await pause(1.5 * WATCHDOG_MS);
    expect(await readHolds('shared', reading.owner)).toHaveLength(1);

    const killedAt = now();
    await worker.kill9();
    const freeAfter = (await waiting).until - killedAt;
    console.log(
      `kill -9 of a Node process: free for a JVM (${version}) after ${freeAfter.toFixed(0)} ms of ${WATCHDOG_MS}`,
    );
    expect(freeAfter).toBeLessThan(WATCHDOG_MS + 250);
    await pause(Math.max(0, WATCHDOG_MS + 250 - (now() - killedAt)));
    expect(await readHolds('shared', reading.owner)).toHaveLength(RENEWS_STRANGERS ? 1 : 0);
    expect(await server.admin.hexists('of-thread', await thread.owner())).toBe(1);

    // After the release of the JVM's own read hold nothing renews the holds of dead owners.
    const writing = inFlow(() => client.getReadWriteLock('shared').writeLock().acquire());
    await thread.call(read('shared'), 'unlock');
    const leftAt = now();
    await (await writing).release();
    expect(now() - leftAt).toBeLessThan(RENEWS_STRANGERS ? WATCHDOG_MS + 500 : 500);
    await thread.call(lock('of-thread'), 'unlock');
    await jvm.thread('waiter').call(lock('of-worker'), 'unlock');
  });
});

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { now } from '../../../bench/monotonic.js';
import { createClient, type LockClient } from '../../../src/client/create-client.js';
import { holdElsewhere, pause } from '../../support/clients/lock-clients.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';
import { JavaError, Jvm, REDISSON_VERSIONS } from './jvm.js';
import { NOT_WOKEN_MS } from './limits.js';

/* Both kinds wait for one lock, and something happens to the server. */

const version = process.env.HOLDFAST_REDISSON ?? REDISSON_VERSIONS[0];

let server: RedisServer;
let jvm: Jvm;
let client: LockClient;
let names = 0;

beforeAll(async () => {
  server = await startServer();
  jvm = await Jvm.start();
  await jvm.createClient({ addresses: [server.url] });
  client = createClient({ url: server.url });
});

afterAll(async () => {
  await client.close({ releaseHolds: true });
  await jvm.close();
  await server.stop();
});

interface Waiters {
  readonly name: string;
  readonly lock: { kind: string; name: string };
  /** When each was inside; each leaves as soon as it has been. */
  readonly jvmAt: Promise<number>;
  readonly nodeAt: Promise<number>;
}

async function subscribers(name: string): Promise<number> {
  const [, count] = (await server.admin.pubsub('NUMSUB', `redisson_lock__channel:{${name}}`)) as [string, number];
  return count;
}

/** Redisson reports an unavailable server to its caller, also inside `lock()`, and the caller tries again. */
async function insist<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof JavaError) || !error.name.startsWith('Redis')) throw error;
      complaints.push(error.name);
    }
  }
}
const complaints: string[] = [];

/** A thread and a flow that wait for a held lock. */
async function bothWait(name: string): Promise<Waiters> {
  const lock = { kind: 'lock', name };
  const thread = jvm.thread(`waiter-${name}`);
  const jvmAt = (async () => {
    const { until: at } = await insist(() => thread.call(lock, 'lock'));
    // A try that it gave up may have counted all the same (hazards 1 and 2).
    while ((await insist(() => thread.call<boolean>(lock, 'isHeldByCurrentThread'))).result) {
      await insist(() => thread.call(lock, 'unlock'));
    }
    return at;
  })();
  const nodeAt = (async () => {
    const hold = await holdElsewhere(client.getLock(name));
    const at = now();
    await hold.release();
    return at;
  })();
  await until(async () => (await subscribers(name)) === 2, 'both have subscribed');
  return { name, lock, jvmAt, nodeAt };
}

const freshName = (): string => `faults:${++names}`;

describe(`mixed faults with Redisson ${version}`, () => {
  test('a SCRIPT FLUSH during the waits of both, and before each of many sections, goes unnoticed', async () => {
    const name = freshName();
    const hold = await holdElsewhere(client.getLock(name));
    const { jvmAt, nodeAt } = await bothWait(name);
    await server.scriptFlush();
    const freedAt = now();
    await hold.release();
    expect(Math.max(...(await Promise.all([jvmAt, nodeAt]))) - freedAt).toBeLessThan(NOT_WOKEN_MS);

    const thread = jvm.thread('flushed');
    for (let i = 0; i < 20; i += 1) {
      await server.scriptFlush();
      await thread.call({ kind: 'lock', name }, 'lock');
      await server.scriptFlush();
      const busy = await client.getLock(name).tryLock();
      expect(busy).toBe(false);
      const waiting = holdElsewhere(client.getLock(name));
      await server.scriptFlush();
      await thread.call({ kind: 'lock', name }, 'unlock');
      await (await waiting).release();
    }
    expect(await server.admin.exists(name)).toBe(0);
  });

  test('a release wakes each waiter as soon as its cut subscriber is connected again', async () => {
    const name = freshName();
    const hold = await holdElsewhere(client.getLock(name));
    const { jvmAt, nodeAt } = await bothWait(name);
    expect(await server.killPubsub()).toBeGreaterThanOrEqual(2);
    await until(async () => (await subscribers(name)) === 2, 'both have subscribed again');
    const freedAt = now();
    await hold.release();
    expect(Math.max(...(await Promise.all([jvmAt, nodeAt]))) - freedAt).toBeLessThan(NOT_WOKEN_MS);
    expect(await server.admin.exists(name)).toBe(0);
  });

  test('after an empty restart of the server both enter one after the other, and nothing is left', async () => {
    const name = freshName();
    const stranger = '00000000-0000-4000-8000-000000000000:1';
    const LEASE_MS = 4_000;
    await server.admin.hset(name, stranger, '1');
    await server.admin.pexpire(name, LEASE_MS);
    const { jvmAt, nodeAt } = await bothWait(name);
    await server.restart();
    const startedAt = now();
    const [atJvm, atNode] = await Promise.all([jvmAt, nodeAt]);
    const since = (at: number): string => (at - startedAt).toFixed(0);
    console.log(
      `server restart, lease ${LEASE_MS} ms: Node inside after ${since(atNode)} ms, JVM (${version}) ${since(atJvm)} ms` +
        ` (its calls failed with: ${complaints.join(', ') || 'nothing'})`,
    );
    expect(atNode - startedAt).toBeLessThan(5_000);
    // Redisson waits until the end of the lease that it knows.
    expect(atJvm - startedAt).toBeLessThan(LEASE_MS + 15_000);
    // Both kinds still work together.
    const thread = jvm.thread('after');
    await thread.call({ kind: 'lock', name }, 'lock');
    const waiting = holdElsewhere(client.getLock(name));
    await pause(50);
    await thread.call({ kind: 'lock', name }, 'unlock');
    await (await waiting).release();
    await until(async () => (await server.admin.exists(name)) === 0, 'the lock is free');
  });
});

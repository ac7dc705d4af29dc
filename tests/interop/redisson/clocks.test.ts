import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { now } from '../../../bench/monotonic.js';
import { createClient, type LockClient } from '../../../src/client/create-client.js';
import { fairQueueKey } from '../../../src/redis/keys.js';
import { holdElsewhere, inFlow } from '../../support/clients/lock-clients.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';
import { fairOrder } from '../../support/java/fair-order.js';
import { Jvm, ms, REDISSON_VERSIONS } from './jvm.js';

/* A JVM whose clock is off by more than any lease here (docs/java.md). */

const version = process.env.HOLDFAST_REDISSON ?? REDISSON_VERSIONS[0];
const FAIR_WAIT_MS = 300_000;
const CLOCKS = [
  ['a minute ahead', 60_000],
  ['a minute behind', -60_000],
  ['almost half of fairLockWaitTimeout ahead', FAIR_WAIT_MS / 2 - 1_000],
] as const;
/** Two busy cores may take so long until all processes have had their turn; no lease here is as short. */
const TURN_MS = 5_000;

let server: RedisServer;
let client: LockClient;
let names = 0;

beforeAll(async () => {
  server = await startServer();
  client = createClient({ url: server.url, fairLockWaitTimeout: FAIR_WAIT_MS });
});

afterAll(async () => {
  await client.close({ releaseHolds: true });
  await server.stop();
});

async function startJvm(clockAheadMs: number, fairLockWaitTimeout: number): Promise<Jvm> {
  const jvm = await Jvm.start({ clockAheadMs });
  await jvm.createClient({ addresses: [server.url], fairLockWaitTimeout });
  return jvm;
}

const queue = (name: string): Promise<string[]> => server.admin.lrange(fairQueueKey(name), 0, -1);

async function queued(name: string, length: number): Promise<void> {
  await until(async () => (await queue(name)).length === length, `${length} are queued`);
}

describe.each(CLOCKS)(`a JVM whose clock is %s, with Redisson ${version}`, (_, aheadMs) => {
  let jvm: Jvm;

  beforeAll(async () => {
    jvm = await startJvm(aheadMs, FAIR_WAIT_MS);
  });

  afterAll(() => jvm.kill9());

  test('the times that it writes are off by that difference', async () => {
    const semaphore = { kind: 'expirable', name: `clock:${++names}` };
    await client.getPermitExpirableSemaphore(semaphore.name).trySetPermits(1);
    const thread = jvm.thread('writer');
    await thread.call(semaphore, 'acquire', ...ms(600_000));
    const [, end] = await server.admin.zrange(`{${semaphore.name}}:timeout`, '0', '-1', 'WITHSCORES');
    const [seconds = NaN] = await server.admin.time();
    const off = Number(end) - 600_000 - seconds * 1_000;
    expect(Math.abs(off - aheadMs)).toBeLessThan(TURN_MS);
  });

  test.each(['JVM', 'Node'] as const)(
    'R30: waiters of both kinds keep their places in a fair lock and enter in order, first one of %s',
    async (first) => {
      const name = `fair:${++names}`;
      const lock = client.getFairLock(name);
      const entered: string[] = [];
      const waiters = {
        Node: (who: string) => inFlow(() => lock.withLock(() => void entered.push(who))),
        JVM: async (who: string) => {
          const thread = jvm.thread(who);
          await thread.call({ kind: 'fair', name }, 'lock');
          entered.push(who);
          await thread.call({ kind: 'fair', name }, 'unlock');
        },
      };
      const hold = await holdElsewhere(lock);
      const line = Array.from({ length: 8 }, (_, i) => ((i % 2 === 0) === (first === 'JVM') ? 'JVM' : 'Node'));
      const waits = [];
      for (const [i, kind] of line.entries()) {
        waits.push(waiters[kind](`${kind}-${i}`));
        await queued(name, i + 1);
      }
      const places = await queue(name);
      const monitor = await server.monitor();
      const from = now();
      await hold.release();
      await Promise.all(waits);
      expect(now() - from).toBeLessThan(TURN_MS);
      expect(entered).toEqual(line.map((kind, i) => `${kind}-${i}`));
      const { granted } = fairOrder(await monitor.settle(), name);
      monitor.stop();
      expect(granted).toEqual(places);
    },
  );

  test('R30: many waiters of both kinds enter a fair lock in the order of the queue', async () => {
    const name = `crowd:${++names}`;
    const [FLOWS, SECTIONS] = [4, 25];
    const monitor = await server.monitor();
    const each = Array.from({ length: FLOWS }, (_, i) => i);
    await Promise.all([
      ...each.map(() =>
        inFlow(async () => {
          for (let i = 0; i < SECTIONS; i += 1) await client.getFairLock(name).withLock(() => undefined);
        }),
      ),
      ...each.map(async (flow) => {
        const thread = jvm.thread(`crowd-${flow}`);
        for (let i = 0; i < SECTIONS; i += 1) {
          await thread.call({ kind: 'fair', name }, 'lock');
          await thread.call({ kind: 'fair', name }, 'unlock');
        }
      }),
    ]);
    const { violations, granted } = fairOrder(await monitor.settle(), name);
    monitor.stop();
    expect(violations).toEqual([]);
    expect(granted).toHaveLength(2 * FLOWS * SECTIONS);
  });

  test('R30: it frees no permit of Holdfast early, except by the time that its clock is ahead', async () => {
    const ahead = Math.max(aheadMs, 0);
    const semaphore = client.getPermitExpirableSemaphore(`permits:${++names}`);
    const itsOwn = { kind: 'expirable', name: semaphore.name };
    const thread = jvm.thread('permits');
    await semaphore.trySetPermits(2);
    const endless = await semaphore.tryAcquire(0);
    const longer = await semaphore.tryAcquire(0, ahead + 30_000);
    expect([endless, longer]).not.toContain(null);
    expect((await thread.call(itsOwn, 'tryAcquire')).result).toBeNull();
    expect(await semaphore.updateLeaseTime(longer!, ahead + 20_000)).toBe(true);
    expect((await thread.call(itsOwn, 'tryAcquire')).result).toBeNull();
    expect(await semaphore.tryRelease([endless!, longer!])).toBe(true);
  });

  if (aheadMs > 0) {
    test('declared: it frees a permit of Holdfast early by that time, and the holder learns that the permit is gone', async () => {
      const semaphore = client.getPermitExpirableSemaphore(`permits:${++names}`);
      const itsOwn = { kind: 'expirable', name: semaphore.name };
      await semaphore.trySetPermits(1);
      const shorter = await semaphore.tryAcquire(0, aheadMs - 20_000);
      expect(await semaphore.availablePermits()).toBe(0);
      const taken = (await jvm.thread('permits').call<string | null>(itsOwn, 'tryAcquire')).result;
      expect(taken).toEqual(expect.any(String));
      expect(await semaphore.tryRelease(shorter!)).toBe(false);
      await jvm.thread('permits').call(itsOwn, 'release', taken);
      expect(await semaphore.availablePermits()).toBe(1);
    });
  } else {
    test('declared: Holdfast frees its permits early by that time, according to the server clock', async () => {
      const semaphore = client.getPermitExpirableSemaphore(`permits:${++names}`);
      const itsOwn = { kind: 'expirable', name: semaphore.name };
      await semaphore.trySetPermits(2);
      const thread = jvm.thread('permits');
      await thread.call(itsOwn, 'acquire', ...ms(30_000 - aheadMs));
      await thread.call(itsOwn, 'acquire', ...ms(-aheadMs - 20_000));
      expect(await semaphore.tryAcquire(0, 10_000)).toEqual(expect.any(String));
      expect(await semaphore.tryAcquire(0, 10_000)).toBeNull();
    });

    test('declared: with a wait shorter than that time it loses its place in a fair lock to Holdfast', async () => {
      const WAIT_MS = 3_000;
      const name = `short:${++names}`;
      const lock = client.getFairLock(name);
      const hold = await holdElsewhere(lock);
      const thread = jvm.thread('short');
      const owner = await thread.owner();
      const waiting = thread.call({ kind: 'fair', name }, 'tryLock', ...ms(WAIT_MS));
      await queued(name, 1);
      expect(await queue(name)).toEqual([owner]);
      const ours = inFlow(() => lock.acquire());
      await until(async () => !(await queue(name)).includes(owner), 'the JVM has left the queue');
      await queued(name, 1);
      await hold.release();
      const next = await ours;
      expect(next.owner).not.toBe(owner);
      await next.release();
      await waiting;
    });
  }

  test.each(['lock', 'fenced', 'fair', 'write', 'read'])(
    'R30: %s: leases of either kind have their full length',
    async (kind) => {
      const LEASE_MS = 1_500;
      const name = `lease:${++names}`;
      const object = { kind, name };
      const waiting = { kind: kind === 'read' ? 'write' : kind, name };
      const thread = jvm.thread(name);
      const ours = lockOf(kind, name);
      const waitingOurs = lockOf(waiting.kind, name);

      const theirs = await thread.call(object, 'lock', ...ms(LEASE_MS));
      const next = await inFlow(() => waitingOurs.acquire());
      expectLease(now(), theirs);
      await next.release();

      const from = now();
      await inFlow(() => ours.acquire({ leaseTime: LEASE_MS }));
      const granted = { from, until: now() };
      const { until: at } = await thread.call(waiting, 'lock');
      expectLease(at, granted);
      await thread.call(waiting, 'unlock');

      function expectLease(freeAt: number, taken: { from: number; until: number }): void {
        // The JVM counts in another clock.
        expect(freeAt - taken.from).toBeGreaterThan(0.98 * LEASE_MS);
        expect(freeAt - taken.until).toBeLessThan(LEASE_MS + TURN_MS);
      }
    },
  );
});

function lockOf(kind: string, name: string): ReturnType<LockClient['getLock']> {
  switch (kind) {
    case 'fenced':
      return client.getFencedLock(name);
    case 'fair':
      return client.getFairLock(name);
    case 'write':
      return client.getReadWriteLock(name).writeLock();
    case 'read':
      return client.getReadWriteLock(name).readLock();
    default:
      return client.getLock(name);
  }
}

describe(`clocks further apart than a fair lock tolerates, with Redisson ${version}`, () => {
  test('a waiter that Redisson evicted queues again at the end and acquires the lock', async () => {
    const fairLockWaitTimeout = 10_000;
    const impatient = createClient({ url: server.url, fairLockWaitTimeout });
    const jvm = await startJvm(60_000, fairLockWaitTimeout);
    try {
      const name = `evicted:${++names}`;
      const lock = impatient.getFairLock(name);
      const hold = await holdElsewhere(lock);
      const entered: string[] = [];
      const ours = inFlow(() => lock.withLock(() => void entered.push('Node')));
      await queued(name, 1);
      const [first] = await queue(name);
      const theirs = jvm.thread('evictor');
      const owner = await theirs.owner();
      const waiting = theirs.call({ kind: 'fair', name }, 'lock').then(() => entered.push('JVM'));
      await until(async () => (await queue(name))[0] === owner, 'the waiter of Holdfast has lost its place to the JVM');
      await queued(name, 2);
      expect(await queue(name)).toEqual([owner, first]);
      await hold.release();
      await waiting;
      await theirs.call({ kind: 'fair', name }, 'unlock');
      await ours;
      expect(entered).toEqual(['JVM', 'Node']);
    } finally {
      await impatient.close();
      await jvm.kill9();
    }
  });
});

import { describe, expect, test } from '@jest/globals';
import { createClient, type Lock, type LockClient } from '../../../src/index.js';
import { codeIn, page, snippets } from '../../support/project/guide.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';
import { admin, freshName, testRedisUrl } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

/** One section of every object, and for objects with several holders also one with a waiter. */
async function eachOfTheFamily(client: LockClient, other: LockClient): Promise<void> {
  const locks: Lock[] = [
    client.getNonReentrantLock(freshName()),
    client.getFencedLock(freshName(), { tokens: 'clock' }),
    client.getSpinLock(freshName()),
    client.getReadWriteLock(freshName()).writeLock(),
    client.getReadWriteLock(freshName()).readLock(),
  ];
  for (const lock of locks) await lock.withLock(() => undefined);
  const rw = freshName();
  const read = await client.getReadWriteLock(rw).readLock().acquire();
  const write = other.getReadWriteLock(rw).writeLock().acquire();
  await read.release();
  await (await write).release();
  const name = freshName();
  const semaphore = client.getSemaphore(name);
  await semaphore.trySetPermits(0, 60_000);
  const taken = other.getSemaphore(name).acquire(2);
  await semaphore.addPermits(1);
  await semaphore.release();
  await taken;
  expect(await semaphore.drainPermits()).toBe(0);
  const expirable = client.getPermitExpirableSemaphore(freshName());
  await expirable.trySetPermits(1);
  await expirable.setPermits(2);
  const permit = await expirable.acquirePermit({ leaseTime: 20_000, permits: 2 });
  await permit.updateLeaseTime(30_000);
  expect(await expirable.getLeaseTime(permit.id)).toBeGreaterThan(25_000);
  const next = other.getPermitExpirableSemaphore(expirable.name).acquirePermit();
  await client.inspect(expirable.name);
  await permit.release();
  await (await next).release();
  const latch = client.getCountDownLatch(freshName());
  await latch.trySetCount(2);
  const opened = other.getCountDownLatch(latch.name).await();
  await latch.countDown();
  expect(await latch.delete()).toBe(true);
  await opened;
  await admin().del(name, expirable.name);
}

describe('the permissions', () => {
  const setUser = snippets('text')
    .filter((each) => each.page === 'docs/permissions.md')
    .map(({ code }) => code.trim())
    .find((code) => code.startsWith('ACL SETUSER'))!;
  const allowed = [...setUser.matchAll(/ \+(\S+)/g)].map(([, command]) => command!.split('|')[0]!);

  test('name every command that scripts, reads and connections use, and no other', () => {
    const scripts = projectFiles('lua', '.lua').flatMap((path) =>
      [...readProjectFile(path).matchAll(/redis\.p?call\((?:'(\w+)'|publish)/g)].map(
        ([, command]) => command ?? 'publish',
      ),
    );
    const reads = projectFiles('src/redis/scripts', '.ts').flatMap((path) => [
      ...readProjectFile(path).matchAll(/defineRead<[^(]*>\(\s*'(\w+)'/g),
    ]);
    const connections = ['evalsha', 'eval', 'time', 'subscribe', 'unsubscribe', 'ping', 'select'];
    const used = [...scripts, ...reads.map(([, command]) => command!), ...connections];
    expect([...new Set(allowed)].sort()).toEqual([...new Set(used.map((command) => command.toLowerCase()))].sort());
    expect(codeIn(page('docs/permissions.md'))).toContain(`+select`);
  });

  /** A user of Redis with the rules of docs/permissions.md, without some of them. */
  async function allow(...without: string[]): Promise<{ url: string; forget(): Promise<unknown> }> {
    const user = freshName('user').replaceAll(':', '-');
    const version = /redis_version:(\d+\.\d+)/.exec(await admin().info('server'))![1]!;
    const rules = setUser.replace('SETUSER locks', `SETUSER ${user}`).split(' ').slice(1);
    const known = rules.filter((rule) => !rule.startsWith('&') || version !== '6.0');
    await admin().call('ACL', ...known.filter((rule) => !without.includes(rule)));
    const address = new URL(testRedisUrl());
    address.username = user;
    address.password = 'secret';
    return { url: address.href, forget: () => admin().call('ACL', 'DELUSER', user) };
  }

  test.each(['evalsha', 'hset', 'subscribe'])(
    'list the permission that an error for a client without %s names',
    async (command) => {
      const { url, forget } = await allow(`+${command}`);
      const name = freshName();
      await using client = createClient({ url });
      await using elsewhere = createClient({ url: testRedisUrl() });
      const held = command === 'subscribe' ? await elsewhere.getLock(name).acquire() : undefined;
      await expect(client.getLock(name).lock()).rejects.toMatchObject({
        code: 'ERR_LOCK_REFUSED',
        message: expect.stringContaining('docs/permissions.md'),
      });
      await held?.release();
      await forget();
    },
  );

  test('are enough', async () => {
    const { url, forget } = await allow();
    const clients = [0, 1].map(() => createClient({ url, lockWatchdogTimeout: 1_200 }));
    const [client, other] = clients as [(typeof clients)[0], (typeof clients)[0]];
    const complaints: unknown[] = [];
    let renewals = 0;
    client.events.on('renewed', () => (renewals += 1));
    for (const { events } of clients) {
      for (const type of [
        'connectionError',
        'clockUnavailable',
        'renewFailed',
        'releaseFailed',
        'leaseLost',
      ] as const) {
        events.on(type, (event) => complaints.push(type, event));
      }
    }
    try {
      const name = freshName();
      const lock = client.getLock(name);
      await lock.withLock(async (hold) => {
        await lock.withLock(() => undefined);
        await hold.extend(1_000);
        await Promise.all([
          lock.getHoldCount(),
          lock.isHeldByCurrentContext(),
          lock.isLocked(),
          lock.remainTimeToLive(),
        ]);
        await client.inspect(name);
      });
      // Waiters of both clients, more in one than may stay there in a row.
      const sections = Array.from({ length: 24 }, (_, i) => (i === 20 ? other : client).getLock(name));
      await Promise.all(sections.map((each) => each.withLock(() => new Promise((done) => setTimeout(done, 2)))));
      await lock.withLock(() => until(() => renewals > 1, 'the watchdog has renewed'));
      expect(complaints).toEqual([]);
      await lock.withLock(() => undefined);
      await eachOfTheFamily(client, other);
      expect(complaints).toEqual([]);
      const forced = await lock.acquire();
      expect(await other.getLock(name).forceUnlock()).toBe(true);
      await expect(forced.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    } finally {
      await Promise.all(clients.map((each) => each.close()));
      await forget();
    }
  });
});

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { RefusedError } from '../../src/errors.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import * as readWrite from '../../src/redis/scripts/read-write-lock.js';
import { describeLockContract } from '../contracts/lock-contract.js';
import { makePlainLock, plainLock } from '../contracts/plain-lock.js';
import { closeClients, inFlow, openProxy, pause, useUser } from '../support/clients/lock-clients.js';
import { admin, atLast, freshName, leavesKeys, testRedisUrl } from '../support/redis.js';
import { serverMajor } from '../support/servers/server-version.js';
import { permissionsFor, rulesOf, type Permissions } from '../support/servers/user.js';
import { QUIET_MS } from '../support/time/pauses.js';

const mark = freshName('').split(':')[0]!;
const user = `${mark}-user`;
/** What the roll of a lock needs. No client uses it yet. */
const ROLL = ['+hlen', '+zadd', '+zcard', '+zrange', '+zrank', '+zrem', '+zscore'];
const EVERY = ['every client', 'a database other than 0', 'a waiter'];

const allow = (permissions: Permissions): Promise<unknown> =>
  admin().call('ACL', 'SETUSER', user, ...rulesOf(permissions));

atLast(() => admin().call('ACL', 'DELUSER', user));

describe.each([
  ['getLock', () => describeLockContract('the lock', makePlainLock, plainLock)],
  [
    'getFencedLock',
    () =>
      describeLockContract('the fenced lock', (client, name, options) => client.getFencedLock(name, options), {
        ...plainLock,
        spec: (name) => ({ factory: 'getFencedLock', name }),
        partialRelease: scripts.releasePartial.script!.sha,
      }),
  ],
  [
    'getReadWriteLock',
    () =>
      describeLockContract(
        'the write lock',
        (client, name, options) => client.getReadWriteLock(name, options).writeLock(),
        {
          spec: (name) => ({ factory: 'getReadWriteLock', name, half: 'writeLock' }),
          async holdFromOutside(name, leaseTime) {
            await admin().hset(name, { mode: 'write', '8743c9c0-0795-4907-87fd-6c719a6b4586:52:write': '1' });
            await admin().pexpire(name, leaseTime);
          },
          partialRelease: readWrite.releasePartial.script!.sha,
        },
      ),
  ],
])('with only the documented permissions for %s', (factory, contract) => {
  beforeAll(async () => {
    const listed = [...EVERY, factory, 'inspect', ...(factory === 'getFencedLock' ? ['getLock'] : [])];
    await allow(permissionsFor(listed, `${mark}*`));
    useUser({ username: user, password: 'secret' });
  });
  afterAll(() => useUser(undefined));
  contract();
});

/** A client of that user, and one that may do everything. */
async function openBoth(way = testRedisUrl()): Promise<[LockClient, LockClient]> {
  const url = new URL(way);
  url.username = user;
  url.password = 'secret';
  const both = [url.href, testRedisUrl()].map((each) =>
    createClient({ url: each, commandTimeout: 900, handOff: { maxSections: 1 } }),
  ) as [LockClient, LockClient];
  clients.push(...both);
  return both;
}

leavesKeys('semaphores and latches stay until they are deleted');

const clients: LockClient[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  await closeClients();
});

/** All calls on a lock, and those that failed. The wait time applies to a busy lock. */
async function failures({ way, waitTime = 300 }: { way?: string; waitTime?: number } = {}): Promise<unknown[]> {
  const [client, other] = await openBoth(way);
  const found: unknown[] = [];
  // A section whose lock cannot be released or handed over has run all the same.
  client.events.on('releaseFailed', ({ cause }) => found.push(cause));
  const attempt = async <T>(call: () => Promise<T>): Promise<T | undefined> =>
    inFlow(call).catch((error: unknown) => void found.push(error));
  await attempt(() => client.ready());
  const lock = client.getLock(freshName('refused'));
  const hold = await attempt(() => lock.acquire({ leaseTime: 20_000 }));
  await attempt(async () => hold?.run(() => lock.withLock(() => lock.getHoldCount())));
  await attempt(async () => hold?.extend(25_000));
  await attempt(() => lock.isLocked());
  await attempt(() => lock.remainTimeToLive());
  await attempt(() => lock.isHeldBy(hold?.owner ?? 'nobody:1'));
  // The second section exceeds the limit of the streak while other clients wait.
  const local = Promise.all([1, 2].map(() => attempt(() => lock.withLock({ waitTime }, () => undefined))));
  const remote = inFlow(() => other.getLock(lock.name).withLock({ waitTime }, () => undefined)).catch(() => undefined);
  await pause(QUIET_MS);
  await attempt(async () => hold?.release());
  await Promise.all([local, remote]);
  const theirs = await inFlow(() => other.getLock(lock.name).tryAcquire({ leaseTime: 20_000, waitTime: 500 }));
  const waiting = attempt(() => lock.withLock({ waitTime }, () => undefined));
  await pause(QUIET_MS);
  await theirs?.release().catch(() => undefined);
  await waiting;
  await inFlow(() => other.getLock(freshName('theirs')).tryAcquire({ leaseTime: 20_000 }));
  const forced = other.getLock(freshName('forced'));
  await inFlow(() => forced.tryAcquire({ leaseTime: 20_000 }));
  await attempt(() => client.getLock(forced.name).forceUnlock());
  return found;
}

describe('one permission is missing', () => {
  const full = permissionsFor([...EVERY.slice(0, 1), EVERY[2]!, 'a database other than 0', 'getLock'], `${mark}*`);

  test('with all of them no command is refused', async () => {
    await allow(full);
    expect(await failures({ waitTime: 10_000 })).toEqual([]);
  });

  const needed = full.commands.filter(
    (rule) => !['+time', '+pubsub', '+ping', '+unsubscribe', '+select', '+eval', ...ROLL].includes(rule),
  );
  test.each(needed)('%s: the error names it', async (rule) => {
    // Otherwise the client would send the scripts first.
    await allow({ ...full, commands: full.commands.filter((each) => each !== rule) });
    const found = await failures();
    const refused = found.filter((error) => error instanceof RefusedError);
    expect(refused.length).toBeGreaterThan(0);
    for (const error of refused) {
      expect(error.rule?.split(' ')).toContain(rule);
      expect(error.message).toContain(rule);
      expect(error.message).toContain('docs/permissions.md');
    }
  });

  test.each(['+time', '+pubsub', '+ping'])('%s is optional: no command is refused', async (rule) => {
    await allow({ ...full, commands: full.commands.filter((each) => each !== rule) });
    expect(await failures({ waitTime: 10_000 })).toEqual([]);
  });

  test('the rules of the roll are optional: no command is refused', async () => {
    await allow({
      commands: full.commands.filter((each) => !ROLL.includes(each)),
      keys: full.keys.filter((each) => !each.startsWith('~holdfast_waiters')),
      channels: full.channels.filter((each) => !each.startsWith('&holdfast_wake')),
    });
    expect(await failures({ waitTime: 10_000 })).toEqual([]);
  });

  test('+eval: the error names it when the server has no scripts', async () => {
    await allow({ ...full, commands: full.commands.filter((each) => each !== '+eval') });
    const { proxy, url } = await openProxy();
    proxy.answer({ command: 'EVALSHA', times: Infinity }, '-NOSCRIPT No matching script. Please use EVAL.\r\n');
    const refused = (await failures({ way: url })).filter((error) => error instanceof RefusedError);
    expect(new Set(refused.map(({ rule }) => rule))).toEqual(new Set(['+eval']));
  });

  test('the keys: the error names the key', async () => {
    await allow({ ...full, keys: ['~other'] });
    const [client] = await openBoth();
    const error = await client
      .getLock('elsewhere')
      .tryLock()
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'ERR_LOCK_REFUSED', rule: '~elsewhere' });
  });

  if (serverMajor() >= 7)
    test('the channel: waiters and releases name its pattern', async () => {
      await allow({ ...full, channels: [] });
      const refused = (await failures()).filter((error) => error instanceof RefusedError);
      expect(refused.length).toBeGreaterThan(1);
      expect(new Set(refused.map(({ rule }) => rule))).toEqual(new Set(['&redisson_lock__channel:*']));
    });
});

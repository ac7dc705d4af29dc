import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { semaphoreChannel } from '../../src/redis/keys.js';
import * as latches from '../../src/redis/scripts/latch.js';
import * as permits from '../../src/redis/scripts/permit-expirable-semaphore.js';
import type { PermitExpirableSemaphore } from '../../src/synchronizers/expirable-semaphore.js';
import * as semaphores from '../../src/redis/scripts/semaphore.js';
import { closeClients, openClient, openProxy, outcome, useUser } from '../support/clients/lock-clients.js';
import { limitedUser } from '../support/servers/limited-user.js';
import { admin, freshName, leavesKeys } from '../support/redis.js';
import { until } from '../support/time/until.js';

const user = limitedUser(freshName('').split(':')[0]!, [
  'getPermitExpirableSemaphore',
  'getSemaphore',
  'getCountDownLatch',
]);
const { allow } = user;
beforeAll(() => useUser(user.credentials));
afterAll(() => useUser(undefined));
afterEach(async () => {
  await allow();
  await closeClients();
});
leavesKeys('semaphores and latches stay until they are deleted');

const takenKey = (name: string): string => `{${name}}:timeout`;
const PERMIT = 'ab'.repeat(16);
/** Permits that are free, and those that are taken. */
async function counts(name: string): Promise<[free: string | null, taken: number]> {
  return [await admin().get(name), await admin().zcard(takenKey(name))];
}
const hasPermit = (name: string, ends: number): Promise<unknown> =>
  admin().zadd(takenKey(name), ends, Buffer.from(PERMIT, 'hex'));

interface Case {
  readonly script: { readonly name: string; readonly script: { readonly source: string } | undefined };
  /** Each write of it that this call makes, and its message. */
  readonly commands: readonly string[];
  readonly free?: number;
  /** The semaphore has a TTL. */
  readonly expires?: true;
  /** A permit with an expired lease, or without a lease. */
  readonly permit?: 'over' | 'taken';
  call(client: LockClient, name: string): Promise<unknown>;
  /** The result of the allowed call, and the permits after it. */
  readonly reply?: unknown;
  readonly after: [free: string | null, taken: number];
}

const semaphore = (client: LockClient, name: string) => client.getSemaphore(name);
const declared = (client: LockClient, name: string) => client.getSemaphore(name, { permits: 3 });
const expirable = (client: LockClient, name: string) => client.getPermitExpirableSemaphore(name);
const declaredExpirable = (client: LockClient, name: string) =>
  client.getPermitExpirableSemaphore(name, { permits: 3 });
const latch = (client: LockClient, name: string) => client.getCountDownLatch(name);
const SWEEP = ['publish', 'incrby', 'zremrangebyscore'];
/** The same, if Redis has lost the count of the semaphore. */
const SWEEP_OF_LOST = ['publish', 'set', 'zremrangebyscore'];

async function leaseOf(semaphore: PermitExpirableSemaphore): Promise<unknown> {
  const told = await outcome(semaphore.getLeaseTime(PERMIT));
  if (told === 'ERR_LOCK_REFUSED') throw Object.assign(new Error('refused'), { code: told });
  return told;
}

/** Calls that have done nothing when they are refused; the caller makes them again. */
const REFUSED: Readonly<Record<string, Case>> = {
  'permits of a semaphore': {
    script: semaphores.acquire,
    commands: ['hset', 'pexpire', 'incrby'],
    free: 5,
    call: (client, name) => semaphore(client, name).tryAcquire(2),
    reply: true,
    after: ['3', 0],
  },
  'permits of a missing semaphore': {
    script: semaphores.acquire,
    commands: ['publish', 'hset', 'pexpire', 'incrby'],
    call: (client, name) => declared(client, name).tryAcquire(2),
    reply: true,
    after: ['1', 0],
  },
  'all permits of a missing semaphore': {
    script: semaphores.drain,
    commands: ['hset', 'pexpire', 'decrby'],
    call: (client, name) => declared(client, name).drainPermits(),
    reply: 3,
    after: ['0', 0],
  },
  'more permits for a missing semaphore': {
    script: semaphores.add,
    commands: ['publish', 'hset', 'pexpire', 'incrby'],
    call: (client, name) => declared(client, name).addPermits(2),
    after: ['5', 0],
  },
  'the expiry of a semaphore': {
    script: semaphores.expire,
    commands: ['hset', 'pexpire'],
    free: 5,
    call: (client, name) => semaphore(client, name).expire(60_000),
    reply: true,
    after: ['5', 0],
  },
  'the end of a semaphore': {
    script: semaphores.remove,
    commands: ['publish', 'hset', 'pexpire', 'del'],
    free: 5,
    call: (client, name) => semaphore(client, name).delete(),
    reply: true,
    after: [null, 0],
  },
  'all permits of a semaphore': {
    script: semaphores.drain,
    commands: ['hset', 'pexpire', 'decrby'],
    free: 5,
    call: (client, name) => semaphore(client, name).drainPermits(),
    reply: 5,
    after: ['0', 0],
  },
  'more permits for a semaphore': {
    script: semaphores.add,
    commands: ['publish', 'hset', 'pexpire', 'incrby'],
    free: 5,
    call: (client, name) => semaphore(client, name).addPermits(2),
    after: ['7', 0],
  },
  'a new semaphore': {
    script: semaphores.trySet,
    commands: ['publish', 'hset', 'pexpire', 'setnx'],
    call: (client, name) => semaphore(client, name).trySetPermits(4, 60_000),
    reply: true,
    after: ['4', 0],
  },
  'the count of a latch': {
    script: latches.trySet,
    commands: ['publish', 'hset', 'pexpire', 'set'],
    call: (client, name) => latch(client, name).trySetCount(3),
    reply: true,
    after: ['3', 0],
  },
  'the count of a latch that Redisson left at 0': {
    script: latches.trySet,
    commands: ['publish', 'hset', 'pexpire', 'set'],
    free: 0,
    call: (client, name) => latch(client, name).trySetCount(3),
    reply: true,
    after: ['3', 0],
  },
  'a count-down': {
    script: latches.countDown,
    commands: ['hset', 'pexpire', 'decr'],
    free: 3,
    call: (client, name) => latch(client, name).countDown(),
    after: ['2', 0],
  },
  'the last count-down': {
    script: latches.countDown,
    commands: ['publish', 'hset', 'pexpire', 'set', 'del'],
    free: 1,
    call: (client, name) => latch(client, name).countDown(),
    after: [null, 0],
  },
  'the opening of a latch': {
    script: latches.remove,
    commands: ['publish', 'hset', 'pexpire', 'set', 'del'],
    free: 3,
    call: (client, name) => latch(client, name).delete(),
    reply: true,
    after: [null, 0],
  },
  'permits with ids': {
    script: permits.acquire,
    commands: ['incrby', 'zadd', 'persist'],
    free: 5,
    call: async (client, name) => (await expirable(client, name).tryAcquireMany(2)).length,
    reply: 2,
    after: ['3', 2],
  },
  'permits with ids of a missing semaphore': {
    script: permits.acquire,
    commands: ['publish', 'set', 'zadd'],
    call: async (client, name) => (await declaredExpirable(client, name).tryAcquireMany(2)).length,
    reply: 2,
    after: ['1', 2],
  },
  'the expiry of a semaphore with ids': {
    script: permits.expire,
    commands: ['hset', 'pexpire'],
    free: 4,
    permit: 'taken',
    call: (client, name) => expirable(client, name).expire(60_000),
    reply: true,
    after: ['4', 1],
  },
  'the end of a semaphore with ids': {
    script: permits.remove,
    commands: ['publish', 'hset', 'pexpire', 'del'],
    free: 4,
    permit: 'taken',
    call: (client, name) => expirable(client, name).delete(),
    reply: true,
    after: [null, 0],
  },
  'permits with ids of a semaphore that expires': {
    script: permits.acquire,
    commands: ['pexpire'],
    free: 5,
    expires: true,
    call: async (client, name) => (await expirable(client, name).tryAcquireMany(2)).length,
    reply: 2,
    after: ['3', 2],
  },
  'permits with ids, with one expired lease': {
    script: permits.acquire,
    commands: [...SWEEP, 'zadd'],
    free: 4,
    permit: 'over',
    call: async (client, name) => (await expirable(client, name).tryAcquireMany(5)).length,
    reply: 5,
    after: ['0', 5],
  },
  'a number of permits with ids': {
    script: permits.set,
    commands: ['publish', 'hset', 'pexpire', 'incrby'],
    free: 4,
    permit: 'taken',
    call: (client, name) => expirable(client, name).setPermits(9),
    after: ['8', 1],
  },
  'the first number of permits with ids': {
    script: permits.trySet,
    commands: ['publish', 'hset', 'pexpire', 'set'],
    call: (client, name) => expirable(client, name).trySetPermits(4),
    reply: true,
    after: ['4', 0],
  },
  'more permits with ids': {
    script: permits.add,
    commands: ['publish', 'hset', 'pexpire', 'set'],
    permit: 'taken',
    call: (client, name) => declaredExpirable(client, name).addPermits(2),
    after: ['4', 1],
  },
  'fewer permits with ids': {
    script: permits.add,
    commands: ['publish', 'hset', 'pexpire', 'incrby'],
    free: 4,
    call: (client, name) => expirable(client, name).addPermits(-1),
    after: ['3', 0],
  },
  'a number of permits with ids, if the count is lost': {
    script: permits.set,
    commands: ['publish', 'hset', 'pexpire', 'set'],
    permit: 'taken',
    call: (client, name) => expirable(client, name).setPermits(9),
    after: ['8', 1],
  },
  'a read of permits whose count is lost, with one expired lease': {
    script: permits.count,
    commands: SWEEP_OF_LOST,
    permit: 'over',
    call: (client, name) => declaredExpirable(client, name).availablePermits(),
    reply: 3,
    after: ['3', 0],
  },
  'a read of a permit whose count is lost, with one expired lease': {
    script: permits.lease,
    commands: SWEEP_OF_LOST,
    permit: 'over',
    call: (client, name) => leaseOf(declaredExpirable(client, name)),
    reply: 'ERR_LOCK_UNKNOWN_PERMIT',
    after: ['3', 0],
  },
  'an expired lease, if the count is lost': {
    script: permits.updateLease,
    commands: SWEEP_OF_LOST,
    permit: 'over',
    call: (client, name) => declaredExpirable(client, name).updateLeaseTime(PERMIT, 60_000),
    reply: false,
    after: ['3', 0],
  },
  'a read of permits, with one expired lease': {
    script: permits.count,
    commands: SWEEP,
    free: 4,
    permit: 'over',
    call: (client, name) => expirable(client, name).availablePermits(),
    reply: 5,
    after: ['5', 0],
  },
  'a read of a permit, with one expired lease': {
    script: permits.lease,
    commands: SWEEP,
    free: 4,
    permit: 'over',
    call: (client, name) => leaseOf(expirable(client, name)),
    reply: 'ERR_LOCK_UNKNOWN_PERMIT',
    after: ['5', 0],
  },
  'a shorter lease': {
    script: permits.updateLease,
    commands: ['publish', 'zadd'],
    free: 4,
    permit: 'taken',
    call: (client, name) => expirable(client, name).updateLeaseTime(PERMIT, 60_000),
    reply: true,
    after: ['4', 1],
  },
  'an expired lease': {
    script: permits.updateLease,
    commands: SWEEP,
    free: 4,
    permit: 'over',
    call: (client, name) => expirable(client, name).updateLeaseTime(PERMIT, 60_000),
    reply: false,
    after: ['5', 0],
  },
};

/** Releases go on in the background; the caller does nothing more. */
const RELEASES: Readonly<Record<string, Case>> = {
  'permits of a semaphore': {
    script: semaphores.release,
    commands: ['publish', 'hset', 'pexpire', 'incrby'],
    free: 3,
    call: (client, name) => semaphore(client, name).release(2),
    after: ['5', 0],
  },
  'permits with ids': {
    script: permits.release,
    commands: ['publish', 'incrby', 'zrem'],
    free: 4,
    permit: 'taken',
    call: (client, name) => expirable(client, name).release(PERMIT),
    after: ['5', 0],
  },
  'permits with ids whose count is lost': {
    script: permits.release,
    commands: ['publish', 'set', 'zrem'],
    permit: 'taken',
    call: (client, name) => declaredExpirable(client, name).release(PERMIT),
    after: ['3', 0],
  },
  'permits with ids with expired leases': {
    script: permits.release,
    commands: SWEEP,
    free: 4,
    permit: 'over',
    call: (client, name) => expirable(client, name).release(PERMIT),
    after: ['5', 0],
  },
};

const rows = (cases: Readonly<Record<string, Case>>) =>
  Object.entries(cases).flatMap(([what, each]) => each.commands.map((command) => [what, command, each] as const));

async function prepare({ free, expires, permit }: Case, name: string): Promise<Awaited<ReturnType<typeof counts>>> {
  if (free !== undefined) await admin().set(name, free);
  if (expires) await admin().pexpire(name, 60_000);
  if (permit !== undefined) await hasPermit(name, permit === 'over' ? 1 : 922_337_203_685_477);
  return counts(name);
}

test.each(rows(REFUSED))('%s, without +%s: nothing changes, and a repeat runs once', async (_, command, each) => {
  await allow();
  const client = await openClient();
  const name = freshName();
  const before = await prepare(each, name);
  await allow(command);
  expect(await outcome(each.call(client, name))).toBe('ERR_LOCK_REFUSED');
  await until(async () => (await counts(name)).join() === before.join(), 'nothing has happened');
  await allow();
  expect(await each.call(client, name)).toEqual(each.reply);
  // The work in the background has ended by then.
  await client.close();
  expect(await counts(name)).toEqual(each.after);
});

test.each(rows(RELEASES))(
  'the release of %s, without +%s, is done once when it is allowed',
  async (_, command, each) => {
    await allow();
    const client = await openClient();
    const name = freshName();
    const before = await prepare(each, name);
    await allow(command);
    expect(await outcome(each.call(client, name))).toBe('ERR_LOCK_REFUSED');
    expect(await counts(name)).toEqual(before);
    await allow();
    await until(async () => (await counts(name)).join() === each.after.join(), 'the permits are released');
    await client.close();
    expect(await counts(name)).toEqual(each.after);
  },
);

describe('the effect of an acquire of unknown outcome', () => {
  test.each(['publish', 'hset', 'pexpire', 'incrby'])(
    'is released once although +%s is missing for a while',
    async (command) => {
      await allow();
      const { proxy, url } = await openProxy();
      const client = await openClient({ url: Object.assign(new URL(url), user.credentials).href, commandTimeout: 600 });
      const name = freshName();
      await admin().set(name, 5);
      await semaphore(client, name).tryAcquire(5); // the server has the script
      await admin().set(name, 5);
      const cut = proxy.cutAfter({ sha: semaphores.acquire.script!.sha, times: Infinity });
      const taken = outcome(semaphore(client, name).tryAcquire(2));
      await cut.executed;
      await allow(command);
      expect(await taken).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
      const refused = proxy.observe({ sha: semaphores.cancel.script!.sha, times: 2 });
      await refused.appliedTimes(2);
      expect(await admin().get(name)).toBe('3');
      await allow();
      await until(async () => (await admin().get(name)) === '5', 'they are back');
      await client.close();
      expect(await admin().get(name)).toBe('5');
    },
  );
});

test.each(['publish', 'hset', 'pexpire', 'set', 'del'])(
  'no waiter passes a latch whose opening is refused without +%s',
  async (command) => {
    await allow();
    const client = await openClient();
    const name = freshName();
    await admin().set(name, 1);
    let passed = false;
    const waits = latch(client, name)
      .await()
      .then(() => (passed = true));
    const channel = `redisson_countdownlatch__channel__{${name}}`;
    await until(async () => (await admin().pubsub('NUMSUB', channel))[1] === 1, 'it waits');
    await allow(command);
    expect(await outcome(latch(client, name).countDown())).toBe('ERR_LOCK_REFUSED');
    // The waiter reads the count when a message wakes it.
    await admin().publish(channel, '0');
    expect(await latch(client, name).await(100)).toBe(false);
    expect(passed).toBe(false);
    await allow();
    await latch(client, name).countDown();
    await waits;
  },
);

/** The number of ids that a hand-over releases: more than the waiter wants, so that some become free. */
const HANDED = 2;
const HAND_OVER_WRITES = ['publish', 'zrem', 'incrby', 'zadd'];
const HAND_OVERS: [string, string, boolean][] = [
  ...HAND_OVER_WRITES.map((command): [string, string, boolean] => [command, 'a hand-over', false]),
  ...['publish', 'zrem', 'set'].map((command): [string, string, boolean] => [command, 'if the count is lost', true]),
];

test.each(HAND_OVERS)(
  'permits that are handed over without +%s (%s): nothing changes, and they are released once',
  async (command, _, isLost) => {
    await allow();
    const { proxy, url } = await openProxy();
    const client = await openClient({ url: Object.assign(new URL(url), user.credentials).href });
    const name = freshName();
    const semaphore = client.getPermitExpirableSemaphore(name, { permits: HANDED });
    await admin().set(name, HANDED);
    const ids = await semaphore.acquireMany(HANDED);
    const waits = outcome(semaphore.acquire());
    await until(async () => (await admin().pubsub('NUMSUB', semaphoreChannel(name)))[1] === 1, 'it waits');
    for (let i = 0; i < 3; i += 1) await semaphore.availablePermits();
    if (isLost) await admin().del(name);
    await allow(command);
    const handedOver = proxy.observe({ sha: permits.handOff.script!.sha });
    const released = await outcome(semaphore.release(ids));
    await handedOver.executed;
    if (command === 'zadd') {
      // Without this command nobody can acquire permits.
      expect([released, await waits]).toEqual(['ok', 'ERR_LOCK_REFUSED']);
    } else {
      expect(released).toBe('ERR_LOCK_REFUSED');
      // The message of the script wakes the waiting call, which finds a lost count again.
      const [free, taken] = await counts(name);
      expect([free ?? '0', taken]).toEqual(['0', HANDED]);
      // It cannot store that count.
      if (command === 'set') expect(await waits).toBe('ERR_LOCK_REFUSED');
      await allow();
      if (command !== 'set') expect(await waits).toBe('ok');
    }
    await allow();
    await client.close();
    expect(await counts(name)).toEqual(['zadd', 'set'].includes(command) ? ['2', 0] : ['1', 1]);
  },
);

test('a semaphore whose value is a text for a while gets its permits back once', async () => {
  await allow();
  const client = await openClient();
  const name = freshName();
  await admin().set(name, 'of the user');
  expect(await outcome(semaphore(client, name).release(2))).toBe('ERR_LOCK_REFUSED');
  await admin().set(name, 3);
  await until(async () => (await admin().get(name)) === '5', 'they are released');
  await client.close();
  expect(await admin().get(name)).toBe('5');
});

test('permits stay unchanged while the key of their ids has another type', async () => {
  await allow();
  const client = await openClient();
  const name = freshName();
  await admin().set(name, 5);
  await admin().set(takenKey(name), 'of the user');
  expect(await outcome(expirable(client, name).tryAcquireMany(2))).toBe('ERR_LOCK_REFUSED');
  await client.close();
  expect(await admin().get(name)).toBe('5');
});

test('the cases refuse each write of each of these scripts', () => {
  const READS = /^(exists|get|hget|pttl|zcard|zcount|zrange|zscore|time|pubsub)$/;
  const refused = new Map<string, Set<string>>([
    [semaphores.cancel.name, new Set(['publish', 'hset', 'pexpire', 'incrby'])],
    // What a call adds to the number that it sets is 0.
    [permits.trySet.name, new Set(['incrby'])],
    [permits.handOff.name, new Set([...HAND_OVERS.map(([command]) => command), 'del'])],
    // Only a script that Redis has refused half-way deletes the semaphore that it created.
    ...[permits.acquire, permits.count, permits.lease, permits.updateLease].map(
      ({ name }) => [name, new Set(['del'])] as [string, Set<string>],
    ),
  ]);
  for (const { script, commands } of [...Object.values(REFUSED), ...Object.values(RELEASES)]) {
    refused.set(script.name, new Set([...(refused.get(script.name) ?? []), ...commands]));
  }
  const missing: string[] = [];
  for (const { name, script } of [...Object.values(semaphores), ...Object.values(latches), ...Object.values(permits)]) {
    for (const [, command = 'publish'] of (script?.source ?? '').matchAll(/redis\.p?call\((?:'([A-Z]+)'|publish)/g)) {
      const write = command.toLowerCase();
      if (!READS.test(write) && refused.get(name)?.has(write) !== true) missing.push(`${name}: ${write}`);
    }
  }
  expect(missing).toEqual([]);
});

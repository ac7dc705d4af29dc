import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import type { Lock } from '../../src/locks/lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { elapsed } from '../support/time/elapsed.js';
import type { Fault } from '../support/proxy/fault.js';
import { holdElsewhere, inFlow, outcome, pause, ready } from '../support/clients/lock-clients.js';
import { LOCK_SCRIPTS } from '../support/lua/lock-scripts.js';
import type { MonitorLine, MonitorLog } from '../support/servers/monitor-log.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { PARKED_MS, QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { LEASE_MS, parkedBehind } from './operations.js';
import { reach } from '../support/servers/topology.mjs';

const DEADLINE_MS = 600;
const WATCHDOG_MS = 600;
const SLACK_MS = 250;
const ACQUIRE = scripts.acquire.script!.sha;
const NESTED = scripts.acquireNested.script!.sha;
const PARTIAL = scripts.releasePartial.script!.sha;
const RELEASE = scripts.release.script!.sha;
const HAND_OFF = scripts.handOff.script!.sha;
const RENEW = scripts.renew.script!.sha;

let server: RedisServer;
let log: MonitorLog;
const clients: LockClient[] = [];
const proxies: FaultProxy[] = [];
let names = 0;

beforeAll(async () => {
  server = await startServer();
  log = await server.monitor();
});

afterEach(async () => {
  server.resume();
  for (const proxy of proxies) proxy.lift();
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  expect(await server.keys()).toEqual([]);
});

afterAll(() => server.stop());

interface Stage {
  readonly proxy: FaultProxy;
  readonly client: LockClient;
  readonly other: LockClient;
  readonly name: string;
}

async function stage(commandTimeout = DEADLINE_MS): Promise<Stage> {
  for (const { source } of LOCK_SCRIPTS.values()) await server.command('SCRIPT', 'LOAD', source);
  const proxy = await FaultProxy.start(server.address);
  proxies.push(proxy);
  const [client, other] = [proxy.url, server.url].map((url) =>
    createClient({ ...reach(url), commandTimeout, lockWatchdogTimeout: WATCHDOG_MS }),
  ) as [LockClient, LockClient];
  clients.push(client, other);
  await ready(client, other);
  return { proxy, client, other, name: `late:${++names}` };
}

/** The changes of scripts to this lock since then. */
async function changes(name: string, since: number): Promise<string[]> {
  const changed = ({ source, command, args, time }: MonitorLine): boolean =>
    source === 'lua' && args[0] === name && ['HSET', 'PEXPIRE', 'HDEL', 'DEL'].includes(command) && time > since;
  return (await log.settle()).filter(changed).map(({ command, args }) => `${command} ${args.slice(1).join(' ')}`);
}

/** Keeps every attempt of a command, or its answer, until `deliver`. */
type Keeping = (proxy: FaultProxy, sha: string) => () => Promise<unknown>;

const inTheNetwork: Keeping = (proxy, sha) => {
  const held = proxy.holdCommand({ sha, times: Infinity });
  return async () => {
    const { count } = held;
    held.lift();
    const answered = (): number =>
      proxy.log.filter(({ args, answeredAt }) => args[0] === sha && answeredAt !== undefined).length;
    await until(() => answered() >= count, 'the server has replied to the held command');
  };
};

const answeredTooLate =
  (error: string): Keeping =>
  (proxy, sha) => {
    proxy.answer({ sha, times: Infinity }, `-${error}\r\n`);
    const held = proxy.holdReply({ sha, times: Infinity });
    return async () => held.lift();
  };

const keepings: Readonly<Record<string, Keeping>> = {
  'in the network': inTheNetwork,
  NOSCRIPT: answeredTooLate('NOSCRIPT No matching script. Please use EVAL.'),
  LOADING: answeredTooLate('LOADING Redis is loading the dataset in memory'),
  MOVED: answeredTooLate('MOVED 1 127.0.0.1:1'),
  CLUSTERDOWN: answeredTooLate('CLUSTERDOWN Hash slot not served'),
};

interface LateCall {
  call(): Promise<unknown>;
  /** Releases the other holds. */
  end?(): Promise<unknown>;
  /** Whether the call must not have made this change once it had been rejected. */
  forbids(change: string): boolean;
}

const createsOrExtends = (change: string): boolean => /^(HSET|PEXPIRE|DEL) /.test(change);

/** Calls that create, count or extend something. Their attempts are kept from before they are made. */
const calls: Readonly<Record<string, { sha: string; prepare(stage: Stage): Promise<LateCall> }>> = {
  acquire: {
    sha: ACQUIRE,
    prepare: async ({ client, name }) => ({
      call: () => inFlow(async () => client.getLock(name).acquire({ waitTime: 0 })),
      forbids: createsOrExtends,
    }),
  },
  'nested acquire': {
    sha: NESTED,
    async prepare({ client, name }) {
      const outer = await holdElsewhere(client.getLock(name), LEASE_MS);
      return {
        call: () => outer.run(() => client.getLock(name).acquire({ waitTime: 0, leaseTime: 2 * LEASE_MS })),
        end: () => outer.release(),
        forbids: createsOrExtends,
      };
    },
  },
  'partial release': {
    sha: PARTIAL,
    async prepare({ client, name }) {
      const outer = await holdElsewhere(client.getLock(name), LEASE_MS);
      const nested = await outer.run(() => client.getLock(name).acquire({ leaseTime: 2 * LEASE_MS }));
      return { call: () => nested.release(), end: () => outer.release(), forbids: createsOrExtends };
    },
  },
  'hand-off': {
    sha: HAND_OFF,
    async prepare({ client, proxy, name, other }) {
      const hold = await holdElsewhere(client.getLock(name), LEASE_MS);
      const [waiting] = await parkedBehind({ client, proxy, name, other });
      const named = (): string | undefined => proxy.log.find(({ args }) => args[0] === HAND_OFF)?.args[5];
      return {
        call: () => hold.release(),
        end: async () => (await waiting!).release(),
        // The waiter takes the lock in its turn, as another owner than the one that was named.
        forbids: (change) => change.startsWith('HSET ') && change.includes(named()!),
      };
    },
  },
  extend: {
    sha: RENEW,
    async prepare({ client, name }) {
      const hold = await holdElsewhere(client.getLock(name), LEASE_MS);
      return { call: () => hold.extend(2 * LEASE_MS), end: () => hold.release(), forbids: createsOrExtends };
    },
  },
};

async function rejects({ call }: LateCall): Promise<number> {
  const called = performance.now();
  expect(await outcome(call())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  expect(elapsed(called)).toBeLessThan(DEADLINE_MS + SLACK_MS);
  return Date.now();
}

/** Call this when all held data has been delivered. */
async function didNothingSince(rejected: number, { proxy, name }: Stage, { forbids, end }: LateCall): Promise<void> {
  await pause(QUIET_MS);
  expect((await changes(name, rejected)).filter(forbids)).toEqual([]);
  proxy.lift();
  await end?.();
  await until(async () => !(await server.keys()).includes(name), 'the key is gone', 1_000 + SLACK_MS);
  // No watchdog is at work for it either.
  const renewals = (): number => proxy.log.filter(({ args }) => args[0] === RENEW).length;
  const before = renewals();
  await pause(WATCHDOG_MS / 3 + 50);
  expect(renewals()).toBe(before);
}

test.each(Object.entries(calls))(
  'R2: %s: an attempt that is delivered, or answered with an error, after the rejection changes nothing',
  async (_, { sha, prepare }) => {
    await Promise.all(
      Object.values(keepings).map(async (keep) => {
        const each = await stage();
        const prepared = await prepare(each);
        const deliver = keep(each.proxy, sha);
        const rejected = await rejects(prepared);
        await deliver();
        await didNothingSince(rejected, each, prepared);
      }),
    );
  },
);

const standing: Readonly<Record<string, () => Promise<() => Promise<void>>>> = {
  'stopped and continued': async () => {
    await server.pause();
    return async () => server.resume();
  },
  'paused past all retries': async () => {
    await server.clientPause(DEADLINE_MS + 2 * SLACK_MS);
    return () => until(() => server.command('PING').then(() => true), 'the pause has ended');
  },
};

test.each(Object.entries(standing))('R2: a request to a server that was %s changes nothing', async (_, stand) => {
  const all = await Promise.all(
    Object.values(calls).map(async ({ prepare }) => {
      const each = await stage();
      return { each, prepared: await prepare(each) };
    }),
  );
  const goOn = await stand();
  const rejections = await Promise.all(all.map(({ prepared }) => rejects(prepared)));
  await goOn();
  await Promise.all(all.map(({ each, prepared }, index) => didNothingSince(rejections[index]!, each, prepared)));
});

/** Makes a call whose first attempt is held in the network on a closed connection, and whose second one is answered. */
async function secondAttempt<T>({ proxy }: Stage, sha: string, call: () => Promise<T>): Promise<[T, Fault]> {
  const late = proxy.holdCommand({ sha });
  const ids = proxy.connections({ kind: 'command' }).map(({ id }) => id);
  const called = call();
  called.catch(() => undefined);
  await late.applied;
  proxy.cut({ connection: ids, side: 'client' });
  return [await called, late];
}

/** As before, but the reply to the second attempt is held until `meanwhile` has settled. Resolves with the outcome. */
async function answeredAfter(
  { proxy }: Stage,
  sha: string,
  call: () => Promise<unknown>,
  meanwhile: () => unknown,
): Promise<[unknown, Fault]> {
  const late = proxy.holdCommand({ sha });
  const ids = proxy.connections({ kind: 'command' }).map(({ id }) => id);
  const called = outcome(call());
  await late.applied;
  const reply = proxy.holdReply({ sha });
  proxy.cut({ connection: ids, side: 'client' });
  await reply.executed;
  await meanwhile();
  reply.lift();
  return [await called, late];
}

async function delivered(late: Fault): Promise<void> {
  late.lift();
  await late.executed;
}

describe('R4: a late copy of a repeated request', () => {
  test('R4: of a release does not release a new hold of the same flow', async () => {
    const each = await stage();
    const lock = each.client.getLock(each.name);
    await inFlow(async () => {
      await lock.lock(LEASE_MS);
      const [, late] = await secondAttempt(each, RELEASE, () => lock.unlock());
      await lock.lock(LEASE_MS);
      const hold = lock.currentHold()!;
      await delivered(late);
      expect(await server.admin.hgetall(each.name)).toEqual({ [hold.owner]: '1' });
      await lock.unlock();
    });
  });

  test('R4: of a partial release does not change the count after another nested acquire', async () => {
    const each = await stage(3_000);
    const lock = each.client.getLock(each.name);
    const outer = await holdElsewhere(lock, LEASE_MS);
    const first = await outer.run(() => lock.acquire({ leaseTime: LEASE_MS }));
    const [, late] = await secondAttempt(each, PARTIAL, () => first.release());
    // The next request waits until that attempt can no longer run.
    const nested = outer.run(() => lock.acquire({ leaseTime: 2 * LEASE_MS }));
    await pause(PARKED_MS);
    await delivered(late);
    const second = await nested;
    expect(await server.admin.hgetall(each.name)).toEqual({ [outer.owner]: '2' });
    expect(await server.admin.pttl(each.name)).toBeGreaterThan(LEASE_MS);
    await second.release();
    await outer.release();
  });

  test('R4: of an acquire after the unlock leaves no key 1 s after its not-after', async () => {
    const commandTimeout = 3_000;
    const each = await stage(commandTimeout);
    const [hold, late] = await secondAttempt(each, ACQUIRE, () =>
      holdElsewhere(each.client.getLock(each.name), LEASE_MS),
    );
    await hold.release();
    const sent = each.proxy.log.find(({ args }) => args[0] === ACQUIRE && args[2] === each.name)!.at;
    await delivered(late);
    // It came in time to run, else this would prove nothing.
    expect(await server.admin.hgetall(each.name)).toEqual({ [hold.owner]: '1' });
    await until(async () => (await server.keys()).length === 0, 'the key is gone');
    expect(elapsed(sent)).toBeLessThan(0.3 * commandTimeout + 1_000 + SLACK_MS);
    expect(each.proxy.log.filter(({ args }) => args[0] === RENEW)).toEqual([]);
  });

  const joint: Readonly<Record<string, (locks: readonly Lock[]) => Lock>> = {
    'multi-lock': ([first, ...others]) => clients[0]!.getMultiLock(first!, ...others),
    RedLock: ([first, ...others]) => clients[0]!.getRedLock(first!, ...others),
  };
  test.each(Object.entries(joint))(
    'R2: of an acquire for a member of a %s that cannot be acquired is refused',
    async (_, lock) => {
      const each = await stage(3_000);
      const [first = '', ...others] = ['a', 'b', 'c'].map((part) => `${each.name}:${part}`);
      const theirs = await Promise.all(others.map((name) => holdElsewhere(each.other.getLock(name), LEASE_MS)));
      const beside = createClient(reach(server.url));
      clients.push(beside);
      const all = lock([each.client.getLock(first), ...others.map((name) => beside.getLock(name))]);
      const [taken, late] = await secondAttempt(each, ACQUIRE, () => inFlow(() => all.tryLock()));
      expect(taken).toBe(false);
      const answered = Date.now();
      await delivered(late);
      expect((await changes(first, answered)).filter(createsOrExtends)).toEqual([]);
      await Promise.all(theirs.map((hold) => hold.release()));
    },
  );

  test('R2: of an acquire that was granted to an aborted call is refused', async () => {
    const each = await stage(3_000);
    const controller = new AbortController();
    const { signal } = controller;
    const acquire = (): Promise<unknown> =>
      inFlow(async () => each.client.getLock(each.name).acquire({ waitTime: 10_000, signal }));
    const [how, late] = await answeredAfter(each, ACQUIRE, acquire, () => controller.abort());
    expect(how).toBe('ERR_LOCK_ABORTED');
    const answered = Date.now();
    await delivered(late);
    expect((await changes(each.name, answered)).filter(createsOrExtends)).toEqual([]);
  });

  test('R2: of a nested acquire that was granted to an aborted call is refused', async () => {
    const each = await stage(3_000);
    const lock = each.client.getLock(each.name);
    const outer = await holdElsewhere(lock, LEASE_MS);
    const controller = new AbortController();
    const { signal } = controller;
    const nest = (): Promise<unknown> =>
      outer.run(() => lock.acquire({ waitTime: 10_000, leaseTime: 2 * LEASE_MS, signal }));
    const [how, late] = await answeredAfter(each, NESTED, nest, () => controller.abort());
    expect(how).toBe('ERR_LOCK_ABORTED');
    const answered = Date.now();
    await delivered(late);
    // Its hold is released in the background: the count becomes 1 again, and does not become 2 again.
    expect((await changes(each.name, answered)).filter((change) => /^HSET .* 2$/.test(change))).toEqual([]);
    await outer.release();
  });

  test('R2: of a nested acquire inside a hold that was lost since is refused', async () => {
    const each = await stage(3_000);
    const lock = each.client.getLock(each.name);
    const outer = await holdElsewhere(lock, 500);
    // Otherwise its rest in Redis would be released before the late attempt arrives.
    const givenBack = each.proxy.holdCommand({ sha: RELEASE });
    const nest = (): Promise<unknown> => outer.run(() => lock.acquire({ waitTime: 0, leaseTime: LEASE_MS }));
    const [how, late] = await answeredAfter(each, NESTED, nest, () =>
      until(() => outer.signal.aborted, 'the outer hold is lost'),
    );
    expect(how).toBe('ERR_LOCK_LOST');
    const answered = Date.now();
    await delivered(late);
    givenBack.lift();
    expect((await changes(each.name, answered)).filter((change) => /^(HSET|PEXPIRE) /.test(change))).toEqual([]);
    expect(await outcome(outer.release())).toBe('ERR_LOCK_LOST');
  });

  test('R4: of a hand-over after the release of the next owner acquires nothing', async () => {
    const each = await stage(1_500);
    const hold = await holdElsewhere(each.client.getLock(each.name), LEASE_MS);
    const [waiting] = await parkedBehind(each);
    const [, late] = await secondAttempt(each, HAND_OFF, () => hold.release());
    await (await waiting!).release();
    await delivered(late);
    expect(await server.keys()).toEqual([]);
  });

  test('R5: of a renewal after the release neither creates nor extends anything', async () => {
    const each = await stage();
    const hold = await holdElsewhere(each.client.getLock(each.name));
    const [, late] = await secondAttempt(each, RENEW, () => hold.extend(LEASE_MS));
    await hold.release();
    const next: Hold = await holdElsewhere(each.other.getLock(each.name), LEASE_MS);
    await delivered(late);
    expect(await server.admin.hgetall(each.name)).toEqual({ [next.owner]: '1' });
    expect(await server.admin.pttl(each.name)).toBeLessThanOrEqual(LEASE_MS);
    await next.release();
  });
});

test('R5: after an unlock() that a pause left unanswered nothing renews the hold, and the next cycle frees the lock', async () => {
  const each = await stage();
  const lock = each.client.getLock(each.name);
  await inFlow(async () => {
    await lock.lock();
    const { owner } = lock.currentHold()!;
    // A renewal that is pending at the release of the hold, and arrives when it may no longer extend anything.
    const renewal = each.proxy.holdCommand({ sha: RENEW });
    await renewal.applied;
    await server.clientPause(DEADLINE_MS + 2 * SLACK_MS);
    expect(await outcome(lock.unlock())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    const unlocked = Date.now();
    renewal.lift();
    await until(
      async () => (await server.keys()).length === 0,
      'the key is gone',
      WATCHDOG_MS + 2 * SLACK_MS + SLACK_MS,
    );
    expect((await changes(each.name, unlocked)).filter((change) => change !== `HDEL ${owner}`)).toEqual([]);
    await lock.lock();
    await lock.unlock();
    expect(await server.keys()).toEqual([]);
  });
});

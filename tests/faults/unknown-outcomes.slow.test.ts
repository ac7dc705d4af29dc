import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import type { RedisUnavailableError } from '../../src/errors.js';
import type { ClientOptions } from '../../src/options.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { elapsed } from '../support/time/elapsed.js';
import { closeClients, holdElsewhere, inFlow, openClient, openProxy, pause } from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { QUIET_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';
import { LEASE_MS, parkedBehind } from './operations.js';

const DEADLINE_MS = 600;
const SLACK_MS = 250;
/** Time within which holds without a caller are released after Redis replies again. */
const GIVEN_BACK_MS = 1_000;

const ACQUIRE = scripts.acquire.script!.sha;
const NESTED = scripts.acquireNested.script!.sha;
const PARTIAL = scripts.releasePartial.script!.sha;
const RELEASE = scripts.release.script!.sha;
const HAND_OFF = scripts.handOff.script!.sha;
const RENEW = scripts.renew.script!.sha;

afterEach(() => closeClients());

interface Bench {
  readonly proxy: FaultProxy;
  readonly client: LockClient;
  readonly name: string;
}

async function bench(options: ClientOptions = {}): Promise<Bench> {
  const { proxy, url } = await openProxy();
  return { proxy, client: await openClient({ url, commandTimeout: DEADLINE_MS, ...options }), name: freshName() };
}

/** Makes Redis unavailable for one script until the fault is lifted. */
const aways: Readonly<Record<string, Away>> = {
  'cut before the server saw it, every time': (proxy, sha) => proxy.cutBefore({ sha, times: Infinity }),
  'cut after the server ran it, every time': (proxy, sha) => proxy.cutAfter({ sha, times: Infinity }),
  'its replies swallowed': (proxy, sha) => proxy.swallow({ sha, times: Infinity }),
};

interface Failure {
  code: unknown;
  outcome: unknown;
  tookMs: number;
}

/** How a call fails that does fail. */
async function failureOf(call: () => Promise<unknown>): Promise<Failure> {
  const at = performance.now();
  try {
    await call();
  } catch (error) {
    const { code, outcome } = error as RedisUnavailableError;
    return { code, outcome, tookMs: elapsed(at) };
  }
  throw new Error('the call did not fail');
}

function expectUnknown({ code, outcome, tookMs }: Failure): void {
  expect({ code, outcome }).toEqual({ code: 'ERR_LOCK_REDIS_UNAVAILABLE', outcome: 'unknown' });
  expect(tookMs).toBeLessThan(DEADLINE_MS + SLACK_MS);
}

const ownersTried = (proxy: FaultProxy, name: string): Set<string> =>
  new Set(proxy.log.filter(({ args }) => args[0] === ACQUIRE && args[2] === name).map(({ args }) => args[3]!));

const keyGone = (name: string): Promise<void> =>
  until(async () => (await admin().exists(name)) === 0, 'the key is gone', GIVEN_BACK_MS + SLACK_MS);

/** A cycle of a new flow, at once. */
const nextCycle = ({ client, name }: Bench): Promise<void> =>
  client.getLock(name).withLock({ waitTime: GIVEN_BACK_MS }, () => undefined);

type Away = (proxy: FaultProxy, sha: string) => { lift(): void; count: number };

/** One test for all kinds of unavailability, side by side: each waits for most of its time. */
function underEach(title: string, scenario: (away: Away) => Promise<void>): void {
  test(title, async () => {
    const failures: Record<string, unknown> = {};
    await Promise.all(
      Object.entries(aways).map(([way, away]) => scenario(away).catch((error: unknown) => (failures[way] = error))),
    );
    expect(failures).toEqual({});
  });
}

describe('a command that is cut before or after the server runs it, or whose replies are swallowed, every time', () => {
  underEach(
    'R1: acquire: the outcome is unknown, the client releases the lock, and the owner id is never used again',
    async (away) => {
      const each = await bench();
      const { proxy, client, name } = each;
      const fault = away(proxy, ACQUIRE);
      expectUnknown(await failureOf(() => inFlow(async () => client.getLock(name).acquire({ waitTime: 0 }))));
      expect(fault.count).toBeGreaterThan(1);
      const spent = ownersTried(proxy, name);
      expect(spent.size).toBe(1);
      fault.lift();
      await keyGone(name);
      const next = await holdElsewhere(client.getLock(name));
      expect(spent).not.toContain(next.owner);
      await pause(QUIET_MS);
      expect(next.validFor()).toBeGreaterThan(0);
      await next.release();
    },
  );

  underEach('R1: nested acquire: the outer hold is unchanged, and its release frees the lock', async (away) => {
    const each = await bench();
    const { proxy, client, name } = each;
    const lock = client.getLock(name);
    const outer = await holdElsewhere(lock, LEASE_MS);
    const fault = away(proxy, NESTED);
    expectUnknown(await failureOf(() => outer.run(() => lock.acquire({ waitTime: 0 }))));
    fault.lift();
    expect(outer.validFor()).toBeGreaterThan(0);
    // Whatever the failed one left, the next request carries the count there is.
    const nested = await outer.run(() => lock.acquire({ waitTime: 0 }));
    expect(await admin().hgetall(name)).toEqual({ [outer.owner]: '2' });
    await nested.release();
    expect(await admin().hgetall(name)).toEqual({ [outer.owner]: '1' });
    await outer.release();
    expect(await admin().exists(name)).toBe(0);
    await nextCycle(each);
  });

  underEach(
    'R4: partial release: the hold has ended, the outer one is unchanged, and its release frees the lock',
    async (away) => {
      const each = await bench();
      const { proxy, client, name } = each;
      const lock = client.getLock(name);
      const outer = await holdElsewhere(lock, LEASE_MS);
      const nested = await outer.run(() => lock.acquire());
      const fault = away(proxy, PARTIAL);
      const failure = await failureOf(() => nested.release());
      expectUnknown(failure);
      expect(await failureOf(() => nested.release())).toMatchObject({ code: failure.code, outcome: 'unknown' });
      fault.lift();
      expect(nested.validFor()).toBe(0);
      expect(outer.validFor()).toBeGreaterThan(0);
      await outer.run(() => lock.withLock(() => undefined));
      expect(await admin().hgetall(name)).toEqual({ [outer.owner]: '1' });
      await outer.release();
      expect(await admin().exists(name)).toBe(0);
      await nextCycle(each);
    },
  );

  underEach(
    'R5: release: no renewal follows, the key goes when Redis answers, and the next lock and unlock leave it free',
    async (away) => {
      const each = await bench({ lockWatchdogTimeout: 900 });
      const { proxy, client, name } = each;
      const hold = await holdElsewhere(client.getLock(name));
      const fault = away(proxy, RELEASE);
      expectUnknown(await failureOf(() => hold.release()));
      const renewals = proxy.log.filter(({ args }) => args[0] === RENEW).length;
      await pause(400);
      expect(proxy.log.filter(({ args }) => args[0] === RENEW)).toHaveLength(renewals);
      expect(hold.signal.aborted).toBe(false); // given up, not lost
      fault.lift();
      await keyGone(name);
      await nextCycle(each);
    },
  );

  underEach('R5: unlock(): a second call waits until the hold has been released', async (away) => {
    const each = await bench();
    const { proxy, client, name } = each;
    const lock = client.getLock(name);
    await inFlow(async () => {
      await lock.lock(LEASE_MS);
      const fault = away(proxy, RELEASE);
      expectUnknown(await failureOf(() => lock.unlock()));
      let over = false;
      const second = lock.unlock().then(() => (over = true));
      await pause(200);
      expect(over).toBe(false);
      fault.lift();
      await second;
      expect(await admin().exists(name)).toBe(0);
      expect((await failureOf(() => lock.unlock())).code).toBe('ERR_LOCK_NOT_OWNER');
      // The same flow acquires the lock again, as a new owner.
      await lock.lock(LEASE_MS);
      await lock.unlock();
      expect(await admin().exists(name)).toBe(0);
    });
  });

  underEach(
    'R1: hand-over: the release has an unknown outcome, and the waiter acquires the lock with a new owner id',
    async (away) => {
      const each = await bench();
      const { proxy, client, name } = each;
      const hold = await holdElsewhere(client.getLock(name), LEASE_MS);
      const [waiting] = await parkedBehind({ ...each, other: client });
      const fault = away(proxy, HAND_OFF);
      expectUnknown(await failureOf(() => hold.release()));
      expect(fault.count).toBeGreaterThan(1);
      const named = new Set(proxy.log.filter(({ args }) => args[0] === HAND_OFF).map(({ args }) => args[5]!));
      expect(named.size).toBe(1);
      fault.lift();
      const next = await waiting!;
      expect(named).not.toContain(next.owner);
      expect(next.owner).not.toBe(hold.owner);
      expect(await admin().hgetall(name)).toEqual({ [next.owner]: '1' });
      await pause(GIVEN_BACK_MS / 2);
      expect(next.validFor()).toBeGreaterThan(0);
      await next.release();
    },
  );

  underEach('R1: force unlock: the call says unknown, and frees nothing that is taken later', async (away) => {
    const each = await bench();
    const { proxy, client, name } = each;
    const other = await openClient();
    await holdElsewhere(other.getLock(name), LEASE_MS);
    const fault = away(proxy, RELEASE);
    expectUnknown(await failureOf(() => client.getLock(name).forceUnlock()));
    await admin().del(name);
    const next = await holdElsewhere(other.getLock(name), LEASE_MS);
    fault.lift();
    await pause(200);
    expect(await admin().hgetall(name)).toEqual({ [next.owner]: '1' });
    await next.release();
  });

  underEach('R1: extend: the call says unknown, the hold lasts at least as long as before', async (away) => {
    const each = await bench();
    const { proxy, client, name } = each;
    const hold = await holdElsewhere(client.getLock(name), LEASE_MS / 2);
    const fault = away(proxy, RENEW);
    expectUnknown(await failureOf(() => hold.extend(LEASE_MS)));
    fault.lift();
    expect(hold.validFor()).toBeGreaterThan(LEASE_MS / 2 - 3_000);
    expect(hold.validFor()).toBeLessThanOrEqual(LEASE_MS / 2);
    await hold.extend(LEASE_MS);
    expect(hold.validFor()).toBeGreaterThan(LEASE_MS - 3_000);
    await hold.release();
  });
});

describe('a command that never reached the server has a known outcome', () => {
  const nevers: Readonly<Record<string, (proxy: FaultProxy) => unknown>> = {
    'answered with LOADING': (proxy) =>
      proxy.answer({ command: ['EVALSHA', 'EVAL'], times: Infinity }, '-LOADING Redis is loading\r\n'),
    'refused connections': (proxy) => {
      proxy.refuse('reset');
      return proxy.cut();
    },
    'connections that are accepted without a reply': (proxy) => {
      proxy.refuse('hang');
      return proxy.cut();
    },
  };

  test.each(Object.entries(nevers))('R1: %s: an acquire reports that nothing was done', async (_, never) => {
    // The last attempt must have time for a reply. Otherwise its outcome is unknown.
    const commandTimeout = 2 * DEADLINE_MS;
    const { proxy, client, name } = await bench({ commandTimeout });
    const { accepted } = proxy.stats;
    never(proxy);
    // A command on a socket that is being cut has an unknown outcome. Here the client knows that Redis is unavailable.
    if (proxy.stats.faults.has('cut')) {
      await until(() => proxy.stats.accepted > accepted, 'the client has tried to come back');
    }
    const failure = await failureOf(() => inFlow(async () => client.getLock(name).acquire({ waitTime: 0 })));
    expect(failure).toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE', outcome: 'none' });
    expect(failure.tookMs).toBeLessThan(commandTimeout + SLACK_MS);
    proxy.lift();
    proxy.cut();
    await client.ready();
    await pause(QUIET_MS);
    expect(await admin().exists(name)).toBe(0);
    // Nothing has to be released either.
    expect(proxy.log.filter(({ args }) => args[0] === RELEASE)).toEqual([]);
  });
});

test('R1: the client repeats the release of a possible grant as long as its lease can last, and no longer', async () => {
  const leaseMs = 1_500;
  const { proxy, client, name } = await bench();
  const fault = proxy.cutAfter({ sha: ACQUIRE, times: Infinity });
  expectUnknown(
    await failureOf(() => inFlow(async () => client.getLock(name).acquire({ waitTime: 0, leaseTime: leaseMs }))),
  );
  fault.lift();
  const never = proxy.cutBefore({ sha: RELEASE, times: Infinity });
  await until(async () => (await admin().exists(name)) === 0, 'the lease has ended');
  const limit = performance.now() + DEADLINE_MS + leaseMs + 5_000;
  let quiet = 0;
  for (let before = -1; quiet < 10 && performance.now() < limit; before = never.count) {
    await pause(QUIET_MS);
    quiet = before === never.count ? quiet + 1 : 0;
  }
  expect(quiet).toBe(10);
  never.lift();
  const holds: Hold[] = [await holdElsewhere(client.getLock(name))];
  await holds[0]!.release();
});

import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import { lockChannel } from '../../src/redis/keys.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { elapsed } from '../support/time/elapsed.js';
import {
  closeClients,
  holdElsewhere,
  inFlow,
  openClient,
  openProxy,
  outcome,
  pause,
} from '../support/clients/lock-clients.js';
import type { Fault } from '../support/proxy/fault.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { Random } from '../support/random.js';
import { parked } from '../support/clients/parked.js';
import { admin, freshName } from '../support/redis.js';
import { topology } from '../support/servers/topology.mjs';
import { PARKED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const ACQUIRE = scripts.acquire.script!.sha;
const HAND_OFF = scripts.handOff.script!.sha;
const SLACK_MS = 250;

/** Long enough that no waiter is granted because of the end of a lease. */
const LEASE_MS = 20_000;

afterEach(() => closeClients());

interface Wait {
  /** Resolves with the moment in which the waiter was inside. */
  readonly inside: Promise<number>;
  readonly controller: AbortController;
  hold: Hold | undefined;
}

function waitFor(client: LockClient, name: string, waitTime?: number): Wait {
  const controller = new AbortController();
  const wait: Wait = { controller, hold: undefined, inside: Promise.resolve(0) };
  const inside = inFlow(async () => {
    wait.hold = await client.getLock(name).acquire({ signal: controller.signal, leaseTime: LEASE_MS, waitTime });
    return performance.now();
  });
  inside.catch(() => undefined);
  return Object.assign(wait, { inside });
}

/** The steps of a wait at which an event can happen: each fault delays one step of a waiter and the later ones. */
const steps: Record<string, (proxy: FaultProxy, name: string) => Fault> = {
  'its first try pending': (proxy, name) => proxy.holdCommand({ command: 'EVALSHA', sha: ACQUIRE, contains: name }),
  'the busy reply pending': (proxy, name) => proxy.holdReply({ command: 'EVALSHA', sha: ACQUIRE, contains: name }),
  'its SUBSCRIBE pending': (proxy, name) => proxy.holdCommand({ command: 'SUBSCRIBE', contains: name }),
  'the acknowledgement pending': (proxy, name) => proxy.holdReply({ command: 'SUBSCRIBE', contains: name }),
  'its second try pending': (proxy, name) =>
    proxy.holdCommand({ command: 'EVALSHA', sha: ACQUIRE, contains: name, nth: 2 }),
  'the second reply pending': (proxy, name) =>
    proxy.holdReply({ command: 'EVALSHA', sha: ACQUIRE, contains: name, nth: 2 }),
};

describe('R17: a waiter acquires the lock soon after the release, in every state of the wait', () => {
  test.each(Object.entries(steps))('R17: with %s', async (_, delay) => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
    const delayed = delay(proxy, name);
    const wait = waitFor(client, name);
    await delayed.applied;
    await pause(30);
    await holder.release();
    await pause(30);
    const freeAt = performance.now();
    delayed.lift();
    expect(elapsed(freeAt, await wait.inside)).toBeLessThan(100 + SLACK_MS);
    await wait.hold!.release();
  });

  test('R17: parked', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
    const wait = waitFor(client, name);
    await parked(proxy, client, name);
    const freeAt = performance.now();
    await holder.release();
    expect(elapsed(freeAt, await wait.inside)).toBeLessThan(100 + SLACK_MS);
    await wait.hold!.release();
  });

  test('R17: 150 waits with random delays at every step and releases at random moments', async () => {
    const random = new Random('R17');
    const longest = 40;
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    // Each stream keeps its order, so a step may be held up by the delay of another as well.
    for (const direction of ['to-client', 'to-server'] as const)
      proxy.delay(() => random.below(longest), { direction });
    const waited = await Promise.all(
      Array.from({ length: 150 }, async () => {
        const name = freshName();
        const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
        const wait = waitFor(client, name);
        await pause(random.below(4 * longest));
        const freeAt = performance.now();
        await holder.release();
        const waitedMs = elapsed(freeAt, await wait.inside);
        await wait.hold!.release();
        return waitedMs;
      }),
    );
    // At most a message, a try and its reply, each after earlier data. With replicas, also their confirmation, after
    // that of earlier grants.
    const ways = topology === 'single' ? 6 : 12;
    expect(Math.max(...waited)).toBeLessThan(100 + ways * longest + SLACK_MS);
  });
});

describe('R17: the next waiter acquires the lock soon after the release, at whatever point the head leaves', () => {
  const leaving = { abort: undefined, 'time out': 60 };
  for (const [how, waitTime] of Object.entries(leaving)) {
    test.each(Object.entries(steps))(`R17: ${how} with %s`, async (_, delay) => {
      const { proxy, url } = await openProxy();
      const [client, other] = [await openClient({ url }), await openClient()];
      const name = freshName();
      const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
      const delayed = delay(proxy, name);
      const head = waitFor(client, name, waitTime);
      const next = waitFor(client, name);
      await delayed.applied;
      if (waitTime === undefined) head.controller.abort();
      else await pause(waitTime + 20);
      await holder.release();
      const freeAt = performance.now();
      delayed.lift();
      // A head that has timed out may still be granted by its pending try.
      const left = head.inside.then(
        () => head.hold!.release(),
        () => undefined,
      );
      expect(elapsed(freeAt, await next.inside)).toBeLessThan(100 + SLACK_MS);
      await next.hold!.release();
      await left;
    });
  }

  test.each(Object.entries(leaving))('R17: %s, parked', async (_, waitTime) => {
    const [client, other] = [await openClient(), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
    const head = waitFor(client, name, waitTime);
    const next = waitFor(client, name);
    await pause(80);
    if (waitTime === undefined) head.controller.abort();
    await holder.release();
    const freeAt = performance.now();
    expect(elapsed(freeAt, await next.inside)).toBeLessThan(100 + SLACK_MS);
    await next.hold!.release();
  });

  test('R17: with the message pending', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
    const head = waitFor(client, name);
    const next = waitFor(client, name);
    await parked(proxy, client, name);
    const slow = proxy.delay(40, { kind: 'subscriber', direction: 'to-client' });
    await holder.release();
    head.controller.abort();
    const freeAt = performance.now();
    expect(elapsed(freeAt, await next.inside)).toBeLessThan(100 + 40 + SLACK_MS);
    slow.lift();
    await next.hold!.release();
  });

  test('R17: with the try after the message pending', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
    const head = waitFor(client, name);
    const next = waitFor(client, name);
    await parked(proxy, client, name);
    const granted = proxy.holdReply({ command: 'EVALSHA', sha: ACQUIRE, contains: name });
    await holder.release();
    await granted.executed;
    // The head has the lock by now and no longer wants it.
    head.controller.abort();
    const freeAt = performance.now();
    granted.lift();
    expect(await outcome(head.inside)).toBe('ERR_LOCK_ABORTED');
    expect(elapsed(freeAt, await next.inside)).toBeLessThan(100 + SLACK_MS);
    await next.hold!.release();
  });

  test('R17: with the try after the message failing', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
    const head = waitFor(client, name, 10_000);
    const next = waitFor(client, name, 10_000);
    await parked(proxy, client, name);
    const failing = proxy.answer({ sha: ACQUIRE, contains: name, times: Infinity }, '-LOADING not yet\r\n');
    await holder.release();
    await failing.applied;
    head.controller.abort();
    expect(await outcome(head.inside)).toBe('ERR_LOCK_ABORTED');
    failing.lift();
    const freeAt = performance.now();
    // The head got the message, and its knowledge of the holder is from before the message.
    expect(elapsed(freeAt, await next.inside)).toBeLessThan(500 + SLACK_MS);
    await next.hold!.release();
  });

  test('R17: with its try failing after the next waiter has sent a try', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
    const [first, second, third] = [waitFor(client, name), waitFor(client, name), waitFor(client, name)];
    await parked(proxy, client, name);
    const busy = proxy.holdReply({ sha: ACQUIRE, contains: name });
    const failing = proxy.answer({ sha: ACQUIRE, contains: name, nth: 2, times: Infinity }, '-LOADING not yet\r\n');
    // A message without a release, as those to a crowd are for all but one.
    await admin().publish(lockChannel(name), '0');
    await busy.executed;
    await holder.release();
    await pause(PARKED_MS);
    first.controller.abort();
    await until(
      () => proxy.log.filter(({ args }) => args[0] === ACQUIRE && args.includes(name)).length >= 4,
      'they try',
    );
    // It is of before the release, which the second waiter's try has used up.
    busy.lift();
    expect(await outcome(first.inside)).toBe('ERR_LOCK_ABORTED');
    await failing.applied;
    second.controller.abort();
    expect(await outcome(second.inside)).toBe('ERR_LOCK_ABORTED');
    failing.lift();
    const freeAt = performance.now();
    expect(elapsed(freeAt, await third.inside)).toBeLessThan(500 + SLACK_MS);
    await third.hold!.release();
  });

  test('R17: as the target of a pending hand-over', async () => {
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const name = freshName();
    const holder = await holdElsewhere(client.getLock(name), LEASE_MS);
    const head = waitFor(client, name);
    const next = waitFor(client, name);
    await parked(proxy, client, name);
    const handing = proxy.holdReply({ command: 'EVALSHA', sha: HAND_OFF, contains: name });
    const released = holder.release();
    await handing.executed;
    head.controller.abort();
    const freeAt = performance.now();
    handing.lift();
    await released;
    expect(await outcome(head.inside)).toBe('ERR_LOCK_ABORTED');
    expect(elapsed(freeAt, await next.inside)).toBeLessThan(100 + SLACK_MS);
    await next.hold!.release();
  });

  test('R17: after its try had failed', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url, commandTimeout: 300 }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
    const failing = proxy.answer(
      { command: ['EVALSHA', 'EVAL'], contains: name, times: Infinity },
      '-LOADING not yet\r\n',
    );
    const head = waitFor(client, name, 10_000);
    const next = waitFor(client, name, 10_000);
    await failing.appliedTimes(8);
    head.controller.abort();
    await holder.release();
    const freeAt = performance.now();
    failing.lift();
    expect(elapsed(freeAt, await next.inside)).toBeLessThan(500 + SLACK_MS);
    await next.hold!.release();
  });
});

test('R17: a single try takes no wake-up from the waiters in line', async () => {
  const { proxy, url } = await openProxy();
  const [client, other] = [await openClient({ url }), await openClient()];
  const lock = client.getLock(freshName());
  const holder = await holdElsewhere(other.getLock(lock.name), LEASE_MS);
  const wait = waitFor(client, lock.name);
  await until(
    () => proxy.log.filter(({ args }) => args[0] === ACQUIRE && args.includes(lock.name)).length === 2,
    'parked',
  );
  const looks = Array.from({ length: 20 }, () => inFlow(() => lock.tryLock()));
  await holder.release();
  const freeAt = performance.now();
  await Promise.all(looks);
  await lock.forceUnlock();
  expect(elapsed(freeAt, await wait.inside)).toBeLessThan(100 + SLACK_MS);
  await wait.hold!.release();
});

test('R17: a loss that a hold of this client finds grants the waiter that knows the lease from Redis', async () => {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url });
  const name = freshName();
  // One call that looks once beside the line, and one that waits: both ask before either is answered.
  const [holding, wait] = [
    inFlow(() => client.getLock(name).acquire({ waitTime: 0, leaseTime: LEASE_MS })),
    waitFor(client, name),
  ];
  const hold = await holding;
  await parked(proxy, client, name);
  expect(wait.hold).toBe(undefined);
  await admin().del(name); // unheard
  const lostAt = performance.now();
  expect(await outcome(hold.extend(LEASE_MS))).toBe('ERR_LOCK_LOST');
  expect(elapsed(lostAt, await wait.inside)).toBeLessThan(100 + SLACK_MS);
  await wait.hold!.release();
});

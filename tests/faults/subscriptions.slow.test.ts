import { afterEach, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import { lockChannel } from '../../src/redis/keys.js';
import { acquire as acquireFair } from '../../src/redis/scripts/fair-lock.js';
import { acquire } from '../../src/redis/scripts/lock.js';
import { acquire as acquirePermits } from '../../src/redis/scripts/semaphore.js';
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
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { PARKED_MS, STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const SLACK_MS = 250;
/** The first reconnection comes after at most that much. */
const RECONNECT_MS = 50;
const LINGER_MS = 500;
const LEASE_MS = 20_000;

let server: RedisServer | undefined;
afterEach(async () => {
  await closeClients();
  await server?.stop();
  server = undefined;
});

interface Bench {
  readonly proxy: FaultProxy;
  readonly client: LockClient;
  readonly name: string;
  readonly holder: Hold;
  /** A waiter behind the holder, through the proxy; resolves with the moment in which it was inside. */
  wait(signal?: AbortSignal): Promise<number>;
}

async function bench(): Promise<Bench> {
  const { proxy, url } = await openProxy();
  const [client, other] = [await openClient({ url }), await openClient()];
  const name = freshName();
  const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
  return { proxy, client, name, holder, wait: (signal) => insideOf(client, name, signal) };
}

function insideOf(client: LockClient, name: string, signal?: AbortSignal): Promise<number> {
  return inFlow(async () => {
    const hold = await client.getLock(name).acquire({ signal, leaseTime: LEASE_MS });
    const at = performance.now();
    await hold.release();
    return at;
  });
}

const subscribers = async (name: string): Promise<number> =>
  Number((await admin().pubsub('NUMSUB', lockChannel(name)))[1]);

const subscribed = (name: string): Promise<void> =>
  until(async () => (await subscribers(name)) === 1, 'the waiter is subscribed');

/** The next wait on the name, behind a new holder, goes as if nothing had happened. */
async function nextWaitWorks({ client, name }: Bench): Promise<void> {
  const other = await openClient();
  const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
  const inside = insideOf(client, name);
  await subscribed(name);
  await pause(STARTED_MS);
  const freeAt = performance.now();
  await holder.release();
  expect(elapsed(freeAt, await inside)).toBeLessThan(200 + SLACK_MS);
}

describe('R18: a release while the subscriber connection is down', () => {
  test('R18: cut once', async () => {
    const each = await bench();
    const inside = each.wait();
    await subscribed(each.name);
    expect(each.proxy.cut({ kind: 'subscriber' })).toBe(1);
    await each.holder.release();
    const freeAt = performance.now();
    expect(elapsed(freeAt, await inside)).toBeLessThan(RECONNECT_MS + 200 + SLACK_MS);
    await nextWaitWorks(each);
  });

  test('R18: killed at the server, with all its channels', async () => {
    server = await startServer();
    const [client, other] = [await openClient({ url: server.url }), await openClient({ url: server.url })];
    const names = ['a', 'b', 'c'];
    const holders = await Promise.all(names.map((name) => holdElsewhere(other.getLock(name), LEASE_MS)));
    const inside = names.map((name) => insideOf(client, name));
    await until(async () => (await server!.channels()).length === 3, 'the waiters are subscribed');
    await pause(STARTED_MS);
    expect(await server.killPubsub()).toBe(1);
    await Promise.all(holders.map((hold) => hold.release()));
    const freeAt = performance.now();
    expect(elapsed(freeAt, Math.max(...(await Promise.all(inside))))).toBeLessThan(RECONNECT_MS + 200 + SLACK_MS);
    await closeClients();
  });

  test('R18: cut twice in a row', async () => {
    const each = await bench();
    const inside = each.wait();
    await subscribed(each.name);
    // The second connection lives until it says anything.
    const second = each.proxy.cutBefore({ command: ['HELLO', 'CLIENT', 'AUTH', 'SELECT', 'SUBSCRIBE'] });
    each.proxy.cut({ kind: 'subscriber' });
    await second.applied;
    await each.holder.release();
    const freeAt = performance.now();
    expect(elapsed(freeAt, await inside)).toBeLessThan(3 * RECONNECT_MS + 200 + SLACK_MS);
    await nextWaitWorks(each);
  });

  test.each(['before the server saw it', 'after the server had answered it'])(
    'R18: cut again during the resubscription, %s',
    async (when) => {
      const each = await bench();
      const inside = each.wait();
      await subscribed(each.name);
      const selector = { command: 'SUBSCRIBE', contains: each.name };
      const again = when.startsWith('before') ? each.proxy.cutBefore(selector) : each.proxy.cutAfter(selector);
      each.proxy.cut({ kind: 'subscriber' });
      await again.applied;
      await each.holder.release();
      const freeAt = performance.now();
      expect(elapsed(freeAt, await inside)).toBeLessThan(3 * RECONNECT_MS + 200 + SLACK_MS);
      await nextWaitWorks(each);
    },
  );

  test('R18: cut while the first SUBSCRIBE is unanswered', async () => {
    const each = await bench();
    const cut = each.proxy.cutAfter({ command: 'SUBSCRIBE', contains: each.name });
    const inside = each.wait();
    await cut.applied;
    await each.holder.release();
    const freeAt = performance.now();
    expect(elapsed(freeAt, await inside)).toBeLessThan(2 * RECONNECT_MS + 200 + SLACK_MS);
  });

  test('R18: with 150 channels, all are subscribed again', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const names = Array.from({ length: 150 }, () => freshName());
    const holders = await Promise.all(names.map((name) => holdElsewhere(other.getLock(name), LEASE_MS)));
    const inside = names.map((name) => insideOf(client, name));
    await Promise.all(names.map(subscribed));
    const resubscribed = proxy.observe({ command: 'SUBSCRIBE', times: Infinity });
    const [early, late] = [holders.slice(0, 75), holders.slice(75)];
    const release = async (some: readonly Hold[]): Promise<number> => {
      await Promise.all(some.map((hold) => hold.release()));
      return performance.now();
    };
    const lastOf = async (some: readonly Promise<number>[]): Promise<number> => Math.max(...(await Promise.all(some)));
    proxy.cut({ kind: 'subscriber' });
    const earlyAt = await release(early);
    expect(elapsed(earlyAt, await lastOf(inside.slice(0, 75)))).toBeLessThan(2 * RECONNECT_MS + 200 + SLACK_MS);
    await resubscribed.executed;
    await Promise.all(names.slice(75).map(subscribed));
    expect(resubscribed.count).toBeLessThanOrEqual(2);
    const lateAt = await release(late);
    expect(elapsed(lateAt, await lastOf(inside.slice(75)))).toBeLessThan(200 + SLACK_MS);
  });

  test('R18: silent instead of cut, before and after the subscription was confirmed', async () => {
    const [after, before] = [await bench(), await bench()];
    const inside = after.wait();
    await subscribed(after.name);
    await pause(STARTED_MS);
    const connected = after.proxy.stats.accepted;
    const silence = after.proxy.stall({ kind: 'subscriber', connection: (connection) => connection.id <= connected });
    await after.holder.release();
    const unanswered = before.proxy.swallow({ command: 'SUBSCRIBE' });
    const insideBefore = before.wait();
    await unanswered.applied;
    await before.holder.release();
    const freeAt = performance.now();
    expect(elapsed(freeAt, await insideBefore)).toBeLessThan(10_000);
    expect(elapsed(freeAt, await inside)).toBeLessThan(10_000);
    silence.lift();
    await until(async () => (await subscribers(after.name)) <= 1, 'the silent connection is gone');
    await nextWaitWorks(after);
  });
});

/** A head that hears nothing looks again after one second, or two. */
const UNHEARD_MS = { least: 1_000, most: 2_000 };

describe('R18: while no message can arrive, a waiter does not wait for the end of the lease', () => {
  test('R18: the subscriber cannot connect at all', async () => {
    const each = await bench();
    const refused = each.proxy.refuse('reset');
    const looks = each.proxy.observe({ command: 'EVALSHA', contains: each.name, times: Infinity });
    const inside = each.wait();
    await looks.appliedTimes(1);
    const waitsSince = performance.now();
    await looks.appliedTimes(3);
    // But it does not ask all the time.
    expect(performance.now() - waitsSince).toBeGreaterThan(2 * UNHEARD_MS.least - SLACK_MS);
    await each.holder.release();
    const freeAt = performance.now();
    expect(elapsed(freeAt, await inside)).toBeLessThan(UNHEARD_MS.most + SLACK_MS);
    expect(refused.count).toBeGreaterThan(1);
    refused.lift();
    await nextWaitWorks(each);
  });

  test('R18: the subscriber is cut and cannot connect again', async () => {
    const each = await bench();
    const inside = each.wait();
    await subscribed(each.name);
    await pause(STARTED_MS);
    const refused = each.proxy.refuse('reset');
    expect(each.proxy.cut({ kind: 'subscriber' })).toBe(1);
    await refused.appliedTimes(1);
    await each.holder.release();
    const freeAt = performance.now();
    expect(elapsed(freeAt, await inside)).toBeLessThan(UNHEARD_MS.most + SLACK_MS);
    refused.lift();
    await nextWaitWorks(each);
  });

  test('R18: a probe during an outage of Redis does not fail a parked waiter', async () => {
    const each = await bench();
    const all = [each.wait(), each.wait(), each.wait()];
    await subscribed(each.name);
    await pause(PARKED_MS);
    const refused = each.proxy.refuse('reset');
    expect(each.proxy.cut()).toBe(2);
    // A look, and the command deadline of 3 s.
    await pause(UNHEARD_MS.most + 3_000 + 2 * SLACK_MS);
    refused.lift();
    await each.holder.release();
    const freeAt = performance.now();
    expect(elapsed(freeAt, Math.max(...(await Promise.all(all))))).toBeLessThan(UNHEARD_MS.most + SLACK_MS);
  }, 15_000);

  test('R18: an unanswered probe does not fail a parked waiter', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url, commandTimeout: 600 }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
    const waiting = inFlow(() => client.getLock(name).acquire({ leaseTime: 300 }));
    await subscribed(name);
    await pause(PARKED_MS);
    const [refused, frozen] = [proxy.refuse('reset'), proxy.stall({ kind: 'command' })];
    const looks = proxy.observe({ sha: acquire.script!.sha, times: Infinity });
    expect(proxy.cut({ kind: 'subscriber' })).toBe(1);
    await looks.appliedTimes(1);
    // That probe, the repeated release of it until its lease has ended, and a try after that: 600 ms and more each.
    expect(await Promise.race([waiting.then(() => 'inside', String), pause(4_000)])).toBe(undefined);
    refused.lift();
    frozen.lift();
    await holder.release();
    await (await waiting).release();
  });

  test('R18: a refused probe does not fail a parked waiter', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), (await openClient()).getSemaphore(freshName())];
    await other.trySetPermits(1);
    await other.acquire();
    const semaphore = client.getSemaphore(other.name);
    const waiting = semaphore.acquire();
    const listening = async (): Promise<unknown> => (await admin().pubsub('NUMSUB', `redisson_sc:{${other.name}}`))[1];
    await until(async () => (await listening()) === 1, 'it is subscribed');
    await pause(PARKED_MS);
    const [away, refused] = [
      proxy.refuse('reset'),
      proxy.answer(
        { sha: acquirePermits.script!.sha, times: Infinity },
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
      ),
    ];
    expect(proxy.cut({ kind: 'subscriber' })).toBe(1);
    await refused.appliedTimes(2);
    await other.release();
    refused.lift();
    const allowedAt = performance.now();
    await waiting;
    expect(elapsed(allowedAt)).toBeLessThan(UNHEARD_MS.most + SLACK_MS);
    away.lift();
    await admin().del(other.name);
  });

  test('R18: a waiter that times out while probes are unanswered does not report a busy lock', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url, commandTimeout: 400 }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(other.getLock(name), LEASE_MS);
    const waiting = outcome(inFlow(() => client.getLock(name).tryAcquire({ waitTime: UNHEARD_MS.most + 800 })));
    await subscribed(name);
    await pause(PARKED_MS);
    const refused = proxy.refuse('reset');
    expect(proxy.cut()).toBe(2);
    expect(await waiting).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    refused.lift();
    await holder.release();
  });

  test('R18: once the subscriber is connected again, waiters send no probes', async () => {
    const each = await bench();
    const refused = each.proxy.refuse('reset', { times: 3 });
    const inside = each.wait();
    await refused.appliedTimes(3);
    await subscribed(each.name);
    await pause(PARKED_MS);
    const looks = each.proxy.observe({ command: 'EVALSHA', contains: each.name, times: Infinity });
    await pause(UNHEARD_MS.most + SLACK_MS);
    expect(looks.count).toBe(0);
    await each.holder.release();
    await inside;
  });

  test.each([
    [
      'a spin lock listens to nothing',
      acquire,
      (client: LockClient, name: string) => client.getSpinLock(name, { backOff: { delay: 60_000 } }),
    ],
    ['a fair waiter gives signs of life', acquireFair, (client: LockClient, name: string) => client.getFairLock(name)],
  ])('R18: %s: a waiter probes no sooner', async (_, { script }, lockOf) => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const name = freshName();
    const holder = await holdElsewhere(lockOf(other, name), LEASE_MS);
    const refused = proxy.refuse('reset');
    const controller = new AbortController();
    const tries = proxy.observe({ sha: script!.sha, times: Infinity });
    const waiting = inFlow(() => lockOf(client, name).acquire({ signal: controller.signal }));
    await tries.appliedTimes(1);
    await pause(UNHEARD_MS.most + SLACK_MS);
    expect(tries.count).toBe(1);
    controller.abort();
    expect(await outcome(waiting)).toBe('ERR_LOCK_ABORTED');
    refused.lift();
    await holder.release();
  });
});

describe('R19: a failed SUBSCRIBE or UNSUBSCRIBE affects no later call', () => {
  test('R19: a SUBSCRIBE that fails temporarily is repeated', async () => {
    const each = await bench();
    const failing = each.proxy.answer({ command: 'SUBSCRIBE', times: 2 }, '-LOADING not yet\r\n');
    const inside = each.wait();
    await failing.appliedTimes(2);
    await subscribed(each.name);
    const freeAt = performance.now();
    await each.holder.release();
    expect(elapsed(freeAt, await inside)).toBeLessThan(200 + SLACK_MS);
    await nextWaitWorks(each);
  });

  test('R19: a refused SUBSCRIBE rejects the waiters, and the next wait subscribes again', async () => {
    const each = await bench();
    const refusing = each.proxy.answer({ command: 'SUBSCRIBE' }, '-NOPERM no permissions to access a channel\r\n');
    const waits = [each.wait(), each.wait()].map(outcome);
    expect(await Promise.all(waits)).toEqual(['ERR_LOCK_REFUSED', 'ERR_LOCK_REFUSED']);
    expect(refusing.count).toBe(1);
    await each.holder.release();
    await nextWaitWorks(each);
  });

  test('R19: one refused channel of a batch fails alone', async () => {
    const { proxy, url } = await openProxy();
    const [client, other] = [await openClient({ url }), await openClient()];
    const names = [freshName(), freshName(), freshName()] as const;
    const holders = await Promise.all(names.map((name) => holdElsewhere(other.getLock(name), LEASE_MS)));
    const waits = names.map((name) => insideOf(client, name));
    await Promise.all(names.map(subscribed));
    proxy.answer(
      { command: 'SUBSCRIBE', contains: names[1], times: 2 },
      '-NOPERM no permissions to access a channel\r\n',
    );
    proxy.cut({ kind: 'subscriber' });
    expect(await outcome(waits[1]!)).toBe('ERR_LOCK_REFUSED');
    await Promise.all(holders.map((hold) => hold.release()));
    const freeAt = performance.now();
    for (const wait of [waits[0]!, waits[2]!]) expect(elapsed(freeAt, await wait)).toBeLessThan(200 + SLACK_MS);
  });

  test('R19: a SUBSCRIBE that is not answered', async () => {
    const each = await bench();
    const unanswered = each.proxy.swallow({ command: 'SUBSCRIBE' });
    const inside = each.wait();
    await unanswered.applied;
    await each.holder.release();
    const freeAt = performance.now();
    // One attempt's time-out ends the connection, and the next one subscribes.
    expect(elapsed(freeAt, await inside)).toBeLessThan(1_000 + RECONNECT_MS + 200 + SLACK_MS);
    await nextWaitWorks(each);
  });

  test('R19: a wait that is aborted while its SUBSCRIBE is unanswered', async () => {
    const each = await bench();
    const slow = each.proxy.holdReply({ command: 'SUBSCRIBE' });
    const controller = new AbortController();
    const aborted = each.wait(controller.signal);
    await slow.executed;
    const at = performance.now();
    controller.abort();
    expect(await outcome(aborted)).toBe('ERR_LOCK_ABORTED');
    expect(elapsed(at)).toBeLessThan(50 + SLACK_MS);
    const inside = each.wait();
    await pause(30);
    slow.lift();
    const freeAt = performance.now();
    await each.holder.release();
    expect(elapsed(freeAt, await inside)).toBeLessThan(200 + SLACK_MS);
    await nextWaitWorks(each);
  });

  test('R19: a wait that is aborted before the reply to its SUBSCRIBE leaves no subscription', async () => {
    const each = await bench();
    const slow = each.proxy.holdReply({ command: 'SUBSCRIBE' });
    const controller = new AbortController();
    const aborted = each.wait(controller.signal);
    await slow.executed;
    controller.abort();
    expect(await outcome(aborted)).toBe('ERR_LOCK_ABORTED');
    await pause(LINGER_MS + 50);
    slow.lift();
    await until(async () => (await subscribers(each.name)) === 0, 'nothing is subscribed', LINGER_MS + SLACK_MS);
    await nextWaitWorks({ ...each, name: each.name, client: each.client, holder: await freed(each.holder) });
  });

  test('R19: the confirmation of an earlier SUBSCRIBE does not count for a later one', async () => {
    const each = await bench();
    const early = each.proxy.holdReply({ command: 'SUBSCRIBE' });
    const late = each.proxy.holdCommand({ command: 'SUBSCRIBE', nth: 2 });
    const between = each.proxy.holdCommand({ command: 'UNSUBSCRIBE' });
    const controller = new AbortController();
    const aborted = outcome(each.wait(controller.signal));
    await early.executed;
    controller.abort();
    expect(await aborted).toBe('ERR_LOCK_ABORTED');
    await between.applied;
    const inside = each.wait();
    await late.applied;
    early.lift();
    await pause(PARKED_MS);
    // The release falls between the UNSUBSCRIBE and the SUBSCRIBE that follows it.
    between.lift();
    await until(async () => (await subscribers(each.name)) === 0, 'nothing is subscribed');
    await each.holder.release();
    late.lift();
    const freeAt = performance.now();
    expect(elapsed(freeAt, await inside)).toBeLessThan(200 + SLACK_MS);
  });

  test('R19: the confirmation of an earlier SUBSCRIBE does not confirm a later one that fails', async () => {
    const each = await bench();
    const early = each.proxy.holdReply({ command: 'SUBSCRIBE' });
    const between = each.proxy.observe({ command: 'UNSUBSCRIBE' });
    const controller = new AbortController();
    const aborted = outcome(each.wait(controller.signal));
    await early.executed;
    controller.abort();
    expect(await aborted).toBe('ERR_LOCK_ABORTED');
    await between.executed;
    const failing = each.proxy.answer({ command: 'SUBSCRIBE' }, '-LOADING not now\r\n');
    const inside = each.wait();
    await failing.applied;
    early.lift();
    await subscribed(each.name); // subscribed once more
    await pause(STARTED_MS);
    const freeAt = performance.now();
    await each.holder.release();
    expect(elapsed(freeAt, await inside)).toBeLessThan(200 + SLACK_MS);
  });

  const unsubscribes: Record<string, (proxy: FaultProxy) => { applied: Promise<void>; lift(): void }> = {
    fails: (proxy) => proxy.answer({ command: 'UNSUBSCRIBE' }, '-LOADING not now\r\n'),
    'is not answered': (proxy) => proxy.swallow({ command: 'UNSUBSCRIBE' }),
    'is cut off': (proxy) => proxy.cutBefore({ command: 'UNSUBSCRIBE' }),
    'is cut off after it ran': (proxy) => proxy.cutAfter({ command: 'UNSUBSCRIBE' }),
    'is answered late': (proxy) => proxy.holdReply({ command: 'UNSUBSCRIBE' }, 100),
    'is run late': (proxy) => proxy.holdCommand({ command: 'UNSUBSCRIBE' }, 100),
  };
  test(`R19: an UNSUBSCRIBE that ${Object.keys(unsubscribes).join(', ')}, and a wait begun at once`, async () => {
    await Promise.all(
      Object.values(unsubscribes).map(async (go) => {
        const each = await bench();
        const inside = each.wait();
        await subscribed(each.name);
        const wrong = go(each.proxy);
        await each.holder.release();
        await inside;
        await wrong.applied;
        const other = await openClient();
        const holder = await holdElsewhere(other.getLock(each.name), LEASE_MS);
        const next = each.wait();
        await pause(150);
        const freeAt = performance.now();
        await holder.release();
        // Where the connection has to be given up first, that takes one attempt.
        expect(elapsed(freeAt, await next)).toBeLessThan(1_000 + RECONNECT_MS + 200 + SLACK_MS);
        wrong.lift();
        await nextWaitWorks(each);
      }),
    );
  });
});

async function freed(hold: Hold): Promise<Hold> {
  await hold.release();
  return hold;
}

import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import { fairAliveKey, fairChannel, fairQueueKey, fairTimeoutsKey } from '../../src/redis/keys.js';
import * as scripts from '../../src/redis/scripts/fair-lock.js';
import { elapsed } from '../support/time/elapsed.js';
import {
  answered,
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
import { PARKED_MS, QUIET_MS, STARTED_MS } from '../support/time/pauses.js';
import { until } from '../support/time/until.js';

const DEADLINE_MS = 600;
const SLACK_MS = 250;
const ACQUIRE = scripts.acquire.script!.sha;
const RELEASE = scripts.release.script!.sha;
const REFRESH = scripts.refresh.script!.sha;

afterEach(() => closeClients());

interface Stage {
  readonly proxy: FaultProxy;
  /** Behind the proxy. */
  readonly client: LockClient;
  readonly other: LockClient;
  readonly name: string;
}

async function stage(commandTimeout = DEADLINE_MS): Promise<Stage> {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, commandTimeout });
  return { proxy, client, other: await openClient(), name: freshName('fair') };
}

const queue = (name: string): Promise<string[]> => admin().lrange(fairQueueKey(name), 0, -1);
const places = (name: string, count: number, limitMs?: number): Promise<void> =>
  until(async () => (await queue(name)).length === count, `${count} are queued`, limitMs);
const nothingQueued = (name: string): Promise<void> =>
  until(
    async () => (await admin().exists([fairQueueKey(name), fairTimeoutsKey(name), fairAliveKey(name)])) === 0,
    'the queue is empty',
    1_000 + SLACK_MS,
  );

/** Waits, and has looked once more since its subscription stood. */
async function parked({ proxy, client, name }: Stage, waitTime = 20_000): Promise<Promise<Hold>[]> {
  const again = proxy.observe({ sha: ACQUIRE, contains: name, times: 2 });
  const before = (await queue(name)).length;
  const waiting = inFlow(async () => client.getFairLock(name).acquire({ waitTime }));
  waiting.catch(() => undefined);
  await places(name, before + 1);
  await until(() => again.count >= 2, 'it has looked again');
  await pause(STARTED_MS); // the answer is on its last few microseconds
  return [waiting];
}

test('R1: a queueing call whose reply is lost has one place after the repeat, and is granted once', async () => {
  const each = await stage();
  const { proxy, client, other, name } = each;
  const hold = await holdElsewhere(other.getFairLock(name));
  const fault = proxy.cutAfter({ sha: ACQUIRE, contains: name });
  const waiting = inFlow(async () => client.getFairLock(name).acquire());
  await fault.applied;
  await places(name, 1);
  await hold.release();
  const next = await waiting;
  expect(await admin().hgetall(name)).toEqual({ [next.owner]: '1' });
  await next.release();
  await nothingQueued(name);
});

test('R1: a grant whose reply is lost counts once after the repeat, also in the timeouts of the waiters behind', async () => {
  const each = await stage();
  const { proxy, other, name } = each;
  const hold = await holdElsewhere(other.getFairLock(name));
  const [waiting] = await parked(each);
  const behind = inFlow(async () => other.getFairLock(name).acquire());
  await places(name, 2);
  const [, last] = await queue(name);
  const before = Number(await admin().zscore(fairTimeoutsKey(name), last!));
  const fault = proxy.cutAfter({ sha: ACQUIRE, contains: name });
  await hold.release();
  await fault.applied;
  const next = await waiting!;
  expect(Number(await admin().zscore(fairTimeoutsKey(name), last!))).toBe(before - 300_000);
  await next.release();
  await (await behind).release();
});

test.each([
  [
    'cut before the server saw it',
    (proxy: FaultProxy, name: string) => proxy.cutBefore({ sha: ACQUIRE, contains: name, times: Infinity }),
  ],
  [
    'cut after the server ran it',
    (proxy: FaultProxy, name: string) => proxy.cutAfter({ sha: ACQUIRE, contains: name, times: Infinity }),
  ],
  [
    'its replies swallowed',
    (proxy: FaultProxy, name: string) => proxy.swallow({ sha: ACQUIRE, contains: name, times: Infinity }),
  ],
])('R1, R2: a queueing call, %s, every time: it fails, and its place is removed', async (_, away) => {
  const { proxy, client, other, name } = await stage();
  const hold = await holdElsewhere(other.getFairLock(name));
  const fault = away(proxy, name);
  const at = performance.now();
  expect(await outcome(inFlow(() => client.getFairLock(name).lock()))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  expect(elapsed(at)).toBeLessThan(DEADLINE_MS + SLACK_MS);
  fault.lift();
  await nothingQueued(name);
  await hold.release();
  await holdElsewhere(other.getFairLock(name)).then((next) => next.release());
});

test('R2: a queueing request that arrives after the rejection of its call adds no place', async () => {
  const { proxy, client, other, name } = await stage();
  const hold = await holdElsewhere(other.getFairLock(name));
  const fault = proxy.holdCommand({ sha: ACQUIRE, contains: name, times: 3 });
  expect(await outcome(inFlow(() => client.getFairLock(name).lock()))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  fault.lift();
  await pause(QUIET_MS);
  await nothingQueued(name);
  await hold.release();
  expect(await admin().exists(name)).toBe(0);
});

test('the removal of a place is repeated until Redis replies, and the call does not wait for it', async () => {
  const each = await stage();
  const { proxy, client, other, name } = each;
  const hold = await holdElsewhere(other.getFairLock(name));
  const fault = proxy.cutBefore({ sha: RELEASE, contains: name, times: 4 });
  const at = performance.now();
  expect(await inFlow(() => client.getFairLock(name).tryLock(200))).toBe(false);
  expect(elapsed(at)).toBeLessThan(200 + SLACK_MS);
  await until(() => fault.count === 4, 'it was tried four times');
  await nothingQueued(name);
  await hold.release();
});

test('R4: a release whose reply is lost succeeds after the repeat, and the head was woken', async () => {
  const each = await stage();
  const { proxy, client, other, name } = each;
  const hold = await holdElsewhere(client.getFairLock(name));
  const behind = inFlow(async () => other.getFairLock(name).acquire());
  await places(name, 1);
  await pause(PARKED_MS);
  const fault = proxy.cutAfter({ sha: RELEASE, contains: name });
  const at = performance.now();
  const released = hold.release();
  const next = await behind;
  expect(elapsed(at)).toBeLessThan(200 + SLACK_MS);
  await fault.applied;
  await released;
  expect(await admin().hgetall(name)).toEqual({ [next.owner]: '1' });
  await next.release();
});

test('R18: a release while only the subscriber is disconnected wakes the head', async () => {
  const each = await stage();
  const { proxy, other, name } = each;
  const hold = await holdElsewhere(other.getFairLock(name));
  const [waiting] = await parked(each);
  expect(proxy.cut({ kind: 'subscriber' })).toBe(1);
  await hold.release();
  const at = performance.now();
  await (await waiting!).release();
  expect(elapsed(at)).toBeLessThan(200 + 2 * SLACK_MS);
});

test('the next refresh makes up for a lost message', async () => {
  const each = await stage();
  const { proxy, other, name } = each;
  const hold = await holdElsewhere(other.getFairLock(name));
  const [waiting] = await parked(each);
  const fault = proxy.dropMessages();
  await hold.release();
  const at = performance.now();
  const next = await waiting!;
  expect(elapsed(at)).toBeLessThan(1_000 + SLACK_MS);
  expect(fault.count).toBe(1);
  await next.release();
});

test('an unanswered refresh is repeated, loses no place and fails no waiter', async () => {
  const each = await stage();
  const { proxy, other, name } = each;
  const hold = await holdElsewhere(other.getFairLock(name));
  const [waiting] = await parked(each);
  const [mine] = await queue(name);
  const fault = proxy.swallow({ sha: REFRESH, contains: name, times: 2 });
  await until(() => fault.count === 2, 'two were swallowed');
  const seen = proxy.observe({ sha: REFRESH, contains: name });
  await seen.executed;
  expect(await queue(name)).toEqual([mine]);
  await hold.release();
  const next = await waiting!;
  expect(next.owner).toBe(mine);
  await next.release();
});

test('R26: a waiter keeps its place when the reply to one of its tries is lost', async () => {
  const each = await stage();
  const { proxy, client, other, name } = each;
  const hold = await holdElsewhere(other.getFairLock(name));
  const [first] = await parked(each);
  const order: string[] = [];
  const entered = [first!, inFlow(async () => other.getFairLock(name).acquire({ waitTime: 20_000 }))].map(
    async (waiting, at) => {
      const next = await waiting;
      order.push(['first', 'second'][at]!);
      await next.release();
    },
  );
  await places(name, 2);
  const before = await queue(name);
  const cut = proxy.cutAfter({ sha: ACQUIRE, contains: name });
  await admin().publish(fairChannel(name, before[0]!), '0');
  await cut.executed;
  await answered(client);
  expect(await queue(name)).toEqual(before);
  await hold.release();
  await Promise.all(entered);
  expect(order).toEqual(['first', 'second']);
});

test('R4: a late attempt of a waiter that kept its place acquires nothing that outlasts its hold', async () => {
  const each = await stage();
  const { proxy, other, name } = each;
  const hold = await holdElsewhere(other.getFairLock(name));
  const [waiting] = await parked(each);
  const [owner] = await queue(name);
  const late = proxy.holdCommand({ sha: ACQUIRE, contains: name });
  await admin().publish(fairChannel(name, owner!), '0');
  await late.applied;
  // The second attempt gets a busy reply. The first one is still pending after the hold has ended.
  const again = proxy.observe({ sha: ACQUIRE, contains: name });
  proxy.cut({ kind: 'command', side: 'client' });
  await again.executed;
  await hold.release();
  const next = await waiting!;
  expect(next.owner).toBe(owner);
  await next.release();
  late.lift();
  await late.executed;
  await until(async () => (await admin().exists(name)) === 0, 'it is free', 1_000 + SLACK_MS);
});

test('a waiter whose request stayed unanswered queues again with a new owner, and is woken on its channel', async () => {
  const each = await stage();
  const { proxy, client, other, name } = each;
  const hold = await holdElsewhere(other.getFairLock(name));
  const [waiting] = await parked(each);
  const [before] = await queue(name);
  const fault = proxy.swallow({ sha: ACQUIRE, contains: name, times: Infinity });
  await admin().publish(fairChannel(name, before!), '0');
  await fault.applied;
  await pause(DEADLINE_MS + 50);
  fault.lift();
  await until(async () => ![undefined, before].includes((await queue(name))[0]), 'another owner is queued');
  const [mine] = await queue(name);
  await until(
    async () => ((await admin().pubsub('CHANNELS', fairChannel(name, mine!))) as string[]).length === 1,
    'it listens there',
  );
  // No refresh may wake it instead, and no check may close its connection.
  proxy.answer({ sha: REFRESH, contains: name, times: Infinity }, '-LOADING later\r\n');
  await answered(client);
  await hold.release();
  const at = performance.now();
  const next = await waiting!;
  expect(elapsed(at)).toBeLessThan(200 + SLACK_MS);
  expect(next.owner).toBe(mine);
  await next.release();
});

test('a waiter stays ahead of a waiter of its client that had to queue again', async () => {
  const each = await stage(1_500);
  const { proxy, client, other, name } = each;
  const hold = await holdElsewhere(other.getFairLock(name));
  const [first] = await parked(each);
  const subscription = proxy.holdCommand({ command: 'SUBSCRIBE', contains: name, times: Infinity });
  const second = inFlow(async () => client.getFairLock(name).acquire({ waitTime: 20_000 }));
  await subscription.applied;
  const [before, mine] = await queue(name);
  const unanswered = proxy.swallow({ sha: ACQUIRE, contains: before!, times: Infinity });
  await admin().publish(fairChannel(name, before!), '0');
  await until(async () => {
    const [head, behind] = await queue(name);
    return head === mine && behind !== undefined;
  }, 'the first stands behind it, as another owner');
  unanswered.lift();
  // No refresh may wake it instead, and no check may close its connection.
  proxy.answer({ sha: REFRESH, contains: name, times: Infinity }, '-LOADING later\r\n');
  await answered(client);
  await hold.release(); // its message comes before the subscription
  expect(await admin().pubsub('NUMSUB', fairChannel(name, mine!))).toEqual([fairChannel(name, mine!), 0]);
  subscription.lift();
  const at = performance.now();
  const next = await second;
  expect(elapsed(at)).toBeLessThan(200 + SLACK_MS);
  expect(next.owner).toBe(mine);
  await next.release();
  await (await first!).release();
});

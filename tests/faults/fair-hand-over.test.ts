import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import { fairAliveKey, fairChannel, fairQueueKey, fairTimeoutsKey } from '../../src/redis/keys.js';
import { acquire, handOff, refresh, release } from '../../src/redis/scripts/fair-lock.js';
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
import { Published } from '../support/clients/published.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

const DEADLINE_MS = 600;
/** Time for which a call waits. A hand-over to the call begins before. */
const WAIT_MS = 1_000;
const [ACQUIRE, HAND_OFF, RELEASE] = [acquire, handOff, release].map(({ script }) => script!.sha) as [
  string,
  string,
  string,
];

afterEach(() => closeClients());

const queue = (name: string): Promise<string[]> => admin().lrange(fairQueueKey(name), 0, -1);

interface Stage {
  readonly proxy: FaultProxy;
  /** Behind the proxy. */
  readonly client: LockClient;
  readonly other: LockClient;
  readonly name: string;
  /** Of `client`. */
  readonly hold: Hold;
}

async function stage(options: { commandTimeout?: number; handOff?: false } = {}): Promise<Stage> {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, ...options });
  const name = freshName('fair');
  for (const { script } of [acquire, handOff, release]) await admin().script('LOAD', script!.source);
  return { proxy, client, other: await openClient(), name, hold: await holdElsewhere(client.getFairLock(name)) };
}

interface Waiting {
  /** The numbers of the calls that have got the lock. */
  readonly order: number[];
  readonly holds: Promise<Hold>[];
}

interface WaitOptions {
  readonly signal?: AbortSignal;
  readonly waitTime?: number;
}

/** Calls that wait for the lock in this order. Each is parked: its place is taken, and its subscription stands. */
async function waiting({ name }: Stage, clients: readonly LockClient[], first: WaitOptions = {}): Promise<Waiting> {
  const order: number[] = [];
  const holds: Promise<Hold>[] = [];
  for (const [number, client] of clients.entries()) {
    const hold = inFlow(async () => client.getFairLock(name).acquire(number === 0 ? first : {}));
    void hold.then(
      () => order.push(number),
      () => undefined,
    );
    holds.push(hold);
    await until(async () => (await queue(name)).length === number + 1, `${number + 1} are queued`);
    const channel = fairChannel(name, (await queue(name))[number]!);
    await until(async () => (await admin().pubsub('NUMSUB', channel))[1] === 1, 'it is subscribed');
    await answered(client);
  }
  return { order, holds };
}

const sent = ({ proxy }: Stage, since: number, sha: string): number =>
  proxy.log.slice(since).filter(({ args }) => args[0] === sha).length;

async function releaseAll(holds: readonly Promise<Hold>[]): Promise<void> {
  for (const hold of holds) await (await hold).release();
}

/** Redis has nothing of the lock. */
const nothingLeft = (name: string): Promise<void> =>
  until(
    async () => (await admin().exists([name, fairQueueKey(name), fairTimeoutsKey(name), fairAliveKey(name)])) === 0,
    'nothing is left of the lock',
  );

test('waiters of a client and of another one enter in the order of their calls', async () => {
  const on = await stage();
  const { client, other, name, hold } = on;
  const { order, holds } = await waiting(on, [client, client, other, client, client]);
  await hold.release();
  await releaseAll(holds);
  expect(order).toEqual([0, 1, 2, 3, 4]);
  await nothingLeft(name);
});

test('a release gives the lock to the next waiter of its client without a try', async () => {
  const on = await stage();
  const { client, hold, proxy, name } = on;
  const told: string[] = [];
  const { holds } = await waiting(on, [client, client]);
  client.events.on('released', () => told.push('released'));
  client.events.on('acquired', ({ handedOff }) => told.push(`acquired ${handedOff}`));
  const [first] = await queue(name);
  const before = proxy.log.length;
  await hold.release();
  const next = await holds[0]!;
  expect(told).toEqual(['released', 'acquired true']);
  expect(next.owner).toBe(first);
  expect(await admin().hgetall(name)).toEqual({ [next.owner]: '1' });
  await releaseAll(holds);
  expect(sent(on, before, ACQUIRE)).toBe(0);
  expect(sent(on, before, HAND_OFF)).toBe(2);
  await nothingLeft(name);
});

test('with handOff: false the next waiter tries', async () => {
  const on = await stage({ handOff: false });
  const { client, hold, proxy } = on;
  const { holds } = await waiting(on, [client]);
  const before = proxy.log.length;
  await hold.release();
  await releaseAll(holds);
  expect(sent(on, before, HAND_OFF)).toBe(0);
  expect(sent(on, before, ACQUIRE)).toBe(1);
});

test.each(['cutAfter', 'cutBefore'] as const)('R1: a hand-over with a lost reply (%s) is done once', async (fault) => {
  const on = await stage();
  const { client, other, hold, proxy, name } = on;
  const { order, holds } = await waiting(on, [client, other]);
  const [, last] = await queue(name);
  const before = Number(await admin().zscore(fairTimeoutsKey(name), last!));
  const cut = proxy[fault]({ sha: HAND_OFF });
  await hold.release();
  const next = await holds[0]!;
  expect(cut.count).toBe(1);
  expect(await admin().hgetall(name)).toEqual({ [next.owner]: '1' });
  expect(Number(await admin().zscore(fairTimeoutsKey(name), last!))).toBe(before - 300_000);
  await releaseAll(holds);
  expect(order).toEqual([0, 1]);
  await nothingLeft(name);
});

test.each(['cutAfter', 'cutBefore', 'swallow'] as const)(
  'R4: after a hand-over that is never answered (%s), the waiter enters in its turn under the same owner',
  async (fault) => {
    const on = await stage({ commandTimeout: DEADLINE_MS });
    const { client, other, hold, proxy, name } = on;
    const { order, holds } = await waiting(on, [client, other]);
    const [first] = await queue(name);
    const broken = proxy[fault]({ sha: HAND_OFF, times: Infinity });
    expect(await outcome(hold.release())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
    broken.lift();
    const next = await holds[0]!;
    expect(next.owner).toBe(first);
    expect(await admin().hgetall(name)).toEqual({ [next.owner]: '1' });
    await releaseAll(holds);
    expect(order).toEqual([0, 1]);
    await nothingLeft(name);
  },
);

test('a hand-over that Redis refuses is a release, and the waiter tries', async () => {
  const on = await stage();
  const { client, hold, proxy, name } = on;
  const { holds } = await waiting(on, [client]);
  proxy.answer({ sha: HAND_OFF }, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
  const before = proxy.log.length;
  await hold.release();
  await releaseAll(holds);
  expect(sent(on, before, RELEASE)).toBe(2);
  await nothingLeft(name);
});

test('a message that comes before the reply to the hand-over wakes the waiter', async () => {
  const on = await stage();
  const { client, other, hold, proxy, name } = on;
  const { order, holds } = await waiting(on, [other, client]);
  // Only the message can wake the waiter.
  proxy.answer({ sha: refresh.script!.sha, times: Infinity }, '-LOADING later\r\n');
  const held = proxy.holdReply({ sha: HAND_OFF });
  const released = hold.release();
  await held.executed;
  const messages = await Published.on(name);
  await (await holds[0]!).release();
  const channel = fairChannel(name, (await queue(name))[0]!);
  await until(
    async () => (await messages.take()).some((each) => each.channel === channel),
    'Redis has sent the message',
  );
  await messages.close();
  // The reply to a command of the other connection would be later than the message.
  await answered(other);
  held.lift();
  await released;
  await releaseAll(holds.slice(1));
  expect(order).toEqual([0, 1]);
});

test('a waiter that leaves during the hand-over gives the lock to the next waiter', async () => {
  const on = await stage();
  const { client, other, hold, proxy, name } = on;
  const controller = new AbortController();
  const { order, holds } = await waiting(on, [client, client, other], { signal: controller.signal });
  const held = proxy.holdReply({ sha: HAND_OFF });
  const released = hold.release();
  await held.executed;
  controller.abort();
  const left = outcome(holds[0]!);
  held.lift();
  await released;
  expect(await left).toBe('ERR_LOCK_ABORTED');
  await releaseAll(holds.slice(1));
  expect(order).toEqual([1, 2]);
  await nothingLeft(name);
});

test('the client knows the hold of a call whose wait time passed during the hand-over to it', async () => {
  const on = await stage({ commandTimeout: 10 * WAIT_MS });
  const { client, hold, proxy, name } = on;
  const { holds } = await waiting(on, [client], { waitTime: WAIT_MS });
  const held = proxy.holdReply({ sha: HAND_OFF });
  const released = hold.release();
  await held.executed;
  await pause(WAIT_MS);
  held.lift();
  await released;
  const { owner } = await holds[0]!;
  expect(client.holds()).toMatchObject([{ lockName: name, owner }]);
  expect(await client.close({ releaseHolds: true })).toMatchObject({ drained: false, holds: [{ owner }] });
  await nothingLeft(name);
});

test('nothing is left of a call whose wait time passed during a hand-over that is never answered', async () => {
  const on = await stage({ commandTimeout: WAIT_MS + DEADLINE_MS });
  const { client, hold, proxy, name } = on;
  const { holds } = await waiting(on, [client], { waitTime: WAIT_MS });
  const channel = fairChannel(name, (await queue(name))[0]!);
  const broken = proxy.swallow({ sha: HAND_OFF, times: Infinity });
  expect(await outcome(hold.release())).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  expect(broken.count).toBeGreaterThan(0);
  broken.lift();
  expect(await outcome(holds[0]!)).toBe('ERR_LOCK_TIMEOUT');
  await until(async () => (await admin().pubsub('NUMSUB', channel))[1] === 0, 'it is no longer subscribed');
  expect(client.holds()).toEqual([]);
  await nothingLeft(name);
});

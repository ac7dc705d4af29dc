import { expect } from '@jest/globals';
import { fairAliveKey, fairChannel, fairQueueKey, fairTimeoutsKey } from '../../src/redis/keys.js';
import { acquire, handOff, refresh, release } from '../../src/redis/scripts/fair-lock.js';
import type { Message } from '../support/clients/published.js';
import { Random } from '../support/random.js';
import { admin } from '../support/redis.js';
import { between, describeScript, heldBy, type ScriptBench } from './script-bench.js';

const W = 300_000;
const ALIVE_MS = 5_000;
/** Time, in ms, that may pass between the read of the server clock in a test and in the script. */
const LATE_MS = 1_000;

const keysOf = ({ name }: ScriptBench): string[] => [
  name,
  fairQueueKey(name),
  fairTimeoutsKey(name),
  fairAliveKey(name),
];
const channelOf = ({ name }: ScriptBench, owner: string): string => fairChannel(name, owner);

interface Terms {
  leaseMs?: number;
  wait?: number;
  waits?: boolean;
  notAfter?: number;
}

const take = (bench: ScriptBench, owner: string, terms: Terms = {}): Promise<unknown> => {
  const { leaseMs = 30_000, wait = W, waits = true, notAfter = 0 } = terms;
  return bench.run(keysOf(bench), owner, leaseMs, wait, waits ? ALIVE_MS : 0, 'PUBLISH', bench.channel, notAfter);
};
const releasedBy = (bench: ScriptBench, ...owners: string[]): Promise<unknown> =>
  bench.run(keysOf(bench), 'PUBLISH', bench.channel, W, ...owners);
const handOver = (bench: ScriptBench, from: string, to: string, notAfter = 0): Promise<unknown> =>
  bench.run(keysOf(bench), from, to, 20_000, W, 'PUBLISH', bench.channel, notAfter);
const keep = (bench: ScriptBench, owners: string[], { wait = W, notAfter = 0 } = {}): Promise<unknown> =>
  bench.run(keysOf(bench), notAfter, wait, ALIVE_MS, 'PUBLISH', bench.channel, ...owners);

/** Owner -> ms from now, of everybody in the queue, head first; null: no score. */
async function queue(bench: ScriptBench): Promise<Record<string, number | null>> {
  const now = await bench.notAfter(0);
  const owners = await admin().lrange(fairQueueKey(bench.name), 0, -1);
  const scores = await Promise.all(owners.map((owner) => admin().zscore(fairTimeoutsKey(bench.name), owner)));
  return Object.fromEntries(owners.map((owner, at) => [owner, scores[at] === null ? null : Number(scores[at]) - now]));
}

const alive = async (bench: ScriptBench): Promise<string[]> => admin().zrange(fairAliveKey(bench.name), '0', '-1');
const left = (ms: number): unknown => between(ms - LATE_MS, ms);

interface Queued {
  readonly owner: string;
  /** ms from now. */
  readonly timeout?: number;
  /** ms from now. Absent: a waiter of Redisson. */
  readonly aliveFor?: number;
}

/** An owner has the lock, unless it is free, and these owners wait in this order. */
async function given(bench: ScriptBench, holder: string | undefined, ...waiters: Queued[]): Promise<void> {
  await givenAt(await bench.notAfter(0), bench, holder, ...waiters);
}

async function givenAt(now: number, { name }: ScriptBench, holder?: string, ...waiters: Queued[]): Promise<void> {
  if (holder !== undefined) {
    await admin().hset(name, holder, '1');
    await admin().pexpire(name, 60_000);
  }
  const writes = waiters.flatMap(({ owner, timeout, aliveFor }, at): Promise<unknown>[] => {
    const queued = [
      admin().rpush(fairQueueKey(name), owner),
      admin().zadd(fairTimeoutsKey(name), now + (timeout ?? (at + 1) * W), owner),
    ];
    return aliveFor === undefined ? queued : [...queued, admin().zadd(fairAliveKey(name), now + aliveFor, owner)];
  });
  await Promise.all(writes);
}

const LIVE = 60_000;
const DEAD = -1;

/**
 * A queue of live and dead waiters of Holdfast and Redisson, and owners that leave, in the order in which they leave.
 */
function randomQueue(random: Random): { waiters: Queued[]; leaving: string[] } {
  const waiters = Array.from({ length: random.below(60) }, (_, at): Queued => {
    const timeout = (random.below(80) - 10) * W + W / 2;
    const kind = random.below(10);
    if (kind < 3) return { owner: `jvm:${at}`, timeout };
    return { owner: `ours:${at}`, timeout, aliveFor: kind === 3 ? DEAD : LIVE };
  });
  const share = random.fraction();
  const leaving = waiters
    .map(({ owner }) => owner)
    .filter((owner) => !owner.startsWith('jvm') && random.fraction() < share);
  if (random.below(2) === 0) leaving.push('h', 'nobody:1');
  for (let at = leaving.length - 1; at > 0; at -= 1) {
    const other = random.below(at + 1);
    [leaving[at], leaving[other]] = [leaving[other]!, leaving[at]!];
  }
  return { waiters, leaving: leaving.length > 0 ? leaving : ['nobody:1'] };
}

/** All that a release leaves, with the scores as they are. */
async function wholeState({ name }: ScriptBench): Promise<unknown> {
  const [queue, scores, alive, lock] = await Promise.all([
    admin().lrange(fairQueueKey(name), 0, -1),
    admin().zrange(fairTimeoutsKey(name), '0', '-1', 'WITHSCORES'),
    admin().zrange(fairAliveKey(name), '0', '-1', 'WITHSCORES'),
    admin().hgetall(name),
  ]);
  return { queue, scores, alive, lock };
}

describeScript(acquire, {
  nil: {
    'a free lock without a queue is acquired and creates only the hash': async (bench) => {
      expect(await take(bench, 'a')).toBeNull();
      expect(await bench.state()).toEqual({ [bench.name]: heldBy('a', 1, 30_000) });
      expect(await bench.published()).toEqual([]);
    },
    'a not-after that has not passed is no limit': async (bench) => {
      expect(await take(bench, 'a', { notAfter: await bench.notAfter(5_000) })).toBeNull();
      expect(await bench.state()).toEqual({ [bench.name]: heldBy('a', 1, 30_000) });
    },
    'the head acquires the lock, leaves the queue, and subtracts its wait from all timeouts behind it': async (
      bench,
    ) => {
      await given(bench, undefined, { owner: 'a', aliveFor: LIVE }, { owner: 'b', aliveFor: LIVE }, { owner: 'j' });
      expect(await take(bench, 'a')).toBeNull();
      expect(await queue(bench)).toEqual({ b: left(W), j: left(2 * W) });
      expect(await alive(bench)).toEqual(['b']);
      expect(await admin().hgetall(bench.name)).toEqual({ a: '1' });
      expect(await bench.published()).toEqual([]);
    },
    'the last waiter of a queue leaves no key of it': async (bench) => {
      await given(bench, undefined, { owner: 'a', aliveFor: LIVE });
      expect(await take(bench, 'a')).toBeNull();
      expect(Object.keys(await bench.state())).toEqual([bench.name]);
    },
    'a repeat changes nothing: count 1, no shorter lease, no further change of timeouts': async (bench) => {
      await given(bench, 'a', { owner: 'b', aliveFor: LIVE });
      expect(await take(bench, 'a')).toBeNull();
      expect((await bench.state())[bench.name]).toEqual(heldBy('a', 1, 60_000));
      expect(await take(bench, 'a', { leaseMs: 90_000 })).toBeNull();
      expect((await bench.state())[bench.name]).toEqual(heldBy('a', 1, 90_000));
      expect(await queue(bench)).toEqual({ b: left(W) });
    },
    'a copy after a nested acquire keeps the count': async (bench) => {
      await admin().hset(bench.name, 'a', '2');
      await admin().pexpire(bench.name, 60_000);
      expect(await take(bench, 'a')).toBeNull();
      expect((await bench.state())[bench.name]).toEqual(heldBy('a', 2, 60_000));
    },
    'behind dead waiters of Holdfast only, they are removed with their waits, and the lock is acquired': async (
      bench,
    ) => {
      await given(
        bench,
        undefined,
        { owner: 'd', aliveFor: DEAD },
        { owner: 'e', aliveFor: DEAD },
        { owner: 'a', aliveFor: LIVE },
        { owner: 'j' },
      );
      expect(await take(bench, 'a')).toBeNull();
      expect(await queue(bench)).toEqual({ j: left(W) });
      expect(await alive(bench)).toEqual([]);
    },
    'the worked example of the wire protocol, step by step': async (bench) => {
      const keys = keysOf(bench);
      const released = (owner: string): Promise<unknown> =>
        admin().eval(release.script!.source, keys.length, ...keys, 'PUBLISH', bench.channel, W, owner);
      await take(bench, 'A');
      await admin().pexpire(bench.name, 29_000); // a second later
      expect(await take(bench, 'N')).toEqual(left(29_000));
      expect(await queue(bench)).toEqual({ N: left(29_000 + W) });
      // Redisson replies 328000 to C, the time at which N would be stale. Here C waits for a message.
      expect(await take(bench, 'C')).toBe(W);
      const both = { N: left(29_000 + W), C: left(29_000 + 2 * W) };
      expect(await queue(bench)).toEqual(both);
      await admin().pexpire(bench.name, 27_000);
      expect(await take(bench, 'N')).toEqual(left(27_000));
      expect(await queue(bench)).toEqual(both);
      expect(await take(bench, 'D', { waits: false })).not.toBeNull();
      expect(await queue(bench)).toEqual(both);
      expect(await released('A')).toBe(1);
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'N'), payload: '0' }]);
      expect(await queue(bench)).toEqual(both);
      expect(await take(bench, 'C')).toBe(W);
      expect(await queue(bench)).toEqual(both);
      expect(await take(bench, 'N')).toBeNull();
      expect(await queue(bench)).toEqual({ C: left(29_000 + W) });
      expect(await released('C')).toBe(0);
      expect(await bench.state()).toEqual({ [bench.name]: heldBy('N', 1, 30_000) });
    },
    'the own timeout of the caller may have passed': async (bench) => {
      await given(bench, undefined, { owner: 'a', aliveFor: DEAD }, { owner: 'b', aliveFor: LIVE });
      expect(await take(bench, 'a')).toBeNull();
      expect(await queue(bench)).toEqual({ b: left(W) });
    },
    'a Redisson head whose timeout has passed is removed, and no other timeout changes': async (bench) => {
      await given(
        bench,
        undefined,
        { owner: 'j', timeout: -1 },
        { owner: 'a', aliveFor: LIVE },
        { owner: 'b', aliveFor: LIVE },
      );
      expect(await take(bench, 'a')).toBeNull();
      expect(await queue(bench)).toEqual({ b: left(2 * W) });
    },
  },
  n: {
    'a call without a wait time on a held lock is refused and gets no place': async (bench) => {
      await given(bench, 'b');
      expect(await take(bench, 'a', { waits: false })).toEqual(between(59_000, W));
      expect(await bench.state()).toEqual({ [bench.name]: heldBy('b', 1, 60_000) });
    },
    'a call without a wait time is refused while the queue is not empty, also if the lock is free': async (bench) => {
      await given(bench, undefined, { owner: 'b', aliveFor: LIVE });
      expect(await take(bench, 'a', { waits: false })).toBe(W);
      expect(await queue(bench)).toEqual({ b: left(W) });
      expect(await admin().exists(bench.name)).toBe(0);
    },
    'the first waiter gets the remaining lease of the holder, a place and an entry in alive': async (bench) => {
      await given(bench, 'b');
      expect(await take(bench, 'a')).toEqual(left(60_000));
      expect(await queue(bench)).toEqual({ a: left(60_000 + W) });
      expect(await alive(bench)).toEqual(['a']);
      expect(await bench.published()).toEqual([]);
    },
    'a lock without expiry replies -1, and the timeout is one wait': async (bench) => {
      await admin().hset(bench.name, '8743c9c0-0795-4907-87fd-6c719a6b4586:52', '1');
      expect(await take(bench, 'a')).toBe(-1);
      expect(await queue(bench)).toEqual({ a: left(W) });
    },
    'a repeat keeps its place, and only the head gets the remaining lease': async (bench) => {
      await given(bench, 'b');
      await take(bench, 'a');
      await take(bench, 'c');
      expect(await take(bench, 'a')).toEqual(left(60_000));
      expect(await take(bench, 'c')).toBe(W);
      expect(await queue(bench)).toEqual({ a: left(60_000 + W), c: left(60_000 + 2 * W) });
    },
    'a lock that is free for another waiter is not acquired, and that waiter is not woken again': async (bench) => {
      await given(bench, undefined, { owner: 'b', aliveFor: LIVE });
      expect(await take(bench, 'a')).toBe(W);
      expect(await queue(bench)).toEqual({ b: left(W), a: left(2 * W) });
      expect(await bench.published()).toEqual([]);
    },
    'the next head of a free lock is woken when the previous head is removed': async (bench) => {
      await given(bench, undefined, { owner: 'd', aliveFor: DEAD }, { owner: 'b', aliveFor: LIVE });
      expect(await take(bench, 'a')).toBe(W);
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'b'), payload: '0' }]);
      expect(await queue(bench)).toEqual({ b: left(W), a: left(2 * W) });
    },
    'no waiter of a held lock is woken': async (bench) => {
      await given(bench, 'h', { owner: 'd', aliveFor: DEAD }, { owner: 'b', aliveFor: LIVE });
      expect(await take(bench, 'a')).toBe(W);
      expect(await bench.published()).toEqual([]);
    },
    'dead waiters of Holdfast are also removed from the middle, and only timeouts behind them change': async (
      bench,
    ) => {
      await given(
        bench,
        'h',
        { owner: 'b', aliveFor: LIVE },
        { owner: 'd', aliveFor: DEAD },
        { owner: 'j' },
        { owner: 'e', aliveFor: DEAD },
        { owner: 'k' },
      );
      await take(bench, 'a');
      expect(await queue(bench)).toEqual({ b: left(W), j: left(2 * W), k: left(3 * W), a: left(4 * W) });
    },
    'any number of dead waiters are removed at once, and the others keep their order': async (bench) => {
      const dead = Array.from({ length: 20 }, (_, at) => ({ owner: `d${at}`, aliveFor: DEAD }));
      const [first, second] = [dead.slice(0, 5), dead.slice(5)];
      await given(bench, 'h', { owner: 'b', aliveFor: LIVE }, ...first, { owner: 'j' }, ...second, { owner: 'k' });
      await take(bench, 'a');
      expect(await queue(bench)).toEqual({ b: left(W), j: left(2 * W), k: left(3 * W), a: left(4 * W) });
      expect(await alive(bench)).toEqual(['a', 'b']);
    },
    'a live waiter of Holdfast stays at the head with any timeout': async (bench) => {
      await given(bench, undefined, { owner: 'b', timeout: -60_000, aliveFor: LIVE });
      expect(await take(bench, 'a')).toBe(W);
      expect(Object.keys(await queue(bench))).toEqual(['b', 'a']);
    },
    'a head without a score stays (hazard 35)': async (bench) => {
      await admin().rpush(fairQueueKey(bench.name), 'x:1');
      expect(await take(bench, 'a')).toBe(W);
      expect(await queue(bench)).toEqual({ 'x:1': null, a: left(2 * W) });
    },
    'a timeout covers one wait for every place in front, even behind Redisson waiters with less (R30)': async (
      bench,
    ) => {
      await given(bench, 'h', { owner: 'j', timeout: 8_000 }, { owner: 'k', timeout: 9_000 });
      await take(bench, 'a');
      expect(await queue(bench)).toEqual({ j: left(8_000), k: left(9_000), a: left(3 * W) });
    },
  },
  WRONGTYPE: {
    'a hash without a lease and without an owner is not a lock, and stays as it is': async (bench) => {
      await admin().hset(bench.name, { name: 'alice', 'visits:1': '3' });
      await expect(take(bench, 'a')).rejects.toThrow(/^WRONGTYPE .* not a lock/);
      expect(await bench.state()).toEqual({
        [bench.name]: { type: 'hash', value: { name: 'alice', 'visits:1': '3' }, pttl: -1 },
      });
    },
  },
  '-3': {
    'too late: nothing is acquired, queued or removed': async (bench) => {
      const notAfter = await bench.notAfter(-1);
      expect(await take(bench, 'a', { notAfter })).toBe(-3);
      expect(await bench.state()).toEqual({});
      await given(bench, 'h', { owner: 'd', aliveFor: DEAD });
      expect(await take(bench, 'a', { notAfter })).toBe(-3);
      expect(Object.keys(await queue(bench))).toEqual(['d']);
    },
  },
});

describeScript(handOff, {
  '1': {
    'the head has the lock, hold count 1, for its own lease, and nothing is published': async (bench) => {
      await given(bench, 'a', { owner: 'b', aliveFor: LIVE }, { owner: 'c', aliveFor: LIVE }, { owner: 'j' });
      expect(await handOver(bench, 'a', 'b')).toBe(1);
      expect(await bench.state()).toMatchObject({ [bench.name]: heldBy('b', 1, 20_000) });
      // The waiters behind it come one wait sooner, as with an acquire.
      expect(await queue(bench)).toEqual({ c: left(W), j: left(2 * W) });
      expect(await alive(bench)).toEqual(['c']);
      expect(await bench.published()).toEqual([]);
    },
    'R1: a repeat writes nothing, and the lease counts from the first run': async (bench) => {
      await given(bench, 'a', { owner: 'b', aliveFor: LIVE }, { owner: 'c', aliveFor: LIVE });
      await handOver(bench, 'a', 'b');
      await admin().pexpire(bench.name, 5_000);
      expect(await handOver(bench, 'a', 'b')).toBe(1);
      expect(await bench.state()).toMatchObject({ [bench.name]: heldBy('b', 1, 5_000) });
      expect(await queue(bench)).toEqual({ c: left(W) });
    },
    'dead waiters and stale waiters of Redisson before it are skipped': async (bench) => {
      await given(
        bench,
        'a',
        { owner: 'd', aliveFor: DEAD },
        { owner: 'j', timeout: -1 },
        { owner: 'b', aliveFor: LIVE },
      );
      expect(await handOver(bench, 'a', 'b')).toBe(1);
      expect(await queue(bench)).toEqual({});
      expect(await alive(bench)).toEqual([]);
    },
    'a client that was suspended does not remove its own waiter': async (bench) => {
      await given(bench, 'a', { owner: 'b', timeout: -1, aliveFor: DEAD });
      expect(await handOver(bench, 'a', 'b')).toBe(1);
      expect(await queue(bench)).toEqual({});
    },
  },
  '2': {
    'behind another waiter, the lock is free, the head is woken, and the queue does not change': async (bench) => {
      await given(bench, 'a', { owner: 'j' }, { owner: 'b', aliveFor: LIVE });
      expect(await handOver(bench, 'a', 'b')).toBe(2);
      expect(await admin().exists(bench.name)).toBe(0);
      expect(await queue(bench)).toEqual({ j: left(W), b: left(2 * W) });
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'j'), payload: '0' }]);
    },
    'an owner without a place gets nothing': async (bench) => {
      await given(bench, 'a');
      expect(await handOver(bench, 'a', 'b')).toBe(2);
      expect(await bench.state()).toEqual({});
      expect(await bench.published()).toEqual([]);
    },
  },
  '0': {
    "another owner's lock is not changed": async (bench) => {
      await given(bench, 'h', { owner: 'b', aliveFor: LIVE });
      expect(await handOver(bench, 'a', 'b')).toBe(0);
      expect(await bench.state()).toMatchObject({ [bench.name]: heldBy('h', 1, 60_000) });
      expect(await queue(bench)).toEqual({ b: left(W) });
      expect(await bench.published()).toEqual([]);
    },
    'R1: a copy that comes after the next release hands nothing over': async (bench) => {
      await given(bench, 'a', { owner: 'b', aliveFor: LIVE }, { owner: 'c', aliveFor: LIVE });
      await handOver(bench, 'a', 'b');
      await admin().del(bench.name);
      expect(await handOver(bench, 'a', 'b')).toBe(0);
      expect(await admin().exists(bench.name)).toBe(0);
      expect(await queue(bench)).toEqual({ c: left(W) });
    },
    'the head of a lock that is gone is woken': async (bench) => {
      await given(bench, undefined, { owner: 'b', aliveFor: LIVE });
      expect(await handOver(bench, 'a', 'b')).toBe(0);
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'b'), payload: '0' }]);
    },
  },
  '-3': {
    'too late: nothing is handed over, freed or published': async (bench) => {
      await given(bench, 'a', { owner: 'b', aliveFor: LIVE });
      expect(await handOver(bench, 'a', 'b', await bench.notAfter(-1))).toBe(-3);
      expect(await bench.state()).toMatchObject({ [bench.name]: heldBy('a', 1, 60_000) });
      expect(await queue(bench)).toEqual({ b: left(W) });
      expect(await bench.published()).toEqual([]);
    },
  },
});

describeScript(release, {
  '1': {
    'the lock is free with any previous count, and without a queue nothing is published': async (bench) => {
      await admin().hset(bench.name, 'a', '3');
      expect(await releasedBy(bench, 'x', 'a')).toBe(1);
      expect(await bench.state()).toEqual({});
      expect(await bench.published()).toEqual([]);
    },
    'the head of the queue is woken on its own channel, and the queue does not change': async (bench) => {
      await given(bench, 'a', { owner: 'b', aliveFor: LIVE }, { owner: 'c', aliveFor: LIVE });
      expect(await releasedBy(bench, 'a')).toBe(1);
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'b'), payload: '0' }]);
      expect(await queue(bench)).toEqual({ b: left(W), c: left(2 * W) });
    },
    'the next live waiter is woken, not a dead head: R26': async (bench) => {
      await given(bench, 'a', { owner: 'd', aliveFor: DEAD }, { owner: 'j' });
      expect(await releasedBy(bench, 'a')).toBe(1);
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'j'), payload: '0' }]);
      expect(await queue(bench)).toEqual({ j: left(W) });
    },
    'a stale Redisson head is skipped': async (bench) => {
      await given(bench, 'a', { owner: 'j', timeout: -1 }, { owner: 'b', aliveFor: LIVE });
      expect(await releasedBy(bench, 'a')).toBe(1);
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'b'), payload: '0' }]);
      expect(await queue(bench)).toEqual({ b: left(2 * W) });
    },
    'an owner that has the lock and a place in the queue loses both': async (bench) => {
      await given(bench, 'a', { owner: 'a', aliveFor: LIVE }, { owner: 'b', aliveFor: LIVE });
      expect(await releasedBy(bench, 'a')).toBe(1);
      expect(await queue(bench)).toEqual({ b: left(W) });
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'b'), payload: '0' }]);
    },
  },
  '0': {
    "another owner's lock is not changed, and nothing is published": async (bench) => {
      await given(bench, 'h', { owner: 'b', aliveFor: LIVE });
      expect(await releasedBy(bench, 'a')).toBe(0);
      expect(await bench.state()).toMatchObject({ [bench.name]: heldBy('h', 1, 60_000) });
      expect(await queue(bench)).toEqual({ b: left(W) });
      expect(await bench.published()).toEqual([]);
    },
    'the head of a lock that is gone is woken': async (bench) => {
      await given(bench, undefined, { owner: 'b', aliveFor: LIVE });
      expect(await releasedBy(bench, 'a')).toBe(0);
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'b'), payload: '0' }]);
    },
    'a waiter that gives up subtracts exactly its own wait, only from the timeouts behind it (hazard 20)': async (
      bench,
    ) => {
      await given(
        bench,
        'h',
        { owner: 'b', aliveFor: LIVE },
        { owner: 'a', aliveFor: LIVE },
        { owner: 'j', timeout: 2 * W + 8_000 },
        { owner: 'c', timeout: 4 * W, aliveFor: LIVE },
      );
      expect(await releasedBy(bench, 'a')).toBe(0);
      expect(await queue(bench)).toEqual({ b: left(W), j: left(W + 8_000), c: left(3 * W) });
      expect(await alive(bench)).toEqual(['b', 'c']);
      expect(await bench.published()).toEqual([]);
    },
    'leaving together has the same result as leaving one by one, and wakes the head of a free lock': async (bench) => {
      const random = new Random('leaving together');
      for (let round = 0; round < 60; round += 1) {
        const { waiters, leaving } = randomQueue(random);
        const holder = random.below(2) === 0 ? 'h' : undefined;
        const now = await bench.notAfter(0);
        const results: unknown[] = [];
        let told: Message[] = [];
        for (const groups of [leaving.map((owner) => [owner]), [leaving]]) {
          await Promise.all((await admin().keys(`*${bench.name}*`)).map((key) => admin().del(key)));
          await givenAt(now, bench, holder, ...waiters);
          await bench.published();
          const answers: unknown[] = [];
          for (const owners of groups) answers.push(await releasedBy(bench, ...owners));
          told = await bench.published();
          results.push({ state: await wholeState(bench), freed: answers.includes(1) });
        }
        const [head] = await admin().lrange(fairQueueKey(bench.name), 0, 0);
        const isFree = (await admin().exists(bench.name)) === 0;
        expect(told.map(({ channel }) => channel)).toEqual(isFree && head ? [channelOf(bench, head)] : []);
        expect([round, results[1]]).toEqual([round, results[0]]);
      }
    },
    'a queue longer than the limit of one command keeps the other waiters in order': async (bench) => {
      const waiters = Array.from({ length: 2_500 }, (_, at) => ({ owner: `o:${at}`, aliveFor: LIVE }));
      await given(bench, 'h', ...waiters);
      const owners = waiters.map(({ owner }) => owner);
      const leaving = owners.filter((_, at) => at % 5 < 2);
      expect(await releasedBy(bench, ...leaving)).toBe(0);
      const staying = owners.filter((_, at) => at % 5 >= 2);
      const scores = await admin().zrange(fairTimeoutsKey(bench.name), '0', '-1', 'WITHSCORES');
      const began = Number(scores[1]) - W;
      expect(scores).toEqual(staying.flatMap((owner, at) => [owner, String(began + (at + 1) * W)]));
      expect(await admin().lrange(fairQueueKey(bench.name), 0, -1)).toEqual(staying);
      expect((await alive(bench)).sort()).toEqual([...staying].sort());
    },
    'a repeated removal changes nothing': async (bench) => {
      await given(bench, 'h', { owner: 'a', aliveFor: LIVE }, { owner: 'c', aliveFor: LIVE });
      await releasedBy(bench, 'a');
      expect(await releasedBy(bench, 'a')).toBe(0);
      expect(await queue(bench)).toEqual({ c: left(W) });
    },
    'a head that leaves a free lock passes its wake-up on: R21': async (bench) => {
      await given(bench, undefined, { owner: 'a', aliveFor: LIVE }, { owner: 'c', aliveFor: LIVE });
      expect(await releasedBy(bench, 'a')).toBe(0);
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'c'), payload: '0' }]);
    },
    'the last waiter that gives up leaves no key': async (bench) => {
      await given(bench, undefined, { owner: 'a', aliveFor: LIVE });
      expect(await releasedBy(bench, 'a')).toBe(0);
      expect(await bench.state()).toEqual({});
    },
    'a waiter that Redisson removed leaves no entry in alive': async (bench) => {
      await admin().zadd(fairAliveKey(bench.name), (await bench.notAfter(0)) + LIVE, 'a');
      expect(await releasedBy(bench, 'a')).toBe(0);
      expect(await bench.state()).toEqual({});
    },
  },
});

describeScript(refresh, {
  'an array: ms until the lease of the holder ends if one of the owners is the head, otherwise -1; then the': {
    'each owner counts as alive again': async (bench) => {
      await given(bench, 'h', { owner: 'j' }, { owner: 'a', aliveFor: 1_000 }, { owner: 'b', aliveFor: 1_000 });
      expect(await keep(bench, ['a', 'b'])).toEqual([-1]);
      const now = await bench.notAfter(0);
      const until = await admin().zrange(fairAliveKey(bench.name), '0', '-1', 'WITHSCORES');
      expect([Number(until[1]) - now, Number(until[3]) - now]).toEqual([left(ALIVE_MS), left(ALIVE_MS)]);
      expect(await bench.published()).toEqual([]);
    },
    'a waiter that was overdue keeps its place if it was not removed': async (bench) => {
      await given(bench, 'h', { owner: 'a', aliveFor: DEAD });
      expect(await keep(bench, ['a'])).toEqual([left(60_000)]);
      expect(Object.keys(await queue(bench))).toEqual(['a']);
    },
    'the head gets the remaining lease of the holder': async (bench) => {
      await given(bench, 'h', { owner: 'a', aliveFor: LIVE }, { owner: 'b', aliveFor: LIVE });
      expect(await keep(bench, ['b', 'a'])).toEqual([left(60_000)]);
      expect(await keep(bench, ['b'])).toEqual([-1]);
    },
    'the head of a free lock has to try': async (bench) => {
      await given(bench, undefined, { owner: 'a', aliveFor: LIVE }, { owner: 'b', aliveFor: LIVE });
      expect(await keep(bench, ['b', 'a'])).toEqual([-1, 2]);
      expect(await admin().exists(bench.name)).toBe(0);
    },
    'owners without a place have to try, and nothing is created for them': async (bench) => {
      await given(bench, 'h', { owner: 'b', aliveFor: LIVE });
      await admin().zadd(fairTimeoutsKey(bench.name), 1, 'c');
      expect(await keep(bench, ['a', 'b', 'c'])).toEqual([left(60_000), 1, 3]);
      expect(await queue(bench)).toEqual({ b: left(W) });
      expect(await alive(bench)).toEqual(['b']);
      expect(await admin().zcard(fairTimeoutsKey(bench.name))).toBe(1);
    },
    'any number of dead waiters are removed at once, and the next head of a free lock is woken': async (bench) => {
      const dead = Array.from({ length: 20 }, (_, at) => ({ owner: `d${at}`, aliveFor: DEAD }));
      await given(bench, undefined, ...dead, { owner: 'j' }, { owner: 'a', aliveFor: LIVE });
      expect(await keep(bench, ['a'])).toEqual([-1]);
      expect(await queue(bench)).toEqual({ j: left(W), a: left(2 * W) });
      expect(await alive(bench)).toEqual(['a']);
      expect(await bench.published()).toEqual([{ channel: channelOf(bench, 'j'), payload: '0' }]);
    },
    'a timeout is raised if half a wait is missing, and the timeouts behind it by as much (R26)': async (bench) => {
      await given(
        bench,
        'h',
        { owner: 'a', timeout: W / 2 - 2_000, aliveFor: LIVE },
        { owner: 'j', timeout: W },
        { owner: 'b', timeout: 2 * W, aliveFor: LIVE },
      );
      const up = W / 2 + 2_000;
      await keep(bench, ['a', 'b']);
      expect(await queue(bench)).toEqual({ a: left(W), j: left(W + up), b: left(2 * W + up) });
    },
    'a timeout covers one wait for every place in front': async (bench) => {
      await given(bench, 'h', { owner: 'j', timeout: 3 * W }, { owner: 'b', timeout: W, aliveFor: LIVE });
      await keep(bench, ['b']);
      expect(await queue(bench)).toEqual({ j: left(3 * W), b: left(2 * W) });
    },
    'a smaller difference changes nothing': async (bench) => {
      await given(bench, 'h', { owner: 'a', timeout: W / 2 + 2_000, aliveFor: LIVE }, { owner: 'j', timeout: W });
      await keep(bench, ['a']);
      expect(await queue(bench)).toEqual({ a: left(W / 2 + 2_000), j: left(W) });
    },
    'without any keys nothing is created': async (bench) => {
      expect(await keep(bench, ['a'])).toEqual([-1, 1]);
      expect(await bench.state()).toEqual({});
    },
  },
  '-3': {
    'too late: no owner is kept alive, and none is removed': async (bench) => {
      await given(bench, 'h', { owner: 'd', aliveFor: DEAD }, { owner: 'a', aliveFor: 1_000 });
      const before = await admin().zrange(fairAliveKey(bench.name), '0', '-1', 'WITHSCORES');
      expect(await keep(bench, ['a'], { notAfter: await bench.notAfter(-1) })).toBe(-3);
      expect(await admin().zrange(fairAliveKey(bench.name), '0', '-1', 'WITHSCORES')).toEqual(before);
      expect(Object.keys(await queue(bench))).toEqual(['d', 'a']);
    },
  },
});

import { expect } from '@jest/globals';
import { readHoldBase, readWriteChannel } from '../../src/redis/keys.js';
import {
  acquireRead,
  acquireWrite,
  handOff,
  nestRead,
  nestWrite,
  release,
  releasePartial,
  releaseReaders,
  renew,
  renewKey,
} from '../../src/redis/scripts/read-write-lock.js';
import { admin } from '../support/redis.js';
import { between, describeScript, type ScriptBench } from './script-bench.js';

const ttlOf = (ms: number): unknown => between(ms - 1_000, ms);
const base = ({ name }: ScriptBench) => readHoldBase(name);
const holdKey = (bench: ScriptBench, owner: string, n: number) => `${base(bench)}:${owner}:rwlock_timeout:${n}`;
const keys = ({ name }: ScriptBench) => [name];
const channel = ({ name }: ScriptBench) => readWriteChannel(name);
const message = ({ name }: ScriptBench, payload: string) => [{ channel: readWriteChannel(name), payload }];

interface Holds {
  mode: 'read' | 'write';
  /** owner -> ms of each of its read holds. */
  reads?: Record<string, number[]>;
  writes?: Record<string, number>;
  /** ms of the hash; absent: that of its longest read hold. */
  lease?: number;
}

async function given(bench: ScriptBench, { mode, reads = {}, writes = {}, lease }: Holds): Promise<void> {
  const counts = Object.entries(reads).map(([owner, leases]) => [owner, String(leases.length)]);
  const written = Object.entries(writes).map(([owner, count]) => [`${owner}:write`, String(count)]);
  await admin().hset(bench.name, { mode, ...(Object.fromEntries([...counts, ...written]) as Record<string, string>) });
  await admin().pexpire(bench.name, lease ?? Math.max(...Object.values(reads).flat()));
  for (const [owner, leases] of Object.entries(reads)) {
    for (const [i, ms] of leases.entries()) {
      if (ms > 0) await admin().set(holdKey(bench, owner, i + 1), '1', 'PX', ms);
    }
  }
}

function holding(bench: ScriptBench, { mode, reads = {}, writes = {}, lease }: Holds): Record<string, unknown> {
  const value: Record<string, string> = { mode };
  const keys: Record<string, unknown> = {};
  for (const [owner, leases] of Object.entries(reads)) {
    value[owner] = String(leases.length);
    for (const [i, ms] of leases.entries()) {
      if (ms > 0) keys[holdKey(bench, owner, i + 1)] = { type: 'string', value: '1', pttl: ttlOf(ms) };
    }
  }
  for (const [owner, count] of Object.entries(writes)) value[`${owner}:write`] = String(count);
  const longest = lease ?? Math.max(...Object.values(reads).flat());
  return { ...keys, [bench.name]: { type: 'hash', value, pttl: ttlOf(longest) } };
}

async function expectHolds(bench: ScriptBench, holds: Holds): Promise<void> {
  expect(await bench.state()).toEqual(holding(bench, holds));
}

function late(keys: (bench: ScriptBench) => string[], args: (notAfter: number) => (string | number)[]) {
  return async (bench: ScriptBench): Promise<void> => {
    expect(await bench.run(keys(bench), ...args(await bench.notAfter(-1)))).toBe(-3);
    expect(await bench.state()).toEqual({});
    const holds: Holds = { mode: 'write', writes: { a: 2 }, reads: { a: [40_000] }, lease: 40_000 };
    await given(bench, holds);
    expect(await bench.run(keys(bench), ...args(await bench.notAfter(-1)))).toBe(-3);
    await expectHolds(bench, holds);
    expect(await bench.published()).toEqual([]);
  };
}

describeScript(acquireRead, {
  nil: {
    'a free lock is acquired, and the hold has its own key': async (bench) => {
      expect(await bench.run(keys(bench), base(bench), 'a', 30_000, await bench.notAfter(5_000))).toBeNull();
      await expectHolds(bench, { mode: 'read', reads: { a: [30_000] } });
    },
    'readers join, and the hash lasts as long as the longest lease': async (bench) => {
      await given(bench, { mode: 'read', reads: { b: [10_000] } });
      expect(await bench.run(keys(bench), base(bench), 'a', 30_000, 0)).toBeNull();
      expect(await bench.run(keys(bench), base(bench), 'c', 5_000, 0)).toBeNull();
      await expectHolds(bench, { mode: 'read', reads: { b: [10_000], a: [30_000], c: [5_000] } });
    },
    'a repeat changes nothing and shortens no lease': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [40_000] } });
      expect(await bench.run(keys(bench), base(bench), 'a', 30_000, 0)).toBeNull();
      await expectHolds(bench, { mode: 'read', reads: { a: [40_000] } });
    },
  },
  n: {
    'a lock with a writer is busy': async (bench) => {
      await given(bench, { mode: 'write', writes: { b: 1 }, lease: 20_000 });
      expect(await bench.run(keys(bench), base(bench), 'a', 30_000, 0)).toEqual(between(19_000, 20_000));
      await expectHolds(bench, { mode: 'write', writes: { b: 1 }, lease: 20_000 });
    },
    'a lock of another kind is busy': async (bench) => {
      await admin().hset(bench.name, { b: '1' });
      await admin().pexpire(bench.name, 20_000);
      expect(await bench.run(keys(bench), base(bench), 'a', 30_000, 0)).toEqual(between(19_000, 20_000));
      expect(await bench.state()).toEqual({ [bench.name]: { type: 'hash', value: { b: '1' }, pttl: ttlOf(20_000) } });
    },
  },
  WRONGTYPE: {
    'a hash without a lease and without an owner is not a lock, and stays as it is': async (bench) => {
      await admin().hset(bench.name, { name: 'alice', 'visits:1': '3' });
      await expect(bench.run(keys(bench), 'base', 'a', 30_000, 0)).rejects.toThrow(/^WRONGTYPE .* not a lock/);
      expect(await bench.state()).toEqual({
        [bench.name]: { type: 'hash', value: { name: 'alice', 'visits:1': '3' }, pttl: -1 },
      });
    },
  },
  '-3': { 'too late: nothing is taken': late(keys, (notAfter) => ['base', 'a', 30_000, notAfter]) },
});

describeScript(acquireWrite, {
  nil: {
    'a free lock is taken': async (bench) => {
      expect(await bench.run(keys(bench), 'a:write', 30_000, 0)).toBeNull();
      await expectHolds(bench, { mode: 'write', writes: { a: 1 }, lease: 30_000 });
    },
    'a repeat changes nothing': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 1 }, lease: 40_000 });
      expect(await bench.run(keys(bench), 'a:write', 30_000, 0)).toBeNull();
      await expectHolds(bench, { mode: 'write', writes: { a: 1 }, lease: 40_000 });
    },
    'a copy after a nested acquire keeps the count': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 2 }, lease: 40_000 });
      expect(await bench.run(keys(bench), 'a:write', 30_000, 0)).toBeNull();
      await expectHolds(bench, { mode: 'write', writes: { a: 2 }, lease: 40_000 });
    },
  },
  n: {
    'a lock with readers is busy, also if the reader is the owner itself': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [20_000] } });
      expect(await bench.run(keys(bench), 'a:write', 30_000, 0)).toEqual(between(19_000, 20_000));
      await expectHolds(bench, { mode: 'read', reads: { a: [20_000] } });
    },
    'a lock with another writer is busy': async (bench) => {
      await given(bench, { mode: 'write', writes: { b: 1 }, lease: 20_000 });
      expect(await bench.run(keys(bench), 'a:write', 30_000, 0)).toEqual(between(19_000, 20_000));
    },
  },
  WRONGTYPE: {
    'a hash without a lease and without an owner is not a lock, and stays as it is': async (bench) => {
      await admin().hset(bench.name, { name: 'alice', 'visits:1': '3' });
      await expect(bench.run(keys(bench), 'a:write', 30_000, 0)).rejects.toThrow(/^WRONGTYPE .* not a lock/);
      expect(await bench.state()).toEqual({
        [bench.name]: { type: 'hash', value: { name: 'alice', 'visits:1': '3' }, pttl: -1 },
      });
    },
  },
  '-3': { 'too late: nothing is taken': late(keys, (notAfter) => ['a:write', 90_000, notAfter]) },
});

describeScript(nestRead, {
  '1': {
    'a reader adds a read hold with its own lease': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [30_000] } });
      expect(await bench.run(keys(bench), base(bench), 'a', 2, 10_000, 0)).toBe(1);
      expect(await bench.run(keys(bench), base(bench), 'a', 2, 10_000, 0)).toBe(1);
      await expectHolds(bench, { mode: 'read', reads: { a: [30_000, 10_000] } });
    },
    'with a lower count no uncounted key is left': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [30_000, 30_000, 30_000] } });
      expect(await bench.run(keys(bench), base(bench), 'a', 2, 30_000, 0)).toBe(1);
      await expectHolds(bench, { mode: 'read', reads: { a: [30_000, 30_000] } });
    },
    'a writer adds a read hold': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 1 }, lease: 10_000 });
      expect(await bench.run(keys(bench), base(bench), 'a', 1, 30_000, 0)).toBe(1);
      await expectHolds(bench, { mode: 'write', writes: { a: 1 }, reads: { a: [30_000] } });
    },
  },
  '0': {
    'a lock that is gone or taken is not changed': async (bench) => {
      expect(await bench.run(keys(bench), base(bench), 'a', 2, 30_000, 0)).toBe(0);
      await given(bench, { mode: 'read', reads: { b: [20_000] } });
      expect(await bench.run(keys(bench), base(bench), 'a', 2, 30_000, 0)).toBe(0);
      await expectHolds(bench, { mode: 'read', reads: { b: [20_000] } });
    },
  },
  '-3': { 'too late: nothing is changed': late(keys, (notAfter) => ['base', 'a', 2, 90_000, notAfter]) },
});

describeScript(nestWrite, {
  '1': {
    'a writer adds a write hold, and no lease is shortened or added up': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 1 }, lease: 30_000 });
      expect(await bench.run(keys(bench), 'a:write', 2, 10_000, 0)).toBe(1);
      await expectHolds(bench, { mode: 'write', writes: { a: 2 }, lease: 30_000 });
      expect(await bench.run(keys(bench), 'a:write', 3, 40_000, 0)).toBe(1);
      await expectHolds(bench, { mode: 'write', writes: { a: 3 }, lease: 40_000 });
    },
  },
  '0': {
    'a reader cannot add a write hold': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [20_000] } });
      expect(await bench.run(keys(bench), 'a:write', 2, 30_000, 0)).toBe(0);
      await expectHolds(bench, { mode: 'read', reads: { a: [20_000] } });
    },
  },
  '-3': { 'too late: nothing is changed': late(keys, (notAfter) => ['a:write', 3, 90_000, notAfter]) },
});

describeScript(releasePartial, {
  '1': {
    'R36: the release of the shorter of two read holds keeps the longer lease, in either order': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [10_000, 40_000] } });
      for (let i = 0; i < 2; i += 1) {
        expect(await bench.run(keys(bench), 0, base(bench), 'a', 0, 40_000, 'PUBLISH', channel(bench), 40_000)).toBe(1);
        await expectHolds(bench, { mode: 'read', reads: { a: [40_000] } });
      }
      expect(await bench.published()).toEqual([]);
    },
    'the leases of other readers count for the expiry of the hash': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [30_000, 10_000], b: [50_000] } });
      expect(await bench.run(keys(bench), 0, base(bench), 'a', 0, 10_000, 'PUBLISH', channel(bench), 10_000)).toBe(1);
      await expectHolds(bench, { mode: 'read', reads: { a: [10_000], b: [50_000] } });
    },
    'a remaining write hold keeps the mode write': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 2 }, reads: { a: [50_000] } });
      expect(await bench.run(keys(bench), 0, base(bench), 'a', 1, 20_000, 'PUBLISH', channel(bench))).toBe(1);
      await expectHolds(bench, { mode: 'write', writes: { a: 1 }, lease: 20_000 });
      expect(await bench.published()).toEqual([]);
    },
    'R21: after the last write hold with a remaining read hold one message wakes readers': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 1 }, reads: { a: [20_000] }, lease: 50_000 });
      for (let i = 0; i < 2; i += 1) {
        expect(await bench.run(keys(bench), 0, base(bench), 'a', 0, 20_000, 'PUBLISH', channel(bench), 20_000)).toBe(1);
        await expectHolds(bench, { mode: 'read', reads: { a: [20_000] } });
      }
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
    'an expired read hold has no key': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [30_000, 30_000, 30_000] } });
      expect(await bench.run(keys(bench), 0, base(bench), 'a', 0, 30_000, 'PUBLISH', channel(bench), 0, 30_000)).toBe(
        1,
      );
      await expectHolds(bench, { mode: 'read', reads: { a: [0, 30_000] } });
    },
  },
  '0': {
    'a lock that is gone or taken is not changed': async (bench) => {
      expect(await bench.run(keys(bench), 0, base(bench), 'a', 1, 30_000, 'PUBLISH', channel(bench), 30_000)).toBe(0);
      await given(bench, { mode: 'read', reads: { b: [20_000] } });
      expect(await bench.run(keys(bench), 0, base(bench), 'a', 1, 30_000, 'PUBLISH', channel(bench), 30_000)).toBe(0);
      await expectHolds(bench, { mode: 'read', reads: { b: [20_000] } });
    },
  },
  '-3': {
    'too late: nothing is changed': late(keys, (notAfter) => [
      notAfter,
      'base',
      'a',
      0,
      30_000,
      'PUBLISH',
      'channel',
      30_000,
    ]),
  },
});

describeScript(release, {
  '1': {
    'the last reader frees the lock and wakes one writer': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [30_000, 20_000] } });
      expect(await bench.run(keys(bench), base(bench), 'PUBLISH', channel(bench), 'a')).toBe(1);
      expect(await bench.state()).toEqual({});
      expect(await bench.published()).toEqual(message(bench, '0'));
    },
    'a writer releases all its holds, frees the lock and wakes all waiters': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 2 }, reads: { a: [30_000] } });
      expect(await bench.run(keys(bench), base(bench), 'PUBLISH', channel(bench), 'x', 'a')).toBe(1);
      expect(await bench.state()).toEqual({});
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
    'one of several readers leaves, and the others keep their holds': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [50_000], b: [20_000, 30_000] } });
      expect(await bench.run(keys(bench), base(bench), 'PUBLISH', channel(bench), 'a')).toBe(1);
      await expectHolds(bench, { mode: 'read', reads: { b: [20_000, 30_000] } });
      expect(await bench.published()).toEqual([]);
    },
    'R16: readers with expired leases do not keep the lock': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [50_000], dead: [0] } });
      expect(await bench.run(keys(bench), base(bench), 'PUBLISH', channel(bench), 'a')).toBe(1);
      expect(await bench.state()).toEqual({});
      expect(await bench.published()).toEqual(message(bench, '0'));
    },
  },
  '0': {
    "neither a free lock nor another owner's lock is changed": async (bench) => {
      expect(await bench.run(keys(bench), base(bench), 'PUBLISH', channel(bench), 'a')).toBe(0);
      await given(bench, { mode: 'read', reads: { b: [20_000] } });
      expect(await bench.run(keys(bench), base(bench), 'PUBLISH', channel(bench), 'a', 'c')).toBe(0);
      await expectHolds(bench, { mode: 'read', reads: { b: [20_000] } });
      expect(await bench.published()).toEqual([]);
    },
  },
});

/** More readers than a script looks at one by one. */
const crowd = (ms: number): Record<string, number[]> =>
  Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`c${i}`, [ms + i]]));

describeScript(releaseReaders, {
  'an array with one integer for each owner: 1 = released; 0 = it has no read hold': {
    'the last readers free the lock and wake one writer, and each learns what it had': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [30_000, 20_000], b: [10_000] } });
      const args = [base(bench), 'PUBLISH', channel(bench), 'a', 'x', 'b', 'a:write'];
      expect(await bench.run(keys(bench), ...args)).toEqual([1, 0, 1, 0]);
      expect(await bench.state()).toEqual({});
      expect(await bench.published()).toEqual(message(bench, '0'));
      expect(await bench.run(keys(bench), ...args)).toEqual([0, 0, 0, 0]);
      expect(await bench.published()).toEqual([]);
    },
    'the readers that stay keep their holds, and the lock lasts as long as the longest of them': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [50_000], b: [20_000, 30_000], d: [40_000] } });
      const args = [base(bench), 'PUBLISH', channel(bench), 'd', 'a'];
      expect(await bench.run(keys(bench), ...args)).toEqual([1, 1]);
      await expectHolds(bench, { mode: 'read', reads: { b: [20_000, 30_000] } });
      expect(await bench.published()).toEqual([]);
    },
    'among many readers, the lock lasts as long as the longest hold that stays': async (bench) => {
      for (const [a, b] of [
        [20_000, 90_000],
        [90_000, 20_000],
      ] as const) {
        await admin().del(bench.name);
        await given(bench, { mode: 'read', reads: { ...crowd(30_000), a: [a], b: [b] } });
        expect(await bench.run(keys(bench), base(bench), 'PUBLISH', channel(bench), 'a')).toEqual([1]);
        await expectHolds(bench, { mode: 'read', reads: { ...crowd(30_000), b: [b] } });
      }
    },
    'R16: readers with expired leases do not keep the lock': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [50_000], dead: [0] } });
      expect(await bench.run(keys(bench), base(bench), 'PUBLISH', channel(bench), 'a')).toEqual([1]);
      expect(await bench.state()).toEqual({});
      expect(await bench.published()).toEqual(message(bench, '0'));
    },
  },
});

const handing = (bench: ScriptBench, ours: number, notAfter = 0) =>
  ['a', 'b', 20_000, 'PUBLISH', channel(bench), ours, notAfter] as const;

describeScript(handOff, {
  '1': {
    'the next writer has it for its own lease, and nothing is published': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 1 }, lease: 5_000 });
      expect(await bench.run(keys(bench), base(bench), ...handing(bench, -1, await bench.notAfter(5_000)))).toBe(1);
      await expectHolds(bench, { mode: 'write', writes: { b: 1 }, lease: 20_000 });
      expect(await bench.published()).toEqual([]);
    },
    'the read holds of a writer are released with its write hold': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 2 }, reads: { a: [15_000, 9_000] }, lease: 15_000 });
      expect(await bench.run(keys(bench), base(bench), ...handing(bench, 0))).toBe(1);
      await expectHolds(bench, { mode: 'write', writes: { b: 1 }, lease: 20_000 });
    },
    'a repeat writes nothing, and the lease counts from the first run': async (bench) => {
      await given(bench, { mode: 'write', writes: { b: 1 }, lease: 5_000 });
      expect(await bench.run(keys(bench), base(bench), ...handing(bench, 0))).toBe(1);
      await expectHolds(bench, { mode: 'write', writes: { b: 1 }, lease: 5_000 });
      expect(await bench.published()).toEqual([]);
    },
  },
  '2': {
    'with one more subscriber than the own ones the lock is freed, and all waiters are woken': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 1 }, reads: { a: [15_000] }, lease: 15_000 });
      const another = admin().duplicate();
      await another.subscribe(channel(bench));
      expect(await bench.run(keys(bench), base(bench), ...handing(bench, 0))).toBe(2);
      await another.quit();
      expect(await bench.state()).toEqual({});
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
  },
  '0': {
    'a lock that is gone is not created': async (bench) => {
      expect(await bench.run(keys(bench), base(bench), ...handing(bench, -1))).toBe(0);
      expect(await bench.state()).toEqual({});
    },
    'the holds of readers are not changed, also if the owner is one of them': async (bench) => {
      const holds: Holds = { mode: 'read', reads: { a: [20_000], c: [30_000] } };
      await given(bench, holds);
      expect(await bench.run(keys(bench), base(bench), ...handing(bench, 0))).toBe(0);
      await expectHolds(bench, holds);
      expect(await bench.published()).toEqual([]);
    },
  },
  '-3': {
    'too late: nothing is handed over': late(keys, (notAfter) => [
      'base',
      'a',
      'b',
      90_000,
      'PUBLISH',
      'c',
      0,
      notAfter,
    ]),
  },
});

describeScript(renew, {
  'an array with one integer for each lock: remaining lease of the owner in ms; 0 = it no longer holds the lock': {
    'each renewed read hold gets the lease, and the others keep theirs': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [5_000, 6_000], b: [10_000] } });
      const answer = await bench.run(keys(bench), 0, base(bench), 'a', 30_000, 0, 2, 1, 0);
      expect(answer).toEqual([30_000]);
      await expectHolds(bench, { mode: 'read', reads: { a: [30_000, 6_000], b: [10_000] } });
    },
    'a key that is no longer a lock does not affect the others': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [5_000] } });
      const foreign = `${bench.name}:foreign`;
      await admin().set(foreign, 'taken');
      const holds = [base(bench), 'a', 30_000, 1, 2, 1, 1, base(bench), 'a', 30_000, 0, 1, 1];
      expect(await bench.run([foreign, bench.name], 0, ...holds)).toEqual([0, 30_000]);
      expect(await admin().get(foreign)).toBe('taken');
      await admin().del(foreign);
    },
    'a longer lease is not changed, and is returned': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [50_000], b: [60_000] } });
      expect(await bench.run(keys(bench), 0, base(bench), 'a', 30_000, 0, 1, 1)).toEqual([between(49_000, 50_000)]);
      await expectHolds(bench, { mode: 'read', reads: { a: [50_000], b: [60_000] } });
    },
    'a writer with read holds is renewed in both halves': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 1 }, reads: { a: [5_000] }, lease: 5_000 });
      expect(await bench.run(keys(bench), 0, base(bench), 'a', 30_000, 1, 1, 1)).toEqual([30_000]);
      await expectHolds(bench, { mode: 'write', writes: { a: 1 }, reads: { a: [30_000] } });
    },
    'R15: an expired read hold gets the lease while its owner has another hold': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [9_000, 0] } });
      expect(await bench.run(keys(bench), 0, base(bench), 'a', 30_000, 0, 2, 0, 1)).toEqual([30_000]);
      await expectHolds(bench, { mode: 'read', reads: { a: [9_000, 30_000] } });
    },
    'R15: an expired read hold gets the lease while its owner has a write hold': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 1 }, reads: { a: [0] }, lease: 9_000 });
      expect(await bench.run(keys(bench), 0, base(bench), 'a', 40_000, 0, 1, 1)).toEqual([40_000]);
      await expectHolds(bench, { mode: 'write', writes: { a: 1 }, reads: { a: [40_000] } });
    },
    'no key is created for a read hold that was released since': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [9_000] } });
      expect(await bench.run(keys(bench), 0, base(bench), 'a', 30_000, 0, 2, 0, 1)).toEqual([between(8_000, 9_000)]);
      await expectHolds(bench, { mode: 'read', reads: { a: [9_000] } });
    },
    'R10: a lock that is gone, taken or expired replies 0 and is not changed': async (bench) => {
      const [gone, taken] = [`${bench.name}:gone`, bench.name];
      await given(bench, { mode: 'read', reads: { b: [20_000], a: [0] } });
      const holds = [['a', 30_000, 0, 1, 1] as const, ['c', 30_000, 1, 1, 1] as const, ['a', 30_000, 0, 1, 1] as const];
      const args = holds.flatMap((hold) => [base(bench), ...hold]);
      const answer = await bench.run([gone, taken, taken], 0, ...args);
      expect(answer).toEqual([0, 0, 0]);
      await expectHolds(bench, { mode: 'read', reads: { b: [20_000], a: [0] } });
    },
    'R16: the read hold of another owner is not renewed': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [5_000], dead: [6_000] } });
      await bench.run(keys(bench), 0, base(bench), 'a', 30_000, 0, 1, 1);
      await expectHolds(bench, { mode: 'read', reads: { a: [30_000], dead: [6_000] } });
    },
  },
  '-3': { 'too late: nothing is renewed': late(keys, (notAfter) => [notAfter, 'base', 'a', 90_000, 1, 1, 1]) },
});

describeScript(renewKey, {
  n: {
    'the expiry of the hash is extended if the owner has either half, and never shortened': async (bench) => {
      await given(bench, { mode: 'write', writes: { a: 1 }, reads: { b: [5_000] }, lease: 5_000 });
      expect(await bench.run(keys(bench), 'a', 30_000, await bench.notAfter(5_000))).toBe(30_000);
      expect(await bench.run(keys(bench), 'b', 1, 0)).toEqual(between(29_000, 30_000));
      await expectHolds(bench, { mode: 'write', writes: { a: 1 }, reads: { b: [5_000] }, lease: 30_000 });
    },
    'the key of a read hold needs no owner': async (bench) => {
      await given(bench, { mode: 'read', reads: { a: [5_000] } });
      expect(await bench.run([holdKey(bench, 'a', 1)], '', 30_000, 0)).toBe(30_000);
      await expectHolds(bench, { mode: 'read', reads: { a: [30_000] }, lease: 5_000 });
    },
    'a key without expiry stays without': async (bench) => {
      await admin().hset(bench.name, { mode: 'read', a: '1' });
      expect(await bench.run(keys(bench), 'a', 30_000, 0)).toBe(30_000);
      expect(await admin().pttl(bench.name)).toBe(-1);
    },
  },
  '0': {
    'R10: a missing key is not created, and the holds of others are not renewed': async (bench) => {
      expect(await bench.run([holdKey(bench, 'a', 1)], '', 30_000, 0)).toBe(0);
      expect(await bench.run(keys(bench), 'a', 30_000, 0)).toBe(0);
      expect(await bench.state()).toEqual({});
      await given(bench, { mode: 'read', reads: { b: [5_000] } });
      expect(await bench.run(keys(bench), 'a', 30_000, 0)).toBe(0);
      await expectHolds(bench, { mode: 'read', reads: { b: [5_000] } });
    },
  },
  '-3': { 'too late: nothing is renewed': late(keys, (notAfter) => ['a', 90_000, notAfter]) },
});

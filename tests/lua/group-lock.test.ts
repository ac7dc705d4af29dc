import { expect } from '@jest/globals';
import { lockChannel } from '../../src/redis/keys.js';
import { acquire, acquireNested, release, releasePartial, renew, state } from '../../src/several/group/scripts.js';
import { heldValue, holdValues, serverNow, valueField } from '../support/lua/group-values.js';
import { admin } from '../support/redis.js';
import { between, describeScript, type ScriptBench } from './script-bench.js';

/*
 * The clock of the server counts: an end is compared with it, and never with a local clock.
 */

interface Held {
  readonly owner: string;
  readonly count?: number;
  /** ms of its lease. */
  readonly lease: number;
}

type Holds = Record<string, Held>;

async function given(bench: ScriptBench, holds: Holds): Promise<void> {
  for (const [value, { owner, count = 1, lease }] of Object.entries(holds)) {
    await holdValues(bench.name, [value], lease, { owner, count });
  }
}

function endsWithin(now: number, lease: number): unknown {
  return {
    $$typeof: Symbol.for('jest.asymmetricMatcher'),
    asymmetricMatch: (text: unknown) =>
      typeof text === 'string' &&
      /^\d+$/.test(text) &&
      Number(text) <= now + lease &&
      Number(text) > now + lease - 1_000,
    toString: () => 'endsWithin',
    toAsymmetricMatcher: () => `about ${lease} ms from now`,
  };
}

async function expectHolds(bench: ScriptBench, holds: Holds, pttl?: number): Promise<void> {
  const now = await serverNow();
  const value = Object.assign(
    {},
    ...Object.entries(holds).map(([name, { owner, count = 1, lease }]) =>
      heldValue(name, owner, count, endsWithin(now, lease)),
    ),
  ) as Record<string, unknown>;
  const longest = pttl ?? Math.max(...Object.values(holds).map(({ lease }) => lease));
  expect(await bench.state()).toEqual(
    Object.keys(holds).length === 0
      ? {}
      : { [bench.name]: { type: 'hash', value, pttl: between(longest - 1_000, longest) } },
  );
}

const fields = (...values: string[]): string[] => values.map(valueField);
const freed = ({ name }: ScriptBench) => [{ channel: lockChannel(name), payload: '0' }];
/** The publish command and the channel. */
const publish = ({ name }: ScriptBench) => ['PUBLISH', lockChannel(name)];

function late(keys: (bench: ScriptBench) => string[], args: (string | number)[]) {
  return async (bench: ScriptBench): Promise<void> => {
    expect(await bench.run(keys(bench), await bench.notAfter(-1), ...args)).toBe(-3);
    expect(await bench.state()).toEqual({});
    await given(bench, { a: { owner: 'x', count: 2, lease: 40_000 } });
    expect(await bench.run(keys(bench), await bench.notAfter(-1), ...args)).toBe(-3);
    await expectHolds(bench, { a: { owner: 'x', count: 2, lease: 40_000 } });
    expect(await bench.published()).toEqual([]);
  };
}

const alone = ({ name }: ScriptBench) => [name];
const many = Array.from({ length: 2_500 }, (_, i) => `order:${i}`);

describeScript(acquire, {
  nil: {
    'free values are acquired, each with owner, end and count': async (bench) => {
      const args = ['x', 30_000, ...fields('a', 'b')];
      expect(await bench.run([bench.name], await bench.notAfter(5_000), ...args)).toBeNull();
      await expectHolds(bench, { a: { owner: 'x', lease: 30_000 }, b: { owner: 'x', lease: 30_000 } });
      expect(await bench.published()).toEqual([]);
    },
    'values beside those of others are acquired, and the key lasts as long as the longest lease': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 60_000 } });
      expect(await bench.run([bench.name], 0, 'y', 30_000, ...fields('b'))).toBeNull();
      await expectHolds(bench, { a: { owner: 'x', lease: 60_000 }, b: { owner: 'y', lease: 30_000 } });
      expect(await bench.run([bench.name], 0, 'z', 90_000, ...fields('c'))).toBeNull();
      expect(await admin().pttl(bench.name)).toBeGreaterThan(89_000);
    },
    'a repeat counts once and shortens no lease': async (bench) => {
      await bench.run([bench.name], 0, 'x', 60_000, ...fields('a', 'b'));
      expect(await bench.run([bench.name], 0, 'x', 30_000, ...fields('a', 'b'))).toBeNull();
      await expectHolds(bench, { a: { owner: 'x', lease: 60_000 }, b: { owner: 'x', lease: 60_000 } });
    },
    'expired values are acquired, and nothing of their old owner is left behind': async (bench) => {
      await given(bench, { a: { owner: 'x', count: 3, lease: -1 }, b: { owner: 'z', lease: 20_000 } });
      expect(await bench.run([bench.name], 0, 'y', 30_000, ...fields('a'))).toBeNull();
      await expectHolds(bench, { a: { owner: 'y', lease: 30_000 }, b: { owner: 'z', lease: 20_000 } });
    },
    'more values than Lua can pass at once are acquired, also over expired ones': async (bench) => {
      await given(
        bench,
        Object.fromEntries(
          many.slice(0, 5).map((value) => [value, { owner: '8743c9c0-0795-4907-87fd-6c719a6b4586:52', lease: -1 }]),
        ),
      );
      expect(await bench.run([bench.name], 0, 'y', 30_000, ...fields(...many))).toBeNull();
      expect(await admin().hlen(bench.name)).toBe(3 * many.length);
    },
    'a lease near the largest keeps its digits': async (bench) => {
      const lease = 2 ** 53 - 2 ** 42;
      expect(await bench.run([bench.name], 0, 'x', lease, ...fields('a'))).toBeNull();
      const ends = await admin().hget(bench.name, `${valueField('a')}:x:expire_time`);
      expect(ends).toMatch(/^\d{16}$/);
    },
  },
  '0': {
    'a repeat that finds only some values of an earlier attempt acquires nothing': async (bench) => {
      await given(bench, { b: { owner: 'x', count: 2, lease: 20_000 } });
      expect(await bench.run([bench.name], 0, 'x', 30_000, ...fields('a', 'b'))).toBe(0);
      await expectHolds(bench, { b: { owner: 'x', count: 2, lease: 20_000 } });
    },
  },
  n: {
    'a name with a read-write lock is busy': async (bench) => {
      await admin().hset(bench.name, { mode: 'read', '8743c9c0-0795-4907-87fd-6c719a6b4586:52': '1' });
      await admin().pexpire(bench.name, 20_000);
      expect(await bench.run([bench.name], 0, 'x', 30_000, ...fields('a'))).toEqual(between(19_000, 20_000));
      expect(await admin().hgetall(bench.name)).toEqual({
        mode: 'read',
        '8743c9c0-0795-4907-87fd-6c719a6b4586:52': '1',
      });
      await admin().persist(bench.name);
      expect(await bench.run([bench.name], 0, 'x', 30_000, ...fields('a'))).toBe(-1);
    },
    'one busy value refuses all values, with the longest lease of the busy ones': async (bench) => {
      await given(bench, { b: { owner: 'x', lease: 20_000 }, c: { owner: 'z', lease: 50_000 } });
      const left = await bench.run([bench.name], 0, 'y', 30_000, ...fields('a', 'b', 'c'));
      expect(left).toEqual(between(49_000, 50_000));
      await expectHolds(bench, { b: { owner: 'x', lease: 20_000 }, c: { owner: 'z', lease: 50_000 } });
    },
    'the last of many values is checked, too': async (bench) => {
      await given(bench, { [many.at(-1)!]: { owner: 'x', lease: 20_000 } });
      expect(await bench.run([bench.name], 0, 'y', 1_000, ...fields(...many))).toEqual(between(10_000, 20_000));
      expect(await admin().hlen(bench.name)).toBe(3);
    },
  },
  WRONGTYPE: {
    'a hash without a lease and without an owner is not a lock, and stays as it is': async (bench) => {
      await admin().hset(bench.name, { name: 'alice', 'visits:1': '3' });
      await expect(bench.run([bench.name], 0, 'x', 30_000, ...fields('a'))).rejects.toThrow(/^WRONGTYPE .* not a lock/);
      expect(await bench.state()).toEqual({
        [bench.name]: { type: 'hash', value: { name: 'alice', 'visits:1': '3' }, pttl: -1 },
      });
    },
  },
  '-3': { 'nothing is changed': late(alone, ['x', 60_000, ...fields('a')]) },
});

const nested = (...counts: [string, number][]): (string | number)[] =>
  counts.flatMap(([value, count]) => [valueField(value), count]);

describeScript(acquireNested, {
  1: {
    'each value gets its own count, and the longer lease': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 10_000 }, b: { owner: 'x', lease: 60_000 } });
      const args = ['x', 30_000, ...nested(['a', 2], ['b', 3])];
      expect(await bench.run([bench.name], await bench.notAfter(5_000), ...args)).toBe(1);
      await expectHolds(bench, {
        a: { owner: 'x', count: 2, lease: 30_000 },
        b: { owner: 'x', count: 3, lease: 60_000 },
      });
      expect(await bench.run([bench.name], 0, ...args)).toBe(1);
      expect(await admin().hget(bench.name, `${valueField('a')}:x:lock_count`)).toBe('2');
    },
    'the key lasts as long': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 10_000 } });
      await bench.run([bench.name], 0, 'x', 30_000, ...nested(['a', 2]));
      expect(await admin().pttl(bench.name)).toBeGreaterThan(29_000);
    },
  },
  0: {
    'with a value that is lost, expired or gone nothing is changed': async (bench) => {
      const holds = { a: { owner: 'x', lease: 10_000 }, b: { owner: 'y', lease: 10_000 } };
      await given(bench, holds);
      expect(await bench.run([bench.name], 0, 'x', 30_000, ...nested(['a', 2], ['b', 2]))).toBe(0);
      expect(await bench.run([bench.name], 0, 'x', 30_000, ...nested(['a', 2], ['c', 2]))).toBe(0);
      await expectHolds(bench, holds);
      await given(bench, { c: { owner: 'x', lease: -1 } });
      expect(await bench.run([bench.name], 0, 'x', 30_000, ...nested(['a', 2], ['c', 2]))).toBe(0);
      expect(await admin().hget(bench.name, `${valueField('a')}:x:lock_count`)).toBe('1');
    },
  },
  '-3': { 'nothing is changed': late(alone, ['x', 60_000, ...nested(['a', 3])]) },
});

const rest = (...values: [string, number, number][]): (string | number)[] =>
  values.flatMap(([value, count, left]) => [valueField(value), count, left]);

describeScript(releasePartial, {
  1: {
    'counts and ends are set, also to an earlier end; if alone in the hash, the expiry of the key, too': async (
      bench,
    ) => {
      await given(bench, { a: { owner: 'x', count: 3, lease: 60_000 }, b: { owner: 'x', count: 2, lease: 60_000 } });
      const args = ['x', ...publish(bench), 20_000, ...rest(['a', 2, 20_000], ['b', 1, 10_000])];
      expect(await bench.run(alone(bench), await bench.notAfter(5_000), ...args)).toBe(1);
      await expectHolds(bench, { a: { owner: 'x', count: 2, lease: 20_000 }, b: { owner: 'x', lease: 10_000 } });
      expect(await bench.published()).toEqual([]);
    },
    'a value without remaining holds is free, and one message is published': async (bench) => {
      await given(bench, { a: { owner: 'x', count: 2, lease: 60_000 }, b: { owner: 'x', lease: 60_000 } });
      const args = ['x', ...publish(bench), 20_000, ...rest(['a', 1, 20_000], ['b', 0, 0])];
      expect(await bench.run(alone(bench), 0, ...args)).toBe(1);
      await expectHolds(bench, { a: { owner: 'x', lease: 20_000 } });
      expect(await bench.published()).toEqual(freed(bench));
      expect(await bench.run(alone(bench), 0, ...args)).toBe(1);
      expect(await bench.published()).toEqual([]);
    },
    'beside other owners the key keeps its expiry, and their values stay theirs': async (bench) => {
      const theirs = { b: { owner: 'y', lease: 90_000 } };
      await given(bench, { a: { owner: 'x', count: 2, lease: 60_000 }, ...theirs });
      const args = ['x', ...publish(bench), 20_000, ...rest(['a', 1, 20_000], ['b', 0, 0])];
      expect(await bench.run(alone(bench), 0, ...args)).toBe(1);
      await expectHolds(bench, { a: { owner: 'x', lease: 20_000 }, ...theirs });
      expect(await bench.published()).toEqual([]);
    },
  },
  0: {
    'with a lost remaining value nothing is changed': async (bench) => {
      const holds = { a: { owner: 'x', count: 2, lease: 60_000 }, b: { owner: 'y', lease: 60_000 } };
      await given(bench, holds);
      const args = ['x', ...publish(bench), 20_000, ...rest(['a', 1, 20_000], ['b', 1, 20_000])];
      expect(await bench.run(alone(bench), 0, ...args)).toBe(0);
      await expectHolds(bench, holds);
      expect(await bench.published()).toEqual([]);
    },
  },
  '-3': { 'nothing is changed': late(alone, ['x', 'PUBLISH', 'unheard', 1_000, ...rest(['a', 1, 1_000])]) },
});

describeScript(release, {
  1: {
    'all values of the owner are released with any counts, and the values of others stay': async (bench) => {
      const theirs = { c: { owner: 'y', lease: 60_000 } };
      await given(bench, { a: { owner: 'x', count: 3, lease: 9_000 }, b: { owner: 'x', lease: 9_000 }, ...theirs });
      expect(await bench.run(alone(bench), ...publish(bench), 1, 2, 'x', ...fields('a', 'b'))).toBe(1);
      await expectHolds(bench, theirs);
      expect(await bench.published()).toEqual(freed(bench));
    },
    'the last values take the key with them': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 9_000 } });
      expect(await bench.run(alone(bench), ...publish(bench), 1, 1, 'x', ...fields('a', 'b'))).toBe(1);
      expect(await bench.state()).toEqual({});
    },
    'without needed values, those of several owners and expired ones are released': async (bench) => {
      await given(bench, {
        a: { owner: 'x', lease: 9_000 },
        b: { owner: 'y', lease: -1 },
        c: { owner: 'z', lease: 9_000 },
      });
      expect(await bench.run(alone(bench), ...publish(bench), 2, 0, 'x', 'y', ...fields('a', 'b', 'c'))).toBe(1);
      await expectHolds(bench, { c: { owner: 'z', lease: 9_000 } });
    },
  },
  2: {
    'with a needed value of another owner, the others are released all the same': async (bench) => {
      const theirs = { b: { owner: 'y', lease: 9_000 } };
      await given(bench, { a: { owner: 'x', lease: 9_000 }, ...theirs });
      expect(await bench.run(alone(bench), ...publish(bench), 1, 2, 'x', ...fields('a', 'b'))).toBe(2);
      await expectHolds(bench, theirs);
      expect(await bench.published()).toEqual(freed(bench));
    },
    'with a needed value that had expired, the others are released': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 9_000 }, b: { owner: 'x', lease: -1 } });
      expect(await bench.run(alone(bench), ...publish(bench), 1, 2, 'x', ...fields('a', 'b'))).toBe(2);
      expect(await bench.state()).toEqual({});
    },
  },
  0: {
    'without a value of the owner nothing is published': async (bench) => {
      const holds = { a: { owner: 'y', lease: 9_000 } };
      await given(bench, holds);
      expect(await bench.run(alone(bench), ...publish(bench), 1, 2, 'x', ...fields('a', 'b'))).toBe(0);
      await expectHolds(bench, holds);
      expect(await bench.published()).toEqual([]);
    },
  },
});

describeScript(renew, {
  'an array with one integer for each group: shortest remaining lease, in ms, of the values to renew, or of': {
    'held values are extended, and the key with them': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 9_000 }, b: { owner: 'x', lease: 8_000 } });
      const args = ['x', 30_000, 2, 0, ...fields('a', 'b')];
      expect(await bench.run([bench.name], await bench.notAfter(5_000), ...args)).toEqual([30_000]);
      await expectHolds(bench, { a: { owner: 'x', lease: 30_000 }, b: { owner: 'x', lease: 30_000 } });
    },
    'leases are never shortened, and the shortest renewed lease is returned': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 90_000 }, b: { owner: 'x', lease: 60_000 } });
      const [left] = (await bench.run([bench.name], 0, 'x', 30_000, 2, 0, ...fields('a', 'b'))) as [number];
      expect(left).toEqual(between(59_000, 60_000));
      await expectHolds(bench, { a: { owner: 'x', lease: 90_000 }, b: { owner: 'x', lease: 60_000 } });
    },
    'other held values are not renewed; without any to renew the shortest lease of them is returned': async (bench) => {
      const holds = { a: { owner: 'x', lease: 9_000 }, b: { owner: 'x', lease: 7_000 } };
      await given(bench, holds);
      expect(await bench.run([bench.name], 0, 'x', 8_000, 1, 1, ...fields('a', 'b'))).toEqual([between(8_000, 9_000)]);
      expect(await bench.run([bench.name], 0, 'x', 1, 0, 2, ...fields('a', 'b'))).toEqual([between(6_000, 7_000)]);
      await expectHolds(bench, holds);
    },
    'a hold with a lost, expired or foreign value replies 0 and is not renewed, and the next hold is': async (
      bench,
    ) => {
      const other = `${bench.name}{2}`;
      await given(bench, {
        a: { owner: 'x', lease: 9_000 },
        b: { owner: 'y', lease: 9_000 },
        c: { owner: 'x', lease: -1 },
      });
      await holdValues(other, ['a'], 9_000, { owner: 'x' });
      for (const lost of ['b', 'c', 'd']) {
        for (const [renewed, kept] of [
          [2, 0],
          [1, 1],
        ] as const) {
          const first = ['x', 30_000, renewed, kept, ...fields('a', lost)];
          const reply = await bench.run([bench.name, other], 0, ...first, 'x', 30_000, 1, 0, ...fields('a'));
          expect(reply).toEqual([0, between(29_000, 30_000)]);
        }
      }
      const ends = await admin().hget(bench.name, `${valueField('a')}:x:expire_time`);
      expect(Number(ends)).toBeLessThan((await serverNow()) + 9_001);
      await admin().del(other);
    },
  },
  '-3': { 'nothing is changed': late(alone, ['x', 60_000, 1, 0, ...fields('a')]) },
});

describeScript(state, {
  'an array': {
    'all free': async (bench) => {
      expect(await bench.run([bench.name], 'x', ...fields('a', 'b'))).toEqual([-2, 0]);
      await given(bench, { a: { owner: 'x', lease: -1 }, c: { owner: 'x', lease: 9_000 } });
      expect(await bench.run([bench.name], 'x', ...fields('a', 'b'))).toEqual([-2, 0]);
    },
    'several owners are listed once each': async (bench) => {
      await given(bench, {
        a: { owner: 'x', lease: 9_000 },
        b: { owner: 'y', lease: 20_000 },
        c: { owner: 'x', lease: 9_000 },
      });
      const reply = await bench.run([bench.name], 'x', ...fields('a', 'b', 'c'));
      expect(reply).toEqual([between(19_000, 20_000), 0, 'x', 'y']);
    },
    'the lowest count is returned, also of the first value': async (bench) => {
      await given(bench, { a: { owner: 'x', count: 1, lease: 9_000 }, b: { owner: 'x', count: 2, lease: 9_000 } });
      expect(await bench.run([bench.name], 'x', ...fields('a', 'b'))).toEqual([between(8_000, 9_000), 1, 'x']);
      expect(await bench.run([bench.name], 'y', ...fields('a', 'b'))).toEqual([between(8_000, 9_000), 0, 'x']);
      expect(await bench.run([bench.name], 'x', ...fields('c', 'b'))).toEqual([between(8_000, 9_000), 0, 'x']);
    },
  },
});

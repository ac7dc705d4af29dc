import { expect } from '@jest/globals';
import { lockChannel } from '../../src/redis/keys.js';
import { acquire, acquireNested, release, releasePartial, renew, state } from '../../src/redis/scripts/group-lock.js';
import { heldValue, holdValues, serverNow, valueField } from '../support/lua/group-values.js';
import { admin } from '../support/redis.js';
import { between, describeScript, type ScriptBench } from './script-bench.js';

/*
 * The clock that counts is the server's: an end is compared with it, never with ours.
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
/** What tells the waiters, and where. */
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
    'free values are taken, each with owner, end and count': async (bench) => {
      const args = ['x', 30_000, ...fields('a', 'b')];
      expect(await bench.run([bench.name], await bench.notAfter(5_000), ...args)).toBeNull();
      await expectHolds(bench, { a: { owner: 'x', lease: 30_000 }, b: { owner: 'x', lease: 30_000 } });
      expect(await bench.published()).toEqual([]);
    },
    'values beside those of others are taken; the key lasts as long as the longest': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 60_000 } });
      expect(await bench.run([bench.name], 0, 'y', 30_000, ...fields('b'))).toBeNull();
      await expectHolds(bench, { a: { owner: 'x', lease: 60_000 }, b: { owner: 'y', lease: 30_000 } });
      expect(await bench.run([bench.name], 0, 'z', 90_000, ...fields('c'))).toBeNull();
      expect(await admin().pttl(bench.name)).toBeGreaterThan(89_000);
    },
    'a repeat counts once, and never shortens': async (bench) => {
      await bench.run([bench.name], 0, 'x', 60_000, ...fields('a', 'b'));
      expect(await bench.run([bench.name], 0, 'x', 30_000, ...fields('a', 'b'))).toBeNull();
      await expectHolds(bench, { a: { owner: 'x', lease: 60_000 }, b: { owner: 'x', lease: 60_000 } });
    },
    'what its owner let expire is taken over, and nothing of it is left behind': async (bench) => {
      await given(bench, { a: { owner: 'x', count: 3, lease: -1 }, b: { owner: 'z', lease: 20_000 } });
      expect(await bench.run([bench.name], 0, 'y', 30_000, ...fields('a'))).toBeNull();
      await expectHolds(bench, { a: { owner: 'y', lease: 30_000 }, b: { owner: 'z', lease: 20_000 } });
    },
    'more values than Lua can pass at once are taken, over expired ones': async (bench) => {
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
    'a repeat that finds only some of what an earlier attempt took takes nothing': async (bench) => {
      await given(bench, { b: { owner: 'x', count: 2, lease: 20_000 } });
      expect(await bench.run([bench.name], 0, 'x', 30_000, ...fields('a', 'b'))).toBe(0);
      await expectHolds(bench, { b: { owner: 'x', count: 2, lease: 20_000 } });
    },
  },
  n: {
    'a read-write lock has the name: its scripts would count up to the times of the values': async (bench) => {
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
    'one busy value keeps all out: the longest lease in the way, and nothing is changed': async (bench) => {
      await given(bench, { b: { owner: 'x', lease: 20_000 }, c: { owner: 'z', lease: 50_000 } });
      const left = await bench.run([bench.name], 0, 'y', 30_000, ...fields('a', 'b', 'c'));
      expect(left).toEqual(between(49_000, 50_000));
      await expectHolds(bench, { b: { owner: 'x', lease: 20_000 }, c: { owner: 'z', lease: 50_000 } });
    },
    'the last of many values is looked at, too': async (bench) => {
      await given(bench, { [many.at(-1)!]: { owner: 'x', lease: 20_000 } });
      expect(await bench.run([bench.name], 0, 'y', 1_000, ...fields(...many))).toEqual(between(19_000, 20_000));
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
    'one value is somebody else’s, expired or gone: nothing is changed': async (bench) => {
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
    'counts and ends are set, also to an earlier one; alone in the hash, the key’s too': async (bench) => {
      await given(bench, { a: { owner: 'x', count: 3, lease: 60_000 }, b: { owner: 'x', count: 2, lease: 60_000 } });
      const args = ['x', ...publish(bench), 20_000, ...rest(['a', 2, 20_000], ['b', 1, 10_000])];
      expect(await bench.run(alone(bench), await bench.notAfter(5_000), ...args)).toBe(1);
      await expectHolds(bench, { a: { owner: 'x', count: 2, lease: 20_000 }, b: { owner: 'x', lease: 10_000 } });
      expect(await bench.published()).toEqual([]);
    },
    'a value that nothing is left of is free, and that is published, once': async (bench) => {
      await given(bench, { a: { owner: 'x', count: 2, lease: 60_000 }, b: { owner: 'x', lease: 60_000 } });
      const args = ['x', ...publish(bench), 20_000, ...rest(['a', 1, 20_000], ['b', 0, 0])];
      expect(await bench.run(alone(bench), 0, ...args)).toBe(1);
      await expectHolds(bench, { a: { owner: 'x', lease: 20_000 } });
      expect(await bench.published()).toEqual(freed(bench));
      expect(await bench.run(alone(bench), 0, ...args)).toBe(1);
      expect(await bench.published()).toEqual([]);
    },
    'beside others the key keeps its lease, and a value that is theirs by now stays theirs': async (bench) => {
      const theirs = { b: { owner: 'y', lease: 90_000 } };
      await given(bench, { a: { owner: 'x', count: 2, lease: 60_000 }, ...theirs });
      const args = ['x', ...publish(bench), 20_000, ...rest(['a', 1, 20_000], ['b', 0, 0])];
      expect(await bench.run(alone(bench), 0, ...args)).toBe(1);
      await expectHolds(bench, { a: { owner: 'x', lease: 20_000 }, ...theirs });
      expect(await bench.published()).toEqual([]);
    },
  },
  0: {
    'one of the rest was lost: nothing is changed': async (bench) => {
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
    'everything of the owner goes, whatever its counts; what others have stays': async (bench) => {
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
    'none needed: also of several owners, and of what has expired': async (bench) => {
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
    'one that was needed is somebody else’s: the rest is given back all the same': async (bench) => {
      const theirs = { b: { owner: 'y', lease: 9_000 } };
      await given(bench, { a: { owner: 'x', lease: 9_000 }, ...theirs });
      expect(await bench.run(alone(bench), ...publish(bench), 1, 2, 'x', ...fields('a', 'b'))).toBe(2);
      await expectHolds(bench, theirs);
      expect(await bench.published()).toEqual(freed(bench));
    },
    'one that was needed had expired': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 9_000 }, b: { owner: 'x', lease: -1 } });
      expect(await bench.run(alone(bench), ...publish(bench), 1, 2, 'x', ...fields('a', 'b'))).toBe(2);
      expect(await bench.state()).toEqual({});
    },
  },
  0: {
    'none of the values is the owner’s: nothing is published': async (bench) => {
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
    'what is held is extended, and the key with it': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 9_000 }, b: { owner: 'x', lease: 8_000 } });
      const args = ['x', 30_000, 2, 0, ...fields('a', 'b')];
      expect(await bench.run([bench.name], await bench.notAfter(5_000), ...args)).toEqual([30_000]);
      await expectHolds(bench, { a: { owner: 'x', lease: 30_000 }, b: { owner: 'x', lease: 30_000 } });
    },
    'never shortens, and answers the least of what is renewed': async (bench) => {
      await given(bench, { a: { owner: 'x', lease: 90_000 }, b: { owner: 'x', lease: 60_000 } });
      const [left] = (await bench.run([bench.name], 0, 'x', 30_000, 2, 0, ...fields('a', 'b'))) as [number];
      expect(left).toEqual(between(59_000, 60_000));
      await expectHolds(bench, { a: { owner: 'x', lease: 90_000 }, b: { owner: 'x', lease: 60_000 } });
    },
    'what is only held besides is left alone; with nothing to renew the least of it is told': async (bench) => {
      const holds = { a: { owner: 'x', lease: 9_000 }, b: { owner: 'x', lease: 7_000 } };
      await given(bench, holds);
      expect(await bench.run([bench.name], 0, 'x', 8_000, 1, 1, ...fields('a', 'b'))).toEqual([between(8_000, 9_000)]);
      expect(await bench.run([bench.name], 0, 'x', 1, 0, 2, ...fields('a', 'b'))).toEqual([between(6_000, 7_000)]);
      await expectHolds(bench, holds);
    },
    '0: one is lost, expired, or another’s: nothing of that hold is renewed, the next one is': async (bench) => {
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
    'held by several, each named once': async (bench) => {
      await given(bench, {
        a: { owner: 'x', lease: 9_000 },
        b: { owner: 'y', lease: 20_000 },
        c: { owner: 'x', lease: 9_000 },
      });
      const reply = await bench.run([bench.name], 'x', ...fields('a', 'b', 'c'));
      expect(reply).toEqual([between(19_000, 20_000), 0, 'x', 'y']);
    },
    'the least count, of the first value too': async (bench) => {
      await given(bench, { a: { owner: 'x', count: 1, lease: 9_000 }, b: { owner: 'x', count: 2, lease: 9_000 } });
      expect(await bench.run([bench.name], 'x', ...fields('a', 'b'))).toEqual([between(8_000, 9_000), 1, 'x']);
      expect(await bench.run([bench.name], 'y', ...fields('a', 'b'))).toEqual([between(8_000, 9_000), 0, 'x']);
      expect(await bench.run([bench.name], 'x', ...fields('c', 'b'))).toEqual([between(8_000, 9_000), 0, 'x']);
    },
  },
});

import { expect, test } from '@jest/globals';
import { tokenKey } from '../../src/redis/keys.js';
import { acquire, acquireNested, handOff } from '../../src/redis/scripts/fenced-lock.js';
import { admin } from '../support/redis.js';
import { runOperation } from '../support/lua/run-operation.js';
import { OWN, wakingProperties, withRoll } from './roll.js';
import { between, describeScript, heldBy, openBench, type ScriptBench } from './script-bench.js';

const counter = (value: string) => ({ type: 'string', value, pttl: -1 });

async function given({ name }: ScriptBench, fields: Record<string, string>, token = '7'): Promise<void> {
  await admin().hset(name, fields);
  await admin().pexpire(name, 60_000);
  await admin().set(tokenKey(name), token);
}

/** The arguments of a try that does not park its client, and those of a hand-over without a roll. */
const UNPARKED = ['', '', 0, 0] as const;
const NO_ROLL = ['', '', 1, '', 0] as const;

/** After notAfter nothing is changed, and no token is drawn. */
function tooLate(keys: (bench: ScriptBench) => string[], ...args: (string | number)[]) {
  return async (bench: ScriptBench): Promise<void> => {
    for (const fields of [undefined, { a: '1' }, { b: '1' }]) {
      await admin().del(bench.name, tokenKey(bench.name));
      if (fields) await given(bench, fields);
      const before = await bench.state();
      expect(await bench.run(keys(bench), ...args, await bench.notAfter(-1))).toBe(-3);
      expect(Object.keys(await bench.state())).toEqual(Object.keys(before));
      if (fields) expect(await admin().get(tokenKey(bench.name))).toBe('7');
    }
  };
}

async function micros(): Promise<number> {
  const [seconds, part] = await admin().time();
  return Number(seconds) * 1_000_000 + Number(part);
}

const pair = ({ name }: ScriptBench) => [name, tokenKey(name)];

describeScript(acquire, {
  text: {
    'a free lock is acquired with the first token, hold count 1': async (bench) => {
      expect(await bench.run(pair(bench), 'a', 30_000, 'counter', ...UNPARKED, await bench.notAfter(5_000))).toBe('1');
      expect(await bench.state()).toEqual({
        [bench.name]: heldBy('a', 1, 30_000),
        [tokenKey(bench.name)]: counter('1'),
      });
      expect(await bench.published()).toEqual([]);
    },
    'R29: the next token is larger after expiry, deletion and force unlock, because nothing resets the counter': async (
      bench,
    ) => {
      for (const token of ['1', '2', '3']) {
        expect(await bench.run(pair(bench), `owner-${token}`, 30_000, 'counter', ...UNPARKED, 0)).toBe(token);
        await admin().del(bench.name);
      }
    },
    'a repeat draws no second token': async (bench) => {
      await given(bench, { a: '1' });
      expect(await bench.run(pair(bench), 'a', 30_000, 'counter', ...UNPARKED, 0)).toBe('7');
      expect(await bench.state()).toEqual({
        [bench.name]: heldBy('a', 1, 60_000),
        [tokenKey(bench.name)]: counter('7'),
      });
    },
    'a copy after a nested acquire keeps the count': async (bench) => {
      await given(bench, { a: '2' });
      expect(await bench.run(pair(bench), 'a', 30_000, 'counter', ...UNPARKED, 0)).toBe('7');
      expect((await bench.state())[bench.name]).toEqual(heldBy('a', 2, 60_000));
    },
    'R31: with clock the token is at least the time, also after the counter is lost': async (bench) => {
      const before = await micros();
      const token = (await bench.run(pair(bench), 'a', 30_000, 'clock', ...UNPARKED, 0)) as string;
      expect(token).toMatch(/^\d{16}$/);
      expect(Number(token)).toEqual(between(before, await micros()));
    },
    'a counter ahead of the clock is increased by one': async (bench) => {
      await admin().set(tokenKey(bench.name), '8000000000000000');
      expect(await bench.run(pair(bench), 'a', 30_000, 'clock', ...UNPARKED, 0)).toBe('8000000000000001');
    },
    'a token beyond the precision of a double is returned exactly': async (bench) => {
      await admin().set(tokenKey(bench.name), '9007199254740993');
      expect(await bench.run(pair(bench), 'a', 30_000, 'counter', ...UNPARKED, 0)).toBe('9007199254740994');
    },
    'an expiry of the counter is removed': async (bench) => {
      await admin().set(tokenKey(bench.name), '4', 'PX', 60_000);
      expect(await bench.run(pair(bench), 'a', 30_000, 'counter', ...UNPARKED, 0)).toBe('5');
      expect(await admin().pttl(tokenKey(bench.name))).toBe(-1);
    },
  },
  n: {
    "another owner's lock uses up no token": async (bench) => {
      await given(bench, { b: '1' });
      expect(await bench.run(pair(bench), 'a', 30_000, 'counter', ...UNPARKED, 0)).toEqual(between(59_000, 60_000));
      expect(await admin().get(tokenKey(bench.name))).toBe('7');
    },
    'a lock without expiry replies the number -1 and no token': async (bench) => {
      await given(bench, { '8743c9c0-0795-4907-87fd-6c719a6b4586:52': '1' });
      await admin().persist(bench.name);
      expect(await bench.run(pair(bench), 'a', 30_000, 'counter', ...UNPARKED, 0)).toBe(-1);
    },
  },
  WRONGTYPE: {
    'a hash without a lease and without an owner is not a lock, and stays as it is': async (bench) => {
      await admin().hset(bench.name, { name: 'alice', 'visits:1': '3' });
      await expect(bench.run(pair(bench), 'a', 30_000, 'counter', ...UNPARKED, 0)).rejects.toThrow(
        /^WRONGTYPE .* not a lock/,
      );
      expect(await bench.state()).toEqual({
        [bench.name]: { type: 'hash', value: { name: 'alice', 'visits:1': '3' }, pttl: -1 },
      });
    },
  },
  'an array': {
    'the client is parked, and leaves the roll with its grant': withRoll(async (roll, bench) => {
      await given(bench, { [`${roll.station('h')}:1`]: '1' });
      const try_ = (registered: number): Promise<unknown> =>
        bench.run(pair(bench), 'a:1', 30_000, 'counter', roll.key, roll.station('a'), 500, registered, 0);
      await roll.park('b');
      expect(await try_(0)).toEqual([between(59_000, 60_000), 0, 0]);
      expect(await roll.parked()).toBe('ab');
      await roll.expectFresh();
      await given(bench, { '8743c9c0-0795-4907-87fd-6c719a6b4586:52': '1' });
      expect(await try_(1)).toEqual([between(59_000, 60_000), 1, 0]);
      await admin().del(bench.name);
      expect(await try_(1)).toBe('8');
      expect(await roll.parked()).toBe('b');
    }),
  },
  '-3': { 'too late: no token, no lock': tooLate(pair, 'a', 30_000, 'counter', ...UNPARKED) },
});

describeScript(acquireNested, {
  text: {
    'the owner has the given count, and a new token once': async (bench) => {
      await given(bench, { a: '1' });
      expect(await bench.run(pair(bench), 'a', 2, 90_000, 'counter', '7', 0)).toBe('8');
      expect(await bench.run(pair(bench), 'a', 2, 90_000, 'counter', '7', 0)).toBe('8');
      expect(await bench.state()).toEqual({
        [bench.name]: heldBy('a', 2, 90_000),
        [tokenKey(bench.name)]: counter('8'),
      });
    },
    'R29: an equal count after a lost release of another hold is no repeat: that hold has the last token': async (
      bench,
    ) => {
      await given(bench, { a: '2' });
      expect(await bench.run(pair(bench), 'a', 2, 30_000, 'counter', '7', 0)).toBe('8');
      expect(await bench.run(pair(bench), 'a', 2, 30_000, 'counter', '7', 0)).toBe('8');
    },
    'R29: an equal count is no repeat without a token of the owner: the last token is that of a previous owner': async (
      bench,
    ) => {
      await given(bench, { a: '2' });
      expect(await bench.run(pair(bench), 'a', 2, 30_000, 'counter', '', 0)).toBe('8');
    },
    'with clock the token is the time': async (bench) => {
      await given(bench, { a: '1' });
      const before = await micros();
      expect(Number(await bench.run(pair(bench), 'a', 2, 30_000, 'clock', '7', 0))).toEqual(between(before, Infinity));
    },
  },
  '0': {
    'a lock that is gone is not created, and no token is drawn': async (bench) => {
      expect(await bench.run(pair(bench), 'a', 2, 30_000, 'counter', '7', 0)).toBe(0);
      expect(await bench.state()).toEqual({});
    },
  },
  '-3': { 'too late: nothing is changed': tooLate(pair, 'a', 2, 30_000, 'counter', '7') },
});

const handingOff = wakingProperties(handOff.script!.source, {
  done: 2,
  payload: '0',
  form: 'streak',
  hold: (bench) => given(bench, { a: '1' }),
  keys: pair,
  args: ({ channel }, { publish, ours, waiters, own, most, station }) => [
    ...['a', 'b', 20_000, publish, channel, ours, waiters, own, most, station, 2_000, 'counter', 0],
  ],
});

describeScript(handOff, {
  text: {
    'the next owner has the lock and a new token, and nothing is published': async (bench) => {
      await given(bench, { a: '1' });
      expect(
        await bench.run(pair(bench), 'a', 'b', 20_000, 'PUBLISH', bench.channel, -1, ...NO_ROLL, 'counter', 0),
      ).toBe('8');
      expect(await bench.state()).toEqual({
        [bench.name]: heldBy('b', 1, 20_000),
        [tokenKey(bench.name)]: counter('8'),
      });
      expect(await bench.published()).toEqual([]);
    },
    'a repeat returns the same token and does not change the lease': async (bench) => {
      await given(bench, { b: '1' });
      expect(await bench.run(pair(bench), 'a', 'b', 90_000, 'PUBLISH', bench.channel, 0, ...NO_ROLL, 'clock', 0)).toBe(
        '7',
      );
      expect(await bench.state()).toEqual({
        [bench.name]: heldBy('b', 1, 60_000),
        [tokenKey(bench.name)]: counter('7'),
      });
    },
  },
  '5': handingOff['5'],
  '6': handingOff['6'],
  '7': handingOff['7'],
  '2': {
    ...handingOff.done,
    'with other waiting clients the lock is freed and published, and no token is drawn': async (bench) => {
      await given(bench, { a: '1' });
      const another = admin().duplicate();
      await another.subscribe(bench.channel);
      expect(
        await bench.run(pair(bench), 'a', 'b', 20_000, 'PUBLISH', bench.channel, 0, ...NO_ROLL, 'counter', 0),
      ).toBe(2);
      await another.quit();
      expect(await bench.state()).toEqual({ [tokenKey(bench.name)]: counter('7') });
      expect(await bench.published()).toEqual([{ channel: bench.channel, payload: '0' }]);
    },
  },
  '0': {
    'without a hold of either owner nothing changes': async (bench) => {
      await given(bench, { c: '1' });
      expect(
        await bench.run(pair(bench), 'a', 'b', 20_000, 'PUBLISH', bench.channel, -1, ...NO_ROLL, 'counter', 0),
      ).toBe(0);
      expect(await bench.state()).toEqual({
        [bench.name]: heldBy('c', 1, 60_000),
        [tokenKey(bench.name)]: counter('7'),
      });
    },
  },
  '-3': {
    'too late: nothing is handed over': tooLate(
      pair,
      'a',
      'b',
      20_000,
      'PUBLISH',
      'channel',
      -1,
      ...NO_ROLL,
      'counter',
    ),
  },
});

test('the release that replaces a hand-over of a migrating slot wakes by the roll of the hand-over', async () => {
  const bench = await openBench(handOff.script!.source);
  await withRoll(async (roll) => {
    await given(bench, { a: '1' });
    await roll.park('ab');
    await roll.listen('x');
    const words = ['a', 'b', 20_000, 'PUBLISH', bench.channel, 1, roll.key, OWN, 1, roll.station('x'), 2_000] as const;
    const instead = handOff.ifSplit!([bench.name, tokenKey(bench.name)], [...words, 'counter']);
    if (typeof instead === 'string') throw new Error(instead);
    const { operation, keys, args } = instead;
    expect(await runOperation(operation, keys, args)).toEqual({ kind: 'freed' });
    expect(await roll.told()).toBe('1a 2b');
    expect(await roll.parked()).toBe('bx');
    await admin().del(tokenKey(bench.name));
  })(bench);
  await bench.close();
});

import { expect, test } from '@jest/globals';
import { latchChannel, latchOpenedKey, requestsKey } from '../../src/redis/keys.js';
import { countDown, look, remove, trySet } from '../../src/redis/scripts/latch.js';
import { admin, freshName } from '../support/redis.js';
import { describeScript, type ScriptBench } from './script-bench.js';

const keys = ({ name }: ScriptBench) => [name, requestsKey(name, 'client'), latchOpenedKey(name)];
const openedAt = ({ name }: ScriptBench) => admin().get(latchOpenedKey(name));
const count = ({ name }: ScriptBench) => admin().get(name);
const message = ({ name }: ScriptBench, payload: string) => [{ channel: latchChannel(name), payload }];

const run = ({ script }: { script: { source: string } | undefined }, keys: string[], ...args: (string | number)[]) =>
  admin().eval(script!.source, keys.length, ...keys, ...args);

type Run = (bench: ScriptBench, sequence: number, notAfter?: number) => Promise<unknown>;
const down: Run = (bench, sequence, notAfter = 0) =>
  run(countDown, keys(bench), 'PUBLISH', latchChannel(bench.name), 0, sequence, notAfter);
const open: Run = (bench, sequence, notAfter = 0) =>
  run(remove, keys(bench), 'PUBLISH', latchChannel(bench.name), 0, sequence, notAfter);
const set: Run = (bench, sequence, notAfter = 0) =>
  run(trySet, keys(bench).slice(0, 2), 3, 'PUBLISH', latchChannel(bench.name), 0, sequence, notAfter);

const unchanged = async (bench: ScriptBench): Promise<void> => {
  expect(await count(bench)).toBe('2');
  expect(await bench.published()).toEqual([]);
};
const late = (request: Run) => async (bench: ScriptBench) => {
  await admin().set(bench.name, '2');
  expect(await request(bench, 1, await bench.notAfter(-1))).toBe(-3);
  await unchanged(bench);
};
const old = (request: Run) => async (bench: ScriptBench) => {
  await admin().set(bench.name, '2');
  await admin().hset(keys(bench)[1]!, '0', '7:-4');
  expect(await request(bench, 7)).toBe(-4);
  expect(await request(bench, 6)).toBe(-4);
  await unchanged(bench);
};
const repeated = (request: Run) => async (bench: ScriptBench) => {
  await admin().set(bench.name, '2');
  await admin().hset(keys(bench)[1]!, '0', '7:1');
  expect(await request(bench, 7)).toBe(1);
  await unchanged(bench);
};

describeScript(countDown, {
  n: {
    'the count falls, and at zero the key is deleted and a message published': async (bench) => {
      await admin().set(bench.name, '2');
      expect(await down(bench, 1)).toBe(1);
      expect(await bench.published()).toEqual([]);
      expect(await down(bench, 2)).toBe(0);
      expect(await count(bench)).toBeNull();
      expect(await bench.published()).toEqual(message(bench, '0'));
    },
    'R1: a repeat counts once': repeated(down),
    'only the last count-down is stored as an opening, for one hour': async (bench) => {
      await admin().set(bench.name, '2');
      await down(bench, 1);
      expect(await openedAt(bench)).toBeNull();
      const [before] = await admin().time();
      await down(bench, 2);
      expect(Number(await openedAt(bench)) / 1e6).toBeGreaterThanOrEqual(Number(before));
      expect(await admin().pttl(latchOpenedKey(bench.name))).toBeGreaterThan(3_590_000);
    },
    'an open latch stays open, and nothing is published': async (bench) => {
      expect(await down(bench, 1)).toBe(0);
      expect(await count(bench)).toBeNull();
      expect(await bench.published()).toEqual([]);
    },
    'a count below one, as Redisson can set it, opens without a message': async (bench) => {
      await admin().set(bench.name, '0');
      expect(await down(bench, 1)).toBe(0);
      expect(await count(bench)).toBeNull();
      expect(await bench.published()).toEqual([]);
    },
  },
  '-3': { 'too late: nothing is counted': late(down) },
  '-4': { 'cancelled or overtaken: nothing is counted': old(down) },
});

describeScript(trySet, {
  '1': {
    'a latch that Redisson gave a count of 0 or less is open, and is closed': async (bench) => {
      for (const [sequence, stored] of [-3, 0].entries()) {
        await admin().set(bench.name, stored);
        expect(await set(bench, sequence + 1)).toBe(1);
        expect(await count(bench)).toBe('3');
        expect(await bench.published()).toEqual(message(bench, '1'));
      }
    },
    'an open latch is closed': async (bench) => {
      expect(await set(bench, 1)).toBe(1);
      expect(await count(bench)).toBe('3');
      expect(await bench.published()).toEqual(message(bench, '1'));
    },
  },
  '0': {
    'a closed latch keeps its count': async (bench) => {
      await admin().set(bench.name, '2');
      expect(await set(bench, 1)).toBe(0);
      await unchanged(bench);
    },
  },
  n: { 'a repeat closes the latch once and replies the same': repeated(set) },
  WRONGTYPE: {
    'a string that is not a number stays as it is': async (bench) => {
      await admin().set(bench.name, 'hello');
      await expect(set(bench, 1)).rejects.toThrow(/^WRONGTYPE .* not a count/);
      expect(await admin().get(bench.name)).toBe('hello');
      expect(await bench.published()).toEqual([]);
    },
  },
  '-3': { 'too late: nothing is changed': late(set) },
  '-4': { 'cancelled or overtaken: nothing is changed': old(set) },
});

describeScript(remove, {
  '1': {
    'a closed latch opens, and a message is published': async (bench) => {
      await admin().set(bench.name, '2');
      expect(await down(bench, 1)).toBe(1);
      expect(await open(bench, 2)).toBe(1);
      expect(await count(bench)).toBeNull();
      expect(await bench.published()).toEqual(message(bench, '0'));
      expect(Number(await openedAt(bench))).toBeGreaterThan(1e15);
    },
  },
  '0': {
    'a latch that Redisson gave a count of 0 was open: its key is deleted, and nothing is published': async (bench) => {
      await admin().set(bench.name, '0');
      expect(await open(bench, 1)).toBe(0);
      expect(await count(bench)).toBeNull();
      expect(await bench.published()).toEqual([]);
    },
    'an open latch stays open': async (bench) => {
      expect(await down(bench, 1)).toBe(0);
      expect(await open(bench, 2)).toBe(0);
      expect(await bench.published()).toEqual([]);
    },
  },
  n: { 'a repeat opens the latch once and replies the same': repeated(open) },
  WRONGTYPE: {
    'a string that is not a number stays as it is': async (bench) => {
      await admin().set(bench.name, 'hello');
      await expect(open(bench, 1)).rejects.toThrow(/^WRONGTYPE .* not a count/);
      expect(await admin().get(bench.name)).toBe('hello');
      expect(await bench.published()).toEqual([]);
    },
  },
  '-3': { 'too late: nothing is changed': late(open) },
  '-4': { 'cancelled or overtaken: nothing is changed': old(open) },
});

test('a read tells that the latch is open, or when it was last opened', async () => {
  const name = freshName('latch');
  const looked = async () => look.reply(await admin().mget(name, latchOpenedKey(name)));
  expect(await looked()).toEqual({ kind: 'granted' });
  await admin().set(name, '0');
  expect(await looked()).toEqual({ kind: 'granted' });
  await admin().set(name, '3');
  expect(await looked()).toEqual({ kind: 'busy' });
  await admin().set(latchOpenedKey(name), '1790000000000001');
  expect(await looked()).toEqual({ kind: 'busy', openedAtUs: 1_790_000_000_000_001 });
});

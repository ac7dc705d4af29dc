import { expect, test } from '@jest/globals';
import {
  fairAliveKey,
  fairQueueKey,
  fairTimeoutsKey,
  lockChannel,
  readHoldKey,
  readHoldBase,
  readWriteChannel,
  requestsKey,
} from '../../src/redis/keys.js';
import { forceUnlock, inspect, inspectAll } from '../../src/redis/scripts/object.js';
import { heldValue } from '../support/lua/group-values.js';
import { projectFiles } from '../support/project/project-files.js';
import { admin } from '../support/redis.js';
import { OWN, wakingProperties, withRoll } from './roll.js';
import { between, describeScript, type ScriptBench } from './script-bench.js';

const NONE = [0, 0, 0];

describeScript(inspect, {
  "type of the object, its PTTL, its fields and values or its value, waiters, token ('' = none), and in turn": {
    'a missing name': async ({ run, name }) => {
      expect(await run(keysOf(name), 0)).toEqual(['none', -2, [], [], '', [], NONE]);
    },
    'a lock with its owner': async (bench) => {
      const { run, name, state } = bench;
      await admin().hset(name, OWNER, '2');
      await admin().pexpire(name, 60_000);
      const before = await state();
      expect(await run(keysOf(name), 0)).toEqual([
        'hash',
        between(59_000, 60_000),
        [OWNER, '2'],
        [],
        '',
        [],
        [1, 0, 0],
      ]);
      expect(await state()).toEqual({ [name]: { ...before[name], pttl: between(59_000, 60_000) } });
    },
    'with queue and token': async (bench) => {
      const { run, name } = bench;
      const [, queue, token] = keysOf(name);
      await admin().hset(name, OWNER, '1');
      await admin().rpush(queue!, 'b', 'c');
      await admin().set(token!, 7);
      expect(await run(keysOf(name), 0)).toEqual(['hash', -1, [OWNER, '1'], ['b', 'c'], '7', [], [1, 2, 0]]);
    },
    'a counter': async ({ run, name }) => {
      await admin().set(name, 5);
      expect(await run(keysOf(name), 0)).toEqual(['string', -1, ['5'], [], '', [], NONE]);
    },
    'taken permits with their remaining leases': async ({ run, name, notAfter }) => {
      const taken = keysOf(name)[3]!;
      await admin().set(name, 5);
      await admin().zadd(taken, 922337203685477, Buffer.from('00ff'.repeat(8), 'hex'));
      await admin().zadd(taken, (await notAfter(0)) + 60_000, Buffer.from('0a'.repeat(16), 'hex'));
      await admin().zadd(taken, (await notAfter(0)) - 1, Buffer.from('0b'.repeat(16), 'hex'));
      const permits = ['0b'.repeat(16), 0, '0a'.repeat(16), between(59_000, 60_000), '00ff'.repeat(8), -1];
      expect(await run(keysOf(name), 0)).toEqual(['string', -1, ['5'], [], '', permits, [0, 0, 3]]);
    },
    'a sorted set of the user beside it, which has no permit': async ({ run, name }) => {
      await admin().zadd(keysOf(name)[3]!, 1, 'alice');
      expect(await run(keysOf(name), 0)).toEqual(['none', -2, [], [], '', [], NONE]);
    },
    'no field of a hash of the user': async ({ run, name }) => {
      await admin().hset(name, { name: 'alice', mode: 'dark' });
      expect(await run(keysOf(name), 0)).toEqual(['hash', -1, [], [], '', [], [2, 0, 0]]);
      await admin().hset(name, Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`f${at}`, '1'])));
      expect(await run(keysOf(name), 0)).toEqual(['hash', -1, [], [], '', [], [5_002, 0, 0]]);
    },
    'at most 20 bytes of a string, and nothing of a longer one': async ({ run, name }) => {
      await admin().set(name, 'x'.repeat(20));
      expect(await run(keysOf(name), 0)).toEqual(['string', -1, ['x'.repeat(20)], [], '', [], NONE]);
      await admin().set(name, 'x'.repeat(21));
      await admin().set(keysOf(name)[2]!, 'y'.repeat(21));
      expect(await run(keysOf(name), 0)).toEqual(['string', -1, [], [], 'y'.repeat(20), [], NONE]);
    },
    'a part of the readers, waiters and permits, if a number is given': async ({ run, name }) => {
      const [, queue, , taken] = keysOf(name);
      const owners = Array.from({ length: 600 }, (_, at) => `${OWNER}${at}`);
      await admin().hset(name, { mode: 'read', ...Object.fromEntries(owners.map((owner) => [owner, '1'])) });
      await admin().rpush(queue!, ...owners);
      for (const at of owners.keys()) await admin().zadd(taken!, 9e14, String(at).padStart(16));
      const [, , content, waiters, , permits, sizes] = (await run(keysOf(name), 5)) as string[][];
      expect([waiters, permits!.length, sizes]).toEqual([owners.slice(0, 5), 10, [601, 600, 600]]);
      expect(content!.slice(0, 2)).toEqual(['mode', 'read']);
      expect(content!.length).toBeLessThanOrEqual(2 + 2 * 5);
    },
    'all readers, if they are as many as the number': async ({ run, name }) => {
      const owners = Array.from({ length: 50 }, (_, at) => `${OWNER}${at}`);
      const counts = Object.fromEntries(owners.map((owner) => [owner, '1']));
      await admin().hset(name, { mode: 'read', ...counts });
      const whole = (await run(keysOf(name), 50)) as [string, number, string[], ...unknown[]];
      const fields = whole[2].filter((_, at) => at % 2 === 0);
      expect([fields.sort(), whole[6]]).toEqual([['mode', ...owners].sort(), [51, 0, 0]]);
      await admin().hset(name, `${OWNER}50`, '1');
      const [, , part, , , , sizes] = (await run(keysOf(name), 50)) as string[][];
      expect(part!.length).toBeLessThan(2 * 52);
      expect(sizes).toEqual([52, 0, 0]);
    },
    'all fields of a large lock': async ({ run, name }) => {
      const values = Array.from({ length: 400 }, (_, at) => heldValue(String(at), OWNER, 1, '1'));
      await admin().hset(name, Object.assign({}, ...values) as Record<string, string>);
      const [, , content] = (await run(keysOf(name), 0)) as [string, number, string[]];
      expect(content.length).toBe(2 * 3 * 400);
    },
    'a key of another program': async ({ run, name }) => {
      await admin().sadd(name, 'x');
      expect(await run(keysOf(name), 0)).toEqual(['set', -1, [], [], '', [], NONE]);
    },
  },
});

describeScript(inspectAll, {
  'an array': {
    'each name in turn': async ({ run, name }) => {
      await admin().set(`${name}:2`, '5');
      const others = [`${name}:2`, `${name}:3`].flatMap(keysOf);
      expect(await run(keysOf(name), 0, ...others)).toEqual([
        ['none', -2, [], [], '', [], NONE],
        ['string', -1, ['5'], [], '', [], NONE],
        ['none', -2, [], [], '', [], NONE],
      ]);
    },
    'one name': async ({ run, name }) => {
      expect(await run(keysOf(name), 0)).toEqual([['none', -2, [], [], '', [], NONE]]);
    },
  },
});

const OWNER = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';
const OTHER = '8743c9c0-0795-4907-87fd-6c719a6b4586:7';
const CLIENT = '11111111-0795-4907-87fd-6c719a6b4586';

const forcing = (
  { run, name, channel }: ScriptBench,
  {
    sequence = 1,
    notAfter = 0,
    owner = OWNER,
    roll = ['', ''],
  }: { sequence?: number; notAfter?: number; owner?: string; roll?: readonly [string, string] } = {},
): Promise<unknown> =>
  run(
    [name, fairQueueKey(name), fairTimeoutsKey(name), fairAliveKey(name), requestsKey(name, CLIENT)],
    ...[owner, 'PUBLISH', channel, readWriteChannel(name), readHoldBase(name), ...roll, 300_000, 0, sequence, notAfter],
  );
const lane = async ({ name }: ScriptBench): Promise<string | null> => admin().hget(requestsKey(name, CLIENT), '0');

const forced = wakingProperties(forceUnlock.script!.source, {
  done: 1,
  payload: '0',
  form: 'one',
  hold: ({ name }) => admin().hset(name, OWNER, '1'),
  keys: ({ name }) => [name, fairQueueKey(name), fairTimeoutsKey(name), fairAliveKey(name), requestsKey(name, CLIENT)],
  args: ({ name, channel }, { publish, waiters, own }) => [
    ...[OWNER, publish, channel, readWriteChannel(name), readHoldBase(name), waiters, own, 300_000, 0, 1, 0],
  ],
});

describeScript(forceUnlock, {
  '7': {
    ...forced['7'],
    'a repeat replies as the first run': withRoll(async (roll, bench) => {
      await admin().hset(bench.name, OWNER, '1');
      await admin().set(roll.key, 'not a roll');
      expect(await forcing(bench, { roll: [roll.key, OWN] })).toBe(7);
      expect(await forcing(bench, { roll: [roll.key, OWN] })).toBe(7);
      expect(await lane(bench)).toBe('1:7');
    }),
  },
  '1': {
    ...forced.done,
    'a fair lock and a read-write lock wake nobody of the roll': withRoll(async (roll, bench) => {
      const { name } = bench;
      await roll.park('a');
      await admin().hset(name, OWNER, '1');
      await admin().rpush(fairQueueKey(name), 'live');
      expect(await forcing(bench, { roll: [roll.key, OWN] })).toBe(1);
      await admin().del(fairQueueKey(name));
      await admin().hset(name, { mode: 'write', [`${OWNER}:write`]: '1' });
      expect(await forcing(bench, { roll: [roll.key, OWN], sequence: 2 })).toBe(1);
      expect(await roll.told()).toBe('');
      expect(await roll.parked()).toBe('a');
    }),
    'a lock of one owner is free with any hold count, and a waiter is woken': async (bench) => {
      await admin().hset(bench.name, OWNER, '3');
      expect(await forcing(bench)).toBe(1);
      expect(await admin().exists(bench.name)).toBe(0);
      expect(await bench.published()).toEqual([{ channel: bench.channel, payload: '0' }]);
      expect(await lane(bench)).toBe('1:1');
      expect(await admin().pttl(requestsKey(bench.name, CLIENT))).toBeGreaterThan(3_500_000);
    },
    'the head of the queue of a fair lock is woken, and dead waiters are removed': async (bench) => {
      const { name } = bench;
      await admin().hset(name, OWNER, '1');
      await admin().rpush(fairQueueKey(name), 'dead', 'live');
      await admin().zadd(fairTimeoutsKey(name), (await bench.notAfter(0)) + 60_000, 'dead', 9e12, 'live');
      await admin().zadd(fairAliveKey(name), (await bench.notAfter(0)) - 1, 'dead', 9e12, 'live');
      expect(await forcing(bench)).toBe(1);
      expect(await admin().lrange(fairQueueKey(name), 0, -1)).toEqual(['live']);
      expect(await bench.published()).toEqual([{ channel: `${lockChannel(name)}:live`, payload: '0' }]);
    },
    'all holds of a writer are released, also its read holds, and all readers are woken': async (bench) => {
      const { name } = bench;
      await admin().hset(name, { mode: 'write', [`${OWNER}:write`]: '2', [OWNER]: '1' });
      await admin().set(readHoldKey(name, OWNER, 1), '1');
      expect(await forcing(bench)).toBe(1);
      expect(Object.keys(await bench.state())).toEqual([requestsKey(name, CLIENT)]);
      expect(await bench.published()).toEqual([{ channel: readWriteChannel(name), payload: '1' }]);
    },
    'one of several readers is released, and the others keep their leases': async (bench) => {
      const { name } = bench;
      await admin().hset(name, { mode: 'read', [OWNER]: '1', [OTHER]: '1' });
      await admin().pexpire(name, 60_000);
      await admin().set(readHoldKey(name, OWNER, 1), '1', 'PX', 60_000);
      await admin().set(readHoldKey(name, OTHER, 1), '1', 'PX', 20_000);
      expect(await forcing(bench)).toBe(1);
      expect(await admin().hgetall(name)).toEqual({ mode: 'read', [OTHER]: '1' });
      expect(await admin().pttl(name)).toBeLessThanOrEqual(20_000);
      expect(await bench.published()).toEqual([]);
      expect(await forcing(bench, { owner: OTHER, sequence: 2 })).toBe(1);
      expect(await bench.published()).toEqual([{ channel: readWriteChannel(name), payload: '0' }]);
    },
    'the values of the owner in a group are released, and no others': async (bench) => {
      const others = heldValue('c', OTHER, 1, '9');
      const hash = { ...heldValue('a', OWNER, 2, '9'), ...heldValue('b', OWNER, 1, '9'), ...others };
      await admin().hset(bench.name, hash as Record<string, string>);
      expect(await forcing(bench)).toBe(1);
      expect(await admin().hgetall(bench.name)).toEqual(others);
      expect(await bench.published()).toEqual([{ channel: bench.channel, payload: '0' }]);
    },
  },
  '0': {
    'another owner has the lock': async (bench) => {
      await admin().hset(bench.name, OTHER, '1');
      const before = await bench.state();
      expect(await forcing(bench)).toBe(0);
      expect(await bench.state()).toEqual(before);
      expect(await bench.published()).toEqual([]);
    },
    'another reader has the lock': async (bench) => {
      await admin().hset(bench.name, { mode: 'read', [OTHER]: '1' });
      expect(await forcing(bench)).toBe(0);
    },
    'a missing lock, or a key that is not a lock': async (bench) => {
      expect(await forcing(bench)).toBe(0);
      await admin().set(bench.name, OWNER);
      expect(await forcing(bench)).toBe(0);
    },
  },
  '-3': {
    'nothing changes': async (bench) => {
      await admin().hset(bench.name, OWNER, '1');
      expect(await forcing(bench, { notAfter: await bench.notAfter(-1) })).toBe(-3);
      expect(await admin().exists(bench.name)).toBe(1);
    },
  },
  n: {
    'a repeat does not free the next hold of the same thread': async (bench) => {
      await admin().hset(bench.name, OWNER, '1');
      expect(await forcing(bench)).toBe(1);
      await admin().hset(bench.name, OWNER, '1');
      expect(await forcing(bench)).toBe(1);
      expect(await admin().exists(bench.name)).toBe(1);
    },
  },
  '-4': {
    'a cancelled request changes nothing': async (bench) => {
      await admin().hset(bench.name, OWNER, '1');
      await admin().hset(requestsKey(bench.name, CLIENT), '0', '1:-4');
      expect(await forcing(bench)).toBe(-4);
      expect(await admin().exists(bench.name)).toBe(1);
    },
  },
});

const keysOf = (name: string): string[] => [name, `${name}:queue`, `${name}:token`, `${name}:taken`];

test('every script of lua/object has its tests here', () => {
  const tested = [forceUnlock, inspectAll, inspect].map(({ name }) => `lua/${name}.lua`);
  expect(tested.sort()).toEqual(projectFiles('lua/object'));
});

import { expect, test } from '@jest/globals';
import { inspect } from '../../src/redis/scripts/object.js';
import { projectFiles } from '../support/project/project-files.js';
import { admin } from '../support/redis.js';
import { between, describeScript } from './script-bench.js';

describeScript(inspect, {
  "type of the object, its PTTL, its fields and values or its value, waiters, token ('' = none), and in turn": {
    'a missing name': async ({ run, name }) => {
      expect(await run(keysOf(name))).toEqual(['none', -2, [], [], '', []]);
    },
    'a lock with its owner': async (bench) => {
      const { run, name, state } = bench;
      await admin().hset(name, 'a', '2');
      await admin().pexpire(name, 60_000);
      const before = await state();
      expect(await run(keysOf(name))).toEqual(['hash', between(59_000, 60_000), ['a', '2'], [], '', []]);
      expect(await state()).toEqual({ [name]: { ...before[name], pttl: between(59_000, 60_000) } });
    },
    'with queue and token': async (bench) => {
      const { run, name } = bench;
      const [, queue, token] = keysOf(name);
      await admin().hset(name, 'a', '1');
      await admin().rpush(queue!, 'b', 'c');
      await admin().set(token!, 7);
      expect(await run(keysOf(name))).toEqual(['hash', -1, ['a', '1'], ['b', 'c'], '7', []]);
    },
    'a counter': async ({ run, name }) => {
      await admin().set(name, 5);
      expect(await run(keysOf(name))).toEqual(['string', -1, ['5'], [], '', []]);
    },
    'taken permits with their remaining leases': async ({ run, name, notAfter }) => {
      const taken = keysOf(name)[3]!;
      await admin().set(name, 5);
      await admin().zadd(taken, 922337203685477, Buffer.from('00ff'.repeat(8), 'hex'));
      await admin().zadd(taken, (await notAfter(0)) + 60_000, Buffer.from('0a'.repeat(16), 'hex'));
      await admin().zadd(taken, (await notAfter(0)) - 1, Buffer.from('0b'.repeat(16), 'hex'));
      const permits = ['0b'.repeat(16), 0, '0a'.repeat(16), between(59_000, 60_000), '00ff'.repeat(8), -1];
      expect(await run(keysOf(name))).toEqual(['string', -1, ['5'], [], '', permits]);
    },
    'a key of another program': async ({ run, name }) => {
      await admin().sadd(name, 'x');
      expect(await run(keysOf(name))).toEqual(['set', -1, [], [], '', []]);
    },
  },
});

const keysOf = (name: string): string[] => [name, `${name}:queue`, `${name}:token`, `${name}:taken`];

test('every script of lua/object has its tests here', () => {
  expect([`lua/${inspect.name}.lua`]).toEqual(projectFiles('lua/object'));
});

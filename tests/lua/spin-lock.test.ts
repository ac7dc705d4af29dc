import { expect } from '@jest/globals';
import { release } from '../../src/redis/scripts/spin-lock.js';
import { admin } from '../support/redis.js';
import { wakingProperties } from './roll.js';
import { describeScript } from './script-bench.js';

const NO_ROLL = ['PUBLISH', '', ''] as const;

const releasing = wakingProperties(release.script!.source, {
  done: 1,
  form: 'one',
  hold: ({ name }) => admin().hset(name, 'a', '1'),
  keys: ({ name }) => [name],
  args: (_, { publish, waiters, own }) => [publish, waiters, own, 'a'],
});

describeScript(release, {
  '1': {
    ...releasing.done,
    'the lock is free with any previous count, and nothing is published': async ({ run, name, state, published }) => {
      await admin().hset(name, 'a', '3');
      expect(await run([name], ...NO_ROLL, 'x', 'a')).toBe(1);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([]);
    },
  },
  '7': releasing['7'],
  '0': {
    "neither a free lock nor another owner's lock is changed": async ({ run, name }) => {
      expect(await run([name], ...NO_ROLL, 'a')).toBe(0);
      await admin().hset(name, 'b', '1');
      expect(await run([name], ...NO_ROLL, 'a')).toBe(0);
      expect(await admin().hgetall(name)).toEqual({ b: '1' });
    },
  },
});

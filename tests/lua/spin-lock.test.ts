import { expect } from '@jest/globals';
import { release } from '../../src/redis/scripts/spin-lock.js';
import { admin } from '../support/redis.js';
import { describeScript } from './script-bench.js';

describeScript(release, {
  '1': {
    'the lock is free with any previous count, and nothing is published': async ({ run, name, state, published }) => {
      await admin().hset(name, 'a', '3');
      expect(await run([name], 'x', 'a')).toBe(1);
      expect(await state()).toEqual({});
      expect(await published()).toEqual([]);
    },
  },
  '0': {
    "neither a free lock nor another owner's lock is changed": async ({ run, name }) => {
      expect(await run([name], 'a')).toBe(0);
      await admin().hset(name, 'b', '1');
      expect(await run([name], 'a')).toBe(0);
      expect(await admin().hgetall(name)).toEqual({ b: '1' });
    },
  },
});

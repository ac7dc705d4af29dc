import { afterEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { admin, expectNothingLeft, freshName, testRedisUrl } from './redis.js';

afterEach(() => expectNothingLeft());

test('a key that is left is found, named and taken away', async () => {
  const name = freshName('left');
  await admin().set(name, '1');
  await expect(expectNothingLeft(20)).rejects.toThrow(name);
  expect(await admin().exists(name)).toBe(0);
});

test('a subscription that is left is found and named', async () => {
  const name = freshName('left');
  const subscriber = new Redis(testRedisUrl());
  await subscriber.subscribe(`redisson_lock__channel:{${name}}`);
  await expect(expectNothingLeft(20)).rejects.toThrow(name);
  await subscriber.quit();
});

test('what outlives holds by design, and the channels of other files, are no leftovers', async () => {
  const subscriber = new Redis(testRedisUrl());
  await subscriber.subscribe('of-another-file');
  await admin().set(`redisson_lock_token:{${freshName()}}`, '1');
  await admin().hset(`holdfast_requests:{${freshName()}}:client`, '1', '1:1');
  await expectNothingLeft(20);
  await subscriber.quit();
});

test('every fresh name is new', () => {
  expect(freshName('a')).not.toBe(freshName('a'));
});

import { expect, test } from '@jest/globals';
import { keysMeantBy, keysOfChannel } from '../../src/inspection/candidates.js';
import {
  fairTimeoutsKey,
  latchChannel,
  requestsKey,
  rollKey,
  semaphoreChannel,
  takenPermitsKey,
} from '../../src/redis/keys.js';

const NAMES = ['a', 'a:b', '{a}', 'a{b}c', '{a}:{b}', 'a}b', 'ümlaut ☃', 'a:timeout', '{a}:timeout', '*'];
const CLIENT = '8743c9c0-0795-4907-87fd-6c719a6b4586';

test.each(NAMES)('the keys and channels of %j lead back to it', (name) => {
  expect(keysMeantBy(name, 'hash')).toEqual([name]);
  expect(keysMeantBy(requestsKey(name, CLIENT), 'hash')).toContain(name);
  expect(keysMeantBy(takenPermitsKey(name), 'zset')).toContain(name);
  expect(keysMeantBy(fairTimeoutsKey(name), 'zset')).toContain(name);
  expect(keysOfChannel(semaphoreChannel(name))).toContain(name);
  expect(keysOfChannel(latchChannel(name))).toContain(name);
});

test.each([
  ['holdfast_requests:{a}', 'hash'],
  ['session:timeout', 'zset'],
  [rollKey('a'), 'zset'],
  [rollKey('a:timeout'), 'zset'],
  [rollKey('{a}:timeout'), 'zset'],
] as const)('the key %s of a %s is of no object', (key, type) => {
  expect(keysMeantBy(key, type)).toEqual([]);
});

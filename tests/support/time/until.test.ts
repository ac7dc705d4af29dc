import { expect, test } from '@jest/globals';
import { until } from './until.js';

test('it returns when the fact comes true, and lets other work run in between', async () => {
  let fact = false;
  setTimeout(() => (fact = true), 5);
  await until(() => fact, 'the timer ran');
  expect(fact).toBe(true);
});

test('it fails with what it waited for when the fact does not come true in time', async () => {
  await expect(until(async () => false, 'pigs fly', 20)).rejects.toThrow('still not true after 20 ms: pigs fly');
});

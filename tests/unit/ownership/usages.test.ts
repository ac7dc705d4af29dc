import { describe, expect, test } from '@jest/globals';
import { currentHolds } from '../../../src/ownership/flow.js';
import { fakeAdapter } from '../../support/ownership/fake-acquisition.js';
import { reschedule } from './rescheduling.js';
import { scenarioSets } from './scenarios/index.js';

describe.each(Object.entries(scenarioSets))('on locks in memory: %s', (_, set) => {
  test.each(set.map((scenario) => [scenario.name, scenario] as const))('R24: %s', async (name, scenario) => {
    expect(await scenario.run(fakeAdapter(), name)).toEqual(scenario.expected);
    expect(currentHolds()).toEqual([]);
  });
});

test('R24: a test of Jest is inside what it awaits, also through resolves', async () => {
  const lock = fakeAdapter().newLock('jest');
  expect(await lock.tryLock()).toBe(true);
  await expect(lock.tryLock()).resolves.toBe(true);
  expect(await lock.getHoldCount()).toBe(2);
  await expect(lock.unlock()).resolves.toBeUndefined();
  await lock.unlock();
  await expect(lock.unlock()).rejects.toMatchObject({ code: 'ERR_LOCK_NOT_OWNER' });
});

test('R24: a job that re-schedules itself from its section 10,000 times does not grow the store or the heap', async () => {
  const lock = fakeAdapter().newLock('rescheduled');
  const result = await reschedule(lock, () => currentHolds().length, 10_000);
  expect(result).toMatchObject({ rounds: 10_000, longestStore: 1 });
  expect(result.reachable).toBeLessThan(3);
  expect(result.heapGrowthBytes).toBeLessThan(1_000_000);
});

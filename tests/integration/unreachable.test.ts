import { describe, expect, test } from '@jest/globals';
import { runFixture } from '../support/processes/fixture-process.js';

const CONNECTIONS = ['cluster', 'one server', 'Sentinel'];
const CALLS = [
  'ready',
  'lock',
  'tryLock with a wait time',
  'withLock',
  'a RedLock',
  'a semaphore',
  'a permit',
  'a latch',
  'inspect',
];

describe.each(CONNECTIONS)('with a %s that cannot be reached', (kind) => {
  test('the process lives until each call has settled, and ends after close()', async () => {
    const outcomes = await Promise.all(
      CALLS.map((call) => runFixture<{ outcome: string; livedMs: number }>('unreachable.mjs', [kind, call])),
    );
    const expected = CALLS.map((call) => (call === 'a RedLock' ? 'ERR_LOCK_NO_QUORUM' : 'ERR_LOCK_REDIS_UNAVAILABLE'));
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(expected);
    // And no longer than a pause between two rounds of sentinels.
    expect(outcomes.filter(({ livedMs }) => livedMs > 1_000)).toEqual([]);
  });
});

import { expect, test } from '@jest/globals';
import { wholeMs } from '../../src/lease-time.js';

test('R27: a lease from any fraction of a ms has its full length, and a remaining lease is no shorter', () => {
  for (let now = 0.000_1; now < 10_000; now += 0.987_654_3) {
    expect(wholeMs(now, now + 2_000)).toBe(2_000);
    expect(wholeMs(now, now + 1_999.5)).toBe(2_000);
    expect(wholeMs(now, now + 1_999.01)).toBe(2_000);
  }
});

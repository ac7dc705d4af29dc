import { afterEach, expect, test } from '@jest/globals';
import { contendedCycles } from '../../integration/contended-cycles.js';
import { closeClients } from '../../support/clients/lock-clients.js';
import { Random } from '../../support/random.js';
import { expectNothingLeft, freshName } from '../../support/redis.js';
import { expectNoOverlap } from '../../support/serious.js';

afterEach(() => closeClients());

test.each([1, 2, 3])(
  'R20: 10,000 contended cycles over 1,000 names leave no key, channel, timer or listener, and a flat heap (%i)',
  async (run) => {
    const names = Array.from({ length: 1_000 }, () => freshName());
    const result = await contendedCycles(new Random(`R20 soak ${run}`), 10_000, names);
    expectNoOverlap(result.overlaps + result.lostUpdates);
    expect(result.listeners).toBe(0);
    expect(result.granted).toBeGreaterThan(2_000);
    expect(result.heapGrowthBytes).toBeLessThan(4_000_000);
    expect(result.holds()).toBe(0);
    await expectNothingLeft();
    expect(result.timers()).toBeLessThanOrEqual(4);
  },
);

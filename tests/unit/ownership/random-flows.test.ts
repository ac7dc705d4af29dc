import { expect, test } from '@jest/globals';
import type { AsyncLocalStorage } from 'node:async_hooks';
import type { FlowHold } from '../../../src/ownership/flow.js';
import { Random } from '../../support/random.js';
import { runRandomFlows, type BindAcquisition } from './random-flows.js';

const COMPARISONS = 100_000;

test('R24: random programs that carry their holds by hand agree with the library at every step', async () => {
  const { comparisons, mismatches } = await runRandomFlows(new Random('random flows'), COMPARISONS);
  expect(comparisons).toBeGreaterThanOrEqual(COMPARISONS);
  expect(mismatches).toBe(0);
});

test('R24: random programs disagree if the hold is entered at the await instead of in the continuation', async () => {
  const { storage } = (globalThis as never)[Symbol.for('holdfast.flow')] as {
    storage: AsyncLocalStorage<readonly FlowHold[]>;
  };
  const enterAtTheAwait: BindAcquisition = (hold) => {
    let answer!: (granted: boolean) => void;
    const promise = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    Reflect.defineProperty(promise, 'constructor', {
      get() {
        storage.enterWith([...(storage.getStore() ?? []).filter(({ open }) => open), hold]);
        return Promise;
      },
    });
    return { promise, answer };
  };
  const { comparisons, mismatches } = await runRandomFlows(new Random('entered early'), 10_000, enterAtTheAwait);
  expect(mismatches).toBeGreaterThan(comparisons / 2);
});

import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { expectNothingLeft, freshName } from '../support/redis.js';
import { replayCalls } from './vectors/client-replay.js';
import { FAMILY_DEVIATIONS, NOT_REPLAYED } from './vectors/family-deviations.js';
import { recordedScenarios } from './vectors/recording.js';

/*
 * What Redisson 4.7.0 did with every kind of lock and synchronizer but the plain lock (vectors.test.ts), replayed with
 * our client and compared in the same way.
 */

const recorded = Object.keys(FAMILY_DEVIATIONS).map((kind) => [kind, recordedScenarios(kind)] as const);

describe.each(recorded)('%s', (kind, scenarios) => {
  const left = NOT_REPLAYED[kind] ?? {};
  const deviations = FAMILY_DEVIATIONS[kind] ?? [];
  const replayed = scenarios.filter(({ name }) => !(name in left));
  const runs = new Map<string, Promise<string[]>>();
  beforeAll(async () => {
    for (const scenario of replayed)
      runs.set(scenario.name, replayCalls(scenario, deviations, freshName(scenario.name)));
    await Promise.allSettled(runs.values());
  });
  afterEach(() => expectNothingLeft());

  test('every scenario is replayed or named with its reason, and every deviation has its scenario and step', () => {
    const steps = new Set(scenarios.flatMap(({ name, steps }) => steps.map(({ i }) => `${name} ${i}`)));
    const deviating = deviations.flatMap(({ scenario, steps }) => steps.map((i) => `${scenario} ${i}`));
    expect(deviating.filter((at) => !steps.has(at))).toEqual([]);
    expect(Object.keys(left).filter((name) => !scenarios.some((each) => each.name === name))).toEqual([]);
    expect(replayed.length).toBeGreaterThan(0);
  });

  test.each(replayed.map(({ name, note }) => [name, note]))('%s: %s', async (name) => {
    expect(await runs.get(name)).toEqual([]);
  });
});

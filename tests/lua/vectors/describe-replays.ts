import { beforeAll, describe, expect, test } from '@jest/globals';
import { freshName } from '../../support/redis.js';
import { replayCalls } from './client-replay.js';
import { BY_SCRIPT, DEVIATIONS, NOT_REPLAYED } from './deviations/table.js';
import { recordedScenarios } from './recording.js';
import { replayScripts } from './script-replay.js';

/** Most of the time is recorded pauses: several at once take little longer than the longest one. */
const SIDE_BY_SIDE = 8;

const REPLAYS = { scripts: replayScripts, client: replayCalls };

/** Each recorded scenario of these kinds as a test: replayed with our client, and with our scripts where that can be. */
export function describeReplays(kinds: readonly string[]): void {
  describe.each(kinds)('%s', (kind) => {
    const recorded = recordedScenarios(kind);
    const left = NOT_REPLAYED[kind] ?? {};
    const deviations = DEVIATIONS[kind] ?? [];
    const replayed = recorded.filter(({ name }) => !(name in left));
    const labels = (Object.keys(REPLAYS) as (keyof typeof REPLAYS)[]).filter(
      (label) => label === 'client' || BY_SCRIPT.includes(kind),
    );
    const differences = new Map<string, string[] | Error>();
    beforeAll(async () => {
      const longestFirst = [...replayed].sort((a, b) => b.steps.at(-1)!.stateAt - a.steps.at(-1)!.stateAt);
      const jobs = longestFirst.flatMap((scenario) => labels.map((label) => ({ scenario, label })));
      const work = async (): Promise<void> => {
        for (let job = jobs.shift(); job; job = jobs.shift()) {
          const { scenario, label } = job;
          const found = await REPLAYS[label](scenario, deviations, freshName(scenario.name)).catch(
            (error: unknown) => error as Error,
          );
          differences.set(`${label} ${scenario.name}`, found);
        }
      };
      await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
    }, 60_000);

    test('every scenario is replayed or named with its reason, and every deviation has its scenario and step', () => {
      const steps = new Set(recorded.flatMap(({ name, steps }) => steps.map(({ i }) => `${name} ${i}`)));
      const deviating = deviations.flatMap(({ scenario, steps }) => steps.map((i) => `${scenario} ${i}`));
      expect(deviating.filter((at) => !steps.has(at))).toEqual([]);
      expect(Object.keys(left).filter((name) => !recorded.some((each) => each.name === name))).toEqual([]);
      expect(replayed.length).toBeGreaterThan(0);
    });

    describe.each(labels)('with the scripts of Holdfast %s', (label) => {
      test.each(replayed.map(({ name, note }) => [name, note]))('%s: %s', (name) => {
        expect(differences.get(`${label} ${name}`)).toEqual([]);
      });
    });
  });
}

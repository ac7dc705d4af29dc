import { expect, test } from '@jest/globals';
import { REASONS } from '../support/java/deviation-reasons.js';
import { projectFiles, readProjectFile } from '../support/project/project-files.js';
import { describeReplays } from './vectors/describe-replays.js';
import { DEVIATIONS, NOT_REPLAYED } from './vectors/deviations/table.js';
import { recordedScenarios } from './vectors/recording.js';

/*
 * Redisson 4.7.0 against a real server, recorded step by step; the same steps with our scripts, and with our client.
 * Replies, results, keys, types, fields, values and messages are compared exactly, times within the recording's
 * tolerance. How many commands it took is not compared: we send no latch, no DEL of it, and ask nothing about a hold
 * that the caller is not inside of.
 */

test('the table of deviations lists all 17 recordings, with a reason for every scenario that is not replayed', () => {
  const recordings = projectFiles('tests/lua/vectors', '.json').map((path) => /([^/]+)\.json$/.exec(path)![1]!);
  expect(recordings).toHaveLength(17);
  expect(Object.keys(DEVIATIONS).sort()).toEqual(recordings.sort());
  expect(recordings.flatMap((kind) => recordedScenarios(kind))).toHaveLength(120);
  for (const [kind, scenarios] of Object.entries(NOT_REPLAYED)) {
    expect(recordings).toContain(kind);
    for (const why of Object.values(scenarios)) expect(why).toMatch(/\w+ \w+/);
  }
});

test('each reason of the table is used', () => {
  const given = ['tests/lua', 'tests/interop/redisson/wire'].flatMap((folder) =>
    projectFiles(folder, '.ts').map((path) => readProjectFile(path)),
  );
  const used = new Set(given.flatMap((text) => [...text.matchAll(/'(\w+)'/g)].map(([, word]) => word)));
  expect(Object.keys(REASONS).filter((reason) => !used.has(reason))).toEqual([]);
});

describeReplays(['lock']);

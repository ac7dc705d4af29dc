import { expect, test } from '@jest/globals';
import { withoutComments } from '../../support/project/import-graph.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';
import * as named from '../../support/time/pauses.js';
import { PAUSES } from './pause-reasons.js';

const files = ['contracts', 'integration', 'faults', 'topologies']
  .flatMap((folder) => projectFiles(`tests/${folder}`, '.ts'))
  .filter((path) => !path.includes('/fixtures/'));

/** The arguments of the calls of `pause` and `sleep` in code, and of timers that a test sets to wait. */
function pausesIn(text: string): string[] {
  const code = withoutComments(text);
  const calls = [...code.matchAll(/(?<![.\w])(?:pause|sleep)\(((?:[^()]|\([^()]*\))+)\)/g)].map(
    ([, argument]) => argument!,
  );
  const timers = [...code.matchAll(/setTimeout\(\s*resolve\w*,\s*([^)]+)\)/g)].map(([, ms]) => `setTimeout ${ms!}`);
  return [...calls, ...timers].filter((argument) => !Object.keys(named).includes(argument));
}

const found = new Map(files.map((path) => [path, pausesIn(readProjectFile(path)).sort()]));

test('every fixed pause has a name or a reason', () => {
  expect([...found.values()].flat().length).toBeGreaterThan(50);
  const listed = new Map<string, string[]>();
  for (const [path, pauses] of PAUSES.flatMap(({ files: of }) => Object.entries(of))) {
    listed.set(path, [...(listed.get(path) ?? []), ...pauses].sort());
  }
  const unlike = [...new Set([...found.keys(), ...listed.keys()])]
    .map((path) => ({ path, found: found.get(path) ?? [], listed: listed.get(path) ?? [] }))
    .filter(({ found: pauses, listed: reasons }) => pauses.join('\n') !== reasons.join('\n'));
  expect(unlike).toEqual([]);
});

test('a pause is found in every syntax', () => {
  expect(pausesIn('await pause(30); await pause(STARTED_MS); // pause(40)')).toEqual(['30']);
  expect(pausesIn('const late = () => pause(now() + 5).then(go); await pause();')).toEqual(['now() + 5']);
  expect(pausesIn('await new Promise((resolve) => setTimeout(resolve, 50));')).toEqual(['setTimeout 50']);
});

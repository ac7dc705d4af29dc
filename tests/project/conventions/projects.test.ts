import { expect, test } from '@jest/globals';
import { ALL, GATE, STEPS } from '../../../.ci/suites/steps.mjs';
import { SUITES } from '../../../.ci/suites/suites.mjs';
import config, { APART, FAST } from '../../jest.config.mjs';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';

const TEST_FILE = /\.(test|spec)\.[cm]?[jt]sx?$/;

const testFiles = ['src', 'tests', 'examples', 'bench', '.ci']
  .flatMap((folder) => projectFiles(folder))
  .filter((path) => TEST_FILE.test(path));

/** The names of the projects that a file belongs to, by their roots and patterns. */
function projectsOf(path: string): string[] {
  return config.projects
    .filter(
      ({ roots, testRegex }) =>
        roots.some((root) => path.startsWith(`${root.replace('<rootDir>/', '')}/`)) && new RegExp(testRegex).test(path),
    )
    .map(({ displayName }) => displayName);
}

const { scripts } = JSON.parse(readProjectFile('package.json')) as { scripts: Record<string, string> };

/** The values of an option of Jest in a command, up to the next option. */
function valuesOf(command: string, option: string): string[] {
  const words = command.split(' ');
  const values = words.slice(words.indexOf(option) + 1);
  const end = values.findIndex((word) => word.startsWith('--'));
  return values.slice(0, end < 0 ? undefined : end);
}

test('every test file belongs to exactly one project', () => {
  expect(testFiles.length).toBeGreaterThan(100);
  expect(testFiles.filter((path) => projectsOf(path).length !== 1)).toEqual([]);
});

test.each([
  ['tests/unit/lease-time.test.ts', ['unit']],
  ['tests/faults/red-lock.slow.test.ts', ['slow']],
  ['tests/verification/soak/nemesis.test.ts', ['soak']],
  ['tests/stray/lease-time.test.ts', []],
  ['tests/unit/lease-time.spec.ts', []],
  ['tests/unit/lease-time.quick.test.ts', []],
  ['src/lease-time.test.ts', []],
])('%s is in the projects %j', (path, projects) => {
  expect(projectsOf(path)).toEqual(projects);
});

test('npm test skips the slow files and the separate projects, and the suite slow runs the slow files', () => {
  expect(valuesOf(scripts.test!, '--ignoreProjects').sort()).toEqual(['slow', ...Object.keys(APART)].sort());
  expect(valuesOf(SUITES.slow!.run[0]!, '--selectProjects')).toEqual(['slow']);
  expect(config.projects.map(({ displayName }) => displayName).sort()).toEqual(
    ['slow', ...Object.keys(FAST), ...Object.keys(APART)].sort(),
  );
});

/** The suites that a list of steps runs. */
const suitesOf = (names: readonly string[]): string[] =>
  names.flatMap((name) => /^npm run suite -- ([a-z-]+)/.exec(STEPS[name]!.run)?.[1] ?? []);

test('the suite all runs every project, and every suite that asks something of the code', () => {
  const OTHERS = ['gate', 'all', 'touched', 'static', 'failures', 'walks', 'bindings', 'api', 'nemesis'];
  const asks = Object.keys(SUITES).filter((name) => !OTHERS.includes(name) && !/^(bench|pictures)/.test(name));
  expect([...new Set(suitesOf(ALL))].sort()).toEqual(asks.sort());
  expect(STEPS.fast!.run).toBe('npm test');
  // The Redisson tests are the suite interop.
  expect(asks).toEqual(expect.arrayContaining(Object.keys(APART).filter((name) => name !== 'redisson')));
});

test('the gate is a part of all', () => {
  expect(ALL.filter((name) => GATE.includes(name))).toEqual(GATE);
});

test('package.json has at most a dozen scripts, and the suites name the others', () => {
  expect(Object.keys(scripts).length).toBeLessThanOrEqual(12);
  expect(Object.keys(SUITES).filter((name) => scripts[name] !== undefined)).toEqual([]);
});

import { posix } from 'node:path';
import { expect, test } from '@jest/globals';
import { readImports } from '../../support/project/import-graph.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';

const files = projectFiles('tests', '.ts').filter((path) => !path.includes('/fixtures/'));

test('only the support code empties the database, so that leftovers of a test are seen', () => {
  const emptying = files.filter((path) => /admin\(\)\.(?:flushdb|flushall)\(/.test(readProjectFile(path)));
  expect(emptying).toEqual(['tests/support/redis.ts']);
});

test('a file without the leak check after each test runs the check at its end', () => {
  const exempt = files.filter((path) => /^\s*withoutLeakCheck\(/m.test(readProjectFile(path)));
  expect(exempt.filter((path) => !/afterAll\([\s\S]*expectNothingLeft\(\)/.test(readProjectFile(path)))).toEqual([]);
});

/** Test files of these folders that do not load the check, with the reason. */
const WITHOUT_CHECK: Readonly<Record<string, string>> = {
  'tests/integration/unreachable.test.ts': 'no server replies to its clients',
  'tests/frameworks/testing/runners.slow.test.ts': 'its locks are in the processes of other test runners',
  'tests/topologies/key-slots.test.ts': 'it asks a server of its own for slots, and writes nothing',
  'tests/topologies/cli-credentials.test.ts': 'the command runs in a process of its own, on servers of the test',
};
const CHECKED = /^tests\/(?:contracts|faults|frameworks|integration|lua|topologies)\/.*\.test\.ts$/;

/** Whether the file imports the target, itself or through other files. */
function imports(path: string, target: string, seen = new Set<string>()): boolean {
  if (path === target) return true;
  if (seen.has(path) || !files.includes(path)) return false;
  seen.add(path);
  return readImports(readProjectFile(path)).some(({ specifier }) => {
    const imported = posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
    return specifier.startsWith('.') && imports(imported, target, seen);
  });
}

test('every test file that uses Redis loads the leak check, or has a reason', () => {
  const checked = files.filter((path) => CHECKED.test(path));
  expect(checked.length).toBeGreaterThan(100);
  const without = checked.filter((path) => !imports(path, 'tests/support/redis.ts'));
  expect(without.sort()).toEqual(Object.keys(WITHOUT_CHECK).sort());
});

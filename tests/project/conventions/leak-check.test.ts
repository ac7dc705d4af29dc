import { expect, test } from '@jest/globals';
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

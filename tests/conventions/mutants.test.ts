import { expect, test } from '@jest/globals';
import { MECHANISMS } from '../mutants/mechanisms.mjs';
import { projectFiles, readProjectFile } from '../support/project-files.js';

test('every mechanism that the mutants take out is still there, once, and so are its tests', () => {
  const tests = projectFiles('tests', '.test.ts');
  expect(MECHANISMS.length).toBeGreaterThan(50);
  const astray = MECHANISMS.filter(
    ({ file, find, tests: named }) =>
      readProjectFile(file).split(find).length !== 2 ||
      !named.every((each) => tests.some((path) => new RegExp(each).test(path))),
  );
  expect(astray.map(({ name }) => name)).toEqual([]);
});

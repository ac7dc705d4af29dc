import { expect, test } from '@jest/globals';
import { MECHANISMS } from '../../verification/mutants/mechanisms.mjs';
import { COUNTERPARTS } from '../../verification/mutants/models.mjs';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';

test('every mechanism that the mutants remove exists once, and so do its tests', () => {
  const tests = projectFiles('tests', '.test.ts');
  expect(MECHANISMS.length).toBeGreaterThan(50);
  const astray = MECHANISMS.filter(
    ({ file, find, tests: named }) =>
      readProjectFile(file).split(find).length !== 2 ||
      !named.every((each) => tests.some((path) => new RegExp(each).test(path))),
  );
  expect(astray.map(({ name }) => name)).toEqual([]);
});

test('every mutant of a model has its counterpart in the code', () => {
  const names = new Set(MECHANISMS.map(({ name }) => name));
  const mutants: Record<string, string[]> = {};
  for (const path of projectFiles('tests/verification/model', '.tla')) {
    const found = [...readProjectFile(path).matchAll(/On\("(\w+)"\)/g)].map(([, name = '']) => name);
    if (found.length > 0) mutants[/(\w+)\.tla$/.exec(path)![1]!] = [...new Set(found)].sort();
  }
  const told = Object.entries(COUNTERPARTS).map(([model, of]) => [model, Object.keys(of).sort()]);
  expect(Object.fromEntries(told)).toEqual(mutants);
  const named = Object.values(COUNTERPARTS).flatMap((of) => Object.values(of).flat());
  expect(named.filter((name) => !names.has(name))).toEqual([]);
});

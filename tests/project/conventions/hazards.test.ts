import { expect, test } from '@jest/globals';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';
import { HAZARDS } from './hazard-index.js';

/** The texts in a test file: titles, and few others. */
function textsOf(file: string): string[] {
  return [...readProjectFile(file).matchAll(/'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`([^`]*)`/g)].map(
    ([, single, double, template]) => single ?? double ?? template ?? '',
  );
}

/** Test files, and the files that define contract tests. */
const tests = ['tests/contracts', 'tests/integration']
  .flatMap((folder) => projectFiles(folder, '.ts'))
  .filter((file) => !file.endsWith('.test.ts'))
  .concat(projectFiles('tests', '.test.ts'));

test('each of the 47 hazards is named once, in order, with its answers', () => {
  expect(HAZARDS.map(({ number }) => number)).toEqual(Array.from({ length: 47 }, (_, i) => i + 1));
  expect(new Set(HAZARDS.map(({ title }) => title)).size).toBe(47);
  expect(HAZARDS.filter(({ answers }) => answers.length === 0)).toEqual([]);
  // A sentence alone does where nothing can be done.
  expect(HAZARDS.filter(({ answers }) => answers.every(([file]) => file.endsWith('.md')))).toEqual([]);
});

test('every answer to a hazard exists', () => {
  const missing = HAZARDS.flatMap(({ number, answers }) =>
    answers
      .filter(([file, part]) =>
        file.endsWith('.md')
          ? !readProjectFile(file).includes(part)
          : !tests.includes(file) || !textsOf(file).some((text) => text.includes(part)),
      )
      .map(([file, part]) => `${number}: ${file}: ${part}`),
  );
  expect(missing).toEqual([]);
});

test('a test that names a hazard in its title is among its answers', () => {
  const astray = tests
    .filter((file) => file !== 'tests/project/conventions/hazards.test.ts')
    .flatMap((file) =>
      textsOf(file).flatMap((text) => {
        const numbers = [...text.matchAll(/\bhazards? (\d+)(?: and (\d+))?/gi)].flatMap(([, a, b]) => [a, b]);
        return numbers
          .filter((number) => number !== undefined)
          .filter((number) => !HAZARDS[Number(number) - 1]?.answers.some(([named]) => named === file))
          .map((number) => `${number}: ${file}: ${text}`);
      }),
    );
  expect(astray).toEqual([]);
});

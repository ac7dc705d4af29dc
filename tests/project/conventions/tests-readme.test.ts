import { expect, test } from '@jest/globals';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';
import { tableUnder } from '../../support/project/guide.js';
import { HAZARDS } from './hazard-index.js';

const text = readProjectFile('tests/README.md');

/** The rows of the tables of requirements, of which each section has one. */
const requirements = [...text.matchAll(/^\| (R\d+) \| (.+) \|$/gm)].map(([, number]) => number!);

/** The requirements that strings in the tests cite, in titles above all. */
const cited = projectFiles('tests', '.ts').flatMap((path) =>
  [...readProjectFile(path).matchAll(/['"`](?:[^'"`\n]*[^\w'"`\n])?(R\d+)\b(?!\w)[^'"`\n]*/g)].flatMap(([string]) =>
    [...string.matchAll(/\bR\d+\b/g)].map(([number]) => ({ path, number })),
  ),
);

test('every requirement that a title cites is in the table, once', () => {
  expect(cited.length).toBeGreaterThan(300);
  expect(cited.filter(({ number }) => requirements.filter((each) => each === number).length !== 1)).toEqual([]);
});

test('every requirement of the table is cited by a test', () => {
  const numbers = new Set(cited.map(({ number }) => number));
  expect(requirements.filter((number) => !numbers.has(number))).toEqual([]);
});

test('the table of hazards matches the index', () => {
  const [, table] = text.split('\n## Hazards\n');
  expect(tableUnder('Number', table!)).toEqual(HAZARDS.map(({ number, title }) => [String(number), title]));
});

test('every folder of tests has its question', () => {
  const folders = new Set(projectFiles('tests').flatMap((path) => /^tests\/([^/]+)\//.exec(path)?.[1] ?? []));
  expect(tableUnder('Folder', text).map(([folder]) => folder!.replaceAll('`', ''))).toEqual(
    expect.arrayContaining([...folders]),
  );
  expect(folders.size).toBe(tableUnder('Folder', text).length);
});

test('every script that the page names exists', () => {
  const { scripts } = JSON.parse(readProjectFile('package.json')) as { scripts: Record<string, string> };
  const named = [...text.matchAll(/`npm (?:run )?([\w:]+)/g)].map(([, name]) => name!);
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
});

test('no title cites a number that nothing in the repository explains', () => {
  const number = /['"`](?:issue )?\d{2}\.\d{1,2}\b[^'"`\n]*: |['"`(]issue \d/;
  expect(
    ["'issue 20.7: a title'", "'20.7: a title'", "'a title (issue 20.7)'"].every((each) => number.test(each)),
  ).toBe(true);
  const own = 'tests/project/conventions/tests-readme.test.ts';
  const titled = ['ts', 'mjs'].flatMap((ending) => projectFiles('tests', `.${ending}`)).filter((path) => path !== own);
  expect(titled.length).toBeGreaterThan(300);
  const citing = titled.flatMap((path) =>
    readProjectFile(path)
      .split('\n')
      .filter((line) => number.test(line))
      .map((line) => `${path}: ${line.trim()}`),
  );
  expect(citing).toEqual([]);
});

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { FOLDERS } from '../../support/project/import-graph.js';
import { PROJECT_ROOT, readProjectFile } from '../../support/project/project-files.js';

const tour = readProjectFile('src/README.md');

function section(title: string): string {
  const [, after] = tour.split(`\n## ${title}\n`);
  if (after === undefined) throw new Error(`src/README.md has no section "${title}"`);
  return after.split('\n## ')[0]!;
}

/** The first cell of each row of the tables in a text, without its backticks. */
const firstCells = (text: string): string[] =>
  [...text.matchAll(/^\| `?([^|`]+?)`? \|/gm)].map(([, cell]) => cell!).slice(2);

/** A file of the tour, from the root of the project. */
const fileOf = (path: string): string => (path.startsWith('lua/') ? path : `src/${path}`);

/** `path` `name()`: a function or method and the file that declares it. */
const places = [...tour.matchAll(/`([\w/-]+\.ts)`\s+`(#?\w+)\(\)`/g)].map(([, path, name]) => [path!, name!] as const);

test('the map has the folders of src in the order of the import test', () => {
  expect(firstCells(section('The map'))).toEqual(FOLDERS);
});

test('the leaves are the files directly in src, without the index', () => {
  const files = readdirSync(join(PROJECT_ROOT, 'src')).filter((name) => name.endsWith('.ts') && name !== 'index.ts');
  expect(firstCells(section('The leaves')).sort()).toEqual(files.sort());
});

test('every file that the tour names exists', () => {
  const named = [...tour.matchAll(/`([\w/-]+\.(?:ts|lua))`/g)].map(([, path]) => path!);
  expect(named.length).toBeGreaterThan(40);
  const missing = named.filter((path) => !path.startsWith('tests/') && !existsSync(join(PROJECT_ROOT, fileOf(path))));
  expect(missing.filter((path) => path !== 'wiring.ts')).toEqual([]);
});

test('every function that the tour names is declared in the file beside it', () => {
  expect(places.length).toBeGreaterThan(25);
  const astray = places.filter(([path, name]) => {
    const declared = new RegExp(
      `^(?:export )?(?:async )?function ${name}\\b|^  (?:(?:protected|private|override|async|static|get) )*${name}[(<]`,
      'm',
    );
    return !declared.test(readProjectFile(fileOf(path)));
  });
  expect(astray).toEqual([]);
});

test('the glossary has about 25 terms, in alphabetical order', () => {
  const terms = firstCells(section('Glossary'));
  expect(terms.length).toBeGreaterThanOrEqual(22);
  expect(terms.length).toBeLessThanOrEqual(30);
  expect(terms).toEqual([...terms].sort());
});

describe('the spine', () => {
  const files = firstCells(section('Read these files first'));

  test('has at most 14 files', () => {
    expect(files.length).toBeGreaterThan(8);
    expect(files.length).toBeLessThanOrEqual(14);
  });

  // 2,100 without the roll, whose scripts and bindings are here before the mechanism that they replace goes.
  test('has fewer than 2,150 lines', () => {
    const lines = files.map((path) => readProjectFile(fileOf(path)).split('\n').length - 1);
    expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThan(2_150);
  });
});

test('the tour has four walks, each with its steps', () => {
  const walks = [...tour.matchAll(/^## (Walk \d: .*)$/gm)].map(([, title]) => title!);
  expect(walks).toHaveLength(4);
  for (const walk of walks) expect(section(walk).match(/^\d+\. /gm)!.length).toBeGreaterThanOrEqual(5);
});

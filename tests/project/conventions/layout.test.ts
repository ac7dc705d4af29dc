import { expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { SUITES } from '../../../.ci/suites/suites.mjs';
import { withoutComments } from '../../support/project/import-graph.js';
import { guide } from '../../support/project/guide.js';
import { PROJECT_ROOT, projectFiles, readProjectFile } from '../../support/project/project-files.js';

interface Manifest {
  scripts: Record<string, string>;
}

const TOP_LEVEL = ['lua', 'src', 'tests', 'examples', 'bench', 'docs', '.ci'];
const TOP_LEVEL_FILES = [
  ...['.editorconfig', '.gitattributes', '.gitignore'],
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'README.md',
  'LICENSE',
  ...['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
];

const code = ['src', 'tests', 'examples', 'bench'].flatMap((folder) => projectFiles(folder, 'ts'));
const manifest = JSON.parse(readProjectFile('package.json')) as Manifest;

test('the top level has only the project and the files that tools require there', () => {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: PROJECT_ROOT,
    encoding: 'utf8',
  });
  const entries = new Set(files.split('\0').flatMap((path) => path.split('/')[0] || []));
  expect([...entries].filter((entry) => ![...TOP_LEVEL, ...TOP_LEVEL_FILES].includes(entry))).toEqual([]);
  expect(TOP_LEVEL_FILES.filter((entry) => !entries.has(entry))).toEqual([]);
});

test('files are named for one concept, in kebab-case', () => {
  const named = [...code, ...projectFiles('lua')].map((path) => path.split('/').at(-1)!.split('.')[0]!);
  expect(named.filter((name) => /(^|-)(utils?|helpers?|misc|common)(-|$)/.test(name))).toEqual([]);
  expect(named.filter((name) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name))).toEqual([]);
});

test('src has no any and no directives that silence the compiler', () => {
  const offences = projectFiles('src', '.ts').flatMap((path) => {
    const text = readProjectFile(path);
    const silenced = text.match(/@ts-(ignore|nocheck|expect-error)/g) ?? [];
    const loose =
      withoutComments(text)
        .replace(/'[^'\n]*'|`[^`]*`/g, "''")
        .match(/.*(?:[:<|&=,([]|=>|\bas|\bextends)\s*any\b(?!:).*/g) ?? [];
    return [...silenced, ...loose].map((line) => `${path}: ${line.trim()}`);
  });
  expect(offences).toEqual([]);
});

test('no comment postpones work, and no test is skipped or run alone', () => {
  const put = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX'].join('|')})\\b`);
  const skipped = /\b(it|test|describe)\.(skip|only|todo|failing)\b|\bx(it|test|describe)\(|\bf(it|describe)\(/;
  const offences = [...code, ...projectFiles('lua', '.lua')].flatMap((path) =>
    readProjectFile(path)
      .split('\n')
      .filter((line) => put.test(line) || (path.endsWith('.test.ts') && skipped.test(line)))
      .filter((line) => !line.includes('const skipped ='))
      .map((line) => `${path}: ${line.trim()}`),
  );
  expect(offences).toEqual([]);
});

test('every script that a page names exists', () => {
  const named = [...guide.matchAll(/\bnpm (?:run )?(?:--silent |-s )?([a-z][\w:-]*)/g)];
  const builtIn = new Set(['ci', 'i', 'install', 'pack', 'publish', 'version', 'packages', 'package']);
  const missing = named.flatMap(([call, script]) =>
    call.startsWith('npm run') || !builtIn.has(script!) ? (manifest.scripts[script!] ? [] : [call]) : [],
  );
  expect(named.length).toBeGreaterThan(0);
  expect(missing).toEqual([]);
});

test('every suite that a page names exists', () => {
  const named = [...guide.matchAll(/\bnpm run (?:--silent )?suite -- ([a-z-]+)/g)].map(([, suite]) => suite!);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((suite) => SUITES[suite] === undefined)).toEqual([]);
});

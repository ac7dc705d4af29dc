import { expect, test } from '@jest/globals';
import { drawAll } from '../../../docs/pictures/all.js';
import { guide, page } from '../../support/project/guide.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';

/** A recording of `npm run demo`, which no script can repeat. */
const RECORDED = 'docs/pictures/demo-timeline.svg';

const drawn = new Map(
  [...drawAll(page('docs/performance.md'))].map(([name, svg]): [string, string] => [`docs/pictures/${name}`, svg]),
);

test('every picture of the guide is the one that npm run pictures draws', () => {
  expect(drawn.size).toBeGreaterThan(5);
  expect(projectFiles('docs/pictures', '.svg')).toEqual([...drawn.keys(), RECORDED].sort());
  expect([...drawn].filter(([path, svg]) => readProjectFile(path) !== svg).map(([path]) => path)).toEqual([]);
});

test('every picture is in a page, with a text for readers who cannot see it', () => {
  const shown = [...guide.matchAll(/!\[([^\]]+)\]\((?:[^)]*\/)?([\w-]+\.(?:svg|png))\)/g)];
  expect(shown.filter(([, text]) => text!.length < 20).map(([, , name]) => name)).toEqual([]);
  const names = new Set(shown.map(([, , name]) => `docs/pictures/${name}`));
  const pictures = projectFiles('docs/pictures').filter((path) => !path.endsWith('.ts'));
  expect(pictures.length).toBeGreaterThan(5);
  expect(pictures.filter((path) => !names.has(path))).toEqual([]);
});

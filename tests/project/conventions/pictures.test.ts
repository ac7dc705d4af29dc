import { expect, test } from '@jest/globals';
import { drawAll } from '../../../docs/pictures/all.js';
import { readResults } from '../../../bench/results/results.js';
import { guide } from '../../support/project/guide.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';

/** A recording of `npm run demo`, which no script can repeat. */
const RECORDED = 'docs/pictures/demo-timeline.svg';

const drawn = new Map(
  [...drawAll(readResults())].map(([name, svg]): [string, string] => [`docs/pictures/${name}`, svg]),
);

test('every picture of the guide is the one that npm run suite -- pictures draws', () => {
  expect(drawn.size).toBeGreaterThan(5);
  expect(projectFiles('docs/pictures', '.svg')).toEqual([...drawn.keys(), RECORDED].sort());
  expect([...drawn].filter(([path, svg]) => readProjectFile(path) !== svg).map(([path]) => path)).toEqual([]);
});

test('every picture has a title for readers who cannot see it, and a chart of hot locks has its figures, too', () => {
  const untold = [...drawn].filter(([, svg]) => !/<title>[^<]{20,}<\/title>/.test(svg)).map(([path]) => path);
  expect(untold).toEqual([]);
  const hot = [...drawn].filter(([path]) => path.includes('/hot-locks-'));
  expect(hot.length).toBe(3);
  for (const [, svg] of hot) {
    const details = /<desc>([^<]+)<\/desc>/.exec(svg)![1]!;
    const bars = [...svg.matchAll(/<text [^>]*font-size="12">([\d.,]+)<\/text>/g)].map(([, figure]) => figure!);
    expect(bars.length).toBeGreaterThan(1);
    expect(bars.filter((figure) => !details.includes(` ${figure}`))).toEqual([]);
  }
});

test('every picture is in a page, with a text for readers who cannot see it', () => {
  const shown = [...guide.matchAll(/!\[([^\]]+)\]\((?:[^)]*\/)?([\w-]+\.(?:svg|png))\)/g)];
  expect(shown.filter(([, text]) => text!.length < 20).map(([, , name]) => name)).toEqual([]);
  const names = new Set(shown.map(([, , name]) => `docs/pictures/${name}`));
  const pictures = projectFiles('docs/pictures').filter((path) => !path.endsWith('.ts'));
  expect(pictures.length).toBeGreaterThan(5);
  expect(pictures.filter((path) => !names.has(path))).toEqual([]);
});

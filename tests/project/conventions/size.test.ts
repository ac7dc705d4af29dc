import { expect, test } from '@jest/globals';
import { sizes } from '../../../.ci/lines.mjs';
import { readProjectFile } from '../../support/project/project-files.js';

/** A decision that is true to this share need not change with every commit. */
const SHARE = 0.03;
const LINES = 10;

const decision = readProjectFile('docs/decisions/12-size-of-the-source.md');
const rows = [...decision.matchAll(/^\| (\w+) \| ([\d,]+) \| ([\d,]+) \| (\d+) \|/gm)].map(
  ([, part, ...counts]) => [part!, counts.map((count) => Number(count.replace(',', '')))] as const,
);

test('the decision about size has a row for each part', () => {
  expect(rows.map(([part]) => part)).toEqual(Object.keys(sizes()));
});

test.each(rows)('the decision about size has the lines, the code and the interfaces of the part %s', (part, told) => {
  const { lines, code, interfaces } = sizes()[part]!;
  for (const [index, counted] of [lines, code, interfaces].entries()) {
    expect(Math.abs(counted - told[index]!)).toBeLessThanOrEqual(Math.max(LINES, SHARE * counted));
  }
});

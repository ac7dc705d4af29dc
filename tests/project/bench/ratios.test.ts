import { describe, expect, test } from '@jest/globals';
import { judge } from '../../../bench/bars.js';
import { readable } from '../../../bench/report.js';
import { Sample } from '../../../bench/sample.js';
import { ratioTable } from '../../../bench/two-builds/ratios.js';
import { BUILD_ROWS } from '../../../bench/two-builds/rows.js';
import { withRatios } from '../../../bench/workloads/hot-ratios.js';
import type { Row } from '../../../bench/workloads/workload.js';

describe('rows of hot locks', () => {
  const row = (subject: string, rate: number, more: Record<string, number> = {}): Row => ({
    workload: 'hot lock, 1 x 50, hold 0',
    subject,
    figures: { 'sections/s': rate, ...more },
  });
  const rows = [
    row('holdfast', 1_000, { 'longest wait ms': 30 }),
    row('holdfast, local: 20', 40_000, { 'longest wait ms': 45, 'requests/section': 0.01 }),
    row('redlock', 1_500),
    row('redis-semaphore', 2_000),
    row('redisson 4.7.0', 5_000),
    row('(no lock: the holds alone)', 50_000),
  ];

  test('Holdfast is compared with the best library for Node.js, Redisson, no lock and its own default', () => {
    const [byDefault, local, ...others] = withRatios(rows);
    expect(byDefault!.figures).toEqual({
      'sections/s': 1_000,
      'longest wait ms': 30,
      'x best Node peer': 0.5,
      'x Redisson': 0.2,
      'of no lock': 0.02,
    });
    expect(local!.figures).toMatchObject({
      'x default': 40,
      'x best Node peer': 20,
      'x Redisson': 8,
      'of no lock': 0.8,
      'longest wait beyond default ms': 15,
    });
    expect(others).toEqual(rows.slice(2));
  });

  test('without a JVM there is no ratio to Redisson, and no bar of it', () => {
    const measured = withRatios(rows.filter(({ subject }) => !subject.startsWith('redisson')));
    expect(measured.some(({ figures }) => 'x Redisson' in figures)).toBe(false);
    expect(judge(measured).map(({ figure, met }) => [figure, met])).toEqual([
      ['x best Node peer', true],
      ['requests/section', true],
    ]);
  });

  test('the median of one flow is compared with that of the default', () => {
    const [, background] = withRatios([
      row('holdfast', 200, { 'p50 ms': 5 }),
      row('holdfast, release in the background', 400, { 'p50 ms': 2.5 }),
      row('2 bare scripts', 250, { 'p50 ms': 4 }),
    ]);
    expect(background!.figures).toMatchObject({ 'p50 of default': 0.5, 'x bare scripts': 1.6, 'x default': 2 });
  });

  test('each bar of hot locks names a row and a figure that a whole run has', () => {
    const figures = {
      ...{ 'x best Node peer': 1, 'x Redisson': 1, 'requests/section': 1, 'of no lock': 1, 'x default': 1 },
      ...{ 'longest wait beyond default ms': 1, 'x bare scripts': 1, 'p50 of default': 1 },
    };
    const shapes = ['1 x 50, hold 0', '1 x 50, hold 1 ms', '1 x 50, hold 1 ms, network 1 ms', '4 x 10, hold 0'];
    const measured = [...shapes, '4 x 10, hold 1 ms', '1 flow', '1 flow, network 1 ms'].flatMap((shape) =>
      ['local: 20', 'keep: 500', 'release in the background'].map((option) => ({
        workload: `hot lock, ${shape}`,
        subject: `holdfast, ${option}`,
        figures,
      })),
    );
    expect(judge(measured).map(({ workload, figure, is, limit }) => `${workload}: ${figure} ${is} ${limit}`)).toEqual([
      'hot lock, 1 x 50, hold 0: x best Node peer at least 20',
      'hot lock, 1 x 50, hold 0: x Redisson at least 10',
      'hot lock, 1 x 50, hold 0: requests/section at most 0.1',
      'hot lock, 1 x 50, hold 1 ms: of no lock at least 0.95',
      'hot lock, 1 x 50, hold 1 ms, network 1 ms: x default at least 2.5',
      'hot lock, 4 x 10, hold 0: longest wait beyond default ms at most 20',
      'hot lock, 4 x 10, hold 1 ms: longest wait beyond default ms at most 20',
      'hot lock, 1 flow: x bare scripts at least 20',
      'hot lock, 1 flow, network 1 ms: p50 of default at most 0.55',
    ]);
  });
});

describe('two builds', () => {
  test('the table has the median of the ratios of all pairs, and the middle half of them', () => {
    const pairs = [1, 2, 3, 4, 5].map((ratio) => ({ this: ratio * 100, other: 100 }));
    const lines = ratioTable([{ name: 'a row', unit: 'sections/s', better: 'more', pairs }]).split('\n');
    const cells = lines[2]!.split('|').map((cell) => cell.trim());
    expect(cells.slice(1, -1)).toEqual(['a row, sections/s', 'more', '300', '100', '3.000', '2.00 to 4.00']);
  });

  test('each row has a name of its own', () => {
    const names = BUILD_ROWS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});

test('a sample of many values has few of them, from the whole time', () => {
  const sample = new Sample();
  for (let value = 0; value < 1_000_000; value += 1) sample.add(value);
  expect(sample.values.length).toBeLessThan(4_000);
  expect(sample.values.length).toBeGreaterThan(1_000);
  expect(sample.values[0]).toBeLessThan(10_000);
  expect(sample.values.at(-1)).toBeGreaterThan(990_000);
});

test.each([
  [0, '0'],
  [0.00001234, '0.0000123'],
  [12.345, '12.3'],
  [99.96, '100'],
  [194_099.4, '194,099'],
  [undefined, ''],
] as const)('%s is written as "%s"', (value, text) => {
  expect(readable(value)).toBe(text);
});

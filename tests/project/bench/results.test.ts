import { describe, expect, test } from '@jest/globals';
import { BENCH_PAGES, withFigures } from '../../../bench/results/pages.js';
import { figure, readResults, withRun, workloadsOf, type Results, type Run } from '../../../bench/results/results.js';
import type { Row } from '../../../bench/workloads/workload.js';
import { page } from '../../support/project/guide.js';

const results = readResults();

describe('the pages', () => {
  test.each(BENCH_PAGES)('%s has the figures of results.json, as npm run suite -- bench-pages writes them', (path) => {
    expect(page(path)).toMatch(/<!-- bench:[\w-]+ -->/);
    expect(withFigures(page(path), results)).toBe(page(path));
  });

  test('a changed figure changes each page that has it, and nothing outside the marked parts', () => {
    const changed: Results = {
      ...results,
      runs: results.runs.map((run) => ({
        ...run,
        rows: run.rows.map((row) => ({
          ...row,
          figures: Object.fromEntries(Object.entries(row.figures).map(([name, value]) => [name, value * 1.5 + 1])),
        })),
      })),
    };
    const outside = (text: string): string => text.replace(/^<!-- bench:[\w-]+ -->\n[^]*?^<!-- bench:end -->$/gm, '');
    for (const path of BENCH_PAGES) {
      const text = withFigures(page(path), changed);
      expect(text).not.toBe(page(path));
      expect(outside(text)).toBe(outside(page(path)));
    }
  });

  test('a part that the benchmark does not have is refused', () => {
    const text = '<!-- bench:other -->\n<!-- bench:end -->';
    expect(() => withFigures(text, results)).toThrow('no part other');
  });
});

test('each run of results.json says when, where and of which commit its rows are, and each row belongs to one run', () => {
  for (const { date, commit, node, redis, machine } of results.runs) {
    expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(commit).toMatch(/^[0-9a-f]{7,10}$/);
    expect([node, redis, machine].map((text) => text.length > 0)).toEqual([true, true, true]);
  }
  const rows = results.runs.flatMap((run) => run.rows.map(({ workload, subject }) => `${workload}: ${subject}`));
  expect(rows.length).toBeGreaterThan(50);
  expect(rows.filter((row, at) => rows.indexOf(row) !== at)).toEqual([]);
  expect([...workloadsOf(results).values()].flat().length).toBe(rows.length);
});

describe('a new run', () => {
  const row = (workload: string, subject: string, rate: number): Row => ({
    workload,
    subject,
    figures: { 'sections/s': rate },
  });
  const run = (commit: string, ...rows: Row[]): Run => ({
    date: '2026-01-01',
    commit,
    node: 'v20.0.0',
    redis: '7.0.15',
    machine: '2 x some processor',
    quick: false,
    rows,
  });
  const before: Results = {
    order: ['a', 'b', 'gone'],
    runs: [run('1111111', row('a', 'one', 1), row('a', 'two', 2), row('b', 'one', 3), row('gone', 'one', 4))],
  };

  test('takes the place of all older rows of its workloads, and keeps the other workloads with their run', () => {
    const after = withRun(before, run('2222222', row('a', 'one', 10)), ['a', 'b']);
    expect(after.runs.map(({ commit, rows }) => [commit, rows.map(({ workload }) => workload)])).toEqual([
      ['1111111', ['b']],
      ['2222222', ['a']],
    ]);
    expect(figure(after, 'a', 'one', 'sections/s')).toBe(10);
    expect(() => figure(after, 'a', 'two', 'sections/s')).toThrow('"a" has no sections/s of two');
  });

  test('of all workloads leaves nothing of the runs before', () => {
    const after = withRun(before, run('2222222', row('b', 'one', 1), row('a', 'one', 2)), ['a', 'b']);
    expect(after.runs.map(({ commit }) => commit)).toEqual(['2222222']);
    expect([...workloadsOf(after).keys()]).toEqual(['a', 'b']);
  });
});

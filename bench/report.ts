import type { Verdict } from './bars.js';
import type { Row } from './workloads/workload.js';

/** A Markdown table for each workload: its figures are its own. */
export function workloadTable(rows: readonly Row[]): string {
  const figures = [...new Set(rows.flatMap((row) => Object.keys(row.figures)))];
  return table(
    [rows[0]?.workload ?? '', ...figures],
    rows.map((row) => [row.subject, ...figures.map((figure) => readable(row.figures[figure]))]),
  );
}

export function verdictTable(verdicts: readonly Verdict[]): string {
  return table(
    ['bar', 'to reach', 'measured', 'result'],
    verdicts.map(({ workload, subject, figure, is, limit, measured, met, ceiling }) => [
      `${workload}: ${subject}, ${figure}`,
      `${is} ${limit}`,
      readable(measured),
      met ? 'met' : ceiling === undefined ? 'NOT MET' : `NOT MET (ceiling ${readable(ceiling)})`,
    ]),
  );
}

export function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(3, title.length, ...lines.map((line) => line[column]!.length)));
  const row = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(' | ')} |`;
  const rule = widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [row(head), row(rule), ...lines.map(row)].join('\n');
}

export function readable(value: number | undefined): string {
  return value === undefined ? '' : readableNumber(value).toLocaleString('en-US', { maximumFractionDigits: 20 });
}

/** Three digits that count, and no more behind the point than that. */
export function readableNumber(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}

import { readable, table } from '../report.js';
import { median, quantile } from '../statistics.js';

/** The same work of both builds, one after the other. */
export interface Pair {
  readonly this: number;
  readonly other: number;
}

export interface Comparison {
  readonly name: string;
  readonly unit: string;
  readonly better: 'more' | 'less';
  readonly pairs: readonly Pair[];
}

/** This build as a multiple of the other one: the median of all pairs, and where the middle half of them is. */
export function ratioTable(comparisons: readonly Comparison[]): string {
  return table(
    ['two builds', 'better', 'this build', 'other build', 'this / other', 'middle half'],
    comparisons.map(({ name, unit, better, pairs }) => {
      const ratios = pairs.map((pair) => pair.this / pair.other);
      const [low, high] = [0.25, 0.75].map((q) => quantile(ratios, q).toFixed(2));
      return [
        `${name}, ${unit}`,
        better,
        readable(median(pairs.map((pair) => pair.this))),
        readable(median(pairs.map(({ other }) => other))),
        median(ratios).toFixed(3),
        `${low} to ${high}`,
      ];
    }),
  );
}

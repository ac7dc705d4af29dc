import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Row } from '../workloads/workload.js';

/** Of which the guide has the figures: what `npm run bench -- --save` has measured. */
export const RESULTS_FILE = join(import.meta.dirname, 'results.json');

/** Rows that were measured together. */
export interface Run {
  /** Such as 2026-11-24. */
  readonly date: string;
  /** That was measured. */
  readonly commit: string;
  readonly node: string;
  readonly redis: string;
  readonly machine: string;
  /** Fewer and shorter rounds. */
  readonly quick: boolean;
  readonly rows: readonly Row[];
}

export interface Results {
  /** The names of all workloads, in the order of the tables. */
  readonly order: readonly string[];
  readonly runs: readonly Run[];
}

export const readResults = (): Results => JSON.parse(readFileSync(RESULTS_FILE, 'utf8')) as Results;

/** The results with the rows of a new run in place of the older rows of its workloads, and without workloads that are no more. */
export function withRun({ runs }: Results, run: Run, order: readonly string[]): Results {
  const fresh = new Set(run.rows.map(({ workload }) => workload));
  const kept = runs.map((each) => ({
    ...each,
    rows: each.rows.filter(({ workload }) => !fresh.has(workload) && order.includes(workload)),
  }));
  return { order, runs: [...kept, run].filter(({ rows }) => rows.length > 0) };
}

/** The rows of all runs, by workload. */
export function workloadsOf({ order, runs }: Results): ReadonlyMap<string, readonly Row[]> {
  const rows = runs.flatMap((run) => run.rows);
  return new Map(
    order
      .map((name): [string, Row[]] => [name, rows.filter(({ workload }) => workload === name)])
      .filter(([, measured]) => measured.length > 0),
  );
}

/** A figure, if it was measured. */
export function figureOf(results: Results, workload: string, subject: string, name: string): number | undefined {
  return workloadsOf(results)
    .get(workload)
    ?.find((row) => row.subject === subject)?.figures[name];
}

/** A figure that has to be there. */
export function figure(results: Results, workload: string, subject: string, name: string): number {
  const measured = figureOf(results, workload, subject, name);
  if (measured === undefined) throw new Error(`"${workload}" has no ${name} of ${subject}`);
  return measured;
}

import type { BenchServer } from '../server.js';

export interface Setting {
  readonly server: BenchServer;
  /** Shorter and fewer runs, for a look; their figures scatter. */
  readonly quick: boolean;
}

/** After the one that warms up. Behind a network, rounds take longer and differ less. */
export const roundsOf = ({ quick, server }: Setting): number => (quick ? 1 : server.isDelayed ? 3 : 5);

/** One line of the table: what one subject did in one workload. */
export interface Row {
  readonly workload: string;
  readonly subject: string;
  readonly figures: Readonly<Record<string, number>>;
}

export interface Workload {
  readonly name: string;
  run(setting: Setting): Promise<Row[]>;
}

/** A row that tells what no lock can exceed: its subject is in parentheses. */
export const isCeiling = ({ subject }: Row): boolean => subject.startsWith('(');

/** Adds to each holdfast row of a workload, and to its ceiling, how often it is the best of the peers. */
export function againstBestPeer(rows: readonly Row[], figure: string): Row[] {
  const isPeer = (row: Row): boolean => !row.subject.startsWith('holdfast') && !isCeiling(row);
  const best = Math.max(...rows.filter(isPeer).map(({ figures }) => figures[figure]!));
  return rows.map((row) =>
    !isPeer(row) ? { ...row, figures: { ...row.figures, 'x best peer': row.figures[figure]! / best } } : row,
  );
}

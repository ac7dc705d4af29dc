import type { BenchServer } from '../server.js';

export interface Setting {
  readonly server: BenchServer;
  /** Shorter and fewer runs, for a look; their figures scatter. */
  readonly quick: boolean;
}

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

/** Adds to each holdfast row of a workload how often it is the best of the peers. */
export function againstBestPeer(rows: readonly Row[], figure: string): Row[] {
  const isOurs = ({ subject }: Row): boolean => subject.startsWith('holdfast');
  const best = Math.max(...rows.filter((row) => !isOurs(row)).map(({ figures }) => figures[figure]!));
  return rows.map((row) =>
    isOurs(row) ? { ...row, figures: { ...row.figures, 'x best peer': row.figures[figure]! / best } } : row,
  );
}

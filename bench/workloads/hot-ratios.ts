import { isCeiling, type Row } from './workload.js';

const DEFAULT = 'holdfast';
const RAW = '2 bare scripts';
const NODE_PEERS = ['redlock', 'redis-semaphore'];
const isRedisson = ({ subject }: Row): boolean => subject.startsWith('redisson ');

/** Adds to each row of Holdfast what it is of the others in its workload, as far as they were measured. */
export function withRatios(rows: readonly Row[]): Row[] {
  const figure = (row: Row | undefined, name: string): number | undefined => row?.figures[name];
  const byDefault = rows.find(({ subject }) => subject === DEFAULT);
  const peers = rows.filter(({ subject }) => NODE_PEERS.includes(subject));
  const best = peers.length > 0 ? Math.max(...peers.map(({ figures }) => figures['sections/s']!)) : undefined;
  return rows.map((row) => {
    if (!row.subject.startsWith('holdfast')) return row;
    const rate = row.figures['sections/s']!;
    const of = (other: number | undefined): number | undefined => (other === undefined ? undefined : rate / other);
    const longest = figure(row, 'longest wait ms');
    const option = row !== byDefault && byDefault !== undefined;
    const ratios: Record<string, number | undefined> = {
      'x default': option ? of(figure(byDefault, 'sections/s')) : undefined,
      'x best Node peer': of(best),
      'x Redisson': of(figure(rows.find(isRedisson), 'sections/s')),
      'x bare scripts': of(
        figure(
          rows.find(({ subject }) => subject === RAW),
          'sections/s',
        ),
      ),
      'of no lock': of(figure(rows.find(isCeiling), 'sections/s')),
      'p50 of default':
        option && 'p50 ms' in row.figures ? row.figures['p50 ms'] / figure(byDefault, 'p50 ms')! : undefined,
      'longest wait beyond default ms':
        option && longest !== undefined ? longest - figure(byDefault, 'longest wait ms')! : undefined,
    };
    const known = Object.entries(ratios).filter((entry): entry is [string, number] => entry[1] !== undefined);
    return { ...row, figures: { ...row.figures, ...Object.fromEntries(known) } };
  });
}

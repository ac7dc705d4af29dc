import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { withWorkers, type Worker } from '../processes.js';
import { BenchServer } from '../server.js';
import { quantile } from '../statistics.js';
import { ratioTable, type Comparison, type Pair } from './ratios.js';
import { BUILD_ROWS, type BuildRow } from './rows.js';
import { SIDES, type Opening, type Side } from './tasks.js';

export interface CompareOptions {
  /** The package of the other build. */
  readonly folder: string;
  readonly only: RegExp;
  readonly quick: boolean;
  readonly list: boolean;
  say(line: string): void;
}

/** Two builds of Holdfast, loaded into each process, which does the same work with the one and the other by turns. */
export async function compareBuilds({ folder, only, quick, list, say }: CompareOptions): Promise<void> {
  const chosen = BUILD_ROWS.filter(({ name }) => only.test(name));
  if (list) return chosen.forEach(({ name }) => say(name));
  const other = resolve(folder);
  if (!existsSync(join(other, 'dist/index.mjs'))) {
    throw new Error(`${other} has no dist/index.mjs. Run npm ci and npm run build there.`);
  }
  if (chosen.length === 0) throw new Error('no row matches; --list names them');
  const comparisons: Comparison[] = [];
  await using server = await BenchServer.start(say);
  await using second = await BenchServer.start(() => undefined);
  await using third = await BenchServer.start(() => undefined);
  for (const row of chosen) {
    await Promise.all([server, second, third].map((each) => each.clear()));
    const urls = row.work.is === 'sections' && row.work.shape.kind === 'red' ? [server, second, third] : [server];
    const opening = { folder: other, urls: urls.map(({ url }) => url), options: row.options ?? {} };
    try {
      const compared = await comparison(row, opening, quick);
      comparisons.push(compared);
      say(`${ratioTable([compared])}\n`);
    } catch (error) {
      // Such as an option that the other build does not know.
      say(`left out: ${row.name}: ${error instanceof Error ? error.message.split('\n')[0]! : String(error)}\n`);
    }
  }
  if (comparisons.length > 0) say(ratioTable(comparisons));
}

async function comparison(
  { name, processes, work, pairs }: BuildRow,
  opening: Opening,
  quick: boolean,
): Promise<Comparison> {
  return withWorkers(processes, async (workers) => {
    await Promise.all(workers.map((worker) => worker.run('openBuilds', opening)));
    const measure = await measureOf(work, workers, opening, quick);
    const measured: Pair[] = [];
    // The first pair warms up.
    for (let pair = 0; pair <= (quick ? pairs.quick : pairs.full); pair += 1) {
      const figures: Record<Side, number> = { this: 0, other: 0 };
      // The second one finds the machine as the first has left it, so each is the first one half of the times.
      for (const side of pair % 2 === 0 ? SIDES : [...SIDES].reverse()) figures[side] = await measure(side);
      if (pair > 0) measured.push(figures);
    }
    return { name, ...UNITS[work.is], pairs: measured };
  });
}

const UNITS = {
  sections: { unit: 'sections/s', better: 'more' },
  'hand-off': { unit: 'p50 ms', better: 'less' },
  renewals: { unit: 'client CPU s', better: 'less' },
  waiters: { unit: 'bytes/waiter', better: 'less' },
} as const satisfies Record<BuildRow['work']['is'], Pick<Comparison, 'unit' | 'better'>>;

type Measure = (side: Side) => Promise<number>;

async function measureOf(
  work: BuildRow['work'],
  workers: readonly Worker[],
  { urls }: Opening,
  quick: boolean,
): Promise<Measure> {
  const [first, second] = workers;
  switch (work.is) {
    case 'sections': {
      const rate = async (side: Side, each: number): Promise<number> => {
        const slices = await Promise.all(workers.map((worker) => worker.run('sectionsOf', side, work.shape, each)));
        const began = Math.min(...slices.map(({ startedAt }) => startedAt));
        const ended = Math.max(...slices.map(({ endedAt }) => endedAt));
        return (workers.length * work.shape.flows * each * 1_000) / (ended - began);
      };
      // As many sections as the slower build needs this time for.
      const sliceMs = quick ? 150 : 500;
      let each = 4;
      for (let round = 0; round < 3; round += 1) {
        const rates = [await rate('this', each), await rate('other', each)];
        each = Math.max(1, Math.round((Math.min(...rates) * sliceMs) / 1_000 / work.shape.flows / workers.length));
      }
      return (side) => rate(side, each);
    }
    case 'hand-off':
      return async (side) => {
        const latencies: number[] = [];
        for (let i = 0; i < (quick ? 10 : 20); i += 1) {
          await first!.run('takeOf', side, work.isFair);
          await second!.run('waitOf', side, work.isFair, work.waiters);
          // Not in step with anything that polls.
          await sleep(20 + 20 * Math.random());
          const calledAt = await first!.run('releaseOf');
          latencies.push((await second!.run('firstOf')) - calledAt);
        }
        return quantile(latencies, 0.5);
      };
    case 'renewals':
      return (side) => first!.run('cpuOfHeld', side, work.locks, quick ? 4_000 : 20_000);
    case 'waiters':
      return (side) => first!.run('bytesOfWaiters', side, urls[0]!, work.waiters);
  }
}

import type { Jvm } from '../../tests/interop/redisson/jvm.js';
import { clientFor, missingForRedisson, REDISSON, redissons, warmUp } from '../jvms.js';
import { behindNetwork } from '../network.js';
import { alsoSentBy } from '../peers.js';
import { withWorkers, type Worker } from '../processes.js';
import { median } from '../statistics.js';
import type { HotBatch, HotShape, HotSubject } from './hot-tasks.js';
import { withRatios } from './hot-ratios.js';
import { roundsOf, type Row, type Setting, type Workload } from './workload.js';

/*
 * Sections on one key, with the options that save requests (docs/hot-locks.md), beside the other libraries: by turns,
 * round by round, in processes that stay. As in the sustained rows of contended.ts, each flow enters so many times, and
 * the time runs until the last flow has left. A round repeats that until it has lasted long enough.
 */

const LOCAL_MS = 20;

interface Case {
  readonly subject: string;
  readonly as: HotSubject | 'redisson';
}

export const DEFAULT: Case = { subject: 'holdfast', as: { options: {} } };
const LOCAL: Case = {
  subject: `holdfast, local: ${LOCAL_MS}`,
  as: { options: { handOff: { local: LOCAL_MS } } },
};
/** What the default would be without an exception for sections that need no request. */
const LIMITED: Case = {
  subject: `holdfast, local: ${LOCAL_MS}, maxSections: 16`,
  as: { options: { handOff: { local: LOCAL_MS, maxSections: 16 } } },
};
const KEPT: Case = {
  subject: 'holdfast, keep: 500',
  as: { options: { handOff: { local: 1_000, keep: 500, maxTime: 1_000 } } },
};
const BACKGROUND: Case = {
  subject: 'holdfast, release in the background',
  as: { options: { release: 'background' } },
};
const RAW: Case = { subject: '2 bare scripts', as: { peer: 'raw scripts' } };
const OTHERS: readonly Case[] = [
  { subject: 'redlock', as: { peer: 'redlock' } },
  { subject: 'redis-semaphore', as: { peer: 'redis-semaphore' } },
  { subject: REDISSON, as: 'redisson' },
];
const NO_LOCK: Case = { subject: '(no lock: the holds alone)', as: 'no lock' };

/** One subject: its processes, and what they did in each round. */
interface Contender {
  readonly subject: string;
  readonly alsoSent: string[];
  readonly processes: readonly ((shape: HotShape) => Promise<HotBatch>)[];
  readonly rounds: Record<'rate' | 'wait' | 'longest' | 'length' | 'requests', number>[];
}

/** Without a lock, one flow has all sections. */
const oneByOne = ({ flows, sectionsEach, holdMs }: HotShape): HotShape => ({
  flows: 1,
  sectionsEach: flows * sectionsEach,
  holdMs,
});

async function ofNode({ subject, as }: Case, { url }: Setting['server'], workers: Worker[]): Promise<Contender> {
  const opened = as as HotSubject;
  await Promise.all(workers.map((worker) => worker.run('openHot', opened, url, `bench:hot:${subject}`)));
  return {
    subject,
    alsoSent: typeof opened === 'object' && 'peer' in opened ? alsoSentBy(opened.peer) : [],
    processes: workers.map(
      (worker) => (shape) => worker.run('hotBatch', opened === 'no lock' ? oneByOne(shape) : shape),
    ),
    rounds: [],
  };
}

function ofJvms(jvms: readonly Jvm[], client: string): Contender {
  const object = { kind: 'lock', name: `bench:hot:${REDISSON}` };
  const round = async (jvm: Jvm, shape: HotShape): Promise<HotBatch> =>
    (await jvm.order<HotBatch>({ op: 'contend', client, object, ...shape })).result;
  return {
    subject: REDISSON,
    alsoSent: ['publish', 'del'],
    processes: jvms.map((jvm) => (shape) => round(jvm, shape)),
    rounds: [],
  };
}

async function oneRound({ server, quick }: Setting, { processes, alsoSent }: Contender, shape: HotShape) {
  const batches: HotBatch[] = [];
  const longest: number[] = [];
  let [ms, sections] = [0, 0];
  const { requests } = await server.countCommands(alsoSent, async () => {
    while (ms < (quick ? 300 : 1_000)) {
      const batch = await Promise.all(processes.map((process) => process(shape)));
      const began = Math.min(...batch.map(({ startedAt }) => startedAt));
      ms += Math.max(...batch.map(({ endedAt }) => endedAt)) - began;
      sections += processes.length * shape.flows * shape.sectionsEach;
      batches.push(...batch);
      longest.push(Math.max(...batch.map(({ longestWaitMs }) => longestWaitMs)));
    }
  });
  const p50 = (of: 'waits' | 'lengths'): number => median(batches.flatMap((batch) => batch[of]));
  return {
    rate: (sections * 1_000) / ms,
    wait: p50('waits'),
    longest: median(longest),
    length: p50('lengths'),
    requests: requests / sections,
  };
}

async function measure(
  setting: Setting,
  workload: string,
  cases: readonly Case[],
  processes: number,
  shape: HotShape,
): Promise<Row[]> {
  const { server, quick } = setting;
  const client = clientFor(server);
  const jvms = missingForRedisson().length > 0 ? [] : await redissons(processes, [server.url], client);
  await warmUp(jvms, 'lock', quick || server.isDelayed, client);
  const inNode = cases.filter(({ as }) => as !== 'redisson');
  return withWorkers(processes * inNode.length, async (workers) => {
    const contenders: Contender[] = [];
    const idle = [...workers];
    for (const each of cases) {
      if (each.as === 'redisson') {
        if (jvms.length > 0) contenders.push(ofJvms(jvms, client));
        continue;
      }
      contenders.push(await ofNode(each, server, idle.splice(0, processes)));
    }
    // Which process is the next one is a matter of chance, so its longest wait needs more rounds.
    const rounds = roundsOf(setting) * (processes > 1 || quick ? 2 : 1);
    for (let round = 0; round <= rounds; round += 1) {
      for (const contender of contenders) {
        const one = await oneRound(setting, contender, shape);
        if (round > 0) contender.rounds.push(one);
      }
    }
    const rows = contenders.map(({ subject, rounds }): Row => {
      const middle = (of: keyof (typeof rounds)[number]): number => median(rounds.map((round) => round[of]));
      const times =
        shape.flows > 1
          ? { 'wait p50 ms': middle('wait'), 'longest wait ms': middle('longest') }
          : { 'p50 ms': middle('length') };
      return {
        workload,
        subject,
        figures: { 'sections/s': middle('rate'), ...times, 'requests/section': middle('requests') },
      };
    });
    return withRatios(rows);
  });
}

function hot(name: string, cases: readonly Case[], processes: number, shape: HotShape): Workload {
  return {
    name: `hot lock, ${name}`,
    run: (setting) => measure(setting, `hot lock, ${name}`, cases, processes, shape),
  };
}

const CROWD = [DEFAULT, LOCAL, ...OTHERS, NO_LOCK];
const SPREAD = [DEFAULT, LOCAL, LIMITED, ...OTHERS];
const ALONE = [DEFAULT, KEPT, BACKGROUND, RAW, ...OTHERS];

export const workloads: Workload[] = [
  hot('1 x 50, hold 0', CROWD, 1, { flows: 50, sectionsEach: 100, holdMs: 0 }),
  hot('1 x 50, hold 1 ms', CROWD, 1, { flows: 50, sectionsEach: 20, holdMs: 1 }),
  hot('1 x 500, hold 0', CROWD, 1, { flows: 500, sectionsEach: 10, holdMs: 0 }),
  hot('1 x 500, hold 1 ms', CROWD, 1, { flows: 500, sectionsEach: 2, holdMs: 1 }),
  hot('4 x 10, hold 0', SPREAD, 4, { flows: 10, sectionsEach: 50, holdMs: 0 }),
  hot('4 x 10, hold 1 ms', SPREAD, 4, { flows: 10, sectionsEach: 25, holdMs: 1 }),
  hot('1 flow', ALONE, 1, { flows: 1, sectionsEach: 500, holdMs: 0 }),
  ...[
    hot('1 x 50, hold 0', CROWD, 1, { flows: 50, sectionsEach: 8, holdMs: 0 }),
    hot('1 x 50, hold 1 ms', CROWD, 1, { flows: 50, sectionsEach: 8, holdMs: 1 }),
    hot('1 x 500, hold 0', CROWD, 1, { flows: 500, sectionsEach: 2, holdMs: 0 }),
    hot('1 x 500, hold 1 ms', CROWD, 1, { flows: 500, sectionsEach: 1, holdMs: 1 }),
    hot('4 x 10, hold 0', SPREAD, 4, { flows: 10, sectionsEach: 10, holdMs: 0 }),
    hot('4 x 10, hold 1 ms', SPREAD, 4, { flows: 10, sectionsEach: 10, holdMs: 1 }),
    hot('1 flow', ALONE, 1, { flows: 1, sectionsEach: 100, holdMs: 0 }),
  ].map(behindNetwork),
];

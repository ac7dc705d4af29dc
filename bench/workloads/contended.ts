import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { now } from '../monotonic.js';
import { behindNetwork } from '../network.js';
import { alsoSentBy, LIBRARIES, openPeer, type Peer, type PeerName } from '../peers.js';
import { withWorkers, type Worker } from '../processes.js';
import { median } from '../statistics.js';
import { againstBestPeer, roundsOf, type Row, type Setting, type Workload } from './workload.js';

/*
 * Many that want one lock, and the time until the last one has been inside. `burst`: all come at once and enter once.
 * `sustained`: each comes back for more as soon as it has left; who enters again past those that wait is quick, and
 * keeps them waiting, so the longest wait belongs to the figure.
 */

/** What no lock can exceed that passes from hand to hand. */
export const CEILING = '(no lock: hold + 1 round trip)';

interface Contention {
  readonly flows: number;
  readonly sectionsEach: number;
  readonly holdMs: number;
}

interface Round {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly longestWaitMs: number;
}

let peer: Peer | undefined;

async function openContender(name: PeerName, url: string): Promise<void> {
  peer = await openPeer(name, { url });
}

async function contend({ flows, sectionsEach, holdMs }: Contention): Promise<Round> {
  let inside = 0;
  let longestWaitMs = 0;
  const flow = async (): Promise<void> => {
    for (let i = 0; i < sectionsEach; i += 1) {
      const calledAt = now();
      await peer!.section('bench:contended', async () => {
        inside += 1;
        if (inside > 1) throw new Error('two are inside');
        longestWaitMs = Math.max(longestWaitMs, now() - calledAt);
        if (holdMs > 0) await sleep(holdMs);
        inside -= 1;
      });
    }
  };
  const startedAt = now();
  await Promise.all(Array.from({ length: flows }, flow));
  return { startedAt, endedAt: now(), longestWaitMs };
}

/** The ceiling: one flow, no lock, and after each hold the one message and answer that any hand-over takes. */
async function passAlone(url: string, { flows, sectionsEach, holdMs }: Contention): Promise<number> {
  const redis = new Redis(url);
  await redis.ping();
  const startedAt = now();
  for (let i = 0; i < flows * sectionsEach; i += 1) {
    if (holdMs > 0) await sleep(holdMs);
    await redis.ping();
  }
  const rate = (flows * sectionsEach * 1_000) / (now() - startedAt);
  redis.disconnect();
  return rate;
}

export const tasks = { openContender, contend, passAlone };

interface Measured {
  readonly rate: number;
  readonly longestWaitMs: number;
  readonly requests: number;
  readonly commands: number;
}

async function oneRound(
  { server }: Setting,
  subject: PeerName,
  workers: readonly Worker[],
  contention: Contention,
): Promise<Measured> {
  const counted = await server.countCommands(alsoSentBy(subject), () =>
    Promise.all(workers.map((worker) => worker.run('contend', contention))),
  );
  const { result: rounds, requests, commands } = counted;
  const ms = Math.max(...rounds.map(({ endedAt }) => endedAt)) - Math.min(...rounds.map(({ startedAt }) => startedAt));
  const sections = workers.length * contention.flows * contention.sectionsEach;
  return {
    rate: (sections * 1_000) / ms,
    longestWaitMs: Math.max(...rounds.map(({ longestWaitMs }) => longestWaitMs)),
    requests: requests / sections,
    commands: commands / sections,
  };
}

/** The subjects take turns, round by round, in processes that stay. The first round of each only warms up. */
export function takeTurns<T>(
  setting: Setting,
  subjects: readonly PeerName[],
  processes: number,
  contention: Contention,
  tell: (medians: ReadonlyMap<PeerName, Measured>, workers: readonly Worker[]) => Promise<T> | T,
): Promise<T> {
  return withWorkers(processes * subjects.length, async (workers) => {
    const contenders = subjects.map((subject, i) => ({
      subject,
      workers: workers.slice(i * processes, (i + 1) * processes),
      measured: [] as Measured[],
    }));
    for (const contender of contenders) {
      const open = (worker: Worker) => worker.run('openContender', contender.subject, setting.server.url);
      await Promise.all(contender.workers.map(open));
    }
    for (let round = 0; round <= roundsOf(setting); round += 1) {
      for (const contender of contenders) {
        const measured = await oneRound(setting, contender.subject, contender.workers, contention);
        if (round > 0) contender.measured.push(measured);
      }
    }
    const middle = (measured: readonly Measured[], figure: keyof Measured): number =>
      median(measured.map((each) => each[figure]));
    const medians = contenders.map(({ subject, measured }): [PeerName, Measured] => [
      subject,
      {
        rate: middle(measured, 'rate'),
        longestWaitMs: middle(measured, 'longestWaitMs'),
        requests: middle(measured, 'requests'),
        commands: middle(measured, 'commands'),
      },
    ]);
    return tell(new Map(medians), workers);
  });
}

function compare(setting: Setting, workload: string, processes: number, contention: Contention): Promise<Row[]> {
  return takeTurns(setting, LIBRARIES, processes, contention, async (medians, workers) => {
    const rows = [...medians].map(([subject, { rate, longestWaitMs, requests }]) => ({
      workload,
      subject,
      figures: { 'sections/s': rate, 'longest wait ms': longestWaitMs, 'requests/section': requests },
    }));
    if (processes > 1) return againstBestPeer(rows, 'sections/s');
    const [worker] = workers;
    const ceilings: number[] = [];
    for (let round = 0; round < roundsOf(setting); round += 1) {
      ceilings.push(await worker!.run('passAlone', setting.server.url, contention));
    }
    return againstBestPeer(
      [...rows, { workload, subject: CEILING, figures: { 'sections/s': median(ceilings) } }],
      'sections/s',
    );
  });
}

const contention = (name: string, processes: number, shape: Contention): Workload => ({
  name,
  run: (setting) => compare(setting, name, processes, shape),
});

export const workloads: Workload[] = [
  contention('burst, 50 flows, hold 1 ms', 1, { flows: 50, sectionsEach: 1, holdMs: 1 }),
  contention('burst, 50 flows, hold 0', 1, { flows: 50, sectionsEach: 1, holdMs: 0 }),
  contention('burst, 500 flows, hold 1 ms', 1, { flows: 500, sectionsEach: 1, holdMs: 1 }),
  contention('burst, 500 flows, hold 0', 1, { flows: 500, sectionsEach: 1, holdMs: 0 }),
  contention('burst, 4 processes x 10, hold 1 ms', 4, { flows: 10, sectionsEach: 1, holdMs: 1 }),
  contention('sustained, 50 flows, hold 1 ms', 1, { flows: 50, sectionsEach: 20, holdMs: 1 }),
  contention('sustained, 50 flows, hold 0', 1, { flows: 50, sectionsEach: 100, holdMs: 0 }),
  contention('sustained, 500 flows, hold 1 ms', 1, { flows: 500, sectionsEach: 4, holdMs: 1 }),
  contention('sustained, 500 flows, hold 0', 1, { flows: 500, sectionsEach: 10, holdMs: 0 }),
  contention('sustained, 4 processes x 10, hold 1 ms', 4, { flows: 10, sectionsEach: 25, holdMs: 1 }),
  // Fewer sections, each of which takes longer.
  ...[
    contention('burst, 50 flows, hold 1 ms', 1, { flows: 50, sectionsEach: 1, holdMs: 1 }),
    contention('burst, 50 flows, hold 0', 1, { flows: 50, sectionsEach: 1, holdMs: 0 }),
    contention('burst, 500 flows, hold 1 ms', 1, { flows: 500, sectionsEach: 1, holdMs: 1 }),
    contention('burst, 500 flows, hold 0', 1, { flows: 500, sectionsEach: 1, holdMs: 0 }),
    contention('burst, 4 processes x 10, hold 1 ms', 4, { flows: 10, sectionsEach: 1, holdMs: 1 }),
    contention('sustained, 50 flows, hold 1 ms', 1, { flows: 50, sectionsEach: 8, holdMs: 1 }),
    contention('sustained, 50 flows, hold 0', 1, { flows: 50, sectionsEach: 8, holdMs: 0 }),
    contention('sustained, 500 flows, hold 1 ms', 1, { flows: 500, sectionsEach: 2, holdMs: 1 }),
    contention('sustained, 500 flows, hold 0', 1, { flows: 500, sectionsEach: 2, holdMs: 0 }),
    contention('sustained, 4 processes x 10, hold 1 ms', 4, { flows: 10, sectionsEach: 10, holdMs: 1 }),
  ].map(behindNetwork),
];

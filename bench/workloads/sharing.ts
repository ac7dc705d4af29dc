import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '../peers.js';
import { now } from '../monotonic.js';
import { behindNetwork } from '../network.js';
import { withWorkers, type Worker } from '../processes.js';
import { median } from '../statistics.js';
import { warmUpSections } from '../warm-up.js';
import { againstBestPeer, type Row, type Setting, type Workload } from './workload.js';

/*
 * What several can have at once: a semaphore of 10 permits, and a read-write lock of which 95 sections in a hundred
 * read. Each section holds it for 1 ms.
 */

const PERMITS = 10;
const HOLD_MS = 1;
const NAME = 'bench:sharing';

/** Each process has its share of the permits, and needs no request. */
const CEILING = '(no lock: permits inside the process)';
const SEMAPHORES = ['holdfast withPermits', 'holdfast withPermit', 'redis-semaphore', CEILING] as const;
const READERS = ['holdfast 95 % reads', 'holdfast lock'] as const;
type Subject = (typeof SEMAPHORES)[number] | (typeof READERS)[number];

interface Shape {
  readonly flows: number;
  readonly sectionsEach: number;
  /** That may be inside at once. */
  readonly most: number;
}

interface Round {
  readonly startedAt: number;
  readonly endedAt: number;
}

export type Section = (number: number, work: () => Promise<void>) => Promise<void>;
let section: Section | undefined;

/** At most `permits` sections at once, without a server. */
function withinProcess(permits: number): Section {
  let free = permits;
  const waiting: (() => void)[] = [];
  return async (_, work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((enter) => waiting.push(enter));
    await work();
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
}

/** `permits`: the share of this process, which only the ceiling uses. */
async function openSharing(subject: Subject, url: string, permits: number): Promise<void> {
  section = subject === CEILING ? withinProcess(permits) : await sharedSection(subject, url, PERMITS);
}

/** Connects, and returns what runs one section. `permits`: those of the semaphore. */
export async function sharedSection(
  subject: Exclude<Subject, typeof CEILING>,
  url: string,
  permits: number,
): Promise<Section> {
  if (subject === 'redis-semaphore') {
    const { Semaphore } = await import('redis-semaphore');
    const redis = await connect(url);
    return async (_, work) => {
      const taken = new Semaphore(redis, NAME, permits, { lockTimeout: 30_000, acquireTimeout: Infinity });
      await taken.acquire();
      try {
        await work();
      } finally {
        await taken.release();
      }
    };
  }
  const { createClient } = await import('holdfast');
  const client = createClient({ url });
  await client.ready();
  if (subject === 'holdfast withPermits') {
    const semaphore = client.getSemaphore(NAME);
    await semaphore.trySetPermits(permits);
    return (_, work) => semaphore.withPermits(work);
  }
  if (subject === 'holdfast withPermit') {
    const semaphore = client.getPermitExpirableSemaphore(NAME);
    await semaphore.trySetPermits(permits);
    return (_, work) => semaphore.withPermit({ leaseTime: 30_000 }, work);
  }
  if (subject === 'holdfast lock') {
    const lock = client.getLock(NAME);
    return (_, work) => lock.withLock(work);
  }
  const lock = client.getReadWriteLock(NAME);
  return (number, work) => (number % 20 === 0 ? lock.writeLock() : lock.readLock()).withLock(work);
}

async function share({ flows, sectionsEach, most }: Shape): Promise<Round> {
  let inside = 0;
  const flow = async (first: number): Promise<void> => {
    for (let i = 0; i < sectionsEach; i += 1) {
      await section!(first * 7 + i, async () => {
        inside += 1;
        if (inside > most) throw new Error('too many are inside');
        await sleep(HOLD_MS);
        inside -= 1;
      });
    }
  };
  const startedAt = now();
  await Promise.all(Array.from({ length: flows }, (_, first) => flow(first)));
  return { startedAt, endedAt: now() };
}

export const tasks = { openSharing, share };

interface Measured {
  readonly rate: number;
  readonly requests: number;
}

async function oneRound({ server }: Setting, workers: readonly Worker[], shape: Shape): Promise<Measured> {
  const { result: rounds, requests } = await server.countCommands([], () =>
    Promise.all(workers.map((worker) => worker.run('share', shape))),
  );
  const ms = Math.max(...rounds.map(({ endedAt }) => endedAt)) - Math.min(...rounds.map(({ startedAt }) => startedAt));
  const sections = workers.length * shape.flows * shape.sectionsEach;
  return { rate: (sections * 1_000) / ms, requests: requests / sections };
}

/** Every process runs as many sections before the first round as in the other workloads. */
async function measure(
  setting: Setting,
  workload: string,
  subject: Subject,
  processes: number,
  shape: Shape,
): Promise<Row> {
  await setting.server.clear();
  return withWorkers(processes, async (workers) => {
    const shareOf = (i: number): number => Math.floor((PERMITS + processes - 1 - i) / processes);
    await Promise.all(workers.map((worker, i) => worker.run('openSharing', subject, setting.server.url, shareOf(i))));
    const sectionsEach = Math.ceil(warmUpSections(setting.quick) / shape.flows);
    await Promise.all(workers.map((worker) => worker.run('share', { ...shape, sectionsEach })));
    const measured: Measured[] = [];
    for (let round = 0; round < (setting.quick ? 2 : 6); round += 1) {
      measured.push(await oneRound(setting, workers, shape));
    }
    return {
      workload,
      subject,
      figures: {
        'sections/s': median(measured.map(({ rate }) => rate)),
        'requests/section': median(measured.map(({ requests }) => requests)),
      },
    };
  });
}

function sharing(name: string, subjects: readonly Subject[], processes: number, shape: Shape): Workload {
  return {
    name,
    async run(setting) {
      const rows: Row[] = [];
      for (const subject of subjects) rows.push(await measure(setting, name, subject, processes, shape));
      return subjects === (SEMAPHORES as readonly Subject[]) ? againstBestPeer(rows, 'sections/s') : rows;
    },
  };
}

const CROWD = { flows: 50, sectionsEach: 20 };
const SPREAD = { flows: 10, sectionsEach: 25 };

const ALL: readonly Workload[] = [
  sharing('semaphore, 10 permits, 50 flows, hold 1 ms', SEMAPHORES, 1, { ...CROWD, most: PERMITS }),
  sharing('semaphore, 10 permits, 4 processes x 10, hold 1 ms', SEMAPHORES, 4, { ...SPREAD, most: PERMITS }),
  sharing('read-write lock, 95 % reads, 50 flows, hold 1 ms', READERS, 1, { ...CROWD, most: CROWD.flows }),
  sharing('read-write lock, 95 % reads, 4 processes x 10, hold 1 ms', READERS, 4, { ...SPREAD, most: SPREAD.flows }),
];

export const workloads: Workload[] = [...ALL, ...ALL.map(behindNetwork)];

import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../monotonic.js';
import { alsoSentBy, LIBRARIES, openPeer, type PeerName } from '../peers.js';
import { withWorkers, type Worker } from '../processes.js';
import { median, quantile } from '../statistics.js';
import { sharedSection, type Section } from './sharing.js';
import { againstBestPeer, type Row, type Setting, type Workload } from './workload.js';

/*
 * What a section costs, by the number of processes that want one lock. Each flow comes back as soon as it has left. Who
 * enters again past those that wait is quick, and keeps them waiting: so the longest wait belongs to the figure.
 */

const PERMITS = 3;
/** Time, in ms, until every process has been inside, or waits. */
const SETTLE_MS = 1_000;

type Subject = PeerName | 'holdfast withPermits' | 'redis-semaphore, semaphore' | 'holdfast 95 % reads';

interface Kind {
  readonly name: string;
  readonly subjects: readonly Subject[];
  /** How many may be inside at once. */
  readonly most: number;
}

interface Shape {
  readonly flows: number;
  readonly holdMs: number;
  readonly most: number;
}

interface Round extends Shape {
  readonly subject: Subject;
  /** The number of the process. */
  readonly process: number;
  /** What is between these times is measured. */
  readonly from: number;
  readonly to: number;
}

interface Part {
  /** The waits, in ms, of the sections that began in this process. */
  readonly waits: readonly number[];
  /** How long, in ms, the flows had waited that were not inside at the end. */
  readonly unfinished: readonly number[];
  readonly cpuSeconds: number;
}

const sections = new Map<Subject, Section>();
/** Number of sections that a flow of this process has begun. Every twentieth section of a read-write lock writes. */
let begun = 0;

/** A process has all subjects, and runs one at a time: the idle ones keep a connection and do nothing. */
async function openFleet(subjects: readonly Subject[], url: string): Promise<void> {
  for (const subject of subjects) sections.set(subject, await open(subject, url));
}

async function open(subject: Subject, url: string): Promise<Section> {
  if (subject === 'redis-semaphore, semaphore') return sharedSection('redis-semaphore', url, PERMITS);
  if (subject === 'holdfast withPermits' || subject === 'holdfast 95 % reads') {
    return sharedSection(subject, url, PERMITS);
  }
  const peer = await openPeer(subject, { url });
  return (_, work) => peer.section('bench:fleet', work);
}

async function runFleet({ subject, process: number, flows, holdMs, most, from, to }: Round): Promise<Part> {
  const section = sections.get(subject)!;
  const waits: number[] = [];
  const unfinished: number[] = [];
  let inside = 0;
  const flow = async (): Promise<void> => {
    while (now() < to) {
      const calledAt = now();
      begun += 1;
      await section(7 * number + begun, async () => {
        const enteredAt = now();
        inside += 1;
        if (inside > most) throw new Error(`${inside} are inside`);
        // Flows that still wait at the end leave at once.
        if (enteredAt < to) await sleep(holdMs);
        else unfinished.push(to - calledAt);
        if (enteredAt >= from && enteredAt < to) waits.push(enteredAt - calledAt);
        inside -= 1;
      });
    }
  };
  const flowing = Promise.all(Array.from({ length: flows }, flow));
  // The caller gets the error below.
  flowing.catch(() => undefined);
  await sleep(from - now());
  const before = process.cpuUsage();
  await sleep(to - now());
  const { user, system } = process.cpuUsage(before);
  await flowing;
  return { waits, unfinished, cpuSeconds: (user + system) / 1e6 };
}

export const tasks = { openFleet, runFleet };

type Measured = Readonly<Record<string, number>>;

async function oneRound(
  setting: Setting,
  workers: readonly Worker[],
  subject: Subject,
  shape: Shape,
): Promise<Measured> {
  const { server, quick } = setting;
  const from = now() + SETTLE_MS + shape.holdMs;
  const lastsMs = Math.max(quick ? 1_500 : 4_000, 20 * shape.holdMs);
  const to = from + lastsMs;
  const parts = Promise.all(
    workers.map((worker, at) => worker.run('runFleet', { ...shape, subject, process: at, from, to })),
  );
  // The caller gets the error below.
  parts.catch(() => undefined);
  await sleep(from - now());
  const cpuBefore = await server.cpuSeconds();
  const also = subject === 'redis-semaphore, semaphore' ? [] : alsoSentBy(subject as PeerName);
  const { requests, commands } = await server.countCommands(also, () => sleep(to - now()));
  const serverCpu = (await server.cpuSeconds()) - cpuBefore;
  const waits = (await parts).flatMap((part) => part.waits);
  const count = waits.length;
  const clientCpu = (await parts).reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  return {
    'sections/s': (count * 1_000) / lastsMs,
    'requests/section': requests / count,
    'commands/section': commands / count,
    // A mean of a few waits, without those that had not ended, would say nothing.
    ...(count >= 1_000 && {
      'mean wait ms': waits.reduce((sum, wait) => sum + wait, 0) / count,
      'p99.9 wait ms': quantile(waits, 0.999),
    }),
    'longest wait ms': Math.max(...waits, ...(await parts).flatMap((part) => part.unfinished)),
    'server CPU µs/section': (serverCpu * 1e6) / count,
    'client CPU µs/section': (clientCpu * 1e6) / count,
  };
}

/** The subjects take turns. The first round of each only warms up. Where a section takes a second, one round has to do. */
async function measure(
  setting: Setting,
  workload: string,
  processes: number,
  kind: Kind,
  shape: Shape,
): Promise<Row[]> {
  return withWorkers(processes, async (workers) => {
    await Promise.all(workers.map((worker) => worker.run('openFleet', kind.subjects, setting.server.url)));
    const measured = new Map<Subject, Measured[]>(kind.subjects.map((subject) => [subject, []]));
    const [first, last] = shape.holdMs >= 1_000 ? [1, 1] : setting.quick ? [0, 1] : [0, 5];
    for (let round = first; round <= last; round += 1) {
      for (const [subject, all] of measured) {
        const one = await oneRound(setting, workers, subject, shape);
        if (round > 0) all.push(one);
      }
    }
    const rows = [...measured].map(([subject, all]): Row => {
      const figures = Object.keys(all[0]!).map((name) => {
        const values = all.flatMap((each) => each[name] ?? []);
        return [name, name.startsWith('longest') ? Math.max(...values) : median(values)] as const;
      });
      return { workload, subject, figures: Object.fromEntries(figures) };
    });
    return kind.subjects.some((subject) => !subject.startsWith('holdfast'))
      ? againstBestPeer(rows, 'sections/s')
      : rows;
  });
}

const LOCK: Kind = { name: 'lock', subjects: LIBRARIES, most: 1 };
const FAIR: Kind = { name: 'fair lock', subjects: ['holdfast fair lock'], most: 1 };
const READS: Kind = { name: 'read-write lock, 95 % reads', subjects: ['holdfast 95 % reads'], most: Infinity };
const SEMAPHORE: Kind = {
  name: 'semaphore, 3 permits',
  subjects: ['holdfast withPermits', 'redis-semaphore, semaphore'],
  most: PERMITS,
};

function fleet(kind: Kind, processes: number, flows: number, holdMs: number): Workload {
  const held = holdMs < 1_000 ? `${holdMs} ms` : `${holdMs / 1_000} s`;
  const name = `fleet: ${kind.name}, ${processes} x ${flows}, hold ${held}`;
  return { name, run: (setting) => measure(setting, name, processes, kind, { flows, holdMs, most: kind.most }) };
}

/** Processes, and flows of each. */
const SIZES = [
  [1, 1],
  [4, 1],
  [16, 1],
  [48, 1],
  [48, 2],
] as const;

export const workloads: Workload[] = [LOCK, FAIR, READS, SEMAPHORE].flatMap((kind) =>
  [1, 20, 1_000].flatMap((holdMs) => SIZES.map(([processes, flows]) => fleet(kind, processes, flows, holdMs))),
);

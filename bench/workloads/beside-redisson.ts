import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Jvm } from '../../tests/interop/redisson/jvm.js';
import {
  clientFor,
  missingForRedisson,
  REDISSON,
  redissons,
  WARM_UP_FLOWS,
  warmUp,
  warmUpSectionsEach,
} from '../jvms.js';
import { behindNetwork } from '../network.js';
import { withWorkers, type Worker } from '../processes.js';
import { BenchServer } from '../server.js';
import { median, quantile } from '../statistics.js';
import { CEILING } from './contended.js';
import type { Round, Shape } from './beside-redisson-tasks.js';
import { roundsOf, type Row, type Setting, type Workload } from './workload.js';

/*
 * The real Redisson on a warm JVM, and Holdfast, as warm: by turns, on one server. A flow of the one is a thread of the
 * other.
 */

const NAME = 'bench:beside';
const OURS = 'holdfast';
/** What no client can exceed that asks and answers one by one. */
const RAW = '(2 raw scripts)';
const RED_LOCK = 'RedLock, one of three servers hangs';
const RED_WAIT_MS = 10_000;
const RED_LEASE_MS = 30_000;

/** Both kinds, as the measurements want them. */
interface Contender {
  readonly subject: string;
  flows(flows: number, sections: number): Promise<number>;
  contend(shape: Shape): Promise<Round>;
  take(): Promise<unknown>;
  giveBack(): Promise<number>;
  startWaiters(waiters: number): Promise<unknown>;
  firstEntered(): Promise<number>;
}

function node(worker: Worker, kind: Shape['kind']): Contender {
  return {
    subject: OURS,
    flows: (flows, sections) => worker.run('flowsBeside', flows, sections),
    contend: (shape) => worker.run('contendBeside', shape),
    take: () => worker.run('takeBeside', kind),
    giveBack: () => worker.run('giveBackBeside'),
    startWaiters: (waiters) => worker.run('waitBeside', kind, waiters),
    firstEntered: () => worker.run('enteredBeside'),
  };
}

function jvmContender(jvm: Jvm, kind: Shape['kind'], client: string): Contender {
  const object = { kind, name: NAME };
  const order = async <T>(op: string, more: Record<string, unknown> = {}): Promise<T> =>
    (await jvm.order<T>({ op, client, object, ...more })).result;
  return {
    subject: REDISSON,
    flows: (flows, sections) => order('flows', { flows, sections }),
    contend: ({ kind: _, ...shape }) => order('contend', shape),
    take: () => order('takeLock'),
    giveBack: () => order('giveBack'),
    startWaiters: (waiters) => order('startWaiters', { waiters }),
    firstEntered: () => order('firstEntered'),
  };
}

async function withBoth<T>(
  setting: Setting,
  processes: number,
  kind: Shape['kind'],
  fn: (ours: Contender[], theirs: Contender[], workers: Worker[]) => Promise<T>,
): Promise<T> {
  const { url } = setting.server;
  const client = clientFor(setting.server);
  // Behind a network less of the time is spent in code, so fewer sections warm it up.
  const quick = setting.quick || setting.server.isDelayed;
  const jvms = await redissons(processes, [url], client);
  const warmed = kind === 'semaphore' ? 'lock' : kind;
  await warmUp(jvms, warmed, quick, client);
  return withWorkers(processes, async (workers) => {
    await Promise.all(workers.map((worker) => worker.run('openBeside', [url])));
    const sections = warmUpSectionsEach(warmed, quick);
    await Promise.all(workers.map((worker) => worker.run('warmUpBeside', warmed, WARM_UP_FLOWS, sections)));
    return fn(
      workers.map((worker) => node(worker, kind)),
      jvms.map((jvm) => jvmContender(jvm, kind, client)),
      workers,
    );
  });
}

function compared(rows: readonly Row[], figure: string): Row[] {
  const theirs = rows.find(({ subject }) => subject === REDISSON)!.figures[figure]!;
  return rows.map((row) =>
    row.subject !== REDISSON
      ? { ...row, figures: { ...row.figures, 'x Redisson': row.figures[figure]! / theirs } }
      : row,
  );
}

function uncontended(name: string, flows: number): Workload {
  const workload = `beside Redisson: ${name}`;
  const measure = (setting: Setting): Promise<Row[]> =>
    withBoth(setting, 1, 'lock', async ([ours], [theirs], [worker]) => {
      const { url } = setting.server;
      const raw = { subject: RAW, flows: (...of: [number, number]) => worker!.run('rawBeside', url, ...of) };
      // With many flows at once a client that sends them together is quicker than raw scripts.
      const contenders = flows === 1 ? [ours!, theirs!, raw] : [ours!, theirs!];
      const measured = contenders.map(() => [] as number[]);
      const sections = Math.ceil((setting.quick ? 2_000 : 10_000) / flows);
      for (let round = 0; round <= (setting.quick ? 2 : 7); round += 1) {
        for (const [i, contender] of contenders.entries()) {
          const ms = await contender.flows(flows, sections);
          if (round > 0) measured[i]!.push((flows * sections * 1_000) / ms);
        }
      }
      const rows = contenders.map(({ subject }, i) => ({
        workload,
        subject,
        figures: { 'sections/s': median(measured[i]!) },
      }));
      return compared(rows, 'sections/s');
    });
  return { name: workload, run: orSkipped(measure) };
}

async function oneRound({ server }: Setting, contenders: readonly Contender[], shape: Shape) {
  const {
    result: rounds,
    requests,
    commands,
  } = await server.countCommands(['publish', 'del'], () =>
    Promise.all(contenders.map((contender) => contender.contend(shape))),
  );
  const ms = Math.max(...rounds.map(({ endedAt }) => endedAt)) - Math.min(...rounds.map(({ startedAt }) => startedAt));
  const sections = contenders.length * shape.flows * shape.sectionsEach;
  return {
    rate: (sections * 1_000) / ms,
    longestWaitMs: Math.max(...rounds.map(({ longestWaitMs }) => longestWaitMs)),
    requests: requests / sections,
    commands: commands / sections,
  };
}

function contended(name: string, processes: number, shape: Shape): Workload {
  const workload = `beside Redisson: ${name}`;
  const measure = (setting: Setting): Promise<Row[]> =>
    withBoth(setting, processes, shape.kind, async (ours, theirs, [worker]) => {
      const sides = [ours, theirs];
      const ceilings: number[] = [];
      const measured = sides.map(() => [] as Awaited<ReturnType<typeof oneRound>>[]);
      for (let round = 0; round <= roundsOf(setting); round += 1) {
        for (const [i, side] of sides.entries()) {
          if (shape.kind === 'semaphore') await setPermits(setting.server.url, shape.permits ?? 1);
          const result = await oneRound(setting, side, shape);
          if (round > 0) measured[i]!.push(result);
        }
        if (exclusive(shape)) ceilings.push(await worker!.run('passAlone', setting.server.url, shape));
      }
      const rows: Row[] = sides.map(([side], i) => ({
        workload,
        subject: side!.subject,
        figures: {
          'sections/s': median(measured[i]!.map(({ rate }) => rate)),
          'longest wait ms': median(measured[i]!.map(({ longestWaitMs }) => longestWaitMs)),
          'requests/section': median(measured[i]!.map(({ requests }) => requests)),
          'commands/section': median(measured[i]!.map(({ commands }) => commands)),
        },
      }));
      if (ceilings.length > 0) {
        rows.push({ workload, subject: CEILING, figures: { 'sections/s': median(ceilings.slice(1)) } });
      }
      return compared(rows, 'sections/s');
    });
  return { name: workload, run: orSkipped(measure) };
}

/** Only one is inside at a time: then there is a ceiling that needs no lock to be measured. */
const exclusive = ({ kind }: Shape): boolean => kind === 'lock' || kind === 'fair';

async function setPermits(url: string, permits: number): Promise<void> {
  const redis = new Redis(url);
  await redis.set(NAME, permits);
  await redis.quit();
}

function handOff(name: string, kind: Shape['kind'], waiters: number): Workload {
  const workload = `beside Redisson: ${name}`;
  const measure = (setting: Setting): Promise<Row[]> =>
    withBoth(setting, 2, kind, async (ours, theirs) => {
      const rows: Row[] = [];
      for (const [holder, waiting] of [ours, theirs]) {
        const latencies: number[] = [];
        const warm = setting.quick ? 10 : 40;
        for (let i = 0; i < warm + (setting.quick ? 20 : 100); i += 1) {
          await holder!.take();
          await waiting!.startWaiters(waiters);
          await sleep(30 + 30 * Math.random());
          const calledAt = await holder!.giveBack();
          const enteredAt = await waiting!.firstEntered();
          if (i >= warm) latencies.push(enteredAt - calledAt);
        }
        const figures = { 'p50 ms': quantile(latencies, 0.5), 'p95 ms': quantile(latencies, 0.95) };
        rows.push({ workload, subject: holder!.subject, figures });
      }
      const [, { figures: theirFigures }] = rows as [Row, Row];
      return rows.map((row) =>
        row.subject === OURS
          ? {
              ...row,
              figures: {
                ...row.figures,
                'p50 of Redisson': row.figures['p50 ms']! / theirFigures['p50 ms']!,
                'p95 of Redisson': row.figures['p95 ms']! / theirFigures['p95 ms']!,
              },
            }
          : row,
      );
    });
  return { name: workload, run: orSkipped(measure) };
}

/** One of three servers accepts and never answers. */
async function redLockHanging(setting: Setting): Promise<Row[]> {
  const others = [await BenchServer.start(console.error), await BenchServer.start(console.error)] as const;
  const urls = [setting.server.url, ...others.map(({ url }) => url)];
  const hanging = await others[0].pid();
  try {
    const [jvm] = await redissons(1, urls);
    const object = {
      kind: 'red',
      members: ['client', 'server-1', 'server-2'].map((client) => ({ kind: 'lock', name: NAME, client })),
    };
    const thread = jvm!.thread('red-lock');
    const times = [RED_WAIT_MS, RED_LEASE_MS, 'MILLISECONDS'] as const;
    return await withWorkers(1, async ([worker]) => {
      await worker!.run('openBeside', urls);
      await worker!.run('redBeside', 50, RED_WAIT_MS, RED_LEASE_MS);
      for (let i = 0; i < (setting.quick ? 50 : 500); i += 1) {
        await thread.call(object, 'tryLock', ...times);
        await thread.call(object, 'unlock');
      }
      process.kill(hanging, 'SIGSTOP');
      const ours = await worker!.run('redBeside', setting.quick ? 10 : 50, RED_WAIT_MS, RED_LEASE_MS);
      const theirs: (number | undefined)[] = [];
      for (let i = 0; i < (setting.quick ? 1 : 5); i += 1) {
        const { from, until, result } = await thread.call<boolean>(object, 'tryLock', ...times);
        theirs.push(result ? until - from : undefined);
        if (result) await thread.call(object, 'unlock').catch(() => undefined);
      }
      return [[OURS, ours] as const, [REDISSON, theirs] as const].map(([subject, took]) => {
        const entered = took.filter((ms) => ms !== undefined);
        const figures = {
          ...(entered.length > 0 && { 'entered after, p50 ms': median(entered), 'at most ms': Math.max(...entered) }),
          'not entered in 10 s, %': (100 * (took.length - entered.length)) / took.length,
        };
        return { workload: `beside Redisson: ${RED_LOCK}`, subject, figures };
      });
    });
  } finally {
    process.kill(hanging, 'SIGCONT');
    for (const server of others) await server[Symbol.asyncDispose]();
  }
}

function orSkipped(measure: (setting: Setting) => Promise<Row[]>): Workload['run'] {
  return async (setting) => {
    const missing = missingForRedisson();
    if (missing.length === 0) return measure(setting);
    console.error(`skipped: measuring Redisson needs a JDK and Maven; ${missing.join(' and ')} did not answer`);
    return [];
  };
}

const lock = (flows: number, sectionsEach: number, holdMs: number): Shape => ({
  kind: 'lock',
  flows,
  sectionsEach,
  holdMs,
});

export const workloads: Workload[] = [
  uncontended('1 flow', 1),
  uncontended('100 flows, distinct keys', 100),
  contended('1 x 50, hold 1 ms', 1, lock(50, 20, 1)),
  contended('1 x 50, hold 0', 1, lock(50, 100, 0)),
  contended('1 x 500, hold 1 ms', 1, lock(500, 4, 1)),
  contended('1 x 500, hold 0', 1, lock(500, 10, 0)),
  contended('4 x 10, hold 1 ms', 4, lock(10, 25, 1)),
  contended('4 x 10, hold 0', 4, lock(10, 50, 0)),
  // What a section costs, by the number of processes. A JVM needs much memory, so there are at most 8.
  contended('fleet, 1 x 1, hold 1 ms', 1, lock(1, 2_000, 1)),
  contended('fleet, 4 x 1, hold 1 ms', 4, lock(1, 500, 1)),
  contended('fleet, 8 x 1, hold 1 ms', 8, lock(1, 250, 1)),
  contended('fair, 1 x 20', 1, { ...lock(20, 50, 1), kind: 'fair' }),
  contended('fair, 4 x 10', 4, { ...lock(10, 25, 1), kind: 'fair' }),
  contended('read-write, 95 % reads, 1 x 50', 1, { ...lock(50, 20, 1), kind: 'read-write', readShare: 95 }),
  contended('semaphore, 10 permits, 1 x 50', 1, { ...lock(50, 40, 1), kind: 'semaphore', permits: 10 }),
  contended('semaphore, 10 permits, 4 x 10', 4, { ...lock(10, 50, 1), kind: 'semaphore', permits: 10 }),
  handOff('hand-off, 1 waiter', 'lock', 1),
  handOff('hand-off, 50 waiters', 'lock', 50),
  handOff('fair hand-off, 1 waiter', 'fair', 1),
  { name: `beside Redisson: ${RED_LOCK}`, run: orSkipped(redLockHanging) },
  // Fewer sections, each of which takes longer.
  ...[
    contended('1 x 50, hold 1 ms', 1, lock(50, 8, 1)),
    contended('1 x 50, hold 0', 1, lock(50, 8, 0)),
    contended('1 x 500, hold 1 ms', 1, lock(500, 1, 1)),
    contended('1 x 500, hold 0', 1, lock(500, 1, 0)),
    contended('4 x 10, hold 1 ms', 4, lock(10, 10, 1)),
    contended('4 x 10, hold 0', 4, lock(10, 10, 0)),
    contended('fair, 1 x 20', 1, { ...lock(20, 20, 1), kind: 'fair' }),
    contended('fair, 4 x 10', 4, { ...lock(10, 10, 1), kind: 'fair' }),
    contended('read-write, 95 % reads, 1 x 50', 1, { ...lock(50, 20, 1), kind: 'read-write', readShare: 95 }),
    contended('semaphore, 10 permits, 1 x 50', 1, { ...lock(50, 40, 1), kind: 'semaphore', permits: 10 }),
    contended('semaphore, 10 permits, 4 x 10', 4, { ...lock(10, 50, 1), kind: 'semaphore', permits: 10 }),
  ].map(behindNetwork),
];

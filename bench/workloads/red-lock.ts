import { setTimeout as sleep } from 'node:timers/promises';
import { startRedisServer } from '../../tests/support/servers/redis-server.mjs';
import { now } from '../monotonic.js';
import { behindNetwork, withDelays } from '../network.js';
import { withWorkers, Worker } from '../processes.js';
import { median } from '../statistics.js';
import { warmUpSections } from '../warm-up.js';
import { againstBestPeer, type Row, type Setting, type Workload } from './workload.js';

/* A lock over three independent servers, against redlock 5 and redis-semaphore's RedlockMutex. */

const LEASE_MS = 30_000;
const NAME = 'bench:red';
const SUBJECTS = ['holdfast', 'redlock', 'redis-semaphore'] as const;
type Subject = (typeof SUBJECTS)[number];

interface Opened {
  acquire(): Promise<() => Promise<unknown>>;
  close(): Promise<void>;
}

async function open(subject: Subject, urls: readonly string[]): Promise<Opened> {
  if (subject === 'holdfast') {
    const { createClient } = await import('holdfast');
    const clients = urls.map((url) => createClient({ url, callSites: false }));
    await Promise.all(clients.map((client) => client.ready()));
    const lock = clients[0]!.getRedLock(...clients.map((client) => client.getLock(NAME)));
    return {
      async acquire() {
        const hold = await lock.acquire();
        return () => hold.release();
      },
      async close() {
        await Promise.all(clients.map((client) => client.close()));
      },
    };
  }
  const { Redis } = await import('ioredis');
  const connections = urls.map((url) => new Redis(url));
  await Promise.all(connections.map((connection) => connection.ping()));
  const close = (): Promise<void> => Promise.resolve(connections.forEach((connection) => connection.disconnect()));
  if (subject === 'redlock') {
    const { default: Redlock } = await import('redlock');
    const redlock = new Redlock(connections, { retryCount: -1 });
    return {
      async acquire() {
        const lock = await redlock.acquire([NAME], LEASE_MS);
        return () => lock.release();
      },
      close,
    };
  }
  const { RedlockMutex } = await import('redis-semaphore');
  return {
    async acquire() {
      const mutex = new RedlockMutex(connections, NAME, { lockTimeout: LEASE_MS, acquireTimeout: Infinity });
      await mutex.acquire();
      return () => mutex.release();
    },
    close,
  };
}

let contender: Opened | undefined;

async function openRed(subject: Subject, urls: readonly string[]): Promise<void> {
  contender = await open(subject, urls);
}

async function closeRed(): Promise<void> {
  await contender?.close();
}

/** ms until each of so many sections, one after the other, was entered and left; the first of them warm up. */
async function redFlow(sections: number): Promise<{ section: number[]; enter: number[] }> {
  const times = { section: [] as number[], enter: [] as number[] };
  for (let i = -sections / 5; i < sections; i += 1) {
    const began = now();
    const release = await contender!.acquire();
    const entered = now() - began;
    await release();
    if (i < 0) continue;
    times.section.push(now() - began);
    times.enter.push(entered);
  }
  return times;
}

async function redContend(flows: number, sectionsEach: number): Promise<{ startedAt: number; endedAt: number }> {
  const startedAt = now();
  let inside = 0;
  const flow = async (): Promise<void> => {
    for (let i = 0; i < sectionsEach; i += 1) {
      const release = await contender!.acquire();
      inside += 1;
      if (inside > 1) throw new Error('two are inside');
      await sleep(1);
      inside -= 1;
      await release();
    }
  };
  await Promise.all(Array.from({ length: flows }, flow));
  return { startedAt, endedAt: now() };
}

export const tasks = { openRed, closeRed, redFlow, redContend };

type Server = Awaited<ReturnType<typeof startRedisServer>>;

async function withServers<T>(use: (servers: Server[]) => Promise<T>): Promise<T> {
  const servers = await Promise.all([1, 2, 3].map(() => startRedisServer({ say: () => undefined })));
  try {
    return await use(servers);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/** Behind a network, each server has a proxy of its own. */
function withUrls<T>(isDelayed: boolean, use: (urls: readonly string[], first: Server) => Promise<T>): Promise<T> {
  return withServers((servers) => {
    const urls = servers.map(({ url }) => url);
    const work = (ways: readonly string[]): Promise<T> => use(ways, servers[0]!);
    return isDelayed ? withDelays(urls, work) : work(urls);
  });
}

const ALONE = 'RedLock, 3 servers, 1 flow';
const CONTENDED = 'RedLock, 3 servers, 4 processes x 10, hold 1 ms';
const UNAVAILABLE = 'RedLock, one of 3 servers hangs, 2 processes, hold 1 ms';
const HANGING = 'RedLock, one of 3 servers hangs';

function alone({ quick }: Setting): Promise<Row[]> {
  return withServers((servers) =>
    withWorkers(SUBJECTS.length, async (workers) => {
      const urls = servers.map(({ url }) => url);
      const measured = SUBJECTS.map(() => [] as number[]);
      for (const [i, subject] of SUBJECTS.entries()) {
        await workers[i]!.run('openRed', subject, urls);
        await workers[i]!.run('redFlow', Math.ceil(warmUpSections(quick) / 1.2)); // a fifth of them more are run
      }
      // In turns, so that a load from elsewhere falls on all.
      for (let round = 0; round < (quick ? 3 : 9); round += 1) {
        for (const [i] of SUBJECTS.entries()) {
          measured[i]!.push(median((await workers[i]!.run('redFlow', quick ? 300 : 1_000)).section));
        }
      }
      const p50 = measured.map(median);
      return SUBJECTS.map((subject, i) => ({
        workload: ALONE,
        subject,
        figures: { 'p50 ms': p50[i]!, 'of redlock p50': p50[i]! / p50[1]! },
      }));
    }),
  );
}

function contended({ quick, server: { isDelayed } }: Setting): Promise<Row[]> {
  return withUrls(isDelayed, (urls) =>
    withWorkers(4 * SUBJECTS.length, async (workers) => {
      const groups = SUBJECTS.map((subject, i) => ({
        subject,
        team: workers.slice(4 * i, 4 * i + 4),
        rates: [] as number[],
      }));
      for (const { subject, team } of groups) {
        await Promise.all(team.map((worker) => worker.run('openRed', subject, urls)));
      }
      for (let round = 0; round <= (quick ? 1 : 5); round += 1) {
        for (const { team, rates } of groups) {
          const each = 1;
          const runs = await Promise.all(team.map((worker) => worker.run('redContend', 10, each)));
          const began = Math.min(...runs.map(({ startedAt }) => startedAt));
          const ended = Math.max(...runs.map(({ endedAt }) => endedAt));
          if (round > 0) rates.push((4 * 10 * each * 1_000) / (ended - began));
        }
      }
      const rows = groups.map(({ subject, rates }) => ({
        workload: CONTENDED,
        subject,
        figures: { 'sections/s': median(rates) },
      }));
      return againstBestPeer(rows, 'sections/s');
    }),
  );
}

/** Sections a second of two processes with one flow each, in one round. */
async function rateOfTwo(workers: readonly Worker[]): Promise<number> {
  const each = 50;
  const runs = await Promise.all(workers.map((worker) => worker.run('redContend', 1, each)));
  const began = Math.min(...runs.map(({ startedAt }) => startedAt));
  const ended = Math.max(...runs.map(({ endedAt }) => endedAt));
  return (workers.length * each * 1_000) / (ended - began);
}

/** Two owners need the same two servers while the third is stopped: each of them must not wait for that one. */
function unavailable({ quick, server: { isDelayed } }: Setting): Promise<Row[]> {
  return withUrls(isDelayed, (urls, first) =>
    withWorkers(2, async (workers) => {
      await Promise.all(workers.map((worker) => worker.run('openRed', 'holdfast', urls)));
      const pid = await pidOf(first.url);
      const rates = { all: [] as number[], two: [] as number[] };
      await rateOfTwo(workers);
      for (let round = 0; round < (quick ? 2 : 5); round += 1) {
        rates.all.push(await rateOfTwo(workers));
        process.kill(pid, 'SIGSTOP');
        try {
          // In a first round the clients learn that the server is unavailable.
          await rateOfTwo(workers);
          rates.two.push(await rateOfTwo(workers));
        } finally {
          process.kill(pid, 'SIGCONT');
        }
        await rateOfTwo(workers);
      }
      const [all, two] = [median(rates.all), median(rates.two)];
      const figures = { 'sections/s': two, 'with all 3': all, 'of all 3': two / all };
      return [{ workload: UNAVAILABLE, subject: 'holdfast', figures }];
    }),
  );
}

async function pidOf(url: string): Promise<number> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url);
  const info = await redis.info('server');
  redis.disconnect();
  return Number(/^process_id:(\d+)/m.exec(info)?.[1]);
}

/** Without redis-semaphore's, which waits for the answer of every server: it never enters. */
async function hanging({ quick }: Setting): Promise<Row[]> {
  const rows: Row[] = [];
  for (const subject of ['holdfast', 'redlock'] as const) {
    const row = await withServers(async (servers) => {
      await using worker = new Worker();
      await worker.run(
        'openRed',
        subject,
        servers.map(({ url }) => url),
      );
      await worker.run('redFlow', 50);
      const pid = await pidOf(servers[0]!.url);
      process.kill(pid, 'SIGSTOP');
      try {
        // Each entry leaves a request behind that the server does not answer.
        const { enter } = await worker.run('redFlow', quick ? 5 : 20);
        return { workload: HANGING, subject, figures: { 'p50 ms': median(enter), 'longest ms': Math.max(...enter) } };
      } finally {
        process.kill(pid, 'SIGCONT');
      }
    });
    rows.push(row);
  }
  return rows;
}

export const workloads: Workload[] = [
  { name: ALONE, run: alone },
  { name: CONTENDED, run: contended },
  { name: HANGING, run: hanging },
  { name: UNAVAILABLE, run: unavailable },
  ...[
    { name: CONTENDED, run: contended },
    { name: UNAVAILABLE, run: unavailable },
  ].map(behindNetwork),
];

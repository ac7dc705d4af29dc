import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { now } from '../monotonic.js';
import { LIBRARIES, openPeer, type Peer, type PeerName } from '../peers.js';
import { withWorkers, type Worker } from '../processes.js';
import { quantile } from '../statistics.js';
import { warmUpSections } from '../warm-up.js';
import type { Row, Setting, Workload } from './workload.js';

/*
 * From the call that gives the lock back to the first waiter inside, in another process.
 */

const LOCK = 'bench:handed-off';

let peer: Peer | undefined;
let release: (() => Promise<unknown>) | undefined;
let round: { entered: number[]; over: Promise<unknown> } | undefined;

async function openHandOff(name: PeerName, url: string, warmUp: number): Promise<void> {
  const opened = (peer = await openPeer(name, { url }));
  const eighth = (_: unknown, flow: number): Promise<void> =>
    opened.flow(`bench:warm-up:${process.pid}:${flow}`, warmUp / 8);
  await Promise.all(Array.from({ length: 8 }, eighth));
}

async function takeLock(): Promise<void> {
  release = await peer!.acquire(LOCK);
}

/** Resolves with the moment of the call. */
async function giveBack(): Promise<number> {
  const calledAt = now();
  await release!();
  return calledAt;
}

function startWaiters(waiters: number): void {
  const entered: number[] = [];
  const waiter = async (): Promise<void> => {
    const leave = await peer!.acquire(LOCK);
    entered.push(now());
    await leave();
  };
  round = { entered, over: Promise.all(Array.from({ length: waiters }, waiter)) };
}

async function firstEntered(): Promise<number> {
  await round!.over;
  return round!.entered[0]!;
}

/* The floor: a bare message from the one process, and one request of the other when it has heard it. */

let redis: Redis | undefined;
let heard: Promise<number> | undefined;

async function openFloor(url: string, warmUp: number): Promise<void> {
  redis = new Redis(url);
  for (let i = 0; i < warmUp; i += 1) await redis.ping();
}

async function listen(url: string): Promise<void> {
  const subscriber = new Redis(url);
  await subscriber.subscribe(LOCK);
  heard = new Promise((resolve) => {
    subscriber.on('message', () => {
      void redis!.ping().then(() => {
        resolve(now());
        subscriber.disconnect();
      });
    });
  });
}

async function sendMessage(): Promise<number> {
  const calledAt = now();
  await redis!.publish(LOCK, '0');
  return calledAt;
}

async function heardAt(): Promise<number> {
  return heard!;
}

export const tasks = {
  openHandOff,
  takeLock,
  giveBack,
  startWaiters,
  firstEntered,
  openFloor,
  listen,
  sendMessage,
  heardAt,
};

async function floorRound(url: string, sender: Worker, listener: Worker): Promise<number> {
  await listener.run('listen', url);
  await sleep(30 + 30 * Math.random());
  const calledAt = await sender.run('sendMessage');
  return (await listener.run('heardAt')) - calledAt;
}

function floor(setting: Setting, workload: string): Promise<Row> {
  return withWorkers(2, async ([sender, listener]) => {
    const { url } = setting.server;
    await Promise.all([sender, listener].map((worker) => worker!.run('openFloor', url, warmUpSections(setting.quick))));
    const latencies = await measured(setting, () => floorRound(url, sender!, listener!));
    return { workload, subject: '(no lock: 1 message + 1 round trip)', figures: quantiles(latencies) };
  });
}

async function oneRound(holder: Worker, waiting: Worker, waiters: number): Promise<number> {
  await holder.run('takeLock');
  await waiting.run('startWaiters', waiters);
  // Long enough for everybody to wait, and not in step with anybody who polls.
  await sleep(30 + 30 * Math.random());
  const calledAt = await holder.run('giveBack');
  return (await waiting.run('firstEntered')) - calledAt;
}

async function measured({ quick }: Setting, round: () => Promise<number>): Promise<number[]> {
  // A process that has been waiting for locks for a second or two runs on optimised code.
  for (let i = 0; i < (quick ? 10 : 40); i += 1) await round();
  const latencies: number[] = [];
  for (let i = 0; i < (quick ? 20 : 100); i += 1) latencies.push(await round());
  return latencies;
}

const quantiles = (latencies: readonly number[]): Row['figures'] => ({
  'p50 ms': quantile(latencies, 0.5),
  'p95 ms': quantile(latencies, 0.95),
});

export function latency(setting: Setting, workload: string, subject: PeerName, waiters: number): Promise<Row> {
  return withWorkers(2, async ([holder, waiting]) => {
    const open = (worker: Worker) =>
      worker.run('openHandOff', subject, setting.server.url, warmUpSections(setting.quick));
    await Promise.all([open(holder!), open(waiting!)]);
    const latencies = await measured(setting, () => oneRound(holder!, waiting!, waiters));
    return { workload, subject, figures: quantiles(latencies) };
  });
}

async function compare(setting: Setting, workload: string, waiters: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const subject of LIBRARIES) rows.push(await latency(setting, workload, subject, waiters));
  return [...rows, await floor(setting, workload)];
}

export const workloads: Workload[] = [
  { name: 'hand-off, 1 waiter', run: (setting) => compare(setting, 'hand-off, 1 waiter', 1) },
  { name: 'hand-off, 50 waiters', run: (setting) => compare(setting, 'hand-off, 50 waiters', 50) },
];

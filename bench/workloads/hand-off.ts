import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../monotonic.js';
import { LIBRARIES, openPeer, type Peer, type PeerName } from '../peers.js';
import { withWorkers, type Worker } from '../processes.js';
import { quantile } from '../statistics.js';
import type { Row, Setting, Workload } from './workload.js';

/*
 * From the call that gives the lock back to the first waiter inside, in another process.
 */

const LOCK = 'bench:handed-off';

let peer: Peer | undefined;
let release: (() => Promise<unknown>) | undefined;
let round: { entered: number[]; over: Promise<unknown> } | undefined;

async function openHandOff(name: PeerName, url: string): Promise<void> {
  peer = await openPeer(name, { url });
  await peer.flow('bench:warm-up', 200);
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

export const tasks = { openHandOff, takeLock, giveBack, startWaiters, firstEntered };

async function oneRound(holder: Worker, waiting: Worker, waiters: number): Promise<number> {
  await holder.run('takeLock');
  await waiting.run('startWaiters', waiters);
  // Long enough for everybody to wait, and not in step with anybody who polls.
  await sleep(30 + 30 * Math.random());
  const calledAt = await holder.run('giveBack');
  return (await waiting.run('firstEntered')) - calledAt;
}

function latency({ server, quick }: Setting, workload: string, subject: PeerName, waiters: number): Promise<Row> {
  return withWorkers(2, async ([holder, waiting]) => {
    await Promise.all([holder, waiting].map((worker) => worker!.run('openHandOff', subject, server.url)));
    // A process that has been waiting for locks for a second or two runs on optimised code.
    for (let i = 0; i < (quick ? 10 : 40); i += 1) await oneRound(holder!, waiting!, waiters);
    const latencies: number[] = [];
    for (let i = 0; i < (quick ? 20 : 100); i += 1) latencies.push(await oneRound(holder!, waiting!, waiters));
    return { workload, subject, figures: { 'p50 ms': quantile(latencies, 0.5), 'p95 ms': quantile(latencies, 0.95) } };
  });
}

async function compare(setting: Setting, workload: string, waiters: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const subject of LIBRARIES) rows.push(await latency(setting, workload, subject, waiters));
  return rows;
}

export const workloads: Workload[] = [
  { name: 'hand-off, 1 waiter', run: (setting) => compare(setting, 'hand-off, 1 waiter', 1) },
  { name: 'hand-off, 50 waiters', run: (setting) => compare(setting, 'hand-off, 50 waiters', 50) },
];

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { LIBRARIES, openPeer, type Peer, type PeerName } from '../peers.js';
import { withWorkers } from '../processes.js';
import type { Row, Setting, Workload } from './workload.js';

/* Locks that are held and renewed, while nothing else happens. */

const AT_ONCE = 200;
/** The monitor of the event loop wakes the process so often. At 5 ms, it took 0.33 s of CPU time a minute. */
const RESOLUTION_MS = 20;
/** What the measurement itself takes. */
const IDLE = '(no lock: an idle process)';

let peer: Peer | undefined;
const held: (() => Promise<unknown>)[] = [];

async function keepLocks(name: PeerName, url: string, leaseMs: number, locks: number): Promise<void> {
  peer = await openPeer(name, { url, leaseMs });
  const some = async (first: number): Promise<void> => {
    for (let i = first; i < locks; i += AT_ONCE) held.push(await peer!.keep(`bench:kept:${i}`));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, first) => some(first)));
}

interface Cost {
  readonly cpuSeconds: number;
  readonly longestBlockMs: number;
}

async function sit(ms: number): Promise<Cost> {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const before = process.cpuUsage();
  await sleep(ms);
  const { user, system } = process.cpuUsage(before);
  delay.disable();
  return { cpuSeconds: (user + system) / 1e6, longestBlockMs: delay.max / 1e6 };
}

export const tasks = { keepLocks, sit };

function cost(
  { server, quick }: Setting,
  workload: string,
  subject: PeerName | typeof IDLE,
  locks: number,
): Promise<Row> {
  const seconds = quick ? 4 : 60;
  return withWorkers(1, async ([worker]) => {
    await server.clear();
    if (subject !== IDLE) await worker!.run('keepLocks', subject, server.url, quick ? 4_500 : 30_000, locks);
    const serverBefore = await server.cpuSeconds();
    const counts = await server.countCommands([], () => worker!.run('sit', seconds * 1_000));
    const serverSeconds = (await server.cpuSeconds()) - serverBefore;
    const kept = await server.keys();
    return {
      workload,
      subject,
      figures: {
        'client CPU s': counts.result.cpuSeconds,
        'server CPU s': serverSeconds,
        'renewal requests': counts.requests,
        'commands/lock': counts.commands / locks,
        'longest block ms': counts.result.longestBlockMs,
        ...(subject !== IDLE && { 'locks lost': locks - kept }),
      },
    };
  });
}

async function compare(setting: Setting, workload: string, locks: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const subject of [...LIBRARIES, IDLE] as const) rows.push(await cost(setting, workload, subject, locks));
  return rows;
}

const kept = (name: string, locks: number): Workload => ({ name, run: (setting) => compare(setting, name, locks) });

export const workloads: Workload[] = [
  kept('10,000 locks held for a minute', 10_000),
  kept('100,000 locks held for a minute', 100_000),
];

import { takeTurns } from './contended.js';
import { latency } from './hand-off.js';
import { behindNetwork } from '../network.js';
import type { PeerName } from '../peers.js';
import type { Row, Setting, Workload } from './workload.js';

/*
 * What order costs: the fair lock beside the plain lock, which lets a process pass it on among its own waiters. No peer
 * has a fair lock.
 */

const PLAIN = 'holdfast withLock';
const SUBJECTS: readonly PeerName[] = [PLAIN, 'holdfast fair lock'];

function crowd(setting: Setting, workload: string): Promise<Row[]> {
  return takeTurns(setting, SUBJECTS, 4, { flows: 10, sectionsEach: 25, holdMs: 1 }, (medians) => {
    const plain = medians.get(PLAIN)!.rate;
    return [...medians].map(([subject, { rate, longestWaitMs, requests, commands }]) => ({
      workload,
      subject,
      figures: {
        'sections/s': rate,
        'longest wait ms': longestWaitMs,
        'requests/section': requests,
        'commands/section': commands,
        ...(subject !== PLAIN && { 'of plain': rate / plain }),
      },
    }));
  });
}

async function handOff(setting: Setting, workload: string): Promise<Row[]> {
  const rows: Row[] = [];
  for (const subject of SUBJECTS) rows.push(await latency(setting, workload, subject, 1));
  return rows;
}

const named = (name: string, run: (setting: Setting, workload: string) => Promise<Row[]>): Workload => ({
  name,
  run: (setting) => run(setting, name),
});

const CROWD = named('fair lock, 4 processes x 10, hold 1 ms', crowd);

export const workloads: Workload[] = [CROWD, named('fair lock hand-off, 1 waiter', handOff), behindNetwork(CROWD)];

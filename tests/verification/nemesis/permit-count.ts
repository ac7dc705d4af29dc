import { createClient } from 'holdfast';
import type { HistoryEvent } from '../../support/history/history-events.js';
import { stamp } from '../../support/history/history-recorder.mjs';
import { until } from '../../support/time/until.js';
import { isCounted, kindOf, PERMITS } from './kinds.js';
import type { Stage } from './stage.js';

/** The permits that there are, when nobody has or wants one. */
export async function setPermits(stage: Stage, names: readonly string[]): Promise<HistoryEvent[]> {
  const client = createClient(stage.direct());
  for (const name of names.filter(isCounted)) {
    if (kindOf(name) === 'semaphore') await client.getSemaphore(name).trySetPermits(PERMITS);
    else await client.getPermitExpirableSemaphore(name).trySetPermits(PERMITS);
  }
  await client.close();
  return names
    .filter(isCounted)
    .map((lock): HistoryEvent => ({ type: 'permits-set', process: 'nemesis', at: stamp(), lock }));
}

/** When what is taken back in the background is back, and leases are over; then takes the semaphores away. */
export async function countPermits(
  stage: Stage,
  names: readonly string[],
  limitMs: (name: string) => number,
): Promise<HistoryEvent[]> {
  const events: HistoryEvent[] = [];
  const client = createClient(stage.direct());
  for (const name of names.filter(isCounted)) {
    const plain = kindOf(name) === 'semaphore';
    const semaphore = plain ? client.getSemaphore(name) : client.getPermitExpirableSemaphore(name);
    let free = 0;
    const all = async (): Promise<boolean> => (free = await semaphore.availablePermits()) === PERMITS;
    await until(all, 'all are back', limitMs(name)).catch(() => undefined);
    events.push({ type: 'permits-free', process: 'nemesis', at: stamp(), lock: name, free, of: PERMITS });
    const server = await stage.masterOf(name);
    await server.command('DEL', name, `{${name}}:timeout`);
  }
  await client.close();
  return events;
}

import { createClient, type LockClient, type PermitExpirableSemaphore, type Semaphore } from 'holdfast';
import type { HistoryEvent } from '../../support/history/history-events.js';
import { stamp } from '../../support/history/history-recorder.mjs';
import { until } from '../../support/time/until.js';
import { isCounted, isElsewhere, kindOf, PERMITS, redisName } from './kinds.js';
import { inDatabase, type Stage } from './stage.js';

/** The number of permits when no flow has or wants one. */
export async function setPermits(stage: Stage, names: readonly string[]): Promise<HistoryEvent[]> {
  await withClients(stage, async (clientOf) => {
    for (const name of names.filter(isCounted)) await semaphoreOf(clientOf, name).trySetPermits(PERMITS);
  });
  return names
    .filter(isCounted)
    .map((lock): HistoryEvent => ({ type: 'permits-set', process: 'nemesis', at: stamp(), lock }));
}

/** Waits for background releases and the end of leases, and then deletes the semaphores. */
export async function countPermits(
  stage: Stage,
  names: readonly string[],
  limitMs: (name: string) => number,
): Promise<HistoryEvent[]> {
  const counted = async (name: string, clientOf: ClientOf): Promise<HistoryEvent> => {
    const semaphore = semaphoreOf(clientOf, name);
    let free = 0;
    const all = async (): Promise<boolean> => (free = await semaphore.availablePermits()) === PERMITS;
    await until(all, 'all are back', limitMs(name)).catch(() => undefined);
    const at = stamp();
    const server = await stage.masterOf(name);
    const key = redisName(name);
    const keys = kindOf(name) === 'semaphore' ? [key] : [key, `{${key}}:timeout`];
    await inDatabase(server, isElsewhere(name) ? 1 : 0, 'DEL', ...keys);
    return { type: 'permits-free', process: 'nemesis', at, lock: name, free, of: PERMITS };
  };
  return withClients(stage, (clientOf) => Promise.all(names.filter(isCounted).map((name) => counted(name, clientOf))));
}

type ClientOf = (name: string) => LockClient;

async function withClients<T>(stage: Stage, work: (clientOf: ClientOf) => Promise<T>): Promise<T> {
  const clients = Array.from({ length: stage.databases }, (_, database) => createClient(stage.direct(database)));
  try {
    return await work((name) => clients[isElsewhere(name) ? 1 : 0]!);
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

function semaphoreOf(clientOf: ClientOf, name: string): Semaphore | PermitExpirableSemaphore {
  const [client, key] = [clientOf(name), redisName(name)];
  return kindOf(name) === 'semaphore' ? client.getSemaphore(key) : client.getPermitExpirableSemaphore(key);
}

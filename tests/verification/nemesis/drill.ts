import type { Lock, LockClient } from 'holdfast';
import { setTimeout as pause } from 'node:timers/promises';
import { queryObjects } from 'node:v8';
import type { HeapSize } from '../../support/history/history-events.js';
import type { WorkerParts } from '../../support/processes/worker-orders.js';
import { codeOf } from './load.js';

export interface DrillResult {
  /** Of each batch. */
  readonly sections: number;
  /** After a collection: before the first batch that counts, and after each. */
  readonly heaps: readonly HeapSize[];
  /** Permits that are free afterwards, of `PERMITS`. */
  readonly free: number;
  /** Errors that nothing explains. */
  readonly errors: readonly string[];
}

const FLOWS = 4;
const SECTIONS = 30;
/** The first one warms up. */
const BATCHES = 4;
/** More than the drill takes at once and could lose. */
export const PERMITS = 1_000;
/** The semaphore of one process. */
export const drillPermits = (process: string): string => `drill:permits.${process}`;
/** For the background work of a batch: replies that arrive after their call was aborted. */
const AFTERWARDS_MS = 60;
const WAIT_MS = 10_000;
/** The drill causes the first kind; a busy machine may keep Redis from replying in time. */
const EXPECTED = new Set(['ERR_LOCK_ABORTED', 'ERR_LOCK_REDIS_UNAVAILABLE']);

/** Of the bench, which holds it while all processes wait. */
export const HELD_BY_BENCH = 'drill:held by the bench';

/** Runs the drill with clients that keep a lock for so many ms, or waits for a lock. */
export async function run(
  { clients, name }: WorkerParts,
  what: { keep: number } | { lock: string },
): Promise<DrillResult | undefined> {
  const client = clients.get('client')!;
  if ('keep' in what) return drill(client, name, what.keep);
  const { lock } = what;
  await client.getLock(lock).withLock({ waitTime: WAIT_MS }, () => undefined);
  return undefined;
}

/** Equal batches of sections without other activity: growth from batch to batch is a leak. */
async function drill(client: LockClient, name: string, keepMs: number): Promise<DrillResult> {
  const errors: string[] = [];
  const semaphore = client.getSemaphore(drillPermits(name));
  await semaphore.trySetPermits(PERMITS);
  const heaps: HeapSize[] = [];
  for (let batch = 0; batch < BATCHES; batch++) {
    await Promise.all(Array.from({ length: FLOWS }, (_, flow) => sectionsOf(client, name, flow, errors)));
    await pause(AFTERWARDS_MS + keepMs);
    heaps.push(heapSize());
  }
  const free = await semaphore.availablePermits();
  return { sections: FLOWS * SECTIONS, heaps, free, errors };
}

async function sectionsOf(client: LockClient, name: string, flow: number, errors: string[]): Promise<void> {
  const locks: readonly Lock[] = [
    client.getLock(`drill:lock.${name}`),
    client.getFairLock(`drill:fair.${name}`),
    client.getReadWriteLock(`drill:rw.${name}`).readLock(),
    client.getReadWriteLock(`drill:rw.${name}`).writeLock(),
    client.getMultiLock(`drill:group.${name}`, ['a', 'b']),
    client.getLock(`drill:lock.${name}.${flow}`),
  ];
  for (let section = 0; section < SECTIONS; section++) {
    const lock = locks[section % locks.length]!;
    const way = WAYS[Math.floor(section / locks.length) % WAYS.length]!;
    await way(lock, client, name).catch((error: unknown) => {
      if (!EXPECTED.has(codeOf(error))) errors.push(`${lock.name}: ${String(error)}`);
    });
  }
}

const WAYS: readonly ((lock: Lock, client: LockClient, name: string) => Promise<unknown>)[] = [
  (lock) => lock.withLock(() => lock.withLock(() => undefined)),
  async (lock) => (await lock.acquire({ leaseTime: WAIT_MS })).release(),
  async (lock) => (await lock.tryAcquire())?.release(),
  async (lock) => (await lock.acquire({ signal: AbortSignal.timeout(2), waitTime: WAIT_MS })).release(),
  async (_lock, client, name) => {
    const semaphore = client.getSemaphore(drillPermits(name));
    await semaphore.acquire(3, { waitTime: WAIT_MS });
    await semaphore.release(3);
  },
];

/** The state after a collection. Objects are counted exactly; bytes differ by some code and some buffers. */
function heapSize(): HeapSize {
  const objects = queryObjects(Object, { format: 'count' });
  globalThis.gc?.();
  return { bytes: process.memoryUsage().heapUsed, objects };
}

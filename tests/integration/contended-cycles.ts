import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LockAbortedError } from '../../src/errors.js';
import { inFlow, openClient, pause, TestClock } from '../support/clients/lock-clients.js';
import type { Random } from '../support/random.js';

export interface ContendedCycles {
  readonly granted: number;
  readonly busy: number;
  readonly aborted: number;
  /** Updates of the counters that were lost, and moments in which two were inside. */
  readonly lostUpdates: number;
  readonly overlaps: number;
  /** Signals that still have a listener. */
  readonly listeners: number;
  readonly heapGrowthBytes: number;
  readonly names: readonly string[];
  /** Timers that the clients have set by now. */
  timers(): number;
  holds(): number;
}

/** The state that the locks protect: a number that is read, and written back after a pause. */
interface Counter {
  value: number;
  inside: number;
}

const FLOWS = 60;

/** Sections of many locks by two clients, with random time-outs and aborts on the way. */
export async function contendedCycles(
  random: Random,
  cycles: number,
  names: readonly string[],
): Promise<ContendedCycles> {
  const clocks = [new TestClock(), new TestClock()];
  const clients = await Promise.all(clocks.map((clock) => openClient({ clock })));
  const counters = new Map(names.map((name): [string, Counter] => [name, { value: 0, inside: 0 }]));
  const signals: WeakRef<AbortSignal>[] = [];
  const result = { granted: 0, busy: 0, aborted: 0, lostUpdates: 0, overlaps: 0, listeners: 0 };
  let left = cycles;
  let heapBefore = 0;

  const section = async (counter: Counter): Promise<void> => {
    counter.inside += 1;
    if (counter.inside > 1) result.overlaps += 1;
    const { value } = counter;
    if (random.below(2) === 0) await pause(random.below(3));
    else await Promise.resolve();
    counter.value = value + 1;
    counter.inside -= 1;
    result.granted += 1;
  };

  const cycle = async (flow: number): Promise<void> => {
    // Few at a time, so that they are contended, and all of them in the end.
    const at = Math.floor(((cycles - left) / cycles) * names.length);
    const name = names[(at + random.below(8)) % names.length]!;
    const lock = clients[flow % 2]!.getLock(name);
    const counter = counters.get(name)!;
    const controller = new AbortController();
    const { signal } = controller;
    if (random.below(3) === 0) setTimeout(() => controller.abort(), random.below(25));
    if (random.below(50) === 0) signals.push(new WeakRef(signal));
    const waitTime = random.below(3) === 0 ? random.below(25) : undefined;
    try {
      const hold = await lock.tryAcquire({ waitTime: waitTime ?? Infinity, signal });
      if (hold === null) {
        result.busy += 1;
      } else {
        if (random.below(4) === 0) await lock.withLock(() => section(counter));
        else await section(counter);
        await hold.release();
      }
    } catch (error) {
      if (!(error instanceof LockAbortedError)) throw error;
      result.aborted += 1;
    }
    if (getEventListeners(signal, 'abort').length > 0) result.listeners += 1;
  };

  const flow = async (number: number): Promise<void> => {
    while (left > 0) {
      left -= 1;
      if (left === Math.floor(cycles / 2)) heapBefore = await heapUsed();
      await cycle(number);
    }
  };
  await Promise.all(Array.from({ length: FLOWS }, (_, number) => inFlow(() => flow(number))));
  for (const { value } of counters.values()) result.lostUpdates -= value;
  return {
    ...result,
    lostUpdates: result.lostUpdates + result.granted,
    heapGrowthBytes: (await heapUsed()) - heapBefore,
    names,
    timers: () => clocks.reduce((sum, { timers }) => sum + timers, 0),
    holds: () => clients.reduce((sum, client) => sum + client.holds().length, 0),
  };
}

async function heapUsed(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  for (let pass = 0; pass < 3; pass += 1) {
    await new Promise((resume) => setImmediate(resume));
    gc();
  }
  return process.memoryUsage().heapUsed;
}

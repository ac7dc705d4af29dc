import { tasks as atOnce } from './workloads/at-once.js';
import { tasks as contended } from './workloads/contended.js';
import { tasks as handOff } from './workloads/hand-off.js';
import { tasks as redLock } from './workloads/red-lock.js';
import { tasks as uncontended } from './workloads/uncontended.js';
import { tasks as waiting } from './workloads/waiting.js';
import { tasks as watchdog } from './workloads/watchdog.js';

/* The other end of processes.ts: runs the tasks it is sent. */

const tasks = { ...uncontended, ...contended, ...handOff, ...waiting, ...watchdog, ...atOnce, ...redLock };
export type Tasks = typeof tasks;

interface Order {
  readonly name: keyof Tasks | 'end';
  readonly params: unknown[];
}

async function run({ name, params }: Order): Promise<void> {
  if (name === 'end') process.exit(0);
  try {
    const task = tasks[name] as (...given: unknown[]) => unknown;
    process.send?.({ value: await task(...params) });
  } catch (error) {
    process.send?.({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

process.on('message', (order: Order) => void run(order));
// The parent was interrupted.
process.on('disconnect', () => process.exit(1));

import type { LockClient } from '../../src/client.js';
import { inFlow, pause } from './lock-clients.js';

export interface ContentionSettings {
  readonly clients: readonly LockClient[];
  readonly names: readonly string[];
  readonly flows: number;
  /** Sections of each flow. */
  readonly sections: number;
  /** ms inside. */
  readonly holdMs?: number;
  /** Errors that a section may end with; it is then made again. */
  readonly mayFail?: (error: unknown) => boolean;
}

export interface ContentionResult {
  /** Sections that were entered while another one of the same lock was. */
  overlaps: number;
  /** Values that were read, thought about and written back, per lock; equal to the sections if no update was lost. */
  readonly values: readonly number[];
  readonly entered: readonly number[];
  failures: number;
  longestWaitMs: number;
}

/** Flows of one process that all want the same few locks, each protecting a plain number. */
export async function contend(settings: ContentionSettings): Promise<ContentionResult> {
  const { clients, names, flows, sections, holdMs = 0, mayFail = () => false } = settings;
  const inside = names.map(() => 0);
  const values = names.map(() => 0);
  const entered = names.map(() => 0);
  const result: ContentionResult = { overlaps: 0, values, entered, failures: 0, longestWaitMs: 0 };

  const section = async (client: LockClient, at: number): Promise<void> => {
    const asked = performance.now();
    await client.getLock(names[at] as string).withLock(async (hold) => {
      result.longestWaitMs = Math.max(result.longestWaitMs, performance.now() - asked);
      inside[at] = (inside[at] as number) + 1;
      if (inside[at] > 1) result.overlaps += 1;
      entered[at] = (entered[at] as number) + 1;
      const value = values[at] as number;
      await pause(holdMs);
      // A hold that was lost meanwhile protects nothing; its section writes nothing.
      if (hold.signal.aborted) entered[at] -= 1;
      else values[at] = value + 1;
      inside[at] -= 1;
    });
  };

  const flow = async (number: number): Promise<void> => {
    for (let i = 0; i < sections;) {
      try {
        await section(clients[number % clients.length] as LockClient, (number + i) % names.length);
        i += 1;
      } catch (error) {
        if (!mayFail(error)) throw error;
        result.failures += 1;
        await pause(10);
      }
    }
  };
  await Promise.all(Array.from({ length: flows }, (_, number) => inFlow(() => flow(number))));
  return result;
}

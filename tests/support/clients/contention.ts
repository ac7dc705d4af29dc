import type { LockClient } from '../../../src/client/create-client.js';
import type { Hold } from '../../../src/holding/hold.js';
import { inFlow, pause } from './lock-clients.js';

export interface ContentionSettings {
  readonly clients: readonly LockClient[];
  readonly names: readonly string[];
  readonly flows: number;
  /** Sections of each flow, at least. */
  readonly sections: number;
  /** Flows go on with as many more as it says yes to. */
  readonly more?: () => boolean;
  /** ms inside. */
  readonly holdMs?: number;
  /** Errors that a section may end with; it is then made again. */
  readonly mayFail?: (error: unknown) => boolean;
}

export interface ContentionResult {
  /** Sections that were entered while another one of the same lock was, and its hold still counted. */
  overlaps: number;
  /** Number of sections whose hold was reported as lost. */
  told: number;
  /** Values that were read, thought about and written back, per lock; equal to the sections if no update was lost. */
  readonly values: readonly number[];
  readonly entered: readonly number[];
  failures: number;
  /** Until a section was entered, or failed without having been. */
  longestWaitMs: number;
}

/** Flows of one process that all want the same few locks, each protecting a plain number. */
export async function contend(settings: ContentionSettings): Promise<ContentionResult> {
  const { clients, names, flows, sections, more = () => false, holdMs = 0, mayFail = () => false } = settings;
  const inside = names.map(() => new Set<Hold>());
  const values = names.map(() => 0);
  const entered = names.map(() => 0);
  const result: ContentionResult = { overlaps: 0, told: 0, values, entered, failures: 0, longestWaitMs: 0 };

  const section = async (client: LockClient, at: number): Promise<void> => {
    const asked = performance.now();
    const waited = (): void => void (result.longestWaitMs = Math.max(result.longestWaitMs, performance.now() - asked));
    let came = false;
    const call = client.getLock(names[at] as string).withLock(async (hold) => {
      came = true;
      waited();
      const others = inside[at] as Set<Hold>;
      // Check by the clock: after a hold-up of the process, sockets may run before the timers that report a loss.
      if ([...others].some((other) => other.validFor() > 0)) result.overlaps += 1;
      others.add(hold);
      const value = values[at] as number;
      await pause(holdMs);
      others.delete(hold);
      // A hold that was lost in between protects nothing, so its section writes nothing.
      if (hold.signal.aborted) {
        result.told += 1;
        return;
      }
      entered[at] = (entered[at] as number) + 1;
      values[at] = value + 1;
    });
    await call.catch((error: unknown) => {
      if (!came) waited();
      throw error;
    });
  };

  const flow = async (number: number): Promise<void> => {
    for (let i = 0; i < sections || more();) {
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

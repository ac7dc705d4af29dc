import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { OwnershipLock } from './scenarios/scenario.js';

export interface Rescheduling {
  readonly rounds: number;
  /** The longest list of holds that was ever around the job. */
  readonly longestStore: number;
  /** Of every tenth hold, the number that is still reachable at the end of the job. */
  readonly reachable: number;
  readonly heapGrowthBytes: number;
}

/** A job that locks and, before it unlocks, sets the timer for its next round: each round is started by the last. */
export async function reschedule(
  lock: OwnershipLock,
  storeLength: () => number,
  rounds: number,
): Promise<Rescheduling> {
  const holds: WeakRef<object>[] = [];
  let done = 0;
  let longestStore = 0;
  let heapBefore = 0;
  await new Promise<void>((resolve, reject) => {
    const round = async (left: number): Promise<void> => {
      longestStore = Math.max(longestStore, storeLength());
      await lock.lock();
      longestStore = Math.max(longestStore, storeLength());
      const hold = lock.currentHold();
      if (hold !== undefined) done += 1;
      if (hold !== undefined && left % 10 === 0) holds.push(new WeakRef(hold));
      if (left === rounds - 100) heapBefore = await heapUsed();
      if (left > 1) setImmediate(() => void round(left - 1).catch(reject));
      await lock.unlock();
      if (left === 1) resolve();
    };
    round(rounds).catch(reject);
  });
  const heapGrowthBytes = (await heapUsed()) - heapBefore;
  const reachable = holds.filter((hold) => hold.deref() !== undefined).length;
  return { rounds: done, longestStore, reachable, heapGrowthBytes };
}

/** A WeakRef keeps a dereferenced object until the next turn. */
async function heapUsed(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  for (let pass = 0; pass < 3; pass += 1) {
    await new Promise((resume) => setImmediate(resume));
    gc();
  }
  return process.memoryUsage().heapUsed;
}

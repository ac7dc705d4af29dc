import type { Hold } from 'holdfast';
import { setTimeout as pause } from 'node:timers/promises';
import { Random } from '../../support/random.js';
import { Call } from './call.js';
import { forceUnlock } from './force.js';
import type { Load } from './load.js';
import type { Rest } from './rest.js';

/** Of each process at each busy name: while one is inside, another one may wait, and may come soon. */
export const BUSY_FLOWS = 3;
/** Short sections: many follow one another before the next request. */
const LONGEST_WORK_MS = 12;
/** In this time, a lock may be kept. */
const LONGEST_PAUSE_MS = 120;
const FORCED_ONCE_IN = 400;

/** One short section after the other, all with the same lease, so that they may follow one another without a request. */
export async function takeBusily(load: Load, name: string, rest: Rest, flow: number): Promise<void> {
  const { stopping } = load.parts;
  const random = new Random(`${load.parts.name} ${name} ${flow}`, load.options.seed);
  rest.join();
  for (await rest.pass(); !stopping.aborted; await rest.pass()) {
    const target = load.targets.draw(name, random);
    const call = new Call(load, target, undefined, Infinity, undefined, undefined);
    let hold: Hold | undefined;
    try {
      hold = await target.lock.acquire();
    } catch (error) {
      call.refused(error);
      await pause(LONGEST_PAUSE_MS);
    }
    if (hold) await section(load, call, hold, random);
    if (random.below(FORCED_ONCE_IN) === 0) await forceUnlock(load, name, target.lock);
    await pause(random.below(6) === 0 ? random.below(LONGEST_PAUSE_MS) : 1);
  }
  rest.leave();
}

async function section(load: Load, call: Call, hold: Hold, random: Random): Promise<void> {
  call.granted(hold);
  await pause(random.below(LONGEST_WORK_MS));
  try {
    await call.recordRelease(hold, () => hold.release());
    call.released(hold);
  } catch (error) {
    call.released(hold, error);
    load.count(load.notReleased, error);
  }
  load.sections += 1;
}

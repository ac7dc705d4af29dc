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
/** Some sections are longer than many a streak may last. */
const LONG_WORK_ONCE_IN = 10;
const LONGEST_LONG_WORK_MS = 600;
/** Without a lease, or with similar ones: a shorter lease may follow a longer one, when that one's end is near enough. */
const LEASES = [undefined, 800, 1_000, 1_200, 1_400];
/** In this time, a lock may be kept. */
const LONGEST_PAUSE_MS = 120;
const FORCED_ONCE_IN = 400;

/** One short section after the other, with similar leases, so that they may follow one another without a request. */
export async function takeBusily(load: Load, name: string, rest: Rest, flow: number): Promise<void> {
  const { stopping } = load.parts;
  const random = new Random(`${load.parts.name} ${name} ${flow}`, load.options.seed);
  rest.join();
  for (await rest.pass(); !stopping.aborted; await rest.pass()) {
    const target = load.targets.draw(name, random);
    const leaseTime = LEASES[random.below(LEASES.length)];
    const call = new Call(load, target, undefined, Infinity, leaseTime, undefined);
    let hold: Hold | undefined;
    try {
      hold = await target.lock.acquire({ leaseTime: call.leaseTime });
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
  await pause(random.below(random.below(LONG_WORK_ONCE_IN) === 0 ? LONGEST_LONG_WORK_MS : LONGEST_WORK_MS));
  try {
    await call.recordRelease(hold, () => hold.release());
    call.released(hold);
  } catch (error) {
    call.released(hold, error);
    load.count(load.notReleased, error);
  }
  load.sections += 1;
}

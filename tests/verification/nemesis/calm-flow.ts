import type { Hold } from 'holdfast';
import { setTimeout as pause } from 'node:timers/promises';
import { Random } from '../../support/random.js';
import { Call } from './call.js';
import { isFair } from './kinds.js';
import type { Load } from './load.js';
import type { Rest } from './rest.js';

/** Longer than a waiter may need, so that another owner cannot hide a waiter that was not granted. */
const ALONE_MS = 2_200;
/** Longer than a lease without a renewal. */
const LONG_HOLD_MS = 3_500;

/**
 * Acquires a lock without a time limit, keeps it without its own lease, and leaves it to the one other flow that waits
 * for it. At a fair lock several flows queue instead.
 */
export async function takeCalmly(load: Load, name: string, rest: Rest): Promise<void> {
  const { stopping } = load.parts;
  const random = new Random(`${load.parts.name} ${name}`, load.options.seed);
  const shortly = (ms: number): Promise<unknown> =>
    pause(ms, undefined, { signal: AbortSignal.any([rest.asked, stopping]) }).catch(() => undefined);
  rest.join();
  for (await rest.pass(); !stopping.aborted; await rest.pass()) {
    const target = load.targets.draw(name, random);
    const call = new Call(load, target, undefined, Infinity, undefined, undefined);
    let hold: Hold;
    try {
      hold = await target.lock.acquire();
    } catch (error) {
      call.refused(error);
      await shortly(100);
      continue;
    }
    call.granted(hold);
    const long = !isFair(name) && random.below(2) === 0;
    await shortly(long ? LONG_HOLD_MS + random.below(1_500) : 200 + random.below(400));
    try {
      await call.recordRelease(hold, () => hold.release());
      call.released(hold);
    } catch (error) {
      call.released(hold, error);
      load.count(load.notReleased, error);
    }
    load.sections += 1;
    await shortly(isFair(name) ? random.below(900) : ALONE_MS + random.below(800));
  }
  rest.leave();
}

import { setTimeout as pause } from 'node:timers/promises';
import { stamp } from '../../support/history/history-recorder.mjs';
import type { Random } from '../../support/random.js';
import type { Load } from './load.js';
import { kindOf, PERMITS, redisName } from './kinds.js';

interface Taken {
  readonly ids: string;
  /** Until then they are surely held. */
  readonly validUntil: number;
  release(): Promise<void>;
}

/** Holds permits for a while, with or without a lease. */
export async function takePermits(load: Load, random: Random, name: string): Promise<void> {
  const { recorder, options, parts } = load;
  const permits = 1 + random.below(random.below(3) === 0 ? PERMITS : 2);
  const leaseTime = load.nextLease();
  // Never without a time limit: a server that lost all data has no permits.
  const waitTime = random.below(3) === 0 ? 0 : random.below(1_500);
  const controller = new AbortController();
  const abort = random.below(6) === 0 ? setTimeout(() => controller.abort(), random.below(600)) : undefined;
  const call = `${parts.name}/permits/${++made}`;
  recorder.write({
    type: 'acquire-invoke',
    call,
    lock: name,
    permits,
    settlesWithin: waitTime + options.commandTimeout,
  });
  let taken: Taken | undefined;
  try {
    const ask = kindOf(name) === 'semaphore' ? plain : expirable;
    taken = await ask(load, name, permits, waitTime, leaseTime, controller.signal);
  } catch (error) {
    recorder.refused(call, error);
    load.count(load.refused, error);
    return;
  } finally {
    clearTimeout(abort);
  }
  if (taken === undefined) {
    recorder.refused(call, 'busy');
    load.count(load.refused, 'busy');
    return;
  }
  const hold = `${call}!`;
  const { ids, validUntil } = taken;
  recorder.write({
    type: 'acquire-ok',
    call,
    hold,
    owner: ids || call,
    validUntil,
    permits: { taken: permits, of: PERMITS },
  });
  load.sections += 1;
  await pause(random.below(random.below(4) === 0 ? 600 : 30));
  recorder.write({ type: 'release-invoke', hold, validUntil });
  try {
    await taken.release();
    recorder.write({ type: 'release-ok', hold });
  } catch (error) {
    recorder.write({ type: 'release-fail', hold, reason: String(error) });
    load.count(load.notReleased, error);
  }
}

let made = 0;

async function plain(
  { clients }: Load,
  name: string,
  permits: number,
  waitTime: number,
  _leaseTime: number,
  signal: AbortSignal,
): Promise<Taken | undefined> {
  const semaphore = clients.of(name).getSemaphore(redisName(name));
  if (!(await semaphore.tryAcquire(permits, waitTime, { signal }))) return undefined;
  // Nothing ends them but their release.
  return { ids: '', validUntil: Infinity, release: () => semaphore.release(permits) };
}

async function expirable(
  { clients }: Load,
  name: string,
  permits: number,
  waitTime: number,
  leaseTime: number,
  signal: AbortSignal,
): Promise<Taken | undefined> {
  const semaphore = clients.of(name).getPermitExpirableSemaphore(redisName(name));
  const permit = await semaphore.tryAcquirePermit({ permits, waitTime, leaseTime, signal });
  if (!permit) return undefined;
  return { ids: permit.ids.join(), validUntil: stamp() + permit.validFor(), release: () => permit.release() };
}

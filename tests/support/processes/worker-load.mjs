// @ts-check
import { setTimeout as pause } from 'node:timers/promises';

/**
 * @typedef {import('holdfast').Lock} Lock
 * @typedef {import('holdfast').Hold} Hold
 * @typedef {import('holdfast').AcquireOptions} AcquireOptions
 * @typedef {import('./counter-client.mjs').CounterClient} CounterClient
 * @typedef {import('../history/history-recorder.mjs').HistoryRecorder} HistoryRecorder
 * @typedef {import('./worker-orders.js').Load} Load
 * @typedef {import('./worker-orders.js').LoadResult} LoadResult
 * @typedef {Omit<Load, 'locks' | 'port'> & { who: string, locks: Lock[], counter: CounterClient,
 *   recorder: HistoryRecorder | undefined, stopping: AbortSignal }} LoadHere
 */

/**
 * Flows that go through sections of the given locks, each of which adds one to that lock's shared counter.
 *
 * @param {LoadHere} load
 * @returns {Promise<LoadResult>}
 */
export async function contend(load) {
  /** @type {LoadResult} */
  const result = { sections: 0, busy: 0, failures: {} };
  await Promise.all(Array.from({ length: load.flows }, (_, flow) => go(load, flow, result)));
  return result;
}

/**
 * @param {LoadHere} load
 * @param {number} flow
 * @param {LoadResult} result
 */
async function go(load, flow, result) {
  const { locks, rounds, form, waitTime, leaseTime, nested, recorder, stopping } = load;
  const terms = { ...(waitTime !== undefined && { waitTime }), ...(leaseTime !== undefined && { leaseTime }) };
  for (let round = 0; round < rounds && !stopping.aborted; round++) {
    const lock = locks[(flow + round) % locks.length];
    if (lock === undefined) return;
    const section = () => enterSection(load, lock, flow);
    const work = nested === true ? () => within(lock, {}, recorder, section) : section;
    const call = form === 'withLock' ? undefined : recorder?.invoked(lock.name);
    let inside = false;
    try {
      if (form === 'withLock') {
        await within(lock, terms, recorder, work);
        result.sections += 1;
        continue;
      }
      // Await here: a separate function would keep the hold to itself.
      if (form === 'tryLock') inside = await lock.tryLock(waitTime, leaseTime);
      else {
        await lock.lock(leaseTime);
        inside = true;
      }
      const hold = lock.currentHold();
      if (!inside || hold === undefined) {
        result.busy += 1;
        if (call !== undefined) recorder?.refused(call, 'busy');
        continue;
      }
      if (call !== undefined) recorder?.granted(call, hold);
      try {
        await work();
      } finally {
        const unlocked = recorder ? recorder.recordRelease(hold, () => lock.unlock()) : lock.unlock();
        await unlocked.then(
          () => recorder?.released(hold),
          (/** @type {unknown} */ error) => {
            recorder?.released(hold, error);
            throw error;
          },
        );
      }
      result.sections += 1;
    } catch (error) {
      if (!inside && call !== undefined) recorder?.refused(call, error);
      const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
      result.failures[code] = (result.failures[code] ?? 0) + 1;
    }
  }
}

/**
 * @param {LoadHere} load
 * @param {Lock} lock
 * @param {number} flow
 */
function enterSection({ counter, who, workMs }, lock, flow) {
  return counter.section(lock.name, `${who}#${flow}`, workMs === undefined ? undefined : () => pause(workMs));
}

/**
 * `withLock`, written down.
 *
 * @param {Lock} lock
 * @param {AcquireOptions} terms
 * @param {HistoryRecorder | undefined} recorder
 * @param {() => Promise<void>} body
 */
async function within(lock, terms, recorder, body) {
  const parent = lock.currentHold();
  const call = recorder?.invoked(lock.name);
  /** @type {Hold[]} */
  const given = [];
  try {
    await lock.withLock(terms, async (hold) => {
      given.push(hold);
      if (call !== undefined) recorder?.granted(call, hold, { parent });
      recorder?.watchRelease(hold);
      await body();
    });
    for (const hold of given) recorder?.released(hold);
  } catch (error) {
    for (const hold of given) recorder?.released(hold, error);
    if (given.length === 0 && call !== undefined) recorder?.refused(call, error);
    throw error;
  }
}

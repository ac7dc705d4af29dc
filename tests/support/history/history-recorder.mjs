// @ts-check
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

/**
 * @typedef {import('./history-events.js').HistoryEvent} HistoryEvent
 * @typedef {{ readonly owner: string, readonly signal: AbortSignal, validFor(): number, readonly token?: string |
 *   number | bigint }} RecordedHold
 */

/**
 * An event without its stamp.
 * @template T
 * @typedef {T extends unknown ? Omit<T, 'at' | 'process'> & { at?: number } : never} Unstamped
 */

/** CLOCK_MONOTONIC in ms: the same for all processes of the machine. */
export const stamp = () => Number(process.hrtime.bigint()) / 1e6;

/** Of a hold at several clients `owner` names one for each. @param {string} one @param {string} other */
export function sharesOwner(one, other) {
  if (one === other) return true;
  const owners = one.split(', ');
  return other.split(', ').some((owner) => owners.includes(owner));
}

const TICK_MS = 10;
const STALL_MS = 40;
/** Longer than a loss report may take, counted only while the process runs. */
const TICKS_TO_BE_TOLD = 40;

/** Records the lock calls of one process. */
export class HistoryRecorder {
  /** @type {HistoryEvent[]} */
  events = [];
  /** @type {number | undefined} */
  #file;
  /** @type {Map<RecordedHold, { readonly id: string, until: number, overdue: number }>} */
  #open = new Map();
  /**
   * Includes closed holds: a nested hold that is granted just before the release of its parent may be recorded after
   * it.
   * @type {WeakMap<RecordedHold, string>}
   */
  #ids = new WeakMap();
  #made = 0;
  /** @type {NodeJS.Timeout} */
  #ticking;
  #lastTick = stamp();

  /**
   * @param {string} name  name of the process, unique in a history
   * @param {string} [path]  file to append to; its content survives a kill -9
   */
  constructor(name, path) {
    this.name = name;
    this.#file = path === undefined ? undefined : openSync(path, 'a');
    this.#ticking = setInterval(() => this.#tick(), TICK_MS);
    this.#ticking.unref();
  }

  /** @param {Unstamped<HistoryEvent>} event */
  write(event) {
    const stamped = /** @type {HistoryEvent} */ ({ at: stamp(), process: this.name, ...event });
    if (this.#file === undefined) this.events.push(stamped);
    else writeSync(this.#file, `${JSON.stringify(stamped, plain)}\n`);
  }

  /**
   * Called before the call. Returns the id for the outcome.
   *
   * @param {string} lock
   * @param {number} [settlesWithin]
   * @param {number} [leaseTime]
   * @param {boolean} [joint]  whether it is one of several locks of one call
   */
  invoked(lock, settlesWithin, leaseTime, joint = false) {
    const call = `${this.name}/${++this.#made}`;
    const terms = {
      ...(settlesWithin !== undefined && { settlesWithin }),
      ...(leaseTime !== undefined && { leaseTime }),
      ...(joint && { joint }),
    };
    this.write({ type: 'acquire-invoke', call, lock, ...terms });
    return call;
  }

  /**
   * @param {string} call
   * @param {RecordedHold} hold
   * @param {{ parent?: RecordedHold | undefined, shared?: boolean }} [terms]
   */
  granted(call, hold, { parent, shared } = {}) {
    const id = `${call}!`;
    const { owner, token } = hold;
    const above = parent && this.#ids.get(parent);
    const until = stamp() + hold.validFor();
    this.write({
      type: 'acquire-ok',
      call,
      hold: id,
      owner,
      validUntil: until,
      ...(above !== undefined && { parent: above }),
      ...(token !== undefined && { token: String(token) }),
      ...(shared !== undefined && { shared }),
    });
    this.confirm(owner); // the holds around it may last longer now
    this.#open.set(hold, { id, until, overdue: 0 });
    this.#ids.set(hold, id);
    const { signal } = hold;
    const told = () => this.write({ type: 'loss-signal', hold: id, cause: reasonOf(signal.reason) });
    if (signal.aborted) told();
    else signal.addEventListener('abort', told, { once: true });
  }

  /**
   * @param {string} call
   * @param {unknown} reason  the rejection, or 'busy'
   */
  refused(call, reason) {
    const unknown =
      typeof reason === 'object' && reason !== null && 'outcome' in reason && reason.outcome === 'unknown';
    this.write({ type: unknown ? 'acquire-unknown' : 'acquire-fail', call, reason: reasonOf(reason) });
  }

  /**
   * Before the release is called.
   *
   * @param {RecordedHold} hold
   * @param {number} [settlesWithin]
   */
  releasing(hold, settlesWithin) {
    const at = stamp();
    const validUntil = at + hold.validFor();
    this.#write(hold, (id) => ({
      type: 'release-invoke',
      at,
      hold: id,
      validUntil,
      ...(settlesWithin !== undefined && { settlesWithin }),
    }));
  }

  /**
   * @param {RecordedHold} hold
   * @param {unknown} [error]  the rejection of the release
   */
  released(hold, error) {
    this.#write(hold, (id) =>
      error === undefined
        ? { type: 'release-ok', hold: id }
        : { type: 'release-fail', hold: id, reason: reasonOf(error) },
    );
    this.#open.delete(hold);
    this.confirm(hold.owner); // their validity may have come from the lease of this hold
  }

  /**
   * Records that the release of a hold begins, and the remaining validity of the owner's other holds. A hold around it
   * may have been valid because of its lease, and the server shortens the lease before its reply arrives.
   *
   * @template T
   * @param {RecordedHold} hold
   * @param {() => T} release
   * @param {Iterable<RecordedHold>} [parts]  the recorded parts of the hold
   */
  recordRelease(hold, release, parts = [hold]) {
    const all = [...parts];
    for (const part of all) this.releasing(part);
    const released = release();
    for (const owner of new Set(all.map((part) => part.owner))) this.confirm(owner);
    return released;
  }

  /**
   * The same for a hold that other code releases: `withLock` releases some turns of the queue after the end of its
   * body, and only the call itself shows when.
   *
   * @param {RecordedHold & { release(): Promise<void> }} hold
   * @param {Iterable<RecordedHold>} [parts]
   */
  watchRelease(hold, parts = [hold]) {
    const release = hold.release.bind(hold);
    hold.release = () => {
      hold.release = release; // every further call only gets the same promise
      return this.recordRelease(hold, release, parts);
    };
  }

  /**
   * Records how long every open hold of an owner, or of all owners, is valid. Call this after each renewal.
   *
   * @param {string} [owner]
   */
  confirm(owner) {
    for (const hold of this.#open.keys()) {
      if (owner === undefined || sharesOwner(hold.owner, owner)) this.#ask(hold);
    }
  }

  /** @param {RecordedHold} hold */
  #ask(hold) {
    const open = this.#open.get(hold);
    if (open === undefined) return;
    const at = stamp();
    open.until = at + hold.validFor();
    open.overdue = 0;
    this.write({ type: 'valid', hold: open.id, at, until: open.until });
  }

  close() {
    this.confirm();
    this.#tick();
    clearInterval(this.#ticking);
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  /**
   * @param {RecordedHold} hold
   * @param {(id: string) => Unstamped<HistoryEvent>} event
   */
  #write(hold, event) {
    const open = this.#open.get(hold);
    if (open !== undefined) this.write(event(open.id));
  }

  #tick() {
    const now = stamp();
    if (now - this.#lastTick > STALL_MS) this.write({ type: 'stalled', from: this.#lastTick, at: now });
    this.#lastTick = now;
    for (const [hold, open] of this.#open) {
      if (now <= open.until) continue;
      // A nested call of several locks may have extended the validity. Reading it may report a loss.
      open.overdue += 1;
      if (open.overdue === TICKS_TO_BE_TOLD) this.#ask(hold);
    }
  }
}

/**
 * Reads the events that the recorders have written to their files.
 *
 * @param {readonly string[]} paths
 * @returns {HistoryEvent[]}
 */
export function readHistory(paths) {
  return paths.flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .slice(0, -1) // nothing, or a line that its writer did not live to finish
      .map((line) => {
        /** @type {HistoryEvent} */
        const event = JSON.parse(line, revived);
        return event;
      }),
  );
}

/** @param {unknown} reason */
function reasonOf(reason) {
  if (typeof reason !== 'object' || reason === null) return String(reason);
  if ('code' in reason) return String(reason.code);
  return reason instanceof Error ? reason.message : JSON.stringify(reason);
}

// JSON has no Infinity, which is how long a hold on a key without expiry is good for.
/** @param {string} _key @param {unknown} value */
const plain = (_key, value) => (value === Infinity ? 'Infinity' : value);
/** @param {string} _key @param {unknown} value */
const revived = (_key, value) => (value === 'Infinity' ? Infinity : value);

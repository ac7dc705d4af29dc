/*
 * Detects a process that waits for itself. If a call waits long behind a hold of its own process, the holder may be
 * waiting for that call. The hold can belong to any client of the process and to any kind of lock with that name.
 */
import { warn } from '../warn.js';
import type { LeaseClock, Timer, LeaseClockMs } from '../clock.js';
import { supportsBoundPromises } from '../ownership/bound-promise.js';
import type { CallSite } from '../ownership/call-site.js';
import type { LockedValues } from '../ownership/lock-context.js';
import { processHolds, warned, type ProcessHold } from '../ownership/process-holds.js';
import { LONG_WAIT_MS, LONG_WAITS_TOGETHER_MS } from '../timing.js';
import { quoted } from '../visible.js';

export interface WaitingCall {
  /** What the call asks for. `lockedValues`: the values of a group; absent for a kind that locks its whole key. */
  readonly protocol: { readonly name: string; readonly key: string; readonly lockedValues?: LockedValues };
  /** The call site. */
  readonly site: CallSite | undefined;
}

interface WaitingLine {
  /** Absent: no call waits for a lock in the line. */
  readonly first: WaitingCall | undefined;
}

/** Warns once per lock when calls of one client wait for `LONG_WAIT_MS` behind a hold of this process. */
export class LongWaits {
  /** The time of the next check of each line. */
  readonly #lines = new Map<WaitingLine, LeaseClockMs>();
  #timer: Timer | undefined;

  constructor(
    private readonly clientId: string,
    private readonly clock: LeaseClock,
    /** Reads the fields of a hash in Redis. The fields of a lock name its owners. */
    private readonly fieldsOf: (key: string) => Promise<readonly string[]>,
  ) {}

  /** Called when a call starts to wait in the line. */
  waiting(line: WaitingLine): void {
    if (this.#lines.has(line)) return;
    const { first } = line;
    if (first === undefined || warned.has(first.protocol.key)) return;
    this.#lines.set(line, this.clock.now() + LONG_WAIT_MS);
    if (this.#timer === undefined) this.#lookIn(LONG_WAIT_MS);
  }

  /** Called when the last waiter has left the line. */
  stop(line: WaitingLine): void {
    if (this.#lines.delete(line) && this.#lines.size === 0) this.#stopTimer();
  }

  /**
   * Checks a call that has waited for `LONG_WAIT_MS`. Warns if the call waits behind a hold that is at least as old.
   * Returns the time until the next check, in ms.
   */
  look(call: WaitingCall, holds: readonly ProcessHold[] = processHolds()): number {
    const { key, lockedValues } = call.protocol;
    if (warned.has(key)) return LONG_WAIT_MS;
    // A call for some values of a group waits neither for other values nor for a plain lock with the same name.
    const around = holds.filter((hold) => {
      return hold.key === key && (lockedValues === undefined || hold.lockedValues?.overlaps(lockedValues) === true);
    });
    const old = around.filter(({ age }) => age >= LONG_WAIT_MS);
    const own = old.find(({ clientId }) => clientId === this.clientId);
    if (own !== undefined) warnLongWait(call, own);
    else if (old.length > 0) void this.#warnIfHeld(call, old);
    return old.length > 0 ? LONG_WAIT_MS : Math.min(...around.map(({ age }) => LONG_WAIT_MS - age), LONG_WAIT_MS);
  }

  /**
   * Warns if another client of this process holds this lock. Another client may use another server or another database,
   * so the owners in Redis decide.
   */
  async #warnIfHeld(call: WaitingCall, holds: readonly ProcessHold[]): Promise<void> {
    try {
      const fields = await this.fieldsOf(call.protocol.key);
      const held = holds.find(({ owner }) => fields.some((field) => `:${field}:`.includes(`:${owner}:`)));
      if (held !== undefined) warnLongWait(call, held, ' by another client');
    } catch {
      // Redis is unavailable or refuses the command. The next check asks again.
    }
  }

  #look(): void {
    const now = this.clock.now();
    let byKey: Map<string, ProcessHold[]> | undefined;
    let earliest = Infinity;
    for (const [line, due] of [...this.#lines]) {
      const { first } = line;
      let next = due;
      if (first === undefined || warned.has(first.protocol.key)) {
        this.#lines.delete(line);
        continue;
      }
      if (due < now + LONG_WAITS_TOGETHER_MS) {
        byKey ??= holdsByKey();
        next = now + this.look(first, byKey.get(first.protocol.key) ?? []);
        this.#lines.set(line, next);
      }
      earliest = Math.min(earliest, next);
    }
    if (this.#lines.size === 0) this.#timer = undefined;
    else this.#lookIn(Math.max(earliest - now, LONG_WAITS_TOGETHER_MS));
  }

  #lookIn(ms: number): void {
    this.#timer = this.clock.clock.setTimer(ms, () => this.#look());
  }

  #stopTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

function holdsByKey(): Map<string, ProcessHold[]> {
  const byKey = new Map<string, ProcessHold[]>();
  for (const hold of processHolds()) {
    const others = byKey.get(hold.key);
    if (others === undefined) byKey.set(hold.key, [hold]);
    else others.push(hold);
  }
  return byKey;
}

/** `by`: names the client that has the hold, if that is not the client of the waiting call. */
export function warnLongWait(
  { protocol: { name, key }, site }: WaitingCall,
  held: Pick<ProcessHold, 'site'>,
  by = '',
): void {
  if (warned.has(key)) return;
  warned.add(key);
  const where = site === undefined ? '' : ` at ${site.toString()}`;
  const since = held.site === undefined ? '' : ` since ${held.site.toString()}`;
  // In such a runtime, code that acquires a lock with `acquire()` and calls other code that wants the same lock always
  // gets here.
  const outside =
    supportsBoundPromises() === false
      ? 'In this runtime the code that awaited acquire() is outside of its hold: use withLock() or hold.run(). '
      : '';
  warn(
    'HOLDFAST_LONG_WAIT',
    `waiting ${LONG_WAIT_MS / 1000} s for lock ${quoted(name)}${where}, held in this process${by}${since}. ${outside}` +
      'If the holder waits for this call, the wait never ends: see docs/ownership.md.',
  );
}

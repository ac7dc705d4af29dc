import type { Timer } from '../clock.js';
import { supportsBoundPromises } from '../ownership/bound-promise.js';
import type { CallSite } from '../ownership/call-site.js';
import type { LightSet } from '../light-set.js';
import type { LockRuntime } from './lock-runtime.js';
import type { Tenure } from '../holding/tenure.js';

export const LONG_WAIT_MS = 5_000;
const warned = new Set<string>();

/** Who waits for a lock in this client, and behind whom. */
interface Waiting {
  readonly waiterCount: number;
  readonly holders: LightSet<Tenure>;
  /** Where the first in line called from. */
  readonly headSite: CallSite | undefined;
}

/** Warns once per name when calls wait long behind one hold of their own client: it may be waiting for them. */
export class LongWaitWatch {
  #behind: Tenure | undefined;
  #timer: Timer | undefined;

  constructor(
    private readonly runtime: LockRuntime,
    private readonly entry: Waiting,
  ) {}

  /** A waiter stands in line. */
  waiting(): void {
    if (this.#timer !== undefined || this.entry.waiterCount === 0) return;
    const [tenure] = this.entry.holders;
    if (tenure === undefined || warned.has(tenure.protocol.key)) return;
    this.#behind = tenure;
    this.#timer = this.runtime.clock.clock.setTimer(LONG_WAIT_MS, () => this.#warn());
  }

  holderChanged(): void {
    if (this.#behind !== undefined && this.entry.holders.has(this.#behind)) return;
    this.stop();
    this.waiting();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#behind = undefined;
  }

  #warn(): void {
    const tenure = this.#behind;
    this.stop();
    const hold = tenure?.holds[0];
    if (tenure === undefined || hold === undefined || this.entry.waiterCount === 0) return;
    warnLongWait(tenure.protocol.name, tenure.protocol.key, this.entry.headSite, hold.site);
  }
}

export function warnLongWait(
  name: string,
  key: string,
  waiting: CallSite | undefined,
  held: CallSite | undefined,
): void {
  if (warned.has(key)) return;
  warned.add(key);
  const where = waiting === undefined ? '' : ` at ${waiting.toString()}`;
  const since = held === undefined ? '' : ` since ${held.toString()}`;
  // There code that takes a lock by `acquire` and calls another that wants it always comes here.
  const outside =
    supportsBoundPromises() === false
      ? 'In this runtime the code that awaited acquire() is outside of its hold: use withLock() or hold.run(). '
      : '';
  process.emitWarning(
    `waiting ${LONG_WAIT_MS / 1000} s for lock "${name}"${where}, held in this process${since}. ${outside}` +
      'If the holder is waiting for this call it never ends: see README, "Who owns a lock".',
    { code: 'HOLDFAST_LONG_WAIT' },
  );
}

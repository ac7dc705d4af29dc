/*
 * Kept locks (`handOff.keep`): a lock whose last section has ended, and that no call of this client waits for, stays with
 * its owner for a while. A call that comes meanwhile enters without a request, by the rules of local-hand-over.ts.
 * Otherwise the client releases the lock: at the end of that time, for a call that may not follow, at close(), and when
 * the process has nothing else to do.
 */
import type { LeaseClock, LeaseClockMs, Timer } from '../../clock.js';

/** A tenure without a caller that still has the lock. */
interface KeptTenure {
  readonly protocol: { readonly key: string };
  /** Releases the lock, or hands it over to a waiter of this client. */
  releaseWithoutCaller(leaseEnd: LeaseClockMs): Promise<void>;
}

/** Until when a tenure is kept, and when the lease of the hold that Redis confirmed ends. */
export interface KeptTimes {
  readonly until: LeaseClockMs;
  readonly leaseEnd: LeaseClockMs;
}

interface Kept<W> {
  readonly tenure: KeptTenure;
  readonly timer: Timer;
  /** When the lease of a hold that asks now has to end at the earliest, so that a request does not shorten the lease. */
  readonly leaseEnd: LeaseClockMs;
  /** Gives the lock to the waiter, if it may follow. */
  readonly follow: (waiter: W) => boolean;
}

/** The clients with kept locks. One listener serves all of them: Node.js warns of a leak from the eleventh on. */
const keeping = new Set<{ releaseAll(): void }>();
const releaseAtExit = (): void => {
  for (const each of [...keeping]) each.releaseAll();
};

/** The kept locks of one client, by key. */
export class KeptLocks<W> {
  readonly #kept = new Map<string, Kept<W>>();

  constructor(private readonly clock: LeaseClock) {}

  has(key: string): boolean {
    return this.#kept.has(key);
  }

  add(tenure: KeptTenure, { until, leaseEnd }: KeptTimes, follow: (waiter: W) => boolean): void {
    const timer = this.clock.setTimer(until, () => void this.release(tenure.protocol.key));
    this.#kept.set(tenure.protocol.key, { tenure, timer, leaseEnd, follow });
    if (keeping.size === 0) process.on('beforeExit', releaseAtExit);
    keeping.add(this);
  }

  /** Gives a kept lock to the waiter. Returns `false` if there is none, or if the waiter may not follow. */
  follow(key: string, waiter: W): boolean {
    const kept = this.#kept.get(key);
    return kept?.follow(waiter) === true;
  }

  /** Resolves when Redis has answered. */
  async release(key: string): Promise<void> {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    this.forget(kept.tenure);
    await kept.tenure.releaseWithoutCaller(kept.leaseEnd);
  }

  releaseAll(): void {
    for (const key of [...this.#kept.keys()]) void this.release(key);
  }

  /** Called when the tenure is no longer kept: it has ended, or a section has followed it. */
  forget(tenure: KeptTenure): void {
    const { key } = tenure.protocol;
    const kept = this.#kept.get(key);
    if (kept?.tenure !== tenure) return;
    kept.timer.cancel();
    this.#kept.delete(key);
    if (this.#kept.size > 0) return;
    keeping.delete(this);
    if (keeping.size === 0) process.off('beforeExit', releaseAtExit);
  }
}

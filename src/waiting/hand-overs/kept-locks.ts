/*
 * Kept locks (`handOff.keep`): a lock whose last section has ended, and that no call of this client waits for, stays with
 * its owner for a while. A call that comes meanwhile enters without a request, by the rules of local-hand-over.ts.
 * Otherwise the client releases the lock: at the end of that time, for a call that may not follow, at close(), and when
 * the process has nothing else to do. Readers hold a lock together, so several of its owners may be kept.
 */
import type { LeaseClock, LeaseClockMs, Timer } from '../../clock.js';
import type { LockProtocol } from '../../protocols/lock-protocol.js';

/** A tenure without a caller that still has the lock. */
interface KeptTenure {
  readonly protocol: LockProtocol;
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
  /** A successor's lease has to end no sooner than this: its request must not shorten the lease in Redis. */
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
  /** In the order in which they were kept. All tenures of one key have the same side of the lock. */
  readonly #kept = new Map<string, Kept<W>[]>();

  constructor(private readonly clock: LeaseClock) {}

  has(key: string): boolean {
    return this.#kept.has(key);
  }

  /**
   * How a call relates to the kept owners of its key. `none`: there are none. `beside`: it may hold the lock together with
   * them. Otherwise they keep it out, and have the same or the other side of the lock.
   */
  relationTo({ key, side, concurrent }: LockProtocol): 'none' | 'beside' | 'same side' | 'other side' {
    const first = this.#kept.get(key)?.[0];
    if (first === undefined) return 'none';
    if (first.tenure.protocol.side !== side) return 'other side';
    return concurrent ? 'beside' : 'same side';
  }

  add(tenure: KeptTenure, { until, leaseEnd }: KeptTimes, follow: (waiter: W) => boolean): void {
    const { key } = tenure.protocol;
    const timer = this.clock.setTimer(until, () => void this.#end(kept));
    const kept: Kept<W> = { tenure, timer, leaseEnd, follow };
    const others = this.#kept.get(key);
    if (others === undefined) this.#kept.set(key, [kept]);
    else others.push(kept);
    if (keeping.size === 0) process.on('beforeExit', releaseAtExit);
    keeping.add(this);
  }

  /**
   * Gives a kept lock to the waiter. Returns `false` if there is none, or if the waiter may not follow. The newest owner
   * is used first, so that surplus owners are not used again and reach the end of their time.
   */
  follow(key: string, waiter: W): boolean {
    const kept = this.#kept.get(key) ?? [];
    for (let i = kept.length - 1; i >= 0; i -= 1) if (kept[i]?.follow(waiter) === true) return true;
    return false;
  }

  /** Resolves when Redis has answered. */
  async release(key: string): Promise<void> {
    await Promise.all([...(this.#kept.get(key) ?? [])].map((kept) => this.#end(kept)));
  }

  #end({ tenure, leaseEnd }: Kept<W>): Promise<void> {
    this.forget(tenure);
    return tenure.releaseWithoutCaller(leaseEnd);
  }

  releaseAll(): void {
    for (const key of [...this.#kept.keys()]) void this.release(key);
  }

  /** Called when the tenure is no longer kept: it has ended, or a section has followed it. */
  forget(tenure: KeptTenure): void {
    const { key } = tenure.protocol;
    const kept = this.#kept.get(key);
    const at = kept?.findIndex((each) => each.tenure === tenure) ?? -1;
    if (kept === undefined || at < 0) return;
    for (const { timer } of kept.splice(at, 1)) timer.cancel();
    if (kept.length > 0) return;
    this.#kept.delete(key);
    if (this.#kept.size > 0) return;
    keeping.delete(this);
    if (keeping.size === 0) process.off('beforeExit', releaseAtExit);
  }
}

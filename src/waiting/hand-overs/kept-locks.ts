/*
 * Kept locks (`handOff.keep`): a lock whose last section has ended, and that no call of this client waits for, stays with
 * its owner for a while. A call that comes meanwhile enters without a request, by the rules of local-hand-over.ts.
 * Otherwise the client releases the lock: at the end of that time, for a call that may not follow, at close(), and when
 * the process has nothing else to do.
 */
import type { LeaseClock, LeaseClockMs, Timer } from '../../clock.js';
import type { HoldTerms } from '../../holding/hold-record.js';
import type { LockProtocol } from '../../protocols/lock-protocol.js';

/** A tenure without a caller that still has the lock. */
interface KeptTenure {
  readonly protocol: LockProtocol;
  /** Releases the lock, or hands it over to a waiter of this client. A single try goes behind that request. */
  releaseKept(leaseEnd: LeaseClockMs): Promise<void>;
}

/** Until when a tenure is kept, and when the lease of the hold that Redis confirmed ends. */
export interface KeptTimes {
  readonly until: LeaseClockMs;
  readonly leaseEnd: LeaseClockMs;
}

/** A call that may start or continue a streak. */
export interface FollowingCall {
  readonly protocol: LockProtocol;
  readonly terms: Pick<HoldTerms, 'leaseMs' | 'isMember'>;
}

/** The rules for the calls that want the lock of one kept tenure. */
interface Followers<W> {
  /** Whether the call may enter the lock without a request. */
  mayFollow(call: FollowingCall): boolean;
  /** Gives the lock to the waiter. */
  follow(waiter: W): void;
}

interface Kept<W> {
  readonly tenure: KeptTenure;
  readonly timer: Timer;
  /** A successor's lease has to end no sooner than this: its request must not shorten the lease in Redis. */
  readonly leaseEnd: LeaseClockMs;
  readonly followers: Followers<W>;
}

/** The clients with kept locks. One listener serves all of them: Node.js warns of a leak from the eleventh on. */
const keeping = new Set<{ releaseAll(): void }>();
const releaseAtExit = (): void => {
  for (const each of [...keeping]) each.releaseAll();
};

/** The kept locks of one client, by key. */
export class KeptLocks<W extends FollowingCall> {
  readonly #kept = new Map<string, Kept<W>>();

  constructor(private readonly clock: LeaseClock) {}

  has(key: string): boolean {
    return this.#kept.has(key);
  }

  /** Whether a call asks for the side of the lock that is kept. */
  isSameSide({ key, side }: LockProtocol): boolean {
    return this.#kept.get(key)?.tenure.protocol.side === side;
  }

  add(tenure: KeptTenure, { until, leaseEnd }: KeptTimes, followers: Followers<W>): void {
    const { key } = tenure.protocol;
    const timer = this.clock.setTimer(until, () => void this.release(key));
    this.#kept.set(key, { tenure, timer, leaseEnd, followers });
    if (keeping.size === 0) process.on('beforeExit', releaseAtExit);
    keeping.add(this);
  }

  /** Gives the kept lock to the waiter. Returns `false` if none is kept, or if the waiter may not follow. */
  follow(key: string, waiter: W): boolean {
    const kept = this.#kept.get(key);
    if (kept?.followers.mayFollow(waiter) !== true) return false;
    kept.followers.follow(waiter);
    return true;
  }

  /** Resolves when Redis has answered. */
  async release(key: string): Promise<void> {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    this.ended(kept.tenure);
    await kept.tenure.releaseKept(kept.leaseEnd);
  }

  releaseAll(): void {
    for (const key of [...this.#kept.keys()]) void this.release(key);
  }

  /** The tenure is no longer kept: a call follows it, it has ended, or its release begins. */
  ended(tenure: KeptTenure): void {
    const { key } = tenure.protocol;
    const kept = this.#kept.get(key);
    if (kept?.tenure !== tenure) return;
    this.#kept.delete(key);
    kept.timer.cancel();
    if (this.#kept.size > 0) return;
    keeping.delete(this);
    if (keeping.size === 0) process.off('beforeExit', releaseAtExit);
  }
}

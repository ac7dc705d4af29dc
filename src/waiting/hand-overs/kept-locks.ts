/*
 * Kept locks (`handOff.keep`): a lock whose last section has ended, and that no call of this client waits for, stays with
 * its owner for a while. A call that comes meanwhile enters without a request, by the rules of local-hand-over.ts.
 * Otherwise the client releases the lock: at the end of that time, for a call that may not follow, at close(), and when
 * the process has nothing else to do. Readers hold a lock together, so several of its owners may be kept. The members of a
 * hold of several locks are kept together (kept-together.ts).
 */
import type { LeaseClock, LeaseClockMs, Timer } from '../../clock.js';
import type { HoldTerms } from '../../holding/hold-record.js';
import type { KeptTogether } from '../../holding/kept-together.js';
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

/** What a call asks for that may follow a tenure without a request. */
export interface FollowingCall {
  readonly protocol: LockProtocol;
  readonly terms: Pick<HoldTerms, 'leaseMs' | 'drift' | 'joint'>;
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
  /** The other locks that are kept only as long as this one. */
  readonly together: KeptTogether | undefined;
  readonly release: () => void;
}

/** The clients with kept locks. One listener serves all of them: Node.js warns of a leak from the eleventh on. */
const keeping = new Set<{ releaseAll(): void }>();
const releaseAtExit = (): void => {
  for (const each of [...keeping]) each.releaseAll();
};

/** The kept locks of one client, by key. */
export class KeptLocks<W extends FollowingCall> {
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

  add(
    tenure: KeptTenure,
    { until, leaseEnd }: KeptTimes,
    followers: Followers<W>,
    together: KeptTogether | undefined,
  ): void {
    const { key } = tenure.protocol;
    const release = (): void => void this.#end(kept);
    const timer = this.clock.setTimer(until, release);
    const kept: Kept<W> = { tenure, timer, leaseEnd, followers, together, release };
    together?.add(release);
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
    const kept = this.#following(key, waiter);
    kept?.followers.follow(waiter);
    return kept !== undefined;
  }

  /** Whether a lock is kept that this call may enter without a request. */
  mayFollow(key: string, call: FollowingCall): boolean {
    return this.#following(key, call) !== undefined;
  }

  #following(key: string, call: FollowingCall): Kept<W> | undefined {
    return this.#kept.get(key)?.findLast(({ followers }) => followers.mayFollow(call));
  }

  /** Resolves when Redis has answered. */
  async release(key: string): Promise<void> {
    await Promise.all([...(this.#kept.get(key) ?? [])].map((kept) => this.#end(kept)));
  }

  #end({ tenure, leaseEnd }: Kept<W>): Promise<void> {
    this.ended(tenure);
    return tenure.releaseKept(leaseEnd);
  }

  releaseAll(): void {
    for (const key of [...this.#kept.keys()]) void this.release(key);
  }

  /** The tenure has ended, or its release begins. The locks that were kept together with it are released. */
  ended(tenure: KeptTenure): void {
    this.forget(tenure)?.release();
  }

  /** The tenure is no longer kept. Returns the locks that were kept together with it, if there were any. */
  forget(tenure: KeptTenure): KeptTogether | undefined {
    const { key } = tenure.protocol;
    const all = this.#kept.get(key);
    const kept = all?.find((each) => each.tenure === tenure);
    if (all === undefined || kept === undefined) return undefined;
    all.splice(all.indexOf(kept), 1);
    kept.timer.cancel();
    kept.together?.delete(kept.release);
    if (all.length === 0) this.#kept.delete(key);
    if (this.#kept.size === 0) {
      keeping.delete(this);
      if (keeping.size === 0) process.off('beforeExit', releaseAtExit);
    }
    return kept.together;
  }
}

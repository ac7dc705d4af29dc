/*
 * Local hand-over (`handOff.local`): sections of one process follow one another under the same owner in Redis, without a
 * request. A streak starts when Redis confirms an owner: with its reply to an acquire or to a scripted hand-over. That
 * request asks for `local` ms more than the lease of its hold. Another section may follow under this owner
 *
 * 1. if the tenure before has sent only the request that granted it, and no attempt of that request can still run;
 * 2. if the hold of the new section ends, by its own lease, no later than the lease that Redis has confirmed, and no
 *    sooner than other clients know;
 * 3. if the connection is the one that was up at the confirmation, and the clock has not jumped since;
 * 4. for `local` ms after the request was sent, within the limits of hand-overs (hand-off-streak.ts);
 * 5. for a kind that allows it (`followsLocally` of the protocol), for the same kind of exclusive lock, and not for a member
 *    of a hold of several locks;
 * 6. while no forced unlock by this client is pending, and until Redis gives the lock to another owner of this client.
 *
 * tests/verification/model/LocalHandOver.tla models these rules.
 */
import type { JumpedMs, LeaseClock, LeaseClockMs, MonotonicMs } from '../../clock.js';
import { deadlineOf } from '../../holding/hold-record.js';
import type { Confirmation } from '../../holding/tenure-host.js';
import type { Tenure } from '../../holding/tenure.js';
import type { ResolvedOptions } from '../../options.js';
import type { LockProtocol } from '../../protocols/lock-protocol.js';
import type { HandOffReply } from '../../redis/scripts/replies.js';
import type { HandOffStreak } from './hand-off-streak.js';
import type { FollowingCall, KeptLocks, KeptTimes } from './kept-locks.js';
import { LOCAL_TURN_MS } from '../../timing.js';

/** The services of the client that local hand-overs use. */
export interface LocalServices {
  readonly clock: LeaseClock;
  readonly options: { readonly handOff: ResolvedOptions['handOff'] };
  /** Identifies the connection for this key from the moment when it is ready until it closes. */
  sessionOf(key: string): object | undefined;
}

/** A line of one lock, as the end of its streaks needs it. */
interface Holders {
  readonly holders: Iterable<Pick<Tenure, 'confirmation'>>;
}

/** The kept locks of the client. */
type Releasing = Pick<KeptLocks<never>, 'release'>;

/** Whether sections may follow this one without a request, and this one may follow others. */
const isAlone = ({ protocol, terms }: FollowingCall): boolean => protocol.followsLocally && !terms.isMember;

/** Time, in ms, by which a request that may start a streak asks for more than the lease of its hold. */
export const extraLeaseMs = (handOff: ResolvedOptions['handOff'], call: FollowingCall): number =>
  handOff !== undefined && isAlone(call) ? handOff.localMs : 0;

/** Stands in for the reply of Redis when a section follows without a request. */
export const FOLLOWED: HandOffReply & { kind: 'handed' } = { kind: 'handed', token: undefined };

/** The local hand-overs of one client. */
export class LocalHandOvers {
  /** Number of pending forced unlocks, by key. */
  readonly #forcing = new Map<string, number>();
  /** When the other events of the process had their turn last. */
  #yieldedAt: MonotonicMs = 0;

  constructor(private readonly services: LocalServices) {}

  /** Redis confirmed the owner by its reply to a request that was sent at `sentAt`. */
  confirmationOf(call: FollowingCall, sentAt: LeaseClockMs, jumped: JumpedMs): Confirmation | undefined {
    const extraMs = extraLeaseMs(this.services.options.handOff, call);
    const session = extraMs === 0 ? undefined : this.services.sessionOf(call.protocol.key);
    return session === undefined ? undefined : { sentAt, leaseMs: call.terms.leaseMs + extraMs, jumped, session };
  }

  /**
   * Redis has given the lock to a new owner of this client, so the earlier owners have lost it, although no reply has said
   * so. No section follows them without a request. `lines`: the lines of the owners that the new owner excludes.
   */
  endStreaks(kept: Releasing, protocol: LockProtocol, lines: readonly (Holders | undefined)[]): void {
    for (const line of lines) for (const tenure of line?.holders ?? []) tenure.confirmation = undefined;
    void kept.release(protocol.key);
  }

  /** Until when the tenure may stay without a hold. `undefined`: it has to be released. */
  keepsUntil({ confirmation, hasOnlyAcquired, protocol }: Tenure, streak: HandOffStreak): KeptTimes | undefined {
    const { clock, options, sessionOf } = this.services;
    const { localMs = 0, keepMs = 0 } = options.handOff ?? {};
    if (keepMs === 0 || confirmation === undefined || !hasOnlyAcquired) return undefined;
    if (!streak.withinLocalLimit()) return undefined;
    const { sentAt, leaseMs, session } = confirmation;
    if (sessionOf(protocol.key) !== session || this.#forcing.has(protocol.key)) return undefined;
    const now = clock.now();
    const until = Math.min(now + keepMs, sentAt + localMs, streak.endsAt);
    return until > now ? { until, leaseEnd: sentAt + leaseMs - localMs } : undefined;
  }

  /** Whether a hold with these terms may follow the tenure under the same owner now. */
  mayFollow({ confirmation, hasOnlyAcquired, protocol }: Tenure, next: FollowingCall): boolean {
    const { clock, options, sessionOf } = this.services;
    const { terms } = next;
    if (confirmation === undefined || !hasOnlyAcquired) return false;
    if (!isAlone(next) || next.protocol.side !== protocol.side) return false;
    const now = clock.now();
    const { sentAt, leaseMs, jumped, session } = confirmation;
    const localMs = options.handOff?.localMs ?? 0;
    return (
      now < sentAt + localMs &&
      deadlineOf(now, terms.leaseMs) <= deadlineOf(sentAt, leaseMs) &&
      // Other clients sleep until the end of the lease. The next request must not end it sooner.
      now + terms.leaseMs >= sentAt + leaseMs - localMs &&
      clock.jumped === jumped &&
      sessionOf(protocol.key) === session &&
      !this.#forcing.has(protocol.key)
    );
  }

  /**
   * Resolves at once, or after the other events of the process had their turn. Sections that wait for nothing else would
   * otherwise block the event loop for as long as a streak.
   */
  async yieldToEvents(): Promise<void> {
    const now = this.services.clock.clock.monotonic();
    if (now - this.#yieldedAt < LOCAL_TURN_MS) return;
    this.#yieldedAt = now;
    await new Promise(setImmediate);
  }

  /** Runs a forced unlock. Redis may free the lock before the reply arrives, so no section follows locally meanwhile. */
  async whileForcing<T>(key: string, forceUnlock: () => Promise<T>): Promise<T> {
    this.#forcing.set(key, (this.#forcing.get(key) ?? 0) + 1);
    try {
      return await forceUnlock();
    } finally {
      const left = (this.#forcing.get(key) ?? 0) - 1;
      if (left > 0) this.#forcing.set(key, left);
      else this.#forcing.delete(key);
    }
  }
}

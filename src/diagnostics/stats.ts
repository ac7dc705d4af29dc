import type { LockKind, MissOutcome } from '../events.js';

/** Number of acquisitions by their outcome. */
export type AcquisitionCounts = Record<'granted' | MissOutcome, number>;

/**
 * Counters of a client since its creation, as `client.stats()` returns them. Nested holds and the members of a multi-lock
 * or RedLock count one by one, at the client of the member.
 */
export interface ClientStats {
  /** Acquisitions that have ended, by kind and outcome. A kind that the client never acquired is absent. */
  readonly acquisitions: Partial<Record<LockKind, Readonly<AcquisitionCounts>>>;
  /** Acquisitions that began to wait, because the lock was busy or other calls waited before. */
  readonly waits: number;
  /** Grants that another owner of this client passed on, without a moment in which the lock was free. */
  readonly handOvers: number;
  /** Renewals that Redis confirmed: one for each lock and renewal. */
  readonly renewals: number;
  /** Renewals that failed. The client repeats them. */
  readonly renewalFailures: number;
  /** Holds that were lost. */
  readonly losses: number;
  /** Errors of connections to Redis. */
  readonly connectionErrors: number;
  /** Open holds of locks now. Permits are not included. */
  readonly holding: number;
  /** Acquisitions now that have no outcome yet: calls that wait, or whose request is pending. */
  readonly waiting: number;
}

/** The holds of one owner, as far as statistics count them. */
interface CountedTenure {
  readonly holds: readonly { readonly leftUntil: number | undefined }[];
}

/** The counters behind {@link ClientStats}. They are always on, so each is one addition. */
export class Counters {
  waits = 0;
  handOvers = 0;
  renewals = 0;
  renewalFailures = 0;
  losses = 0;
  connectionErrors = 0;
  waiting = 0;
  readonly #acquisitions: Partial<Record<LockKind, AcquisitionCounts>> = {};

  ended(kind: LockKind, outcome: keyof AcquisitionCounts): void {
    const counts = (this.#acquisitions[kind] ??= { granted: 0, busy: 0, aborted: 0, failed: 0 });
    counts[outcome] += 1;
  }

  /** `tenures`: those of the client. Redis keeps a hold with `leftUntil` for a while after its release. */
  snapshot(tenures: Iterable<CountedTenure>): ClientStats {
    let holding = 0;
    for (const { holds } of tenures) for (const { leftUntil } of holds) if (leftUntil === undefined) holding += 1;
    const { waits, handOvers, renewals, renewalFailures, losses, connectionErrors, waiting } = this;
    const acquisitions = structuredClone(this.#acquisitions);
    return { acquisitions, waits, handOvers, renewals, renewalFailures, losses, connectionErrors, holding, waiting };
  }
}

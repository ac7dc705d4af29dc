/*
 * The release of one hold among several, of a hold whose tenure has a pending request, of a hold whose lease Redis has to
 * confirm, or of a hold that Redis keeps for some time after its release (`after`). tenure.ts releases the only hold of an
 * idle tenure in a shorter way.
 */
import { LockLostError, RedisUnavailableError, type LockError, type LossReason } from '../errors.js';
import type { LeaseClock, LeaseClockMs } from '../clock.js';
import type { HoldRecord } from './hold-record.js';
import { countOpen } from './left-holds.js';
import type { Lease } from './lease.js';
import { unsent, type RequestTurns } from './request-turns.js';

/** The tenure, as a release in turn uses it. */
export interface ReleasingTenure {
  readonly services: { readonly clock: LeaseClock };
  readonly state: 'held' | 'kept' | 'releasing' | 'over';
  holds: HoldRecord[];
  readonly lease: Lease;
  readonly turns: RequestTurns;
  /** A request of the tenure is pending. */
  readonly busy: boolean;
  throwIfLost(): void;
  lose(reason: LossReason): LockLostError;
  deadlineMoved(): void;
  /**
   * Frees the lock, or hands it over. `deadline`: lease clock time, in ms, up to which the released holds surely had
   * it.
   */
  releaseOrHandOver(hold: HoldRecord | undefined, deadline: LeaseClockMs): Promise<void>;
  /** Returns the error of a failed release. Without open holds, the client releases the lock in the background. */
  settleFailedRelease(error: LockError, hold: HoldRecord, deadline: LeaseClockMs): LockError;
  /** Redis keeps the holds that were left to end, and the client has no other hold of the owner. */
  leave(): void;
  reportFailedRelease(hold: HoldRecord, error: unknown): never;
  reportReleased(hold?: HoldRecord, holdCount?: number): void;
}

export class ReleasesInTurn {
  /** Number of releases that wait for their turn, or for the reply to a partial release. */
  #pending = 0;
  /** The end of the tenure. Releases that began together share it. */
  #ending: Promise<void> | undefined;

  constructor(private readonly tenure: ReleasingTenure) {}

  get pending(): number {
    return this.#pending;
  }

  /** `afterMs`: 0, or the time in ms for which Redis keeps the hold after the release. */
  async release(hold: HoldRecord, afterMs: number): Promise<void> {
    const { tenure } = this;
    const { lease } = tenure;
    const unconfirmed = lease.check() === 'unconfirmed' ? await lease.confirm() : undefined;
    if (hold.loss !== undefined) {
      hold.close();
      throw hold.loss;
    }
    const deadline = lease.deadline;
    // Close the hold before the request is sent. A call that the caller makes without awaiting the release is then
    // outside of the hold.
    if (afterMs === 0) tenure.holds.splice(tenure.holds.indexOf(hold), 1);
    else hold.leaveFor(afterMs, tenure.services.clock.now());
    hold.close();
    tenure.deadlineMoved(); // the other holds may have less time left
    const giveUp = (error: RedisUnavailableError): never => {
      throw tenure.settleFailedRelease(error, hold, deadline);
    };
    const failed = (error: unknown): never => tenure.reportFailedRelease(hold, error);
    // The confirmation has used up the command deadline, so the release sends no request in the foreground.
    if (unconfirmed instanceof RedisUnavailableError)
      return tenure.turns
        .take(() => Promise.reject(tenure.settleFailedRelease(unsent(unconfirmed), hold, deadline)), giveUp)
        .catch(failed);
    if (!tenure.busy && tenure.holds.length === 0) return tenure.releaseOrHandOver(hold, deadline);
    this.#pending += 1;
    return tenure.turns
      .take((settleBy) => this.#releaseNow(hold, deadline, settleBy), giveUp)
      .catch(failed)
      .finally(() => this.#settled());
  }

  /** Frees a lock that belongs to no hold: the other holds were lost before the last pending release had settled. */
  #settled(): Promise<void> | undefined {
    this.#pending -= 1;
    const { tenure } = this;
    const heldByNone = (): boolean => tenure.state === 'held' && tenure.holds.length + this.#pending === 0;
    if (!heldByNone()) return undefined;
    const ended = tenure.turns.take(() =>
      heldByNone() ? tenure.releaseOrHandOver(undefined, Infinity) : Promise.resolve(),
    );
    return ended.catch((error: unknown) => {
      if (!(error instanceof LockLostError)) throw error;
    });
  }

  async #releaseNow(hold: HoldRecord, deadline: LeaseClockMs, settleBy: LeaseClockMs): Promise<void> {
    const { tenure } = this;
    const { lease } = tenure;
    if (tenure.holds.length > 0) await tenure.turns.whenNoDoubt();
    if (this.#ending !== undefined) return this.#ending.then(() => tenure.reportReleased(hold));
    tenure.throwIfLost();
    // If the other holds have expired, this check reports their loss before another owner can acquire the lock, and
    // the release frees the lock. After a jump of the clock Redis has to confirm the tenure first.
    while (tenure.holds.length > 0 && lease.check() === 'unconfirmed') {
      const error = await lease.confirm();
      tenure.throwIfLost();
      if (error instanceof RedisUnavailableError) throw tenure.settleFailedRelease(unsent(error), hold, deadline);
      if (error !== undefined) throw error;
    }
    const { clock } = tenure.services;
    const now = clock.now();
    tenure.holds = tenure.holds.filter(({ leftUntil = Infinity }) => leftUntil > now);
    if (tenure.holds.length === 0) return (this.#ending = tenure.releaseOrHandOver(hold, deadline));
    const holdCount = countOpen(tenure.holds);
    const request = await lease.setRemaining(settleBy);
    if (request.error !== undefined) {
      // The failed release needs no correction, because the next request carries an absolute count again.
      return tenure.turns.failed(request).catch((error: unknown) => {
        throw tenure.settleFailedRelease(error as LockError, hold, deadline);
      });
    }
    // A repeat finds no owner: an earlier attempt has run, and the holds that Redis kept have ended.
    const hasEnded =
      request.doubt !== undefined && tenure.holds.every(({ leftUntil = Infinity }) => leftUntil <= clock.now());
    if (request.reply?.kind === 'gone' && !hasEnded) throw tenure.lose('gone');
    tenure.reportReleased(hold, holdCount);
    // A release that began in between still has its own request to send.
    const isLast = countOpen(tenure.holds) === 0 && this.#pending === 1;
    if (isLast && tenure.holds.length > 0) tenure.leave();
  }
}

/*
 * The long way of a release: of one hold among several, or of a hold whose tenure has another request under way, or a
 * lease that Redis has to confirm. The release of the only hold goes the short way (tenure.ts).
 */
import { LockLostError, RedisUnavailableError, type LockError, type LossReason } from '../errors.js';
import type { HoldRecord } from './hold-record.js';
import type { Lease } from './lease.js';
import { unsent, type RequestTurns } from './request-turns.js';

/** What a release reads of its tenure, and how it ends the tenure or reports to it. */
export interface ReleasingTenure {
  readonly state: 'held' | 'releasing' | 'over';
  readonly holds: HoldRecord[];
  readonly lease: Lease;
  readonly turns: RequestTurns;
  /** A request of the tenure is under way. */
  readonly busy: boolean;
  throwIfLost(): void;
  lose(reason: LossReason): LockLostError;
  deadlineMoved(): void;
  /** Frees the lock, or hands it over. `deadline`: up to when the holds that are released surely had it. */
  end(hold: HoldRecord | undefined, deadline: number): Promise<void>;
  /** What a release that failed rejects with. Without open holds the lock is released in the background. */
  unreleased(error: LockError, hold: HoldRecord, deadline: number): LockError;
  failedToLeave(hold: HoldRecord, error: unknown): never;
  tellEnded(hold?: HoldRecord, holdCount?: number): void;
}

export class ReleasesInTurn {
  /** Releases that wait for their turn, or for the answer to a partial release. */
  #pending = 0;
  /** Releases that were begun together end the tenure together. */
  #ending: Promise<void> | undefined;

  constructor(private readonly tenure: ReleasingTenure) {}

  get pending(): number {
    return this.#pending;
  }

  async release(hold: HoldRecord): Promise<void> {
    const { tenure } = this;
    const { lease } = tenure;
    const unconfirmed = lease.check() === 'unconfirmed' ? await lease.confirm() : undefined;
    if (hold.loss !== undefined) {
      hold.close();
      throw hold.loss;
    }
    const deadline = lease.deadline;
    // Closed before anything is sent: what the caller does next without awaiting the release is outside of the hold.
    tenure.holds.splice(tenure.holds.indexOf(hold), 1);
    hold.close();
    tenure.deadlineMoved(); // what the others have left may be less
    const giveUp = (error: RedisUnavailableError): never => {
      throw tenure.unreleased(error, hold, deadline);
    };
    const failed = (error: unknown): never => tenure.failedToLeave(hold, error);
    // The confirmation has taken a whole command deadline: the release itself does not take another.
    if (unconfirmed instanceof RedisUnavailableError)
      return tenure.turns
        .take(() => Promise.reject(tenure.unreleased(unsent(unconfirmed), hold, deadline)), giveUp)
        .catch(failed);
    if (!tenure.busy && tenure.holds.length === 0) return tenure.end(hold, deadline);
    this.#pending += 1;
    return tenure.turns
      .take((settleBy) => this.#releaseNow(hold, deadline, settleBy), giveUp)
      .catch(failed)
      .finally(() => this.#settled());
  }

  /** If the other holds were lost before the last release had settled, what the key has left belongs to no hold. */
  #settled(): Promise<void> | undefined {
    this.#pending -= 1;
    const { tenure } = this;
    const heldByNone = (): boolean => tenure.state === 'held' && tenure.holds.length + this.#pending === 0;
    if (!heldByNone()) return undefined;
    const ended = tenure.turns.take(() => (heldByNone() ? tenure.end(undefined, Infinity) : Promise.resolve()));
    return ended.catch((error: unknown) => {
      if (!(error instanceof LockLostError)) throw error;
    });
  }

  async #releaseNow(hold: HoldRecord, deadline: number, settleBy: number): Promise<void> {
    const { tenure } = this;
    const { lease } = tenure;
    if (tenure.holds.length > 0) await tenure.turns.whenNoStray();
    if (this.#ending !== undefined) return this.#ending.then(() => tenure.tellEnded(hold));
    tenure.throwIfLost();
    // If the other holds have nothing left, this look reports their loss before anybody else can be inside, and the
    // lock is freed. After a jump of the clock Redis says what is left.
    while (tenure.holds.length > 0 && lease.check() === 'unconfirmed') {
      const error = await lease.confirm();
      tenure.throwIfLost();
      if (error instanceof RedisUnavailableError) throw tenure.unreleased(unsent(error), hold, deadline);
      if (error !== undefined) throw error;
    }
    if (tenure.holds.length === 0) return (this.#ending = tenure.end(hold, deadline));
    const holdCount = tenure.holds.length;
    const request = await lease.setRemaining(settleBy);
    if (request.error !== undefined) {
      // No undoing: the next request carries an absolute count again.
      return tenure.turns.failed(request).catch((error: unknown) => {
        throw tenure.unreleased(error as LockError, hold, deadline);
      });
    }
    if (request.reply === 'gone') throw tenure.lose('gone');
    tenure.tellEnded(hold, holdCount);
  }
}

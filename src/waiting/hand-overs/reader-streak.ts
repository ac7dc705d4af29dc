/*
 * Read holds that follow kept ones (`handOff.keep`). Readers do not wait for one another, so they need no hand-over: each
 * read call sends its try at once. But a read call that follows a kept reader sends no request.
 *
 * Readers hold the lock together. The kept owners of several calls, or of several clients, could overlap without end, and
 * a writer elsewhere would never find the lock free. So the client keeps readers only for `local` ms after Redis has replied
 * that no other client waits. The time counts from the question. A writer that waits from then on ends the reads of all
 * clients within that time. A writer that waits in this client ends them at once (kept-locks.ts).
 *
 * tests/verification/model/KeptReaders.tla models these rules.
 */
import type { LeaseClock, LeaseClockMs } from '../../clock.js';
import type { ResolvedHandOff } from '../../options.js';
import type { LockProtocol } from '../../protocols/lock-protocol.js';
import type { OwnSubscribers } from '../../redis/scripts/script.js';
import { HandOffStreak } from './hand-off-streak.js';

/** Returns the streak of one line. `concurrent`: several owners of the line can hold the lock together. */
export const streakOf = (
  { clock, options }: StreakServices,
  concurrent: boolean,
  ownSubscribers: (protocol: LockProtocol) => OwnSubscribers,
): HandOffStreak =>
  concurrent ? new ReaderStreak(options.handOff, clock, ownSubscribers) : new HandOffStreak(options.handOff, clock);

/** The services of the client that a streak uses. */
interface StreakServices {
  readonly clock: LeaseClock;
  readonly options: { readonly handOff: ResolvedHandOff | undefined };
}

/** Limits the reads of one line that stay without a request. */
class ReaderStreak extends HandOffStreak {
  #endsAt: LeaseClockMs = 0;
  #isAsking = false;
  /** When the client may ask Redis again, after the reply that other clients wait. */
  #askAt: LeaseClockMs = 0;

  constructor(
    limit: ResolvedHandOff | undefined,
    clock: LeaseClock,
    /** Number of subscribers of the channel that belong to this client. */
    private readonly ownSubscribers: (protocol: LockProtocol) => OwnSubscribers,
  ) {
    super(limit, clock);
  }

  override get endsAt(): LeaseClockMs {
    return this.#endsAt;
  }

  /** A grant or release of one reader does not end the streak, because the other readers go on. */
  override reset(): void {
    // Only the reply of Redis to `othersWait` starts a new streak.
  }

  override start(): void {
    // A streak starts with the question to Redis, not with a hand-over.
  }

  override withinLocalLimit(): boolean {
    return this.clock.now() < this.#endsAt && super.withinLocalLimit();
  }

  /** Asks Redis whether other clients wait, unless a streak goes on. The read does not wait for the answer. */
  override granted(protocol: LockProtocol): void {
    const { localMs = 0, keepMs = 0, maxTimeMs = 0 } = this.limit ?? {};
    const lastsMs = Math.min(localMs, maxTimeMs);
    const now = this.clock.now();
    if (keepMs === 0 || lastsMs === 0 || this.#isAsking || now < this.#askAt || this.withinLocalLimit()) return;
    const request = protocol.othersWait?.(this.ownSubscribers(protocol));
    this.#isAsking = request !== undefined;
    request?.onDone(() => {
      this.#isAsking = false;
      this.#askAt = now + lastsMs;
      if (request.reply !== 'none') return;
      this.#askAt = 0;
      this.#endsAt = now + lastsMs;
      this.noOthers();
      super.start();
    });
  }
}

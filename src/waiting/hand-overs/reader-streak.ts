/*
 * Read holds that follow kept ones (`handOff.keep`). Readers do not wait for one another, so there is nothing to hand
 * over between them: each read call sends its try at once. But a kept reader saves the requests of the next one.
 *
 * Readers hold the lock together. The kept owners of several calls, or of several clients, could overlap without end, and
 * a writer elsewhere would never find the lock free. So reads stay only for `local` ms after the client has asked Redis
 * whether other clients wait, and none did. A writer that waits from then on ends the reads of all clients within that
 * time. A writer that waits in this client ends them at once (kept-locks.ts).
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
  /** Other clients waited at the last question. The next one comes no sooner than this. */
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

  /** The grants and releases of one reader say nothing of the other readers. Only the answer of Redis starts a streak. */
  override reset(): void {
    // See above.
  }

  override start(): void {
    // The streak counts from the question.
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

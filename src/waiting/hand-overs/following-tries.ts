import type { LeaseClock } from '../../clock.js';
import type { ResolvedOptions } from '../../options.js';
import { HandOffStreak } from './hand-off-streak.js';

/** The services of the client that such tries use. */
export interface FollowingServices {
  readonly clock: LeaseClock;
  readonly options: { readonly handOff: ResolvedOptions['handOff'] };
  /** Whether acquires and releases of this key take the same connection, so that Redis runs them in order. */
  isOneConnection(key: string): boolean;
}

/** The line, as tries behind a release use it. */
interface Holders {
  /** The tenures of this client that have the lock. */
  readonly holders: Iterable<object> & { readonly size: number };
  /** Whether a tenure has the lock and is not being released in the background. */
  readonly isHeld: boolean;
}

/**
 * Tries that are sent right behind a release in the background, before its reply. Such a try is ahead of the
 * tries of all other clients, so the limits of hand-overs apply: only so many such tries may follow one another.
 */
export class FollowingTries {
  #streak: HandOffStreak | undefined;
  /** The tenure whose reply the head waits for, because the limit was reached. */
  #awaited: object | undefined;

  constructor(
    private readonly services: FollowingServices,
    private readonly line: Holders,
  ) {}

  /** Created for the first try behind a release in the background. */
  get #inARow(): HandOffStreak {
    return (this.#streak ??= new HandOffStreak(this.services.options.handOff, this.services.clock));
  }

  /**
   * Returns whether the head may try now: no tenure of this client keeps it out. Counts a try that follows a release in
   * the background.
   */
  takeTurn(head: { readonly protocol: { readonly key: string } } | undefined): boolean {
    if (this.line.holders.size === 0) {
      this.#streak?.reset();
      this.#awaited = undefined;
      return true;
    }
    if (head === undefined || this.line.isHeld || !this.services.isOneConnection(head.protocol.key)) return false;
    const [holder] = this.line.holders;
    if (this.#awaited === holder) return false;
    if (this.#awaited !== undefined) this.#inARow.reset();
    this.#awaited = undefined;
    this.#inARow.start();
    if (this.#inARow.pastFairShare()) {
      this.#awaited = holder;
      return false;
    }
    this.#inARow.count();
    return true;
  }
}

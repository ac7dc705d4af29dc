import type { LeaseClock, Timer } from '../clock.js';

/** The lease ends in Redis at some moment of its last millisecond; looking sooner would find it busy once more. */
const AFTER_LEASE_MS = 2;
/** A ttl of 0: the key is in its last millisecond. */
const TTL_ZERO_MS = 10;
/** After a lock was published the local head leaves others this much time from the message, or from the release. */
const YIELD_AFTER_MESSAGE_MS = 2;
export const YIELD_MS = 20;
const PAUSE_MS = { first: 100, longest: 1_000 };
/** Between looks of a head that is not subscribed yet, or cut off: nobody can tell it that the lock is free. */
const UNHEARD_MS = { least: 1_000, most: 2_000 };

/**
 * When the head of a line looks again whether the lock is free: at once while a wake-up is pending or the holder's ttl
 * is not known, else when the lease ends, or sooner while no message can arrive. All times are lease clock ms.
 */
export class RetrySchedule {
  /** A wake-up came since the last try was sent: the next head tries. */
  wakeUpPending = false;
  /** Of waiters that can hold together one was granted just now: the others try beside one another. */
  admitAll = false;
  /** When to look again without a wake-up; undefined: not known. */
  #lookAt: number | undefined;
  /** While nothing can be heard: when to look in between. */
  #unheardUntil = Infinity;
  /** The number of the last try that was sent. */
  newestTry = 0;
  #pausedUntil = 0;
  #pauseMs = PAUSE_MS.first;
  #yielding = false;
  /** The end of the pause, if others have it to themselves. */
  #yieldUntil = 0;
  #timer: Timer | undefined;
  #timerAt = Infinity;

  constructor(
    private readonly clock: LeaseClock,
    /** ms that the holder is taken to have where Redis does not know its lease. */
    private readonly unknownLeaseMs: number,
    private readonly line: { readonly waiterCount: number },
    private readonly step: () => void,
  ) {}

  /** Nothing says to wait. */
  get isDue(): boolean {
    return this.#pausedUntil === 0 && this.#lookAt === undefined;
  }

  get isKnown(): boolean {
    return this.#lookAt !== undefined;
  }

  /** Forgets the times that have passed by `now`. */
  advance(now: number): void {
    if (now < this.#pausedUntil) return;
    this.#pausedUntil = 0;
    if (this.#lookAt !== undefined && now >= this.#lookAt) this.#lookAt = undefined;
  }

  /** No waiter is to try before the end of the pause. */
  get isPaused(): boolean {
    return this.#pausedUntil > 0;
  }

  /** The end of the pause makes the next step. */
  wakeAfterPause(): void {
    // A waiter pauses where Redis is unavailable, so there may be no connection that keeps the process alive.
    this.wakeAt(this.#pausedUntil, true);
  }

  /** A try is about to be sent. Gives its number, to be told with what it teaches. */
  trying(inLine: boolean): number {
    if (inLine) {
      this.wakeUpPending = false;
      this.#lookAt = undefined;
      this.#yielding = false;
    }
    return ++this.newestTry;
  }

  /** The holder's lease, from the newest try; an older answer says nothing about now. */
  learn(ttl: number, sentAt: number, sequence: number): void {
    this.admitAll = false;
    if (sequence !== this.newestTry || this.line.waiterCount === 0) return;
    const waitMs = ttl < 0 ? this.unknownLeaseMs : ttl === 0 ? TTL_ZERO_MS : ttl + AFTER_LEASE_MS;
    this.#pauseMs = PAUSE_MS.first;
    this.#lookAt = Math.max(sentAt + waitMs, this.clock.now() + 1);
  }

  /** Of a kind that polls: nobody will tell it when the lock is free. */
  noLaterThan(at: number): void {
    if (this.#lookAt !== undefined) this.#lookAt = Math.min(this.#lookAt, at);
  }

  /** Until the lease ends. False: nothing has been heard for a while, and it is time for a look in between. */
  park(now: number, isHeard: boolean): boolean {
    const { least, most } = UNHEARD_MS;
    if (isHeard) this.#unheardUntil = Infinity;
    // Of many that are cut off together not all look at once.
    else if (this.#unheardUntil === Infinity) this.#unheardUntil = now + least + Math.random() * (most - least);
    if (now >= this.#unheardUntil) {
      this.#unheardUntil = Infinity;
      return false;
    }
    this.wakeAt(Math.min(this.#lookAt ?? Infinity, this.#unheardUntil));
    return true;
  }

  /** Somebody got what he came for. */
  granted(): void {
    this.#lookAt = undefined;
    this.#pauseMs = PAUSE_MS.first;
  }

  /** Redis is away, or answers too late: each time it is left alone for longer. */
  pause(): void {
    this.admitAll = false;
    this.#pausedUntil = this.clock.now() + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, PAUSE_MS.longest);
  }

  /** The lock was published: others get their chance before the local head, which is a round trip ahead of them. */
  yield(): void {
    this.#yielding = true;
    this.wakeUpPending = true;
    this.#pausedUntil = this.#yieldUntil = this.clock.now() + YIELD_MS;
  }

  /** A message came: the others have it, too. */
  published(): void {
    if (!this.#yielding) return;
    this.#yielding = false;
    this.#pausedUntil = this.#yieldUntil = this.clock.now() + YIELD_AFTER_MESSAGE_MS;
  }

  /** No other client is subscribed: the local head need not leave one a chance. */
  noOtherSubscriber(): void {
    if (this.#pausedUntil !== this.#yieldUntil) return;
    this.#yielding = false;
    this.#pausedUntil = 0;
    this.step();
  }

  wake(): void {
    this.wakeUpPending = true;
    this.step();
  }

  wakeAt(at: number, keepsAlive = false): void {
    if (this.#timerAt === at) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    const fire = (): void => {
      this.#timerAt = Infinity;
      this.step();
    };
    this.#timer = this.clock.setTimer(at, fire, keepsAlive);
  }

  /** The last waiter has left: forgets what was known of the holder. */
  reset(): void {
    this.#lookAt = undefined;
    this.#unheardUntil = Infinity;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Infinity;
  }

  /** From now on no message of the lock arrives. */
  unsubscribed(): void {
    this.wakeUpPending = false;
    this.#lookAt = undefined;
  }
}

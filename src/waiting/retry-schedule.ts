import type { LeaseClock, Timer, LeaseClockMs } from '../clock.js';
import type { Busy } from '../redis/scripts/replies.js';
import { BackOff } from '../back-off.js';
import { AFTER_LEASE_MS, TRY_PAUSES, TTL_ZERO_MS, YIELD_AFTER_MESSAGE_MS, YIELD_MS } from '../timing.js';

/** Between these times, in ms, a parked head probes. */
export interface ProbeMs {
  readonly least: number;
  readonly most: number;
}

/**
 * Decides when the head of a line tries again. The head tries at once while a wake-up is pending or the holder's TTL is
 * unknown. Otherwise the head tries when the lease ends, or sooner while no message can arrive.
 */
export class RetrySchedule {
  /** A wake-up came after the last try was sent. The head tries, whichever waiter is the head by then. */
  wakeUpPending = false;
  /** Which waiters try next. After a grant of a concurrent kind, all waiters of the line try at the same time. */
  next: 'head' | 'all' = 'head';
  /** Time of the next try without a wake-up. `undefined`: the holder's TTL is unknown. */
  #lookAt: LeaseClockMs | undefined;
  /**
   * Number of permits that the newest try found too many. 0: fewer would be too many as well. `'missing'`: it found no
   * semaphore, and did not create one.
   */
  tooMany: number | 'missing' = 0;
  /** Time of the next probe of a parked head. `Infinity`: no probe is scheduled. */
  #probeAt: LeaseClockMs = Infinity;
  /** Sequence number of the newest try. */
  newestTry = 0;
  #pausedUntil: LeaseClockMs = 0;
  /** Created for the first pause: most lines never pause. */
  #pauses: BackOff | undefined;
  #yielding = false;
  /** End of the newest pause for other clients. If `#pausedUntil` differs, the current pause has another reason. */
  #yieldUntil: LeaseClockMs = 0;
  #timer: Timer | undefined;
  #timerAt: LeaseClockMs = Infinity;

  constructor(
    private readonly clock: LeaseClock,
    /** TTL that the client assumes, in ms, if Redis does not know the holder's lease. */
    private readonly unknownLeaseMs: number,
    private readonly line: { readonly waiterCount: number },
    private readonly host: { step(): void },
  ) {}

  /** Whether the next try has nothing to wait for: no pause, and no holder whose TTL is known. */
  get isDue(): boolean {
    return this.#pausedUntil === 0 && this.#lookAt === undefined;
  }

  /** Whether the newest try found the lock busy, and `advance()` has not seen the end of the lease that it found. */
  get isTtlKnown(): boolean {
    return this.#lookAt !== undefined;
  }

  /** Forgets the times that have passed by `now`. */
  advance(now: LeaseClockMs): void {
    if (now < this.#pausedUntil) return;
    this.#pausedUntil = 0;
    if (this.#lookAt !== undefined && now >= this.#lookAt) this.#lookAt = undefined;
  }

  /** Whether all waiters have to wait for the end of a pause. */
  get isPaused(): boolean {
    return this.#pausedUntil > 0;
  }

  /** Schedules the next step for the end of the pause. */
  wakeAfterPause(): void {
    // A waiter pauses while Redis is unavailable. There may be no connection that keeps the process alive, so the timer
    // does.
    this.wakeAt(this.#pausedUntil, true);
  }

  /**
   * Called before a try is sent. Returns the sequence number of the try. `learn()` expects that number with the reply.
   */
  trying(inLine: boolean): number {
    if (inLine) {
      this.wakeUpPending = false;
      this.#lookAt = undefined;
      this.#yielding = false;
    }
    return ++this.newestTry;
  }

  /**
   * Records the holder's TTL from the reply to the newest try, and the number of permits that were too many. The reply
   * to an older try says nothing about the present.
   */
  learn({ retryAfterMs: ttl, isMissing }: Busy, sentAt: LeaseClockMs, sequence: number, tooMany = 0): void {
    this.next = 'head';
    if (sequence !== this.newestTry || this.line.waiterCount === 0) return;
    if (isMissing === true) this.tooMany = 'missing';
    else if (this.#lookAt === undefined || this.tooMany === 'missing') this.tooMany = tooMany;
    else this.tooMany = Math.min(this.tooMany, tooMany);
    const waitMs = ttl === undefined ? this.unknownLeaseMs : ttl === 0 ? TTL_ZERO_MS : ttl + AFTER_LEASE_MS;
    this.#pauses?.reset();
    this.#lookAt = Math.max(sentAt + waitMs, this.clock.now() + 1);
  }

  /** Limits the wait of a kind that polls: no message says when such a lock is free. */
  noLaterThan(at: LeaseClockMs): void {
    if (this.#lookAt !== undefined) this.#lookAt = Math.min(this.#lookAt, at);
  }

  /**
   * Schedules the next step for the end of the lease, or of the hold of this client that has the lock. `probeMs`: the time
   * after which the head probes, if it has to. Returns `false` if that time has passed.
   */
  park(now: LeaseClockMs, heldUntil: LeaseClockMs, probeMs: ProbeMs | undefined): boolean {
    if (probeMs === undefined) this.#probeAt = Infinity;
    else if (this.#probeAt === Infinity)
      this.#probeAt = now + probeMs.least + Math.random() * (probeMs.most - probeMs.least);
    if (now >= this.#probeAt) {
      this.#probeAt = Infinity;
      return false;
    }
    this.wakeAt(Math.min(heldUntil > 0 ? heldUntil : (this.#lookAt ?? Infinity), this.#probeAt));
    return true;
  }

  /** Called when a waiter was granted: the known TTL no longer applies. */
  granted(): void {
    this.#lookAt = undefined;
    this.#probeAt = Infinity;
    this.#pauses?.reset();
  }

  /** Pauses all tries: Redis is unavailable or replies too late. Each further pause is twice as long, up to 1 s. */
  pause(): void {
    this.next = 'head';
    this.#pauses ??= new BackOff(TRY_PAUSES);
    this.#pausedUntil = this.clock.now() + this.#pauses.next();
  }

  /**
   * Pauses after a published release. The local head knows of the release one round trip before other clients. The
   * pause gives those clients a chance.
   */
  yield(ms = YIELD_MS): void {
    this.#yielding = true;
    this.wakeUpPending = true;
    this.#pausedUntil = this.#yieldUntil = this.clock.now() + ms;
  }

  /** Whether the other clients try first. */
  get yields(): boolean {
    return this.#pausedUntil === this.#yieldUntil && this.clock.now() < this.#pausedUntil;
  }

  /**
   * Called when a message arrives. Other clients receive the message at about the same time, so a short pause is
   * enough.
   */
  published(): void {
    if (!this.#yielding) return;
    this.#yielding = false;
    this.#pausedUntil = this.#yieldUntil = this.clock.now() + YIELD_AFTER_MESSAGE_MS;
  }

  /** Called when no other client is subscribed: the pause for other clients ends. */
  noOtherSubscriber(): void {
    if (this.#pausedUntil !== this.#yieldUntil) return;
    this.#yielding = false;
    this.#pausedUntil = 0;
    this.host.step();
  }

  wake(): void {
    this.wakeUpPending = true;
    this.host.step();
  }

  wakeAt(at: LeaseClockMs, keepsAlive = false): void {
    if (this.#timerAt === at) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    const fire = (): void => {
      this.#timerAt = Infinity;
      this.host.step();
    };
    this.#timer = this.clock.setTimer(at, fire, keepsAlive);
  }

  /** Called when the last waiter has left: forgets the holder's TTL and cancels the timer. */
  reset(): void {
    this.#lookAt = undefined;
    this.#probeAt = Infinity;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Infinity;
  }

  /** Called when the subscription ends. No message arrives from now on, so the next waiter has to try. */
  unsubscribed(): void {
    this.wakeUpPending = false;
    this.#lookAt = undefined;
  }
}

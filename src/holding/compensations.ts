import type { LeaseClock, MonotonicMs } from '../clock.js';
import { Gate } from '../gate.js';
import { RedisUnavailableError, RefusedError, type LockError } from '../errors.js';
import { BackOff } from '../back-off.js';
import { RELEASE_PAUSES } from '../timing.js';

/** A pending request. `done` resolves when it has settled. */
export interface SentRequest {
  readonly done: Promise<{ readonly error: LockError | undefined }>;
}

/**
 * A release that the client repeats until Redis replies: its caller got the result that it holds nothing, or may hold
 * nothing.
 */
export interface Compensation {
  send(): SentRequest;
  /**
   * Until when a request that creates or moves the field may still run. A release before that time could run first and
   * miss the field.
   */
  readonly notBefore: MonotonicMs;
  /**
   * When the last lease that any request can have set has ended. The time is not on the lease clock, because a jump of
   * the local clock does not end a lease in Redis.
   */
  readonly until: MonotonicMs;
  /** The lease alone ends the lock in time. The client sends the release only to wake waiters, so close() drops it. */
  readonly optional?: boolean;
}

/** The clock and the command deadline, in ms, that limit a request. */
export interface RequestTiming {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number };
}

/** When a lease has ended that any attempt of a request can set, if it was sent by `now`. */
export const latestEnd = (
  { clock, options }: RequestTiming,
  leaseMs: number,
  now: MonotonicMs = clock.clock.monotonic(),
): MonotonicMs => now + options.commandTimeout + leaseMs;

/** The error that the caller gets for a failed release. It continues in the background, so its outcome is unknown. */
export const releaseGoesOn = (error: LockError): LockError =>
  error instanceof RedisUnavailableError
    ? new RedisUnavailableError(error.message, 'unknown', { cause: error.cause })
    : error;

/**
 * Releases, in the background, owners that no caller still has. The client repeats each release until Redis replies
 * or the last possible lease has ended.
 */
export class Compensations {
  readonly #open = new Map<Compensation, Promise<void>>();
  readonly #pausing: Gate;
  #isClosing = false;
  #closed = false;

  constructor(private readonly clock: LeaseClock) {
    this.#pausing = new Gate(clock.clock);
  }

  get size(): number {
    return this.#open.size;
  }

  /** Resolves when the compensation has ended. */
  add(compensation: Compensation): Promise<void> {
    const run = this.#run(compensation).finally(() => this.#open.delete(compensation));
    this.#open.set(compensation, run);
    return run;
  }

  async #run({ send, notBefore, until, optional = false }: Compensation): Promise<void> {
    const { clock } = this.clock;
    const dropped = (): boolean => this.#closed || (optional && this.#isClosing);
    while (clock.monotonic() <= notBefore && !dropped()) await this.#pause(notBefore - clock.monotonic() + 1);
    if (dropped()) return;
    const pauses = new BackOff(RELEASE_PAUSES);
    while (!this.#closed) {
      const request = await send().done;
      if (request.error === undefined || clock.monotonic() >= until) return;
      // close() does not wait until a missing permission is granted: Redis would refuse the next attempt, too.
      if (this.#isClosing && request.error instanceof RefusedError) return;
      await this.#pause(this.#isClosing ? RELEASE_PAUSES.first : pauses.next());
    }
  }

  /** The client closes. It sends each release without a long pause, and a refusal by Redis ends the release, too. */
  hurry(): void {
    this.#isClosing = true;
    this.#pausing.open();
  }

  /** Resolves when all compensations have ended. */
  async whenDone(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open.values());
  }

  /** Stops all compensations: the client sends no further release. */
  close(): void {
    this.#closed = true;
    this.#pausing.open();
  }

  async #pause(ms: number): Promise<void> {
    if (ms <= 0 || this.#closed) return;
    await this.#pausing.wait({ until: this.clock.clock.monotonic() + ms, keepsAlive: false });
  }
}

import type { LeaseClock } from '../clock.js';
import { LockTimeoutError, NotReplicatedError, RedisUnavailableError, type LockError } from '../errors.js';
import { answeredTooLate } from '../holding/hold-record.js';
import type { LocalLine } from './line.js';
import type { RetrySchedule } from './retry-schedule.js';
import { LockWaiter } from './lock-waiter.js';
import type { Try, Waiter } from './waiter.js';

interface FailedTryServices {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number };
}

/** The line that the tries were made for. */
interface TryingLine {
  /** Starts the wait: the waiter's time limit runs from now on, and listeners get the `waiting` event. */
  beginWait(waiter: Waiter): void;
  /**
   * The waiter has a new owner id. If Redis announces the turn of each owner on a channel of its own, the line moves
   * its subscription to the new channel.
   */
  follow(waiter: LockWaiter): void;
}

/** Handles a try that granted nothing: the lock is busy, Redis did not reply, or the grant came too late. */
export class FailedTries {
  constructor(
    private readonly services: FailedTryServices,
    private readonly host: TryingLine,
    private readonly line: LocalLine,
    private readonly schedule: RetrySchedule,
  ) {}

  /** Keeps the call waiting, or rejects it. */
  failed(waiter: Waiter, { request: { error, reply }, isProbe }: Try): void {
    if (waiter instanceof LockWaiter) this.#pollLater(waiter);
    if (waiter.reason !== undefined) return waiter.reject(waiter.reason);
    if (!this.line.has(waiter)) {
      const busy = new LockTimeoutError(waiter.name, waiter.limit.waitTime);
      return waiter.reject(error ?? (reply?.kind === 'busy' ? busy : answeredTooLate()));
    }
    this.host.beginWait(waiter);
    if (error !== undefined) this.#withError(waiter, error, isProbe);
    else if (reply?.kind !== 'busy') this.#grantedTooLate(waiter);
  }

  #withError(waiter: Waiter, error: LockError, isProbe: boolean): void {
    // This was only a probe by a parked waiter: an outage must not fail a waiter that would have slept through it.
    if (isProbe) return;
    // Replicas may confirm the next grant. A call without a time limit does not wait for that.
    const isUnconfirmed = error instanceof NotReplicatedError && waiter.limit.kind === 'limited';
    if (!(error instanceof RedisUnavailableError || isUnconfirmed)) {
      this.line.remove(waiter);
      return waiter.reject(error);
    }
    this.#pause(waiter);
    if (isUnconfirmed) return;
    // Waiting calls without a time limit also fail after one command deadline in which Redis did not reply.
    for (const other of [...this.line]) {
      // Readers try at the same time. A pending try or hand-over settles its own call.
      if (other.limit.kind !== 'unlimited' || other.isBusy) continue;
      this.line.remove(other);
      other.reject(error);
    }
  }

  /** Releases what the try acquired, or may have acquired: the caller does not get it. */
  releaseTaken(waiter: Waiter, { request, isProbe }: Try, taken: boolean): void {
    if (request.error === undefined && !taken) waiter.lateSince = undefined;
    if (!taken && request.doubt === undefined) return;
    waiter.addDoubt(request.doubt);
    const takenBack = waiter.releaseInBackground(request);
    // Some kinds of lock publish no message when this release frees the lock, so the client wakes the head. A probe
    // needs no wake-up, because another probe follows.
    if (!isProbe) void takenBack?.then(() => this.schedule.wake());
    if (waiter instanceof LockWaiter) this.host.follow(waiter);
  }

  /** Schedules the next try of a kind that polls: no message says when such a lock is free. */
  #pollLater(waiter: LockWaiter): void {
    const { polls } = waiter.protocol;
    if (polls === undefined || !this.schedule.isTtlKnown) return;
    const { pauseMs, failures } = waiter.polled ?? { pauseMs: 0, failures: 0 };
    const polled = { pauseMs: polls(pauseMs, failures + 1), failures: failures + 1 };
    waiter.polled = polled;
    this.schedule.noLaterThan(this.services.clock.now() + polled.pauseMs);
  }

  /**
   * Handles a grant that came after its lease had ended. One late grant may come from a blocked event loop, so the
   * waiter tries again. If grants stay late for a whole command deadline, the lease is too short for the round trip to
   * Redis. A call without a time limit then fails.
   */
  #grantedTooLate(waiter: Waiter): void {
    const now = this.services.clock.now();
    waiter.lateSince ??= now;
    this.line.unavailable = answeredTooLate();
    this.#pause(waiter);
    if (waiter.limit.kind !== 'unlimited' || now - waiter.lateSince < this.services.options.commandTimeout) return;
    this.line.remove(waiter);
    waiter.reject(answeredTooLate());
  }

  #pause(waiter: Waiter): void {
    waiter.retry();
    this.schedule.pause();
  }
}

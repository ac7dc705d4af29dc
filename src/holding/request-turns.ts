import type { LeaseClock, LeaseClockMs, MonotonicMs } from '../clock.js';
import { RedisUnavailableError, type LockError } from '../errors.js';
import type { Doubt } from '../redis/requests/doubt.js';
import type { HoldRecord } from './hold-record.js';
import { WHOLE_DEADLINE_MS } from '../timing.js';

/** The clock and the options, in ms, that the requests of a client's tenures share. */
export interface TurnServices {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number; readonly attemptMs: number };
}

/** The tenure, as its requests use it. */
export interface TurnsTenure {
  readonly lease: {
    check(): 'valid' | 'unconfirmed' | 'lost';
    /** Resolves with the error if Redis could not confirm the tenure. */
    confirm(): Promise<LockError | undefined>;
  };
  throwIfLost(): void;
}

interface Abandonable {
  abandon(): void;
}

interface FailedRequest {
  readonly error: LockError | undefined;
  readonly doubt: Doubt | undefined;
}

/**
 * The requests that change a tenure while it is held. The client sends them one after the other, and none while an
 * attempt of an earlier request may still run. So the client always knows the hold count, and sends it as an absolute
 * number.
 */
export class RequestTurns {
  #last: Promise<unknown> | undefined;
  /** The doubt about the last nested acquire or partial release. */
  #doubt: Doubt | undefined;
  /** The error of a request that other requests wait for, if Redis was unavailable for its whole command deadline. */
  #unavailable: RedisUnavailableError | undefined;

  constructor(
    private readonly services: TurnServices,
    private readonly tenure: TurnsTenure,
  ) {}

  get busy(): boolean {
    return this.#last !== undefined;
  }

  /**
   * Runs `work` after all earlier work. If Redis is unavailable for one command deadline, all waiting work fails, so
   * that it does not take a command deadline each. `settleBy`: by then the call has to settle.
   */
  take<T>(
    work: (settleBy: LeaseClockMs) => Promise<T>,
    giveUp = (error: RedisUnavailableError): T => {
      throw error;
    },
  ): Promise<T> {
    const before = this.#last;
    const { clock, options } = this.services;
    const settleBy = clock.now() + options.commandTimeout;
    const next = (): Promise<T> | T => {
      if (this.#unavailable === undefined) return work(settleBy);
      this.tenure.throwIfLost();
      return giveUp(unsent(this.#unavailable));
    };
    const run = before === undefined ? work(settleBy) : before.then(next);
    const turn = run.then(
      () => undefined,
      () => undefined,
    );
    this.#last = turn;
    void turn.then(() => {
      if (this.#last !== turn) return;
      this.#last = undefined;
      this.#unavailable = undefined;
    });
    return run;
  }

  /**
   * Resolves when a request may be sent: the lease is confirmed, and no attempt of an earlier request can still run.
   */
  async ready(parent?: HoldRecord): Promise<void> {
    const { lease } = this.tenure;
    if (lease.check() === 'unconfirmed') {
      const error = await lease.confirm();
      // The confirmation has used up the command deadline, so the request itself is not sent.
      if (error instanceof RedisUnavailableError) {
        this.#failWaiting(error, parent);
        throw unsent(error);
      }
    }
    await this.whenNoDoubt();
  }

  async whenNoDoubt(): Promise<void> {
    const doubt = this.#doubt;
    if (this.isDoubtful) await doubt?.settled();
    if (this.#doubt === doubt) this.#doubt = undefined;
  }

  /** Records the doubt about a settled request, if there is one. The next request waits until it is settled. */
  addDoubt(doubt: Doubt | undefined): void {
    if (doubt !== undefined) this.#doubt = doubt;
  }

  /** An attempt of a nested acquire or partial release may still run. */
  get isDoubtful(): boolean {
    const doubt = this.#doubt;
    return doubt?.isOpen === true && doubt.until >= this.services.clock.clock.monotonic();
  }

  /** Until when such an attempt may run. */
  get doubtUntil(): MonotonicMs {
    return this.#doubt?.until ?? 0;
  }

  /** Resolves with the settled request. The time that its call has waited shortens the command deadline. */
  async answered<R extends Abandonable & { readonly done: Promise<R> }>(
    request: R,
    settleBy: LeaseClockMs,
  ): Promise<R> {
    const { clock, options } = this.services;
    if (clock.now() + options.commandTimeout < settleBy + WHOLE_DEADLINE_MS) return request.done;
    // The attempt that is pending at that time is the last one.
    const last = clock.setTimer(settleBy - options.attemptMs, () => request.abandon());
    const done = await request.done;
    last.cancel();
    return done;
  }

  /** Rejects with the error of the request, but not while an attempt may still run. */
  async failed(request: FailedRequest, parent?: HoldRecord): Promise<never> {
    await request.doubt?.settled();
    if (request.error instanceof RedisUnavailableError) this.#failWaiting(request.error, parent);
    throw request.error as LockError;
  }

  #failWaiting(error: RedisUnavailableError, parent: HoldRecord | undefined): void {
    this.#unavailable = error;
    parent?.redisUnavailable(error);
  }
}

export const unsent = (cause: RedisUnavailableError): RedisUnavailableError =>
  new RedisUnavailableError(
    'Redis did not reply to an earlier request of this hold, so this one was not sent; try again later',
    'none',
    {
      cause,
    },
  );

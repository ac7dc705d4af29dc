import type { LeaseClock } from '../clock.js';
import { RedisUnavailableError, type LockError } from '../errors.js';
import type { RequestAttempts } from '../redis/requests/request-attempts.js';
import type { HoldRecord } from './hold-record.js';

/** What the requests of one client's tenures share. */
export interface TurnServices {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number; readonly attemptMs: number };
}

/** What a request has to know of its tenure before it is sent. */
export interface TurnsTenure {
  readonly lease: {
    check(): 'valid' | 'unconfirmed' | 'lost';
    /** Resolves with the error for which Redis could not confirm the tenure. */
    confirm(): Promise<LockError | undefined>;
  };
  throwIfLost(): void;
}

/** A call that has waited for less has waited for nothing. */
const ROUNDING_MS = 5;

/**
 * The requests that change a tenure while it is held: one after the other, and none beside an attempt of one before
 * that may still run. So the client always knows the hold count, and sends it as an absolute number.
 */
export class RequestTurns {
  #last: Promise<unknown> | undefined;
  /** A nested acquire or partial release of which an attempt may still run. */
  #stray: RequestAttempts | undefined;
  /** Why the request that others wait in turn for has failed, if Redis was away for its whole deadline. */
  #away: RedisUnavailableError | undefined;

  constructor(
    private readonly services: TurnServices,
    private readonly tenure: TurnsTenure,
  ) {}

  get busy(): boolean {
    return this.#last !== undefined;
  }

  /**
   * One after the other. One command deadline without Redis is enough for all that wait: they do not take one each.
   * `work` is told when its call has to settle (lease clock ms).
   */
  take<T>(
    work: (settleBy: number) => Promise<T>,
    giveUp = (error: RedisUnavailableError): T => {
      throw error;
    },
  ): Promise<T> {
    const before = this.#last;
    const { clock, options } = this.services;
    const settleBy = clock.now() + options.commandTimeout;
    const next = (): Promise<T> | T => {
      if (this.#away === undefined) return work(settleBy);
      this.tenure.throwIfLost();
      return giveUp(unsent(this.#away));
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
      this.#away = undefined;
    });
    return run;
  }

  /** Before a request: what a jump of the clock has put in doubt is settled, and no attempt of one before may run. */
  async ready(parent?: HoldRecord): Promise<void> {
    const { lease } = this.tenure;
    if (lease.check() === 'unconfirmed') {
      const error = await lease.confirm();
      // Not one command deadline more for the request itself.
      if (error instanceof RedisUnavailableError) {
        this.#isAway(error, parent);
        throw unsent(error);
      }
    }
    await this.whenNoStray();
  }

  async whenNoStray(): Promise<void> {
    const stray = this.#stray;
    if (this.strayIsOpen) await stray?.whenQuiet();
    if (this.#stray === stray) this.#stray = undefined;
  }

  /** What comes next waits for the request, if it may still take effect. */
  doubt(request: RequestAttempts): void {
    if (request.inDoubt) this.#stray = request;
  }

  get strayIsOpen(): boolean {
    const stray = this.#stray;
    return stray?.inDoubt === true && stray.openUntil >= this.services.clock.clock.monotonic();
  }

  /** Monotonic ms. */
  get strayUntil(): number {
    return this.#stray?.openUntil ?? 0;
  }

  /** The request, answered or failed. What its call has waited for before comes off its deadline: fewer attempts. */
  async answered<R extends RequestAttempts & { readonly done: Promise<R> }>(request: R, settleBy: number): Promise<R> {
    const { clock, options } = this.services;
    if (clock.now() + options.commandTimeout < settleBy + ROUNDING_MS) return request.done;
    // The attempt that is under way by then is the last.
    const last = clock.setTimer(settleBy - options.attemptMs, () => request.abandon());
    const done = await request.done;
    last.cancel();
    return done;
  }

  /** Nobody fails while an attempt may still run. */
  async failed(
    request: RequestAttempts & { readonly error: LockError | undefined },
    parent?: HoldRecord,
  ): Promise<never> {
    await request.whenQuiet();
    if (request.error instanceof RedisUnavailableError) this.#isAway(request.error, parent);
    throw request.error as LockError;
  }

  #isAway(error: RedisUnavailableError, parent: HoldRecord | undefined): void {
    this.#away = error;
    parent?.redisUnavailable(error);
  }
}

export const unsent = (cause: RedisUnavailableError): RedisUnavailableError =>
  new RedisUnavailableError('Redis did not answer the request that this one had to wait for', 'none', { cause });

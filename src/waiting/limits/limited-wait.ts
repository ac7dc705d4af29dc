import type { LeaseClockMs } from '../../clock.js';
import type { LockError } from '../../errors.js';
import type { LimitedCall, TimeLimits } from './time-limits.js';
import { abortedBy, unwatchAbort, watchAbort, type WaitLimit } from './wait-limit.js';

/** Where the call waits. */
interface WaitingPlace {
  /** Why the client does not know whether the lock is busy: its newest try failed. */
  readonly unavailable: LockError | undefined;
  leave(call: LimitedWait, reason: LockError): void;
  timeIsUp(call: LimitedWait): void;
}

/**
 * The wait of a call, which its signal or its time limit ends. The call itself is in the lists of its signal and of the
 * time limits: a function for each of them would take more heap than the rest of the call.
 */
export abstract class LimitedWait implements LimitedCall {
  #line: WaitingPlace | undefined;
  /** Present while the time limit of the call runs. */
  #timeLimits: TimeLimits | undefined;
  place = 0;

  constructor(readonly limit: WaitLimit) {}

  abstract get name(): string;

  /** The call leaves the line when its signal aborts. */
  watchSignal(line: WaitingPlace): void {
    this.#line = line;
    if (this.limit.signal !== undefined) watchAbort(this.limit.signal, this);
  }

  aborted(): void {
    this.#line?.leave(this, abortedBy(this.limit.signal as AbortSignal, this.name));
  }

  /**
   * The call leaves the line when its time limit passes. That time does not run before the first try is answered, so the
   * call may last one command deadline even with a shorter time limit.
   */
  watchTime(limits: TimeLimits): void {
    if (this.limit.kind !== 'limited' || this.#timeLimits !== undefined) return;
    this.#timeLimits = limits;
    limits.add(this);
  }

  /** Why the place where the call waits does not know whether the lock is busy. */
  protected get unavailable(): LockError | undefined {
    return this.#line?.unavailable;
  }

  get until(): LeaseClockMs {
    return this.limit.until ?? Infinity;
  }

  timeIsUp(): void {
    this.#line?.timeIsUp(this);
  }

  /** `timeIsUp`: the time limit has passed, and the signal can still end the call. */
  unwatch(timeIsUp = false): void {
    this.#timeLimits?.delete(this);
    this.#timeLimits = undefined;
    if (this.limit.signal !== undefined && !timeIsUp) unwatchAbort(this.limit.signal, this);
  }
}

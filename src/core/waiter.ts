import type { Timer } from '../clock.js';
import { ClientClosedError, LockAbortedError, LockTimeoutError, type LockError } from '../errors.js';
import type { RequestAttempts } from '../redis/script-executor.js';
import { onAbort } from './abort-watch.js';
import type { Hold } from './hold.js';
import type { LockProtocol } from './lock-protocol.js';
import type { LockRuntime } from './lock-runtime.js';
import type { HoldTerms } from './tenure.js';

/** How long a call waits, and what ends it before. */
export interface Patience {
  /** Lease clock ms; Infinity without a limit. */
  readonly until: number;
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
}

/** Told once how a call ended. */
export interface Settle {
  granted(hold: Hold): void;
  failed(error: unknown): void;
}

/**
 * One call that wants an outermost hold. Its promise settles once; a call that has given up while a request of it is
 * under way settles when that request can take effect no more.
 */
export class Waiter {
  /** The owner its requests name; a fresh one whenever the old one's state is in doubt. */
  owner: string;
  /** A try or a hand-off to it is under way. */
  busy = false;
  /** Its try, which need not be repeated once the waiter has left. */
  trying: RequestAttempts | undefined;
  /** Its last try failed: it tries again even if nothing woke it. */
  again = false;
  /** It stands in line: it was busy at its first try, or others were there before. */
  inLine = false;
  /** It has given up, for this reason, and may not have settled yet. */
  leaving: LockError | undefined;
  /** Why its last try failed, if it did: then nobody can say that the lock is busy. */
  unavailable: LockError | undefined;
  /** Lease clock ms since when it was granted the lock only after the lease had ended. */
  lateSince: number | undefined;
  #timer: Timer | undefined;
  #unwatchSignal: (() => void) | undefined;
  /** Requests for it of which an attempt may still run: it does not fail before. */
  #doubtful: RequestAttempts[] | undefined;

  constructor(
    private readonly runtime: LockRuntime,
    readonly protocol: LockProtocol,
    readonly terms: HoldTerms,
    readonly patience: Patience,
    private readonly settle: Settle,
  ) {
    this.owner = runtime.newOwner();
  }

  get unlimited(): boolean {
    return this.patience.until === Infinity;
  }

  /** Calls `leave` when the signal fires. */
  watchSignal(leave: (reason: LockError) => void): void {
    const { signal } = this.patience;
    if (signal === undefined || this.#unwatchSignal !== undefined) return;
    this.#unwatchSignal = onAbort(signal, () => leave(new LockAbortedError(this.protocol.name, signal.reason)));
  }

  /** Calls `leave` when the time is up. Not needed for a first try, which a command deadline ends. */
  watchTime(leave: (reason: LockError) => void): void {
    const { until, waitTime } = this.patience;
    if (until === Infinity || this.#timer !== undefined) return;
    this.#watchTime(until, () => leave(new LockTimeoutError(this.protocol.name, waitTime)));
  }

  #watchTime(until: number, expire: () => void): void {
    this.#timer = this.runtime.clock.setTimer(until, () => {
      if (this.runtime.clock.now() < until) this.#watchTime(until, expire);
      else expire();
    });
  }

  unwatch(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#unwatchSignal?.();
    this.#unwatchSignal = undefined;
  }

  /** A grant counts even if the time is up; a call that was aborted wants nothing any more. */
  get wantsGrant(): boolean {
    return !(this.leaving instanceof LockAbortedError || this.leaving instanceof ClientClosedError);
  }

  resolve(hold: Hold): void {
    this.unwatch();
    this.settle.granted(hold);
  }

  /** Remembers the request if it may still take effect. */
  doubts(request: RequestAttempts): void {
    if (request.inDoubt) (this.#doubtful ??= []).push(request);
  }

  /** Settles when nothing that was sent for this call can take effect any more. */
  reject(error: LockError): void {
    this.unwatch();
    this.leaving ??= error;
    const reason = error instanceof LockTimeoutError && this.unavailable !== undefined ? this.unavailable : error;
    if (this.#doubtful === undefined) return this.settle.failed(reason);
    void Promise.all(this.#doubtful.map((request) => request.whenQuiet())).then(() => this.settle.failed(reason));
  }
}

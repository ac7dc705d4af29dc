import type { BoundDeferred } from '../ownership/bound-promise.js';
import type { CallSite } from '../ownership/call-site.js';
import type { Hold } from '../holding/hold.js';
import type { LockContext } from '../ownership/lock-context.js';
import { LockTimeoutError } from '../errors.js';
import type { AcquireOptions } from './arguments.js';

/** The options of `lock()` and `tryLock()` when the call passes its times as separate arguments. */
export type CallOptions = Pick<AcquireOptions, 'signal' | 'context'>;

/** @internal A public method, as the marker above which a call site is captured. */
export type Method = (...args: never[]) => unknown;

/** @internal An acquiring call after the check of its arguments. */
export interface LockCall {
  /** Lease in milliseconds; `undefined` if the watchdog renews the hold. */
  readonly leaseTime: number | undefined;
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
  readonly context: LockContext | undefined;
  /** Whether `unlock()` releases the hold. */
  readonly bare: boolean;
  readonly site: CallSite | undefined;
}

/** @internal Receives the outcome of a call, once. */
export interface LockSettle {
  granted(hold: Hold): void;
  failed(error: unknown): void;
}

/** @param busy - the value that the promise resolves with if the lock stayed busy; `undefined` if the promise rejects. */
export function settleWith<T>(
  deferred: BoundDeferred<T>,
  { context }: LockCall,
  value: (hold: Hold) => T,
  busy: T | undefined,
): LockSettle {
  return {
    // A flow never enters the hold of a context.
    granted: (hold) => deferred.resolve(value(hold), context === undefined ? hold : undefined),
    failed: (error) => {
      if (busy !== undefined && error instanceof LockTimeoutError) deferred.resolve(busy);
      else deferred.reject(error);
    },
  };
}

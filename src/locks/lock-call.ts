import type { BoundDeferred } from '../ownership/bound-promise.js';
import type { CallSite } from '../ownership/call-site.js';
import type { Hold } from '../holding/hold.js';
import type { LockContext } from '../ownership/lock-context.js';
import { LockTimeoutError } from '../errors.js';
import type { AcquireOptions } from './arguments.js';

/** Options of a call that gives its times as arguments. */
export type CallOptions = Pick<AcquireOptions, 'signal' | 'context'>;

export type Method = (...args: never[]) => unknown;

/** @internal A call that acquires, its arguments checked. */
export interface LockCall {
  /** ms; undefined: the watchdog renews. */
  readonly leaseTime: number | undefined;
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
  readonly context: LockContext | undefined;
  /** `unlock()` gives it back. */
  readonly bare: boolean;
  readonly site: CallSite | undefined;
}

/** @internal Told once how a call ended. */
export interface LockSettle {
  granted(hold: Hold): void;
  failed(error: unknown): void;
}

/** `busy`: what the promise resolves with when the lock stayed busy; undefined: it rejects. */
export function settleWith<T>(
  deferred: BoundDeferred<T>,
  { context }: LockCall,
  value: (hold: Hold) => T,
  busy: T | undefined,
): LockSettle {
  return {
    // No flow enters a hold of a context.
    granted: (hold) => deferred.resolve(value(hold), context === undefined ? hold : undefined),
    failed: (error) => {
      if (busy !== undefined && error instanceof LockTimeoutError) deferred.resolve(busy);
      else deferred.reject(error);
    },
  };
}

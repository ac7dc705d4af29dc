import type { BoundDeferred } from '../ownership/bound-promise.js';
import type { CallSite } from '../ownership/call-site.js';
import type { Hold } from '../holding/hold.js';
import type { LockContext } from '../ownership/lock-context.js';
import { LockTimeoutError } from '../errors.js';
import type { ReleaseMode } from '../options.js';
import {
  checkAlone,
  checkContext,
  checkLeaseTime,
  checkOptions,
  checkRenewal,
  checkWaitTime,
  type AcquireOptions,
  type LockOptions,
  type TryLockOptions,
} from './arguments.js';

const CALL_OPTIONS = ['renew', 'maxHoldTime', 'signal', 'context'] as const;
const LOCK_OPTIONS = ['leaseTime', ...CALL_OPTIONS] as const;
/** @internal */
export const ACQUIRE_OPTIONS = ['waitTime', ...LOCK_OPTIONS, 'release'] as const;
const TRY_LOCK_OPTIONS = ['waitTime', ...LOCK_OPTIONS] as const;

/** The options of `lock()` and `tryLock()` when the call passes its times as separate arguments. */
export type CallOptions = Pick<AcquireOptions, 'renew' | 'maxHoldTime' | 'signal' | 'context'>;

/** @internal A public method, as the marker above which a call site is captured. */
export type Method = (...args: never[]) => unknown;

/** @internal An acquiring call after the check of its arguments. */
export interface LockCall {
  /** Lease in milliseconds; `undefined`: that of the client. */
  readonly leaseTime: number | undefined;
  /** The watchdog renews the hold. */
  readonly renewed: boolean;
  /** Longest time, in ms, for which it does; `undefined`: that of the client. */
  readonly maxHoldTime: number | undefined;
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
  readonly context: LockContext | undefined;
  /** Whether `unlock()` releases the hold. */
  readonly byUnlock: boolean;
  readonly site: CallSite | undefined;
  /** What the release of the hold waits for; `undefined`: what the client says. */
  readonly release: ReleaseMode | undefined;
}

/** @internal Receives the outcome of a call, once. */
export interface LockSettle {
  granted(hold: Hold): void;
  failed(error: unknown): void;
}

/** @internal Settles the call as the promise settles. */
export function settleAs(taken: Promise<Hold>, settle: LockSettle): void {
  taken.then(
    (hold) => settle.granted(hold),
    (error: unknown) => settle.failed(error),
  );
}

/** What the promise of a call resolves with. */
export interface GrantedValue<T> {
  ofHold(hold: Hold, release: ReleaseMode | undefined): T;
}

/** @internal The value of `lock()`. */
export const NOTHING: GrantedValue<undefined> = { ofHold: () => undefined };
/** @internal The value of `tryLock()`. */
export const TRUE: GrantedValue<boolean> = { ofHold: () => true };

/** @internal Settles the promise of a call. Keeps nothing else of the call, because many calls may wait. */
export class PromisedOutcome<T> implements LockSettle {
  /** A flow never enters the hold of a context. */
  readonly #entersFlow: boolean;
  readonly #release: ReleaseMode | undefined;

  constructor(
    private readonly deferred: BoundDeferred<T>,
    { context, release }: LockCall,
    private readonly value: GrantedValue<T>,
    /** What the promise resolves with if the lock stayed busy; `undefined` if the promise rejects. */
    private readonly busy: T | undefined,
  ) {
    this.#entersFlow = context === undefined;
    this.#release = release;
  }

  granted(hold: Hold): void {
    this.deferred.resolve(this.value.ofHold(hold, this.#release), this.#entersFlow ? hold : undefined);
  }

  failed(error: unknown): void {
    if (this.busy !== undefined && error instanceof LockTimeoutError) this.deferred.resolve(this.busy);
    else this.deferred.reject(error);
  }
}

/** @internal `waitByDefault`: the wait time of a call without one. `context`: the context of the lock. */
export const lockCallOf = (
  options: AcquireOptions,
  waitByDefault: number,
  byUnlock: boolean,
  context: LockContext | undefined,
  site: CallSite | undefined,
): LockCall => {
  const { renew, maxHoldTime, signal, release } = options;
  const leaseTime = checkLeaseTime(options.leaseTime);
  if (renew !== undefined || maxHoldTime !== undefined) checkRenewal(options, leaseTime);
  return {
    leaseTime,
    renewed: leaseTime === undefined || renew === true,
    maxHoldTime,
    waitTime: checkWaitTime(options.waitTime, waitByDefault),
    signal,
    context: checkContext(options.context) ?? context,
    byUnlock,
    site,
    release,
  };
};

/** @internal Returns the options of a `lock()` call. It takes an options object, or the lease as an argument. */
export function lockOptions(first: number | LockOptions | undefined, second: unknown): AcquireOptions {
  if (typeof first !== 'object') return { ...checkOptions(second as CallOptions, CALL_OPTIONS), leaseTime: first };
  checkAlone(second);
  return checkOptions(first, LOCK_OPTIONS);
}

/** @internal Returns the options of a `tryLock()` call. It takes an options object, or the times as arguments. */
export function tryLockOptions(
  first: number | TryLockOptions | undefined,
  leaseTime: number | undefined,
  third: unknown,
): AcquireOptions {
  if (typeof first !== 'object') {
    return { ...checkOptions(third as CallOptions, CALL_OPTIONS), waitTime: first, leaseTime };
  }
  checkAlone(leaseTime, third);
  return checkOptions(first, TRY_LOCK_OPTIONS);
}

/** @internal */
export const isThenable = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';

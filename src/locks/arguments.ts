/* Checks of what callers give, all before any command. */
import { checkLease } from '../lease-time.js';
import { isLockContext, type LockContext } from '../ownership/lock-context.js';
import { InvalidArgumentError } from '../errors.js';
import { checkWellFormed, refuseUnknown } from '../options.js';

/** Options of a call that acquires. */
export interface AcquireOptions {
  /** ms to wait. Absent: without limit for `acquire` and `withLock`, one try for `tryAcquire` and `tryLock`. */
  waitTime?: number | undefined;
  /** ms that the hold lasts. Absent or -1: the watchdog renews it until it is given back. */
  leaseTime?: number | undefined;
  /** Ends the wait; a hold that was granted is not affected. */
  signal?: AbortSignal | undefined;
  /** The owner, whoever calls. No flow enters such a hold. */
  context?: LockContext | undefined;
}

/** Options beside `leaseTime` of a `lock()`, which waits without limit. */
export type LockOptions = Omit<AcquireOptions, 'waitTime'>;

export interface ContextOptions {
  /** The owner, whoever calls. A lock over several locks refuses members that name another one. */
  context?: LockContext | undefined;
}

const MOST_MS = Number.MAX_SAFE_INTEGER;

export function checkName(name: unknown, argument = 'name'): string {
  if (typeof name !== 'string' || name === '') throw new InvalidArgumentError(argument, 'a non-empty string', name);
  return checkWellFormed(name, argument);
}

export function checkValues(values: unknown): readonly string[] {
  if (!Array.isArray(values) || values.length === 0) {
    throw new InvalidArgumentError('values', 'an array of at least one string', values);
  }
  return values.map((value, i) => checkName(value, `values[${i}]`));
}

/** `undefined`: none was asked for, which is what -1 says too. */
export function checkLeaseTime(value: unknown, without = 'for the watchdog'): number | undefined {
  return value === undefined || value === -1 ? undefined : checkLease(value, `, or -1 ${without}`);
}

export function checkWaitTime(value: unknown, byDefault: number): number {
  if (value === undefined) return byDefault;
  if (value === Infinity) return Infinity;
  if (typeof value !== 'number' || !Number.isInteger(value) || Math.abs(value) > MOST_MS) {
    throw new InvalidArgumentError('waitTime', 'an integer (ms) up to 2^53 - 1, or Infinity', value);
  }
  return value;
}

/** How many permits; `least` 0 where none is a call that does nothing. */
export function checkPermits(value: unknown, byDefault: number | undefined, least = 0): number {
  const permits = value === undefined ? byDefault : value;
  if (typeof permits !== 'number' || !Number.isSafeInteger(permits) || permits < least) {
    throw new InvalidArgumentError('permits', `an integer of at least ${least}`, permits);
  }
  return permits;
}

/** A number of permits to add, or to take away if it is negative. */
export function checkAnyPermits(permits: unknown): void {
  if (!Number.isSafeInteger(permits)) throw new InvalidArgumentError('permits', 'an integer', permits);
}

const NONE = Object.freeze({});

export function checkOptions<T extends AcquireOptions>(value: T | undefined, known: readonly string[]): T {
  if (value === undefined) return NONE as T;
  // A ported `lock(10, TimeUnit.SECONDS)` or `tryLock(1, 10, 'SECONDS')` would be off by a factor of a thousand.
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidArgumentError('options', 'an object; times are milliseconds', value);
  }
  // All of its properties are inherited, and the wait would have no end.
  if (isAbortSignal(value)) throw new InvalidArgumentError('options', 'an object, as { signal }', value);
  // A Date or a Map has none of the options: it would be taken for {}.
  if (!isPlain(value)) throw new InvalidArgumentError('options', 'a plain object; times are milliseconds', value);
  refuseUnknown('options', value, known);
  const { signal, context } = value;
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw new InvalidArgumentError('signal', 'an AbortSignal', signal);
  }
  checkContext(context);
  return value;
}

/** Options as the only argument: what is given beside them would be left out of account. */
export function checkAlone(...others: readonly unknown[]): void {
  const other = others.find((value) => value !== undefined);
  if (other !== undefined) throw new InvalidArgumentError('options', 'the only argument', other);
}

/** Of `withLock(fn)` or `withLock(options, fn)`. */
export function checkBody<O extends object, F extends (...args: never[]) => unknown>(
  first: O | F,
  second: F | undefined,
): { readonly options: Exclude<O, F> | undefined; readonly fn: F } {
  if (typeof first === 'function') {
    if (second === undefined) return { options: undefined, fn: first };
    throw new InvalidArgumentError('fn', 'the last argument, behind the options', second);
  }
  if (typeof second === 'function') return { options: first as Exclude<O, F>, fn: second };
  throw new InvalidArgumentError('fn', 'a function', second);
}

/** Of a semaphore's handle. */
export function checkSemaphoreOptions(value: { permits?: number | undefined } = {}): { permits?: number | undefined } {
  if (typeof value !== 'object' || (value as unknown) === null || !isPlain(value)) {
    throw new InvalidArgumentError('options', 'a plain object, as { permits: 5 }', value);
  }
  refuseUnknown('options', value, ['permits']);
  return value;
}

/** Of a handle. A misspelt `context` would make it act for whoever calls. */
export function checkHandleOptions<T extends ContextOptions>(value: T | undefined, others: readonly string[] = []): T {
  if (value === undefined) return {} as T;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidArgumentError('options', 'an object', value);
  }
  if (!isPlain(value)) throw new InvalidArgumentError('options', 'a plain object', value);
  refuseUnknown('options', value, ['context', ...others]);
  checkContext(value.context);
  return value;
}

/** A misspelt `releaseHolds` would leave the locks to their leases. */
export function checkCloseOptions(value: { releaseHolds?: unknown }): void {
  if (typeof value !== 'object' || (value as unknown) === null) {
    throw new InvalidArgumentError('options', 'an object', value);
  }
  refuseUnknown('options', value, ['releaseHolds']);
  const { releaseHolds } = value;
  if (releaseHolds !== undefined && typeof releaseHolds !== 'boolean') {
    throw new InvalidArgumentError('releaseHolds', 'true or false', releaseHolds);
  }
}

export function checkContext(context: unknown): LockContext | undefined {
  if (context === undefined || isLockContext(context)) return context;
  throw new InvalidArgumentError('context', 'a LockContext', context);
}

/** By its tag, so that objects of another realm count as well. The comparison spares the usual object the call. */
function isPlain(value: object): boolean {
  return (
    Object.getPrototypeOf(value) === Object.prototype || Object.prototype.toString.call(value) === '[object Object]'
  );
}

function isAbortSignal(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'aborted' in value && 'addEventListener' in value;
}

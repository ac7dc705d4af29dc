/* Checks of the arguments of public calls. Each check runs before any command. */
import { checkLease, checkMaxHoldTime } from '../lease-time.js';
import { isLockContext, type LockContext } from '../ownership/lock-context.js';
import { InvalidArgumentError } from '../errors.js';
import { MIN_RENEWED_LEASE_MS } from '../timing.js';
import { checkReleaseMode, checkWellFormed, refuseUnknown, type ReleaseMode } from '../options.js';

/** The options of an acquiring call. */
export interface AcquireOptions {
  /**
   * Time to wait for the lock, in milliseconds, or `Infinity`.
   *
   * @defaultValue `Infinity` for `acquire` and `withLock`; one try for `tryAcquire` and `tryLock`
   */
  waitTime?: number | undefined;
  /**
   * Lease of the hold, in milliseconds: an integer of at least 10, or -1 for the watchdog.
   *
   * @defaultValue the watchdog renews the hold until its release
   */
  leaseTime?: number | undefined;
  /**
   * `true`: the watchdog renews the hold with `leaseTime` in place of the client's `lockWatchdogTimeout`, every third of
   * it. `leaseTime` is then at least 100. Without a `leaseTime`, the watchdog renews every hold.
   *
   * @defaultValue a hold with a `leaseTime` is not renewed
   */
  renew?: boolean | undefined;
  /**
   * Longest time, in milliseconds, for which the watchdog renews the hold, counted from its grant: at least 100, or
   * `Infinity`. Then the hold is lost with the reason `maxHoldTime`: its signal aborts, and the lock is free. Not for a
   * hold with a `leaseTime` that is not renewed.
   *
   * @defaultValue the option `maxHoldTime` of the client
   */
  maxHoldTime?: number | undefined;
  /** Aborts the wait. A granted hold is not affected. */
  signal?: AbortSignal | undefined;
  /** The owner of the hold, regardless of the calling code. No flow enters such a hold. */
  context?: LockContext | undefined;
  /**
   * What the release of the hold waits for: `'awaited'`, for the reply of Redis; `'background'`, until the release has
   * been written to the connection. A failed release in the background causes the event `releaseFailed`. A loss that is
   * known when the hold is released still rejects.
   *
   * @defaultValue the option `release` of the client
   */
  release?: ReleaseMode | undefined;
}

/** The options of `tryLock()`. Its holds are released by `unlock()`, which waits for the reply of Redis. */
export type TryLockOptions = Omit<AcquireOptions, 'release'>;

/** The options of `lock()`, which waits without limit. */
export type LockOptions = Omit<TryLockOptions, 'waitTime'>;

/** The options of a handle. */
export interface ContextOptions {
  /** The owner of every call, regardless of the calling code. A multi-lock refuses members with another context. */
  context?: LockContext | undefined;
}

const MAX_MS = Number.MAX_SAFE_INTEGER;

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

/** @returns the lease, or `undefined` if the watchdog renews the hold. A lease of -1 means the same. */
export function checkLeaseTime(value: unknown, without = 'for the watchdog'): number | undefined {
  return value === undefined || value === -1 ? undefined : checkLease(value, `, or -1 ${without}`);
}

/** Checks how a hold is renewed. `leaseTime`: the checked lease of the call. */
export function checkRenewal({ renew, maxHoldTime }: AcquireOptions, leaseTime: number | undefined): void {
  if (renew !== undefined && typeof renew !== 'boolean')
    throw new InvalidArgumentError('renew', 'true or false', renew);
  if (renew === false && leaseTime === undefined) {
    const expectation = 'absent in a call without a leaseTime';
    const message = 'renew: false needs a leaseTime: without one, the watchdog renews the hold';
    throw new InvalidArgumentError('renew', expectation, renew, message);
  }
  if (renew === true && leaseTime !== undefined && leaseTime < MIN_RENEWED_LEASE_MS) {
    throw new InvalidArgumentError('leaseTime', `at least ${MIN_RENEWED_LEASE_MS} (ms) with renew: true`, leaseTime);
  }
  checkMaxHoldTime(maxHoldTime);
  if (maxHoldTime === undefined || leaseTime === undefined || renew === true) return;
  const message = 'maxHoldTime limits a hold that is renewed: leave it out, leave out leaseTime, or pass renew: true';
  throw new InvalidArgumentError('maxHoldTime', 'absent beside a leaseTime that is not renewed', maxHoldTime, message);
}

export function checkWaitTime(value: unknown, byDefault: number): number {
  if (value === undefined) return byDefault;
  if (value === Infinity) return Infinity;
  if (typeof value !== 'number' || !Number.isInteger(value) || Math.abs(value) > MAX_MS) {
    throw new InvalidArgumentError('waitTime', 'an integer (ms) up to 2^53 - 1, or Infinity', value);
  }
  return value;
}

/** @param least - the smallest valid number; 0 if a call for no permit does nothing. */
export function checkPermits(value: unknown, byDefault: number | undefined, least = 0): number {
  const permits = value === undefined ? byDefault : value;
  if (typeof permits !== 'number' || !Number.isSafeInteger(permits) || permits < least) {
    throw new InvalidArgumentError('permits', `an integer of at least ${least}`, permits);
  }
  return permits;
}

/** Checks a number of permits to add. A negative number removes permits. */
export function checkAnyPermits(permits: unknown): void {
  if (!Number.isSafeInteger(permits)) throw new InvalidArgumentError('permits', 'an integer', permits);
}

/** Checks the time, in milliseconds, after which Redis deletes a key. */
export function checkTimeToLive(timeToLive: unknown): void {
  if (!Number.isSafeInteger(timeToLive) || (timeToLive as number) < 1) {
    throw new InvalidArgumentError('timeToLive', 'an integer of at least 1 (ms)', timeToLive);
  }
}

/** @returns the ids without duplicates, in lower case as Redis returns them. */
export function checkPermitIds(given: unknown): string[] {
  const ids: unknown[] = Array.isArray(given) ? given : [given];
  if (ids.length === 0 || !ids.every((id) => typeof id === 'string' && id !== '')) {
    throw new InvalidArgumentError('ids', 'the id of a permit, or an array of at least one id', given);
  }
  return [...new Set((ids as string[]).map((id) => id.toLowerCase()))];
}

const NONE = Object.freeze({});

export function checkOptions<T extends AcquireOptions>(value: T | undefined, known: readonly string[]): T {
  if (value === undefined) return NONE as T;
  // Catches a ported `lock(10, TimeUnit.SECONDS)` or `tryLock(1, 10, 'SECONDS')`, whose times would be 1,000 times too
  // short.
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidArgumentError('options', 'an object; times are milliseconds', value);
  }
  // A signal in place of `{ signal }` has no own properties, so the call would ignore it and wait without limit.
  if (isAbortSignal(value)) throw new InvalidArgumentError('options', 'an object, as { signal }', value);
  // A Date or a Map has no option as an own property, so it would pass for an empty object.
  if (!isPlain(value)) throw new InvalidArgumentError('options', 'a plain object; times are milliseconds', value);
  refuseUnknown('options', value, known);
  const { signal, context, release } = value;
  checkReleaseMode(release);
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw new InvalidArgumentError('signal', 'an AbortSignal', signal);
  }
  checkContext(context);
  return value;
}

/** Refuses arguments beside an options object: the call would ignore them. */
export function checkAlone(...others: readonly unknown[]): void {
  const other = others.find((value) => value !== undefined);
  if (other !== undefined) throw new InvalidArgumentError('options', 'the only argument', other);
}

/** Tells `withLock(fn)` from `withLock(options, fn)`. */
export function checkBody<O extends object, F extends (...args: never[]) => unknown>(
  first: O | F,
  second: F | undefined,
): { readonly options: Exclude<O, F> | undefined; readonly fn: F } {
  if (typeof first === 'function') {
    if (second === undefined) return { options: undefined, fn: checkFunction(first) };
    throw new InvalidArgumentError('fn', 'the last argument, after the options', second);
  }
  return { options: first as Exclude<O, F>, fn: checkFunction(second) };
}

/** Refuses a generator function: its body runs when the caller iterates, after the lock is released. */
function checkFunction<F>(fn: F | undefined): F {
  if (typeof fn !== 'function') throw new InvalidArgumentError('fn', 'a function', fn);
  if (!Object.prototype.toString.call(fn).endsWith('GeneratorFunction]')) return fn;
  const expectation = 'a function that is no generator function';
  throw new InvalidArgumentError(
    'fn',
    expectation,
    fn,
    `fn must be ${expectation}; use an async function and iterate in it`,
  );
}

/** Checks the options of a semaphore's handle. */
export function checkDeclaredPermits(value: { permits?: number | undefined } = {}): number | undefined {
  if (typeof value !== 'object' || (value as unknown) === null || !isPlain(value)) {
    throw new InvalidArgumentError('options', 'a plain object, as { permits: 5 }', value);
  }
  refuseUnknown('options', value, ['permits']);
  return value.permits === undefined ? undefined : checkPermits(value.permits, undefined);
}

/** Checks the options of a handle. With a misspelled `context`, the handle would act for the calling flow. */
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

/**
 * Checks the options of `close()`. With a misspelled `releaseHolds`, the locks would stay held until their leases end.
 */
export function checkCloseOptions(value: { releaseHolds?: unknown; drain?: unknown }): void {
  if (typeof value !== 'object' || (value as unknown) === null) {
    throw new InvalidArgumentError('options', 'an object', value);
  }
  refuseUnknown('options', value, ['releaseHolds', 'drain']);
  const { releaseHolds, drain } = value;
  if (releaseHolds !== undefined && typeof releaseHolds !== 'boolean') {
    throw new InvalidArgumentError('releaseHolds', 'true or false', releaseHolds);
  }
  if (drain !== undefined && !(Number.isSafeInteger(drain) && (drain as number) >= 0)) {
    throw new InvalidArgumentError('drain', 'an integer of at least 0 (ms)', drain);
  }
}

export function checkContext(context: unknown): LockContext | undefined {
  if (context === undefined || isLockContext(context)) return context;
  throw new InvalidArgumentError('context', 'a LockContext', context);
}

/** Compares the tag, so that an object of another realm counts as well. The prototype check is the fast path. */
function isPlain(value: object): boolean {
  return (
    Object.getPrototypeOf(value) === Object.prototype || Object.prototype.toString.call(value) === '[object Object]'
  );
}

function isAbortSignal(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'aborted' in value && 'addEventListener' in value;
}

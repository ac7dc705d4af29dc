import { InvalidArgumentError, type LockName, type LockTimeoutError } from '../../index.js';
import { isLockName, KINDS, timeExpected, type LockedKind } from '../shared/kinds.js';

/**
 * The name of a lock, or several names: the function then runs inside a multi-lock, which holds all of them or none. A
 * name is a string, or a `LockName` of the tag `lockName`.
 */
export type LockedName = string | LockName | readonly (string | LockName)[];

/** A value, or a function of `this` and the arguments of the call. */
export type FromCall<V, T, A extends readonly unknown[]> = V | ((this: T, ...args: A) => V);

/** The options of a locked function that depend on no argument. */
export interface LockedTerms {
  /**
   * The kind of the lock: `lock`, `non-reentrant`, `fair`, `non-reentrant-fair`, `fenced`, `spin`, or the `read` or
   * `write` half of a read-write lock.
   *
   * @defaultValue `lock`
   */
  kind?: LockedKind | undefined;
  /**
   * Time to wait for the lock, in milliseconds, or `Infinity`.
   *
   * @defaultValue 0: the call tries once
   */
  waitTime?: number | undefined;
  /**
   * Lease of the hold, in milliseconds: an integer of at least 10, or -1 for the watchdog.
   *
   * @defaultValue the watchdog renews the hold until the function has ended
   */
  leaseTime?: number | undefined;
  /**
   * `true`: the watchdog renews the hold with `leaseTime`, every third of it.
   *
   * @defaultValue a hold with a `leaseTime` is not renewed
   */
  renew?: boolean | undefined;
  /**
   * Longest time, in milliseconds, for which the watchdog renews the hold, counted from its grant.
   *
   * @defaultValue the option `maxHoldTime` of the client
   */
  maxHoldTime?: number | undefined;
  /**
   * Time for which the lock stays held at least, in milliseconds, counted from when the function begins. If the
   * function
   * ends sooner, the call resolves, and the lock stays held for the rest of the time. Use it for a job that several
   * machines start at the same time by clocks that differ.
   *
   * @defaultValue 0: the lock is free when the function has ended
   */
  atLeast?: number | undefined;
}

/**
 * The options of a locked function. `T` is the type of its `this`, `A` of its arguments, `B` of the result of
 * `onBusy`.
 */
export interface LockedOptions<T, A extends readonly unknown[], B = never> extends LockedTerms {
  /** The name of the lock, a list of names, or a function of the arguments that returns one of the two. */
  key: FromCall<LockedName, T, A>;
  /** Aborts the wait. A granted hold is not affected. A function of the arguments can return the signal of one call. */
  signal?: FromCall<AbortSignal | undefined, T, A> | undefined;
  /**
   * Whether this call needs the lock. If the condition returns `false`, the function runs without the lock.
   *
   * @defaultValue every call needs the lock
   */
  when?: ((this: T, ...args: A) => boolean | PromiseLike<boolean>) | undefined;
  /**
   * What a call does if the lock stays busy for all of `waitTime`. The function does not run.
   *
   * - `'throw'`: the call rejects with the `LockTimeoutError`.
   * - `'skip'`: the call resolves with `undefined`.
   * - a function: the call resolves with its result. It receives the `LockTimeoutError` and the arguments of the call.
   *
   * @defaultValue `'throw'`
   */
  onBusy?: 'throw' | 'skip' | ((this: T, busy: LockTimeoutError, ...args: A) => B | PromiseLike<B>) | undefined;
}

/** The options for the code that runs calls: every call has its own `this` and arguments. */
export type AnyLockedOptions = LockedOptions<unknown, readonly unknown[], unknown>;

type Check = (value: unknown) => string | undefined;

const isFunction = (value: unknown): boolean => typeof value === 'function';

/**
 * For each option the expectation that a value misses. The lock itself checks signals and the limits of times, before any
 * command.
 */
const OPTIONS: Readonly<Record<keyof AnyLockedOptions, Check>> = {
  key: (value) =>
    typeof value === 'string' || isLockName(value) || Array.isArray(value) || isFunction(value)
      ? undefined
      : 'a name, a list of names or a function of the arguments',
  kind: (value) =>
    value === undefined || KINDS.includes(value as LockedKind) ? undefined : `one of ${KINDS.join(', ')}`,
  waitTime: timeExpected,
  leaseTime: timeExpected,
  renew: (value) => (value === undefined || typeof value === 'boolean' ? undefined : 'true or false'),
  maxHoldTime: timeExpected,
  atLeast: (value) =>
    value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0)
      ? undefined
      : 'an integer of at least 0 (ms)',
  signal: () => undefined,
  when: (value) => (value === undefined || isFunction(value) ? undefined : 'a function of the arguments'),
  onBusy: (value) =>
    value === undefined || value === 'throw' || value === 'skip' || isFunction(value)
      ? undefined
      : `'throw', 'skip' or a function of the error and the arguments`,
};

/** Checks options where a function is declared, so that a mistake does not wait for the first call. */
export function checkLockedOptions(options: unknown): AnyLockedOptions {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError('options', 'an object with a key', options);
  }
  for (const name of Object.keys(options)) {
    if (name in OPTIONS) continue;
    const expectation = `one of ${Object.keys(OPTIONS).join(', ')}`;
    throw new InvalidArgumentError(name, expectation, undefined, `unknown option "${name}"; expected ${expectation}`);
  }
  const given = options as Record<string, unknown>;
  for (const [name, check] of Object.entries(OPTIONS)) {
    const expectation = check(given[name]);
    if (expectation !== undefined) throw new InvalidArgumentError(name, expectation, given[name]);
  }
  return options as AnyLockedOptions;
}

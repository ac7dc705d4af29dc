import { InvalidArgumentError, type LockClient } from '../../index.js';
import { checkLockedOptions, type LockedOptions } from './options.js';
import { clientOf, runLocked, type Body } from './run-locked.js';

/** The result of {@link createLocking}. `T` is the type of the `this` in which the client is found. */
export interface Locking<T = unknown> {
  /**
   * Returns a function whose calls run inside a lock. Each call acquires the lock, runs `fn`, and releases the lock. A
   * call from inside a hold of the same lock re-enters.
   *
   * - `fn` fails: the call rejects with the error of `fn`, unchanged.
   * - The lock stays busy for all of `waitTime`: see `onBusy`.
   * - `fn` succeeds, but the hold was lost: the call rejects with a `LockLostError` whose `result` is the value of
   *   `fn`.
   *
   * The returned function has the `name`, the `length` and the arguments of `fn`.
   *
   * @param options - see {@link LockedOptions}.
   * @param fn - the function to run. It receives `this` and the arguments of the call.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid.
   * @throws {LockTimeoutError} `ERR_LOCK_TIMEOUT`: a call found the lock busy, and `onBusy` is `'throw'`.
   * @throws the errors of `Lock.withLock` and of `fn`, at each call.
   * @example
   * const ship = locked({ key: (orderId) => `order:${orderId}`, waitTime: 5_000 }, async (orderId: string) => {
   *   await reserve(orderId);
   * });
   * await ship('42');
   */
  locked<This extends T, A extends unknown[], R>(
    options: LockedOptions<This, A> & { onBusy?: 'throw' | undefined },
    fn: (this: This, ...args: A) => R,
  ): (this: This, ...args: A) => Promise<Awaited<R>>;
  /** Returns a function whose calls resolve with `undefined` if the lock stays busy. See the other overload. */
  locked<This extends T, A extends unknown[], R>(
    options: LockedOptions<This, A> & { onBusy: 'skip' },
    fn: (this: This, ...args: A) => R,
  ): (this: This, ...args: A) => Promise<Awaited<R> | undefined>;
  /**
   * Returns a function whose calls resolve with the result of `onBusy` if the lock stays busy. See the other overload.
   */
  locked<This extends T, A extends unknown[], R, B>(
    options: LockedOptions<This, A, B>,
    fn: (this: This, ...args: A) => R,
  ): (this: This, ...args: A) => Promise<Awaited<R> | B>;
}

/**
 * Creates the functions that lock other functions.
 *
 * @param client - the client of the locks, or a function that finds it in the `this` of a call. The function runs at
 *   each call, so the client may be created later.
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `client` is neither.
 * @example
 * const { locked } = createLocking(client);
 * const ship = locked({ key: (orderId) => `order:${orderId}` }, async (orderId: string) => reserve(orderId));
 */
export function createLocking<T = unknown>(client: LockClient | ((self: T) => LockClient)): Locking<T> {
  const find = clientOf(client);
  const locked = (given: unknown, fn: unknown): Body => {
    const options = checkLockedOptions(given);
    if (typeof fn !== 'function') throw new InvalidArgumentError('fn', 'a function', fn);
    const call: Body = function (...args) {
      return runLocked(find, options, fn as Body, this, args);
    };
    Object.defineProperties(call, {
      name: { value: fn.name, configurable: true },
      length: { value: fn.length, configurable: true },
    });
    return call;
  };
  return { locked: locked as Locking<T>['locked'] };
}

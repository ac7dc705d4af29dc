import type { LockClient } from '../../index.js';
import { checkFunction, decorate, type LockedDecorator } from './locked-decorator.js';
import { checkLockedOptions, type LockedOptions, type LockedTerms } from './options.js';
import { clientOf, lockedBody, type Body } from './run-locked.js';

/** A function that can be locked. */
export type AnyFunction = (...args: never[]) => unknown;

/** A function that runs each call of `Fn` inside a lock. A call whose lock is busy resolves with `B`. */
export type LockedFunction<T, Fn extends AnyFunction, B> = (
  this: T & ThisParameterType<Fn>,
  ...args: Parameters<Fn>
) => Promise<Awaited<ReturnType<Fn>> | B>;

/**
 * The options of a decorator, whose functions may each take other arguments: `K` of the key, `S` of the signal, `W`
 * of `when`.
 */
export type DecoratorOptions<T, K extends unknown[], S extends unknown[], W extends unknown[]> = LockedTerms &
  Pick<LockedOptions<T, K>, 'key'> &
  Pick<LockedOptions<T, S>, 'signal'> &
  Pick<LockedOptions<T, W>, 'when'>;

/** The result of {@link createLocking}. `T` is the type of the `this` in which the client is found. */
export interface Locking<T = unknown> {
  /**
   * Returns a function whose calls run inside a lock. Each call acquires the lock, runs `fn`, and releases the lock. A
   * call from inside a hold of the same lock re-enters.
   *
   * - `fn` fails: the call rejects with the error of `fn`, unchanged.
   * - The lock stays busy for all of `waitTime`: see `onBusy`.
   * - `fn` returns an Observable: the call rejects with an `InvalidArgumentError`. The work of an Observable begins when it
   *   is subscribed to, and by then the lock is free.
   * - `fn` succeeds, but the hold was lost: the call rejects with a `LockLostError` whose `result` is the value of
   * `fn`.
   *
   * The returned function has the `name`, the `length` and the arguments of `fn`.
   *
   * @param options - see {@link LockedOptions}.
   * @param fn - the function to run. It receives `this` and the arguments of the call.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid, or `fn` is a generator function.
   * @throws {LockTimeoutError} `ERR_LOCK_TIMEOUT`: a call found the lock busy, and `onBusy` is `'throw'`.
   * @throws the errors of `Lock.withLock` and of `fn`, at each call.
   * @example
   * const ship = locked({ key: (orderId) => `order:${orderId}`, waitTime: 5_000 }, async (orderId: string) => {
   *   await reserve(orderId);
   * });
   * await ship('42');
   */
  locked<Fn extends AnyFunction>(
    options: LockedOptions<T & ThisParameterType<Fn>, Parameters<Fn>> & { onBusy?: 'throw' | undefined },
    fn: Fn,
  ): LockedFunction<T, Fn, never>;
  /** Returns a function whose calls resolve with `undefined` if the lock stays busy. See the other overload. */
  locked<Fn extends AnyFunction>(
    options: LockedOptions<T & ThisParameterType<Fn>, Parameters<Fn>> & { onBusy: 'skip' | 'throw' },
    fn: Fn,
  ): LockedFunction<T, Fn, undefined>;
  /**
   * Returns a function whose calls resolve with the result of `onBusy` if the lock stays busy. See the other
   * overload.
   */
  locked<Fn extends AnyFunction, B>(
    options: LockedOptions<T & ThisParameterType<Fn>, Parameters<Fn>, B>,
    fn: Fn,
  ): LockedFunction<T, Fn, B>;

  /**
   * Decorates an async method whose calls run inside a lock, as those of {@link Locking.locked} do. It works as a
   * standard
   * decorator (TypeScript 5, esbuild, Babel, swc) and as a legacy one (`experimentalDecorators`).
   *
   * The method keeps its `name`, its `length`, its properties and its metadata (`reflect-metadata`), so the decorator
   * may
   * stand before or after those of a framework, such as `@Get()` or `@Cron()`. Annotate the parameters of a key
   * function:
   * TypeScript checks them against those of the method.
   *
   * @param options - see {@link LockedOptions}.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid, or what is decorated is no
   * method, or a generator.
   * @example
   * class Orders {
   *   \@Locked({ key: (orderId: string) => `order:${orderId}`, waitTime: 5_000 })
   *   async ship(orderId: string): Promise<void> {
   *     await reserve(orderId);
   *   }
   * }
   */
  Locked<This extends T, K extends unknown[], S extends unknown[], W extends unknown[]>(
    options: DecoratorOptions<This, K, S, W> & { onBusy?: 'throw' | undefined },
  ): LockedDecorator<NoInfer<This>, [K, S, W], never>;
  /** Decorates a method whose calls resolve with `undefined` if the lock stays busy. See the other overload. */
  Locked<This extends T, K extends unknown[], S extends unknown[], W extends unknown[]>(
    options: DecoratorOptions<This, K, S, W> & { onBusy: 'skip' | 'throw' },
  ): LockedDecorator<NoInfer<This>, [K, S, W], undefined>;
  /**
   * Decorates a method whose calls resolve with the result of `onBusy` if the lock stays busy. See the other
   * overload.
   */
  Locked<This extends T, K extends unknown[], S extends unknown[], W extends unknown[], F extends unknown[], B>(
    options: DecoratorOptions<This, K, S, W> & Pick<LockedOptions<This, F, B>, 'onBusy'>,
  ): LockedDecorator<NoInfer<This>, [K, S, W, F], B>;
}

/**
 * Creates the functions that lock other functions and methods.
 *
 * @param client - the client of the locks, or a function that finds it in the `this` of a call. The function runs at
 * each
 *   call, so the client may be created later.
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `client` is neither.
 * @example
 * const { locked, Locked } = createLocking(client);
 * const ship = locked({ key: (orderId) => `order:${orderId}` }, async (orderId: string) => reserve(orderId));
 */
export function createLocking<T = unknown>(client: LockClient | ((self: T) => LockClient)): Locking<T> {
  const find = clientOf(client);
  const locked = (given: unknown, fn: unknown): Body => {
    const options = checkLockedOptions(given);
    return lockedBody(find, options, checkFunction('fn', fn));
  };
  const Locked = (given: unknown) => {
    const options = checkLockedOptions(given);
    return decorate((method) => lockedBody(find, options, method));
  };
  return { locked: locked as Locking<T>['locked'], Locked: Locked };
}

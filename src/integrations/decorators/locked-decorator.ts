import { InvalidArgumentError } from '../../index.js';
import type { Body } from './run-locked.js';

/** A method that a decorator can lock: the caller of a locked method has to wait for the lock. */
export type AsyncMethod = (...args: never[]) => Promise<unknown>;

/** `unknown` if a function of the arguments `A` can take those of the method. */
export type Takes<M extends AsyncMethod, A extends unknown[]> = [(...args: A) => void] extends [
  (...args: Parameters<M>) => void,
]
  ? unknown
  : { error: 'a function of the options takes other arguments than the method' };

/** `unknown` if each function among the options can take the arguments of the method, and the method may return `B`. */
export type Fits<M extends AsyncMethod, Fns extends unknown[][], B> = Fns extends [
  infer A extends unknown[],
  ...infer Rest extends unknown[][],
]
  ? Takes<M, A> & Fits<M, Rest, B>
  : [B] extends [Awaited<ReturnType<M>>]
    ? unknown
    : { error: 'the method must be able to return what onBusy returns' };

/** The part of a decorator's context that the standard passes for a method. */
export interface MethodContext<This> {
  readonly kind: 'method';
  readonly name: string | symbol;
  readonly access: { has(object: This): boolean };
}

/**
 * The decorator that `@Locked(options)` returns, for async methods, in both forms. `T`: the `this` in which the client is
 * found. `Fns`: the arguments of each function among the options. `B`: the result of a call whose lock is busy.
 */
export interface LockedDecorator<T, Fns extends unknown[][], B> {
  /** The standard form: TypeScript 5 and later, esbuild, Babel, swc. */
  <This extends T, M extends AsyncMethod>(method: M, context: MethodContext<This> & Fits<M, Fns, B>): M;
  /** The legacy form: `experimentalDecorators`. */
  <M extends AsyncMethod>(
    target: T & object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<M> & Fits<M, Fns, B>,
  ): void;
}

/** The part of reflect-metadata that copies what other decorators have stored on a method. */
interface Metadata {
  getOwnMetadataKeys?(target: object): unknown[];
  getOwnMetadata(key: unknown, target: object): unknown;
  defineMetadata(key: unknown, value: unknown, target: object): void;
}

/** A decorator of both forms. Only the standard form passes a context object as its second argument. */
export function decorate(lock: (method: Body) => Body) {
  return (target: unknown, context: unknown, descriptor?: PropertyDescriptor): unknown => {
    if (typeof context === 'object' && context !== null) {
      const { kind } = context as { kind?: unknown };
      return withMetadata(target, lock(methodOf(target, kind === 'method')));
    }
    const method = methodOf(descriptor?.value, descriptor !== undefined);
    return { ...descriptor, value: withMetadata(method, lock(method)) };
  };
}

function methodOf(value: unknown, isMethod: boolean): Body {
  if (isMethod && typeof value === 'function') return checkFunction('the method of @Locked', value);
  throw new InvalidArgumentError('@Locked', 'on a method; use locked() for a function that is a value', value);
}

/** Refuses a generator function: its body runs when the caller iterates, after the lock is released. */
export function checkFunction(argument: string, value: unknown): Body {
  if (typeof value !== 'function') throw new InvalidArgumentError(argument, 'a function', value);
  if (!Object.prototype.toString.call(value).endsWith('GeneratorFunction]')) return value as Body;
  const expectation = 'a function that is no generator function';
  const advice = 'use an async function and iterate in it';
  throw new InvalidArgumentError(argument, expectation, value, `${argument} must be ${expectation}; ${advice}`);
}

function withMetadata(method: unknown, locked: Body): Body {
  const metadata = Reflect as unknown as Metadata;
  for (const key of metadata.getOwnMetadataKeys?.(method as object) ?? []) {
    metadata.defineMetadata(key, metadata.getOwnMetadata(key, method as object), locked);
  }
  return locked;
}

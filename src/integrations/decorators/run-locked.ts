import { InvalidArgumentError, type Hold, type LockClient, type LockTimeoutError } from '../../index.js';
import { lockOf } from '../shared/kinds.js';
import type { AnyLockedOptions } from './options.js';

/** Finds the client of a call, from its `this`. */
export type ClientOf = (self: unknown) => LockClient;

/** A function whose calls run inside a lock. */
export type Body = (this: unknown, ...args: unknown[]) => unknown;

/** Returns a function that finds the client at each call, because an instance may get its client late. */
export function clientOf(given: unknown): ClientOf {
  if (isClient(given)) return () => given;
  if (typeof given !== 'function') {
    throw new InvalidArgumentError(
      'client',
      'a client of createClient(), or a function of `this` that returns one',
      given,
    );
  }
  return (self) => {
    const client = (given as ClientOf)(self);
    if (isClient(client)) return client;
    throw new InvalidArgumentError('client', 'a function that returns a client of createClient()', client);
  };
}

/** Checks the methods: the client may belong to the copy of the package in the other module format. */
function isClient(value: unknown): value is LockClient {
  return typeof value === 'object' && value !== null && 'getLock' in value && 'getMultiLock' in value;
}

/** A function that runs each call of `body` inside its lock. It looks like `body` to code that reads its properties. */
export function lockedBody(client: ClientOf, options: AnyLockedOptions, body: Body): Body {
  const call: Body = function (...args) {
    return runLocked(client, options, body, this, args);
  };
  for (const name of Reflect.ownKeys(body)) {
    const descriptor = Reflect.getOwnPropertyDescriptor(body, name);
    if (name !== 'prototype' && descriptor !== undefined) Object.defineProperty(call, name, descriptor);
  }
  return call;
}

/** Runs one call of `body` inside its lock. */
async function runLocked(
  client: ClientOf,
  options: AnyLockedOptions,
  body: Body,
  self: unknown,
  args: unknown[],
): Promise<unknown> {
  const { key, kind = 'lock', waitTime = 0, atLeast = 0, signal, when, onBusy = 'throw' } = options;
  const { leaseTime, renew, maxHoldTime } = options;
  if (when !== undefined && !(await when.apply(self, args))) return body.apply(self, args);
  const lock = lockOf(client(self), kind, typeof key === 'function' ? key.apply(self, args) : key);
  const abort = typeof signal === 'function' ? signal.apply(self, args) : signal;
  let entered = false;
  try {
    return await lock.withLock({ waitTime, leaseTime, renew, maxHoldTime, signal: abort }, (hold) => {
      entered = true;
      const run = (): unknown => runToEnd(() => body.apply(self, args));
      return atLeast === 0 ? run() : runAtLeast(hold, atLeast, run);
    });
  } catch (error) {
    // A busy lock inside of `body` is an error of `body`.
    if (entered || onBusy === 'throw' || !isTimeout(error)) throw error;
    return onBusy === 'skip' ? undefined : onBusy.call(self, error, ...args);
  }
}

/** Refuses a result whose work begins after the call, when the lock is free again. */
async function runToEnd(work: () => unknown): Promise<unknown> {
  const result = await work();
  const later = workAfter(result);
  if (later === undefined) return result;
  const expectation = 'a function that ends its work before it returns';
  throw new InvalidArgumentError('fn', expectation, undefined, `the locked function returned ${later}`);
}

function workAfter(result: unknown): string | undefined {
  if (isObservable(result))
    return (
      'an Observable, whose work begins at its subscription, after the release of the lock; return a promise of its ' +
      'last value, such as lastValueFrom(observable)'
    );
  if (isAsyncIterator(result))
    return (
      'an async iterator, whose work begins when the caller iterates, after the release of the lock; collect its values ' +
      'inside the function, or hold the lock in the code that iterates'
    );
  return undefined;
}

/** An async generator that a compiler has made a plain function, or a wrapper of one. A stream has no `next`. */
function isAsyncIterator(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { next } = value as { next?: unknown };
  return typeof next === 'function' && Symbol.asyncIterator in value;
}

function isObservable(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { subscribe, pipe } = value as { subscribe?: unknown; pipe?: unknown };
  return typeof subscribe === 'function' && typeof pipe === 'function';
}

/**
 * Runs `work`, and leaves the hold to end at the earliest `ms` after its begin. `withLock` reports a failed release.
 */
async function runAtLeast(hold: Hold, ms: number, work: () => unknown): Promise<unknown> {
  const begun = performance.now();
  try {
    return await work();
  } finally {
    const after = Math.max(0, Math.ceil(begun + ms - performance.now()));
    hold.release({ after }).catch(() => undefined);
  }
}

function isTimeout(error: unknown): error is LockTimeoutError {
  return (error as Partial<LockTimeoutError> | undefined)?.code === 'ERR_LOCK_TIMEOUT';
}

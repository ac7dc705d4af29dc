import type { LeaseClock } from './clock.js';
import { LockAbortedError } from './errors.js';

/** What is to be done when a signal fires. */
type Calls = Set<() => void>;

const watched = new WeakMap<AbortSignal, { readonly calls: Calls; readonly listener: () => void }>();

/**
 * Calls `fn` once when the signal fires; the function returned takes that back. However many wait on a signal, it has
 * one listener of ours: Node warns of a leak from the eleventh on, and a signal for the end of the process has more.
 */
export function onAbort(signal: AbortSignal, fn: () => void): () => void {
  let watch = watched.get(signal);
  if (watch === undefined) {
    const calls: Calls = new Set();
    const listener = (): void => {
      watched.delete(signal);
      for (const call of [...calls]) call();
    };
    watch = { calls, listener };
    watched.set(signal, watch);
    signal.addEventListener('abort', listener, { once: true });
  }
  const { calls, listener } = watch;
  calls.add(fn);
  return () => {
    if (!calls.delete(fn) || calls.size > 0) return;
    signal.removeEventListener('abort', listener);
    watched.delete(signal);
  };
}

const aborted = new WeakMap<AbortSignal, Map<string, LockAbortedError>>();

/**
 * What calls for this lock reject with when the signal has fired: one error for all of them, as the signal's reason is
 * one. With an error and its stack for each call, a signal that many wait on would block the event loop for long.
 */
export function abortedBy(signal: AbortSignal, lockName: string): LockAbortedError {
  const errors = aborted.get(signal) ?? new Map<string, LockAbortedError>();
  aborted.set(signal, errors);
  const error = errors.get(lockName) ?? new LockAbortedError(lockName, signal.reason);
  errors.set(lockName, error);
  return error;
}

/** Resolves after `ms`, or as soon as the signal fires. Keeps the process alive. */
export function pause(clock: LeaseClock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resume) => {
    const over = (): void => {
      timer.cancel();
      unwatch?.();
      resume();
    };
    const timer = clock.setTimer(clock.now() + ms, over, true);
    const unwatch = signal === undefined ? undefined : onAbort(signal, over);
  });
}

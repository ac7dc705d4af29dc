/* How long a call waits: its time limit, and the signal that ends the wait earlier. */
import type { LeaseClock, LeaseClockMs } from '../../clock.js';
import { LockAbortedError } from '../../errors.js';

/** How long a call waits, and the signal that ends the wait earlier. */
export type WaitLimit = {
  /** The wait time that the caller passed, in ms. */
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
} & (
  | { readonly kind: 'one try' | 'unlimited'; readonly until: undefined }
  /** `until`: when the wait ends. */
  | { readonly kind: 'limited'; readonly until: LeaseClockMs }
);

/** Most calls that wait have this limit, so they share one object. */
const UNLIMITED: WaitLimit = { kind: 'unlimited', until: undefined, waitTime: Infinity, signal: undefined };

export function waitLimitOf(clock: LeaseClock, waitTime: number, signal: AbortSignal | undefined): WaitLimit {
  if (waitTime === Infinity && signal === undefined) return UNLIMITED;
  if (waitTime > 0 && waitTime < Infinity) return { kind: 'limited', until: clock.now() + waitTime, waitTime, signal };
  return { kind: waitTime > 0 ? 'unlimited' : 'one try', until: undefined, waitTime, signal };
}

/** The rest of the wait time, in ms; 0 or less if the wait is over. */
export function waitTimeLeft({ kind, until }: WaitLimit, now: LeaseClockMs): number {
  if (kind === 'limited') return until - now;
  return kind === 'unlimited' ? Infinity : 0;
}

/** A call that a signal ends. */
interface AbortableCall {
  aborted(): void;
}

const watched = new WeakMap<AbortSignal, { readonly calls: Set<AbortableCall>; readonly listener: () => void }>();

/**
 * Tells the call once when the signal aborts. All calls on one signal share one listener: Node.js warns of a leak from
 * the eleventh listener on, and more calls than that may wait on one signal.
 */
export function watchAbort(signal: AbortSignal, call: AbortableCall): void {
  let watch = watched.get(signal);
  if (watch === undefined) {
    const calls = new Set<AbortableCall>();
    const listener = (): void => {
      watched.delete(signal);
      for (const each of [...calls]) each.aborted();
    };
    watch = { calls, listener };
    watched.set(signal, watch);
    signal.addEventListener('abort', listener, { once: true });
  }
  watch.calls.add(call);
}

export function unwatchAbort(signal: AbortSignal, call: AbortableCall): void {
  const watch = watched.get(signal);
  if (watch === undefined || !watch.calls.delete(call) || watch.calls.size > 0) return;
  signal.removeEventListener('abort', watch.listener);
  watched.delete(signal);
}

/** Calls `fn` once when the signal aborts. The returned function cancels this. */
export function onAbort(signal: AbortSignal, fn: () => void): () => void {
  const call = { aborted: fn };
  watchAbort(signal, call);
  return () => unwatchAbort(signal, call);
}

const aborted = new WeakMap<AbortSignal, Map<string, LockAbortedError>>();

/**
 * Returns the error with which calls for this lock reject when the signal has aborted. All calls that the signal ends
 * together share one error: if many calls wait on one signal, an error with a stack for each call would block the event
 * loop for long. Later calls get another error: a signal may live as long as the process, and an error for each name that
 * was ever used with it would, too.
 */
export function abortedBy(signal: AbortSignal, lockName: string): LockAbortedError {
  let errors = aborted.get(signal);
  if (errors === undefined) {
    aborted.set(signal, (errors = new Map<string, LockAbortedError>()));
    queueMicrotask(() => aborted.delete(signal));
  }
  const error = errors.get(lockName) ?? new LockAbortedError(lockName, signal.reason);
  errors.set(lockName, error);
  return error;
}

/** Resolves after `ms` milliseconds, or as soon as the signal aborts. Keeps the process alive. */
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

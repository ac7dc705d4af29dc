import mitt from 'mitt';
import { InvalidArgumentError, type LossReason } from './errors.js';

/**
 * What a client tells besides its promises. Every event names the lock as the caller did.
 *
 * Each hold that a call gets is told once as `acquired`, and then once as `released` or as `leaseLost`: nested holds one
 * by one, of a multi-lock each member. At a hand-over `released` of the owner before comes first. A hold that a plain
 * `close()` ends is told as neither.
 */
export type LockEvents = {
  /** A call got a hold: at first (`holdCount` 1) or by a nested call. `handedOff`: it came straight from a local owner. */
  acquired: { lockName: string; owner: string; holdCount: number; handedOff: boolean };
  /**
   * A hold was released. `holdCount` is what the owner has left. After a release that Redis did not answer or refused:
   * told when the release in the background has ended.
   */
  released: { lockName: string; owner: string; holdCount: number };
  /** A call began to wait. `waiters` counts those of this client on this lock. */
  waiting: { lockName: string; waiters: number };
  /** The watchdog confirmed a hold. `remaining`: ms of lease from when the request was sent. */
  renewed: { lockName: string; owner: string; remaining: number };
  /** A renewal was not answered; the lease may still be valid, and it is tried again. */
  renewFailed: { lockName: string; owner: string; cause: unknown };
  /** A hold was lost, or its release found that: stop what it protects. Its `signal` aborts, its `release()` rejects. */
  leaseLost: { lockName: string; owner: string; reason: LossReason; cause?: unknown };
  /** The release at the end of a `withLock` failed; what is left ends with its lease. */
  releaseFailed: { lockName: string; owner: string; cause: unknown };
  /** A connection to Redis failed; it is being made again. */
  connectionError: { connection: 'command' | 'subscriber'; cause: unknown };
  /** The server refuses `TIME`: late requests can no longer be told from timely ones. Once per client. */
  clockUnavailable: { cause: unknown };
};

export interface EventBus {
  /** @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: there is no such event. */
  on<K extends keyof LockEvents>(type: K, listener: (event: LockEvents[K]) => void): void;
  /** Without a listener: all of this type. */
  off<K extends keyof LockEvents>(type: K, listener?: (event: LockEvents[K]) => void): void;
}

export interface EventSource extends EventBus {
  /** Asked before an event is built: on the hot path nobody pays for events that nobody hears. */
  heard(type: keyof LockEvents): boolean;
  emit<K extends keyof LockEvents>(type: K, event: LockEvents[K]): void;
}

const TYPES: Record<keyof LockEvents, true> = {
  acquired: true,
  released: true,
  waiting: true,
  renewed: true,
  renewFailed: true,
  leaseLost: true,
  releaseFailed: true,
  connectionError: true,
  clockUnavailable: true,
};

/** A misspelt `leaseLost` would never be told. */
function checkType(type: unknown): void {
  if (typeof type === 'string' && Object.hasOwn(TYPES, type)) return;
  throw new InvalidArgumentError('type', `one of ${Object.keys(TYPES).join(', ')}`, type);
}

function checkListener(listener: unknown): void {
  if (typeof listener !== 'function') throw new InvalidArgumentError('listener', 'a function', listener);
}

// mitt's default import is not callable for TypeScript in an ES module.
const createMitt = mitt as unknown as typeof mitt.default;

/**
 * mitt stops at the first listener that throws and lets the error reach the emitter: a user's bug would end the
 * watchdog. Here every listener runs, outside of every hold, and its error surfaces as an uncaught exception.
 */
export function createEvents(outside: (fn: () => void) => void): EventSource {
  const bus = createMitt<LockEvents>();
  return {
    on(type, listener) {
      checkType(type);
      checkListener(listener);
      bus.on(type, listener);
    },
    off(type, listener) {
      checkType(type);
      if (listener !== undefined) checkListener(listener);
      bus.off(type, listener);
    },
    heard: (type) => (bus.all.get(type)?.length ?? 0) > 0,
    emit(type, event) {
      const listeners = bus.all.get(type);
      if (listeners === undefined || listeners.length === 0) return;
      outside(() => {
        for (const listener of [...listeners]) {
          try {
            (listener as (event: unknown) => void)(event);
          } catch (error) {
            queueMicrotask(() => {
              throw error;
            });
          }
        }
      });
    },
  };
}

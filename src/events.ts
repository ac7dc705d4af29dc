import mitt from 'mitt';
import { InvalidArgumentError, type LossReason } from './errors.js';

/**
 * The lifecycle events of a client, by name. `lockName` is the name that the caller used, without the key prefix.
 *
 * The client emits `acquired` once for each hold, and later either `released` or `leaseLost` once. Nested holds and the
 * members of a multi-lock count one by one. At a hand-over, `released` of the previous owner comes before `acquired` of
 * the next one. A hold that ends by a plain `close()` emits neither `released` nor `leaseLost`.
 *
 * Redisson has no such events.
 */
export type LockEvents = {
  /**
   * A call got a hold. `holdCount` is above 1 for a nested call. `handedOff`: another owner of this client passed it
   * on.
   */
  acquired: { lockName: string; owner: string; holdCount: number; handedOff: boolean };
  /**
   * A hold was released. `holdCount` is the number of holds that the owner still has. If Redis did not answer the
   * release or rejected it, the client emits this event when the release in the background has ended.
   */
  released: { lockName: string; owner: string; holdCount: number };
  /** A call began to wait. `waiters` is the number of calls of this client that wait for this lock. */
  waiting: { lockName: string; waiters: number };
  /** Redis confirmed a renewal. `remaining` is the lease in milliseconds, counted from when the request was sent. */
  renewed: { lockName: string; owner: string; remaining: number };
  /** A renewal failed. The lease may still be valid, and the client repeats the renewal. */
  renewFailed: { lockName: string; owner: string; cause: unknown };
  /** A hold was lost. Stop the work that it protects. `hold.signal` aborts, and `hold.release()` rejects. */
  leaseLost: { lockName: string; owner: string; reason: LossReason; cause?: unknown };
  /** The release at the end of `withLock` failed. The lock is free at the latest when its lease ends. */
  releaseFailed: { lockName: string; owner: string; cause: unknown };
  /** A connection to Redis failed. The client reconnects automatically. */
  connectionError: { connection: 'command' | 'subscriber'; cause: unknown };
  /** Redis refuses `TIME`, so a server cannot recognize a request that arrives too late. Emitted once per client. */
  clockUnavailable: { cause: unknown };
};

/** The events of a client. See {@link LockEvents} for their names and payloads. */
export interface EventBus {
  /**
   * Calls `listener` for each event of this type. The listener runs outside of every hold.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the event type is unknown.
   * @example
   * client.events.on('leaseLost', ({ lockName, reason }) => log.error(`lost ${lockName}: ${reason}`));
   */
  on<K extends keyof LockEvents>(type: K, listener: (event: LockEvents[K]) => void): void;
  /**
   * Removes a listener, or all listeners of this type if no listener is given.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the event type is unknown.
   */
  off<K extends keyof LockEvents>(type: K, listener?: (event: LockEvents[K]) => void): void;
}

/** The side of the event bus that the mechanisms use. */
export interface EventSource extends EventBus {
  /**
   * Whether this type has a listener. Callers check this before they build an event, so that an event without a
   * listener costs nothing.
   */
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

/** A listener for a misspelled type would never be called. */
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
 * Creates the event bus of a client. mitt itself stops at the first listener that throws and passes the error to the
 * emitter, so a bug in a listener would end the watchdog. This bus runs every listener, outside of every hold, and
 * rethrows a listener's error as an uncaught exception.
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

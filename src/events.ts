import mitt from 'mitt';
import { afterChange } from './after-change.js';
import { InvalidArgumentError, type LossReason } from './errors.js';

/** The kind of a lock or synchronizer, in events, statistics and diagnostics channels. */
export type LockKind =
  | 'lock'
  | 'non-reentrant'
  | 'fair'
  | 'fenced'
  | 'spin'
  | 'read-write'
  | 'group'
  | 'multi'
  | 'red'
  | 'semaphore'
  | 'permit-expirable-semaphore'
  | 'latch';

/** Whether others can hold it at the same time: readers, permits and waits for a latch are shared. */
export type LockMode = 'exclusive' | 'shared';

/**
 * How an acquisition ended without a hold.
 * - `busy`: the lock stayed busy for the wait time, or for the one try of a call that does not wait.
 * - `aborted`: the signal of the call was aborted.
 * - `failed`: every other error, such as an unavailable Redis or a closed client.
 */
export type MissOutcome = 'busy' | 'aborted' | 'failed';

/**
 * The lifecycle events of a client, by name. `lockName` is the name that the caller used, without the key prefix. `group`
 * is the group of that name, if {@link lockName} made it for the handle of the call. Times are milliseconds.
 *
 * Each acquisition ends with one event: `acquired` (`permitsAcquired` and `latchPassed` for objects without an owner), or
 * `notAcquired`. After `acquired`, the client emits either `released` or `leaseLost` once. Nested holds and the members of
 * a multi-lock count one by one. At a hand-over, `released` of the previous owner comes before `acquired` of the next one.
 * A hold that ends by a plain `close()` emits neither `released` nor `leaseLost`.
 *
 * Redisson has no such events.
 */
export type LockEvents = {
  /**
   * A call got a hold. `holdCount` is above 1 for a nested call. `handedOff`: another owner of this client passed it on.
   * `waited` counts from the call.
   */
  acquired: {
    lockName: string;
    group: string | undefined;
    kind: LockKind;
    mode: LockMode;
    owner: string;
    holdCount: number;
    handedOff: boolean;
    waited: number;
  };
  /** An acquisition ended without a hold. `waited` counts from the call. */
  notAcquired: {
    lockName: string;
    group: string | undefined;
    kind: LockKind;
    mode: LockMode;
    outcome: MissOutcome;
    waited: number;
    cause: unknown;
  };
  /**
   * A hold was released. `holdCount` is the number of holds that the owner still has. If Redis did not answer the
   * release or rejected it, the client emits this event when the release in the background has ended. `held` counts from
   * the grant.
   */
  released: {
    lockName: string;
    group: string | undefined;
    kind: LockKind;
    mode: LockMode;
    owner: string;
    holdCount: number;
    held: number;
  };
  /** A call began to wait. `waiters` is the number of calls of this client that wait for this lock. */
  waiting: { lockName: string; group: string | undefined; waiters: number };
  /** Redis confirmed a renewal. `remaining` is the lease in milliseconds, counted from when the request was sent. */
  renewed: { lockName: string; group: string | undefined; owner: string; remaining: number };
  /** A renewal failed. The lease may still be valid, and the client repeats the renewal. */
  renewFailed: { lockName: string; group: string | undefined; owner: string; cause: unknown };
  /** A hold was lost. Stop the work that it protects. `hold.signal` aborts, and `hold.release()` rejects. */
  leaseLost: {
    lockName: string;
    group: string | undefined;
    kind: LockKind;
    mode: LockMode;
    owner: string;
    reason: LossReason;
    held: number;
    cause?: unknown;
  };
  /** A call got permits of a semaphore. `handedOff`: a release of this client passed the permits on. */
  permitsAcquired: {
    lockName: string;
    group: string | undefined;
    kind: LockKind;
    permits: number;
    handedOff: boolean;
    waited: number;
  };
  /** Permits of a semaphore were released. */
  permitsReleased: { lockName: string; group: string | undefined; kind: LockKind; permits: number };
  /** A call that waited for a latch continues, because the latch is open. */
  latchPassed: { lockName: string; group: string | undefined; waited: number };
  /** A call counted a latch down by one. */
  latchCountedDown: { lockName: string; group: string | undefined };
  /** The release at the end of `withLock` failed. The lock is free at the latest when its lease ends. */
  releaseFailed: { lockName: string; group: string | undefined; owner: string; cause: unknown };
  /**
   * `client.forceUnlock()` of this client freed a lock, found that the owner no longer had it (`not the owner`), or
   * failed. `by` and `address` are those of the options.
   */
  forceUnlocked: {
    lockName: string;
    group: string | undefined;
    owner: string;
    by: string | undefined;
    address: string | undefined;
    result: 'freed' | 'not the owner' | 'failed';
    cause?: unknown;
  };
  /** A connection to Redis failed. The client reconnects automatically. */
  connectionError: { connection: 'command' | 'subscriber'; cause: unknown };
  /** Redis refuses `TIME`, so a server cannot recognize a request that arrives too late. Emitted once per client. */
  clockUnavailable: { cause: unknown };
};

/** The events of a client. See {@link LockEvents} for their names and payloads. */
export interface EventBus {
  /**
   * Calls `listener` for each event of this type. The listener runs outside of every hold, when the client has completed
   * the change that the event reports. It may call any method of the client.
   *
   * @returns a function that removes the listener.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the event type is unknown.
   * @example
   * client.events.on('leaseLost', ({ lockName, reason }) => log.error(`lost ${lockName}: ${reason}`));
   */
  on<K extends keyof LockEvents>(type: K, listener: (event: LockEvents[K]) => void): () => void;
  /**
   * Calls `listener` for the next event of this type, and then removes it.
   *
   * @returns a function that removes the listener before that.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the event type is unknown.
   * @example
   * client.events.once('connectionError', ({ cause }) => log.warn(cause));
   */
  once<K extends keyof LockEvents>(type: K, listener: (event: LockEvents[K]) => void): () => void;
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
  notAcquired: true,
  released: true,
  waiting: true,
  renewed: true,
  renewFailed: true,
  leaseLost: true,
  permitsAcquired: true,
  permitsReleased: true,
  latchPassed: true,
  latchCountedDown: true,
  releaseFailed: true,
  forceUnlocked: true,
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
 * emitter, so a bug in a listener would end the watchdog. This bus runs every listener, outside of every hold and
 * after the change of state that emits the event, and rethrows a listener's error as an uncaught exception.
 */
export function createEvents(outside: (fn: () => void) => void): EventSource {
  const bus = createMitt<LockEvents>();
  /** Maps what `once` registered to the listener of the caller, which `off` receives. */
  const given = new WeakMap<object, unknown>();
  const on: EventBus['on'] = (type, listener) => {
    checkType(type);
    checkListener(listener);
    bus.on(type, listener);
    let isOn = true;
    // The same listener may be registered twice. Each returned function removes one registration.
    return () => {
      if (isOn) bus.off(type, listener);
      isOn = false;
    };
  };
  return {
    on,
    once(type, listener) {
      checkListener(listener);
      const next: typeof listener = (event) => {
        off();
        listener(event);
      };
      given.set(next, listener);
      const off = on(type, next);
      return off;
    },
    off(type, listener) {
      checkType(type);
      if (listener === undefined) return bus.off(type);
      checkListener(listener);
      const registered = (bus.all.get(type) as (typeof listener)[] | undefined) ?? [];
      bus.off(type, registered.find((each) => each === listener || given.get(each) === listener) ?? listener);
    },
    heard: (type) => (bus.all.get(type)?.length ?? 0) > 0,
    emit(type, event) {
      if ((bus.all.get(type)?.length ?? 0) === 0) return;
      const tell = (): void => {
        for (const listener of [...(bus.all.get(type) ?? [])]) {
          try {
            (listener as (event: unknown) => void)(event);
          } catch (error) {
            queueMicrotask(() => {
              throw error;
            });
          }
        }
      };
      afterChange(() => outside(tell));
    },
  };
}

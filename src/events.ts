import { channel, type Channel } from 'node:diagnostics_channel';
import mitt from 'mitt';
import { afterChange } from './after-change.js';
import { InvalidArgumentError, type LossReason } from './errors.js';
import { quoted, visible } from './visible.js';

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
  hasListener(type: keyof LockEvents): boolean;
  emit<K extends keyof LockEvents>(type: K, event: LockEvents[K]): void;
}

/** The name of a lock or synchronizer, and the group of the handle that made the call. */
export interface ReportedName {
  readonly name: string;
  readonly group: string | undefined;
}

/** A lock or synchronizer, as reports name it. */
export interface ReportedLock extends ReportedName {
  readonly kind: LockKind;
  /** Whether several callers can hold it at the same time. */
  readonly concurrent: boolean;
}

/** A row of the table of facts. */
export type Fact<K extends keyof LockEvents> = readonly [
  /** What the event says about its lock. */
  about: (lock: ReportedLock) => Partial<LockEvents['acquired']>,
  /** What `logTo` writes. A lost lock needs attention. What the client repeats by itself is a warning. */
  level: LogLevel | ((event: LockEvents[K]) => LogLevel),
  message: (event: LockEvents[K]) => string,
  /** The diagnostics channel that publishes the fact, if one does. */
  channel?: Channel | undefined,
  counter?: 'waits' | 'renewals' | 'renewalFailures' | 'losses' | 'connectionErrors',
];

export type LogLevel = 'error' | 'warn' | 'debug';

const nothing = (): object => ({});
const byName = ({ name, group }: ReportedName): object => ({ lockName: name, group });
const byKind = ({ name, group, kind }: ReportedLock): object => ({ lockName: name, group, kind });
const byMode = ({ name, group, kind, concurrent }: ReportedLock): object => {
  return { lockName: name, group, kind, mode: concurrent ? 'shared' : 'exclusive' };
};
const lock = ({ lockName }: { readonly lockName: string }): string => quoted(lockName);

/** What a client reports. The types of its events are the keys. The bus, the log, the channels and the counters read it. */
export const FACTS: { readonly [K in keyof LockEvents]: Fact<K> } = {
  acquired: [byMode, 'debug', (event) => `acquired ${lock(event)}`],
  notAcquired: [
    byMode,
    ({ outcome }) => (outcome === 'failed' ? 'warn' : 'debug'),
    (event) => `did not acquire ${lock(event)}: ${event.outcome}`,
  ],
  released: [byMode, 'debug', (event) => `released ${lock(event)}`],
  waiting: [byName, 'debug', (event) => `waiting for ${lock(event)}`, undefined, 'waits'],
  renewed: [byName, 'debug', (event) => `renewed ${lock(event)}`, channel('holdfast:lease:renewed'), 'renewals'],
  renewFailed: [
    byName,
    'warn',
    (event) => `could not renew ${lock(event)}; the client tries again`,
    channel('holdfast:lease:renewFailed'),
    'renewalFailures',
  ],
  leaseLost: [
    byMode,
    'error',
    (event) => `lost ${lock(event)}: ${event.reason}`,
    channel('holdfast:lease:lost'),
    'losses',
  ],
  permitsAcquired: [byKind, 'debug', (event) => `acquired ${event.permits} permit(s) of ${lock(event)}`],
  permitsReleased: [byKind, 'debug', (event) => `released ${event.permits} permit(s) of ${lock(event)}`],
  latchPassed: [byName, 'debug', (event) => `passed latch ${lock(event)}`],
  latchCountedDown: [byName, 'debug', (event) => `counted down latch ${lock(event)}`],
  releaseFailed: [
    byName,
    'warn',
    (event) => `could not release ${lock(event)}; the release continues in the background`,
  ],
  forceUnlocked: [
    byName,
    'warn',
    (event) =>
      `${visible(event.by ?? 'an unnamed user')} wanted to free ${lock(event)} of ${event.owner}: ${event.result}`,
    channel('holdfast:forceUnlocked'),
  ],
  connectionError: [
    nothing,
    'warn',
    ({ connection }) => `the ${connection} connection failed; the client connects again`,
    channel('holdfast:connection:error'),
    'connectionErrors',
  ],
  clockUnavailable: [
    nothing,
    'warn',
    () => 'Redis refuses TIME, so it cannot recognize a request that arrives too late',
  ],
};

/** A listener for a misspelled type would never be called. */
function checkType(type: unknown): void {
  if (typeof type === 'string' && Object.hasOwn(FACTS, type)) return;
  throw new InvalidArgumentError('type', `one of ${Object.keys(FACTS).join(', ')}`, type);
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
    hasListener: (type) => (bus.all.get(type)?.length ?? 0) > 0,
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

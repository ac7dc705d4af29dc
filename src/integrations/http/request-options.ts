import type { LockClient } from '../../index.js';
import type { LockedKind, LockedName } from '../decorators/index.js';

/** The status codes for a busy lock: 409 Conflict and 423 Locked. */
export type BusyStatus = 409 | 423;

/** The HTTP response if the lock is busy. */
export interface BusyOptions {
  /**
   * Status code of the response.
   *
   * @defaultValue 423
   */
  status?: BusyStatus | undefined;
  /**
   * Value of the `Retry-After` header, in whole seconds.
   *
   * @defaultValue 1
   */
  retryAfter?: number | undefined;
}

/** The options of a request's lock, without the name. */
export interface RequestCall extends BusyOptions {
  /**
   * The kind of the lock. With several names, each lock has this kind.
   *
   * @defaultValue `lock`
   */
  kind?: LockedKind | undefined;
  /**
   * Time to wait for the lock, in milliseconds, or `Infinity`. The wait ends when the client of the request
   * disconnects.
   *
   * @defaultValue 0: the request tries once
   */
  waitTime?: number | undefined;
  /**
   * Lease of the hold, in milliseconds: an integer of at least 10, or -1 for the watchdog.
   *
   * @defaultValue the watchdog renews the hold until the response is closed
   */
  leaseTime?: number | undefined;
}

/** The options of {@link holdForRequest}. */
export interface HoldOptions extends RequestCall {
  /** The client whose lock the request acquires. */
  client: LockClient;
  /** The name of the lock, or a list of names: the request then holds all of them or none. */
  key: LockedName;
}

/** A function that names the lock of a request. */
export type RequestKeyOf<Request> = (request: Request) => LockedName | PromiseLike<LockedName>;

/** The options of a route whose requests hold a lock. */
export interface RequestLockOptions<Request> extends RequestCall {
  /**
   * The name of the lock, a list of names, or a function of the request that returns one of the two. An error of the
   * function becomes the error of the request.
   */
  key: LockedName | RequestKeyOf<Request>;
  /**
   * Whether this request needs the lock. If the condition returns `false`, the request runs without the lock.
   *
   * @defaultValue every request needs the lock
   */
  when?: ((request: Request) => boolean | PromiseLike<boolean>) | undefined;
}

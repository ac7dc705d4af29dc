/* The arguments of `request()`, checked in the order and with the errors of the standard. */

/** `exclusive`: one holder. `shared`: any number of holders, and no exclusive one. */
export type LockMode = 'exclusive' | 'shared';

/** A granted lock, as the callback receives it. */
export interface WebLock {
  readonly name: string;
  readonly mode: LockMode;
}

/** The options of {@link LockManager.request}. */
export interface LockRequestOptions {
  /** @defaultValue `exclusive` */
  mode?: LockMode | undefined;
  /** Calls the callback with `null` if the lock is not free at once. @defaultValue `false` */
  ifAvailable?: boolean | undefined;
  /**
   * Takes the lock from its holders, whose requests then reject with an `AbortError`. Their callbacks go on running.
   *
   * @defaultValue `false`
   */
  steal?: boolean | undefined;
  /** Ends the wait. A granted lock is not affected. */
  signal?: AbortSignal | undefined;
}

/** Runs while the lock is held. The lock is released when its result has settled. */
export type LockGrantedCallback<T> = (lock: WebLock | null) => T;

/** A held or requested lock. */
export interface LockInfo {
  name: string;
  mode: LockMode;
  /** The id of the client that holds or requests the lock: `client.id` of Holdfast, or the id of a Redisson client. */
  clientId: string;
}

/** The result of {@link LockManager.query}. */
export interface LockManagerSnapshot {
  /** The held locks of all processes. */
  held: LockInfo[];
  /** The requests of this client that wait, in their order for each name. */
  pending: LockInfo[];
}

export interface CheckedRequest extends WebLock {
  readonly ifAvailable: boolean;
  readonly steal: boolean;
  readonly signal: AbortSignal | undefined;
  readonly callback: LockGrantedCallback<unknown>;
}

/** @throws TypeError or a DOMException `NotSupportedError`, or the reason of an aborted signal. */
export function checkRequest(args: readonly unknown[]): CheckedRequest {
  if (args.length < 2) throw new TypeError('request() needs a name and a callback');
  const name = text(args[0], 'name');
  const [options, callback] = args.length === 2 ? [undefined, args[1]] : [args[1], args[2]];
  if (typeof callback !== 'function') throw new TypeError('the callback of request() must be a function');
  if (options !== undefined && options !== null && typeof options !== 'object' && typeof options !== 'function') {
    throw new TypeError('the options of request() must be an object');
  }
  const { ifAvailable, mode: given = 'exclusive', signal, steal } = (options ?? {}) as Record<string, unknown>;
  const mode = text(given, 'mode');
  if (mode !== 'exclusive' && mode !== 'shared') throw new TypeError('mode must be "exclusive" or "shared"');
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw new TypeError('signal must be an AbortSignal');
  if (name.startsWith('-')) throw notSupported('names that begin with "-" are reserved; begin with another character');
  if (steal && ifAvailable) throw notSupported('steal and ifAvailable exclude each other; pass one of them');
  if (steal && mode === 'shared') throw notSupported('only an exclusive lock can be stolen; pass no mode with steal');
  if (signal && steal) throw notSupported('a request with steal does not wait; pass it no signal');
  if (signal && ifAvailable) throw notSupported('a request with ifAvailable does not wait; pass it no signal');
  signal?.throwIfAborted();
  return {
    ...{ name, mode, ifAvailable: Boolean(ifAvailable), steal: Boolean(steal), signal },
    callback: callback as LockGrantedCallback<unknown>,
  };
}

/** Converts as `String` does, but a symbol is an error: the rule of Web IDL. */
function text(value: unknown, argument: string): string {
  if (typeof value === 'symbol') throw new TypeError(`${argument} must be a string`);
  return String(value);
}

const notSupported = (message: string): DOMException => new DOMException(message, 'NotSupportedError');

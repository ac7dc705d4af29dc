/* Checks of the options of routes. */
import { InvalidArgumentError, type LockClient } from '../../index.js';
import { isLockName, KINDS, timeExpected, type LockedKind } from './kinds.js';

/** The options that routes of every framework have. */
const REQUEST_OPTIONS = ['key', 'kind', 'waitTime', 'leaseTime', 'when', 'status', 'retryAfter'] as const;

/** Checks the options of a route when it is defined, so that a mistake shows before the first request. */
export function checkRequestOptions(options: unknown, others: readonly string[], path = 'options'): void {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError(path, 'an object with a key', options);
  }
  const known: readonly string[] = [...REQUEST_OPTIONS, ...others];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const expectation = `one of ${known.join(', ')}`;
    throw new InvalidArgumentError(
      unknown,
      expectation,
      undefined,
      `unknown option "${unknown}"; expected ${expectation}`,
    );
  }
  const { key, kind, waitTime, leaseTime, when, onBusy, status, retryAfter } = options as Record<string, unknown>;
  if (typeof key !== 'function' && typeof key !== 'string' && !isLockName(key) && !Array.isArray(key)) {
    throw new InvalidArgumentError('key', 'a name, a list of names or a function of the request', key);
  }
  if (kind !== undefined && !KINDS.includes(kind as LockedKind)) {
    throw new InvalidArgumentError('kind', `one of ${KINDS.join(', ')}`, kind);
  }
  for (const [name, time] of Object.entries({ waitTime, leaseTime })) {
    const expectation = timeExpected(time);
    if (expectation !== undefined) throw new InvalidArgumentError(name, expectation, time);
  }
  if (when !== undefined && typeof when !== 'function') {
    throw new InvalidArgumentError('when', 'a function of the request', when);
  }
  if (onBusy !== undefined && typeof onBusy !== 'function') {
    throw new InvalidArgumentError('onBusy', 'a function of the error and the request', onBusy);
  }
  checkBusyOptions({ status, retryAfter });
}

/** Checks the options of the HTTP response for a busy lock. */
export function checkBusyOptions({ status, retryAfter }: { status?: unknown; retryAfter?: unknown }): void {
  if (status !== undefined && status !== 409 && status !== 423) {
    throw new InvalidArgumentError('status', '409 or 423', status);
  }
  if (retryAfter !== undefined && !(Number.isSafeInteger(retryAfter) && (retryAfter as number) >= 0)) {
    throw new InvalidArgumentError('retryAfter', 'an integer (s) of at least 0', retryAfter);
  }
}

/** Checks the methods: the client may belong to the copy of the package in the other module format. */
export function checkClient(client: unknown): LockClient {
  if (typeof client === 'object' && client !== null && 'getLock' in client && 'getMultiLock' in client) {
    return client as LockClient;
  }
  throw new InvalidArgumentError('client', 'a client of createClient()', client);
}

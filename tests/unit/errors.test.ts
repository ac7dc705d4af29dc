import { expect, test } from '@jest/globals';
import { setTimeout as work } from 'node:timers/promises';
import { isLockLost, LockAbortedError, LockLostError, RedisUnavailableError } from '../../src/index.js';

const LOST = new LockLostError('order:42', 'client:1', 'expired');

/** Two errors, each of which is the cause of the other. */
function circle(): Error {
  const first: Error = new Error('first');
  first.cause = new Error('second', { cause: first });
  return first;
}

async function abortedWork(): Promise<unknown> {
  const abort = new AbortController();
  const working = work(60_000, undefined, { signal: abort.signal });
  abort.abort(LOST);
  return working.catch((error: unknown) => error);
}

test('docs/errors.md says what is left of an error that passes through structuredClone', () => {
  const cause = new Error('why');
  const error = new RedisUnavailableError('no reply', 'unknown', { cause });
  const copy = structuredClone(error);
  expect([copy.message, copy.stack, (copy.cause as Error).message]).toEqual([error.message, error.stack, 'why']);
  expect([copy.code, copy.name]).toEqual([undefined, 'Error']);
});

test('isLockLost() is true for a LockLostError, and for an error that has one in its chain of causes', async () => {
  expect(isLockLost(LOST)).toBe(true);
  expect(isLockLost(Object.freeze(new Error('outer', { cause: new Error('inner', { cause: LOST }) })))).toBe(true);
  expect(isLockLost(new LockAbortedError('other', LOST))).toBe(true);
  expect(isLockLost(await abortedWork())).toBe(true);
  // Another copy of the package in the process has a class of its own.
  expect(isLockLost({ code: 'ERR_LOCK_LOST' })).toBe(true);
});

test.each([
  ['an AbortError with another cause', new DOMException('stopped', 'AbortError')],
  ['a circle of causes', circle()],
  ['a cause that is no object', new Error('outer', { cause: 'ERR_LOCK_LOST' })],
  ['a string', 'ERR_LOCK_LOST'],
  ['null', null],
  ['undefined', undefined],
])('isLockLost() is false for other values: %s', (_, error) => {
  expect(isLockLost(error)).toBe(false);
});

test('the message of a RedisUnavailableError ends with that of its last cause, also if the causes form a circle', () => {
  const cause = new Error('outer', { cause: new Error('connect ECONNREFUSED') });
  expect(new RedisUnavailableError('no reply', 'none', { cause }).message).toBe('no reply: connect ECONNREFUSED');
  expect(new RedisUnavailableError('no reply', 'none', { cause: circle() }).message).toBe('no reply: second');
});

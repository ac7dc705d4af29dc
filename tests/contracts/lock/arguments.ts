import { expect } from '@jest/globals';
import { InvalidArgumentError } from '../../../src/errors.js';
import type { Lock } from '../../../src/locks/lock.js';
import { holdElsewhere, openProxy } from '../../support/clients/lock-clients.js';
import { describe, test } from '../contract-test.js';
import { errorOf, open, type LockKind } from '../lock-kind.js';

const HUGE = Number.MAX_SAFE_INTEGER;

/** As callers without TypeScript may. */
type Loose = Record<string, (...args: unknown[]) => Promise<unknown>>;
const loosely = (lock: Lock): Loose => lock as unknown as Loose;

const NO_LEASE = [0, -2, -HUGE, 1.5, NaN, Infinity, -Infinity, 2 ** 53, '5000', '', null, true, 5n, [5_000], () => 5];
const NO_WAIT = [1.5, NaN, -Infinity, 2 ** 53, -(2 ** 53), '5000', '', null, true, 5n, [5_000], () => 5];
const NO_OPTIONS = ['MILLISECONDS', 5, true, null, () => undefined, new Date(5_000), new Map([['waitTime', 5]])];
const NO_SIGNAL = ['abort', 1, {}, null];
const NO_CONTEXT = ['context', 1, {}, null];

/** Each way to give a lease, a wait, options, a signal or a context. */
const CALLS: Record<
  'leaseTime' | 'waitTime' | 'options' | 'signal' | 'context',
  ((lock: Loose, value: unknown) => Promise<unknown>)[]
> = {
  leaseTime: [
    (lock, value) => lock.lock!({ leaseTime: value }),
    (lock, value) => lock.tryLock!(100, value),
    (lock, value) => lock.tryLock!({ leaseTime: value }),
    (lock, value) => lock.acquire!({ leaseTime: value }),
    (lock, value) => lock.tryAcquire!({ leaseTime: value }),
    (lock, value) => lock.withLock!({ leaseTime: value }, () => undefined),
  ],
  waitTime: [
    (lock, value) => lock.tryLock!({ waitTime: value }),
    (lock, value) => lock.acquire!({ waitTime: value }),
    (lock, value) => lock.tryAcquire!({ waitTime: value }),
    (lock, value) => lock.withLock!({ waitTime: value }, () => undefined),
  ],
  options: [
    (lock, value) => lock.lock!(5_000, value),
    (lock, value) => lock.tryLock!(100, 5_000, value),
    (lock, value) => lock.acquire!(value),
    (lock, value) => lock.tryAcquire!(value),
    (lock, value) => lock.unlock!(value),
  ],
  signal: [
    (lock, value) => lock.lock!({ signal: value }),
    (lock, value) => lock.lock!(5_000, { signal: value }),
    (lock, value) => lock.tryLock!({ signal: value }),
    (lock, value) => lock.tryLock!(100, 5_000, { signal: value }),
    (lock, value) => lock.acquire!({ signal: value }),
    (lock, value) => lock.tryAcquire!({ signal: value }),
    (lock, value) => lock.withLock!({ signal: value }, () => undefined),
  ],
  context: [
    (lock, value) => lock.lock!({ context: value }),
    (lock, value) => lock.tryLock!(100, 5_000, { context: value }),
    (lock, value) => lock.acquire!({ context: value }),
    (lock, value) => lock.tryAcquire!({ context: value }),
    (lock, value) => lock.withLock!({ context: value }, () => undefined),
    (lock, value) => lock.unlock!({ context: value }),
  ],
};

const WRONG = [
  ['leaseTime', NO_LEASE],
  ['waitTime', NO_WAIT],
  ['options', NO_OPTIONS],
  ['signal', NO_SIGNAL],
  ['context', NO_CONTEXT],
] as const;

export function argumentsContract(kind: LockKind): void {
  describe('R7: arguments', () => {
    test.each(WRONG)(
      'an invalid %s is refused by every call before any command, with the expected value in the message',
      async (argument, values) => {
        const { proxy, url } = await openProxy();
        const { lock } = await open(kind, { url });
        const before = proxy.log.length;
        for (const call of CALLS[argument]) {
          for (const value of values) {
            const error = await errorOf(call(loosely(lock), value));
            expect(error).toBeInstanceOf(InvalidArgumentError);
            expect(error).toMatchObject({ code: 'ERR_LOCK_INVALID_ARGUMENT', argument, value });
            expect((error as Error).message).toMatch(new RegExp(`^${argument} must be .*, not `));
          }
        }
        expect(proxy.log.slice(before)).toEqual([]);
      },
    );

    test.each([...NO_LEASE.filter((value) => typeof value !== 'object' || value === null)])(
      'lock(%p) is refused',
      async (value) => {
        const { lock } = await open(kind);
        expect(await errorOf(loosely(lock).lock!(value))).toBeInstanceOf(InvalidArgumentError);
        expect(await lock.isLocked()).toBe(false);
      },
    );

    test.each([...NO_WAIT.filter((value) => typeof value !== 'object' || value === null)])(
      'tryLock(%p) is refused',
      async (value) => {
        const { lock } = await open(kind);
        expect(await errorOf(loosely(lock).tryLock!(value))).toBeInstanceOf(InvalidArgumentError);
        expect(await lock.isLocked()).toBe(false);
      },
    );

    test('a ported TimeUnit argument is refused with a hint that times are milliseconds', async () => {
      const { lock } = await open(kind);
      for (const call of [
        loosely(lock).lock!(10, 'SECONDS'),
        loosely(lock).tryLock!(1, 10, 'SECONDS'),
        loosely(lock).tryLock!(1, 10, 1_000),
      ]) {
        expect((await errorOf(call)) as Error).toMatchObject({
          message: expect.stringContaining('times are milliseconds'),
        });
      }
    });

    test('an unknown option is refused by name', async () => {
      const { lock } = await open(kind);
      for (const call of [
        loosely(lock).lock!({ lease: 5 }),
        loosely(lock).lock!({ waitTime: 5 }),
        loosely(lock).tryLock!({ timeout: 5 }),
        loosely(lock).tryLock!(5, 5_000, { waitTime: 5 }),
        loosely(lock).unlock!({ signal: undefined }),
      ]) {
        expect(await errorOf(call)).toMatchObject({
          code: 'ERR_LOCK_INVALID_ARGUMENT',
          message: expect.stringMatching(/lease|waitTime|timeout|signal/),
        });
      }
    });

    test('withLock() without a body is refused', async () => {
      const { lock } = await open(kind);
      for (const args of [[], [{}], [{}, 5], [5, () => 5], ['options', () => 5]]) {
        expect(await errorOf(loosely(lock).withLock!(...args))).toBeInstanceOf(InvalidArgumentError);
      }
    });

    test('options that would be ignored are refused: beside others, after the body, or a bare signal', async () => {
      const { lock } = await open(kind);
      const body = (): number => 5;
      for (const [call, message] of [
        [
          loosely(lock).lock!({ leaseTime: 5_000 }, { signal: AbortSignal.abort() }),
          'options must be the only argument',
        ],
        [loosely(lock).tryLock!({ waitTime: 5 }, 5_000), 'options must be the only argument, not 5000'],
        [loosely(lock).tryLock!({ waitTime: 5 }, undefined, {}), 'options must be the only argument'],
        [loosely(lock).withLock!(body, { waitTime: 5 }), 'fn must be the last argument, after the options'],
        [
          loosely(lock).lock!(AbortSignal.abort()),
          'options must be an object, as { signal }, not an object (AbortSignal)',
        ],
        [loosely(lock).tryLock!(5, 5_000, AbortSignal.abort()), 'options must be an object, as { signal }'],
        [loosely(lock).withLock!(AbortSignal.abort(), body), 'options must be an object, as { signal }'],
        [loosely(lock).lock!(20n), 'not 20n'],
      ] as const) {
        expect(await errorOf(call)).toMatchObject({
          code: 'ERR_LOCK_INVALID_ARGUMENT',
          message: expect.stringContaining(message),
        });
      }
      expect(await loosely(lock).withLock!(body, undefined)).toBe(5);
      expect(await lock.isLocked()).toBe(false);
    });

    test('isHeldBy() of an invalid owner is refused', async () => {
      const { lock } = await open(kind);
      for (const value of [undefined, null, '', 5, {}]) {
        expect(await errorOf(loosely(lock).isHeldBy!(value))).toMatchObject({ argument: 'owner' });
      }
    });

    test.each([...NO_LEASE, -1, undefined])('extend(%p) is refused, and the lease stays', async (value) => {
      const { lock } = await open(kind);
      const hold = await holdElsewhere(lock, 5_000);
      expect(await errorOf((hold as unknown as Loose).extend!(value))).toBeInstanceOf(InvalidArgumentError);
      expect(hold.validFor()).toBeGreaterThan(4_000);
      await hold.release();
    });

    test('extend(2^53 - 1) is accepted', async () => {
      const { lock } = await open(kind);
      const hold = await holdElsewhere(lock, 5_000);
      await hold.extend(HUGE);
      expect(hold.validFor()).toBeGreaterThan(HUGE / 2);
      expect(await lock.remainTimeToLive()).toBeGreaterThan(HUGE - 10_000);
      await hold.release();
    });

    test('methods only reject, and the factory throws', async () => {
      const { client, lock } = await open(kind);
      for (const name of ['', undefined, null, 5, {}, ['name']]) {
        expect(() => kind.make(client, name as string)).toThrow(InvalidArgumentError);
      }
      for (const context of NO_CONTEXT) {
        expect(() => kind.make(client, 'name', { context: context as never })).toThrow(InvalidArgumentError);
      }
      for (const method of ['lock', 'tryLock', 'acquire', 'tryAcquire', 'withLock', 'unlock', 'isHeldBy']) {
        const call = loosely(lock)[method]!(5n, 5n, 5n);
        expect(call).toBeInstanceOf(Promise);
        expect(await errorOf(call)).toBeInstanceOf(InvalidArgumentError);
      }
    });
  });
}

import { expect } from '@jest/globals';
import { LockContext } from '../../../src/ownership/lock-context.js';
import { Hold } from '../../../src/holding/hold.js';
import { LockLostError } from '../../../src/errors.js';
import { holdElsewhere, inFlow, openProxy } from '../../support/clients/lock-clients.js';
import { admin } from '../../support/redis.js';
import { until } from '../../support/time/until.js';
import { describe, test } from '../contract-test.js';
import { errorOf, open, type LockKind, memberError } from '../lock-kind.js';

export function withLockContract(kind: LockKind): void {
  describe('withLock()', () => {
    test.each<[string, () => unknown]>([
      ['a value', () => 'done'],
      ['a promise', async () => 'done'],
      ['a thenable', () => ({ then: (resolve: (value: string) => void) => resolve('done') })],
    ])('runs the body inside a hold and resolves with its result (%s)', async (_, body) => {
      const { lock } = await open(kind);
      let during: unknown;
      const result = await lock.withLock((hold) => {
        expect(hold).toBeInstanceOf(Hold);
        expect(lock.currentHold()).toBe(hold);
        during = hold.validFor() > 0;
        return body();
      });
      expect(result).toBe('done');
      expect(during).toBe(true);
      expect(lock.currentHold()).toBeUndefined();
      expect(await lock.isLocked()).toBe(false);
    });

    test('runs the work of a query, which begins at its `then`, inside the hold', async () => {
      const { lock } = await open(kind);
      const query = (): PromiseLike<unknown> => ({
        then: (resolve, reject) =>
          Promise.resolve()
            .then(() => lock.currentHold())
            .then(resolve, reject),
      });
      class Query extends Promise<unknown> {
        override then<A, B>(...handlers: Parameters<Promise<unknown>['then']>): Promise<A | B> {
          return query().then(...handlers) as Promise<A | B>;
        }
      }
      for (const make of [query, () => new Query(() => undefined)]) {
        expect(await inFlow(() => lock.withLock(make))).toBeInstanceOf(Hold);
        const hold = await holdElsewhere(lock);
        expect(lock.currentHold()).toBeUndefined();
        expect(await hold.run(make)).toBe(hold);
        await hold.release();
      }
      const failing = { then: (_: unknown, reject: (error: unknown) => void) => reject(BODY) };
      expect(await errorOf(lock.withLock(() => failing as PromiseLike<never>))).toBe(BODY);
      expect(await lock.isLocked()).toBe(false);
    });

    test('takes options before the body', async () => {
      const { lock, name, client } = await open(kind);
      const result = await lock.withLock({ waitTime: 100, leaseTime: 5_000 }, () => admin().pttl(name));
      expect(result).toBeLessThanOrEqual(5_000);
      const context = new LockContext();
      await lock.withLock({ context }, async (hold) => {
        expect(kind.make(client, name, { context }).currentHold()).toBe(hold);
      });
      expect(await lock.isHeldBy(context)).toBe(false);
    });

    test('keeps the caller, and the code that it starts beside, outside of the hold', async () => {
      const { lock } = await open(kind);
      let leave!: () => void;
      const entered = new Promise<void>((resolve) => {
        void lock.withLock(() => {
          resolve();
          return new Promise<void>((done) => (leave = done));
        });
      });
      await entered;
      expect(lock.currentHold()).toBeUndefined();
      expect(await lock.tryLock()).toBe(false);
      leave();
      await until(async () => !(await lock.isLocked()), 'the body has ended');
    });

    test.each<[string, () => unknown]>([
      [
        'throws',
        () => {
          throw BODY;
        },
      ],
      ['rejects', () => Promise.reject(BODY)],
    ])('rejects with the unchanged error of a body that %s, and frees the lock', async (_, body) => {
      const { lock, events } = await open(kind);
      expect(await errorOf(lock.withLock(body))).toBe(BODY);
      expect(await lock.isLocked()).toBe(false);
      expect(events.releaseFailed).toEqual([]);
    });

    test('rejects with a value that is not an error, unchanged', async () => {
      const { lock } = await open(kind);
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- users do
      expect(await errorOf(lock.withLock(() => Promise.reject(undefined)))).toBeUndefined();
    });

    test('rejects with the error of a body that fails in a lost hold, and reports the loss as an event', async () => {
      const { lock, name, events } = await open(kind);
      const failing = lock.withLock(async () => {
        await admin().del(name);
        throw BODY;
      });
      expect(await errorOf(failing)).toBe(BODY);
      expect(events.releaseFailed).toEqual([
        { lockName: name, owner: expect.any(String), cause: expect.any(LockLostError) },
      ]);
      expect(events.leaseLost).toHaveLength(1);
    });

    test.each<[string, (reason: unknown) => unknown]>([
      ['the reason of the signal', (reason) => reason],
      ['an error caused by it', (reason) => new Error('outer', { cause: new Error('inner', { cause: reason }) })],
      ['an AbortError', () => new DOMException('stopped', 'AbortError')],
      ['a frozen AbortError', () => Object.freeze(Object.assign(new Error('stopped'), { name: 'AbortError' }))],
    ])('rejects with a LockLostError caused by the error of a body that a loss ended: %s', async (_, errorFor) => {
      const { lock, name, events } = await open(kind);
      let thrown: unknown;
      const failing = lock.withLock(async ({ signal }) => {
        await lock.forceUnlock();
        thrown = errorFor(signal.reason);
        throw thrown;
      });
      const error = await errorOf(failing);
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ lockName: name, reason: 'forced', result: undefined });
      expect((error as LockLostError).cause).toBe(thrown);
      expect(events.releaseFailed).toEqual([]);
    });

    test.each<[string, (error: Error) => unknown]>([
      [
        'an error with a circle of causes',
        (error) => Object.assign(error, { cause: new Error('b', { cause: error }) }),
      ],
      ['no object', () => 'AbortError'],
      ['the loss of another lock', () => new LockLostError('other', 'client:1', 'gone')],
    ])(
      'rejects with the unchanged error of a body that failed for another reason in a lost hold: %s',
      async (_, of) => {
        const { lock } = await open(kind);
        const thrown = of(new Error('a'));
        const failing = lock.withLock(async () => {
          await lock.forceUnlock();
          throw thrown;
        });
        expect(await errorOf(failing)).toBe(thrown);
      },
    );

    test('rejects with the unchanged AbortError of a body whose hold was not lost, or whose client was closed', async () => {
      const { lock, client } = await open(kind);
      const aborted = new DOMException('stopped', 'AbortError');
      expect(await errorOf(lock.withLock(() => Promise.reject(aborted)))).toBe(aborted);
      const failing = lock.withLock(async () => {
        await client.close({ releaseHolds: true });
        throw aborted;
      });
      expect(await errorOf(failing)).toBe(aborted);
    });

    test('rejects with LockLostError and the result if the hold was lost before the body ended', async () => {
      const { lock, name, events } = await open(kind);
      const result = { written: 3 };
      const error = await errorOf(
        lock.withLock(async () => {
          await admin().del(name);
          return result;
        }),
      );
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ code: 'ERR_LOCK_LOST', lockName: name, reason: 'gone' });
      expect((error as LockLostError).result).toBe(result);
      expect(events.leaseLost).toHaveLength(1);
      expect(events.releaseFailed).toEqual([]);
    });

    test('resolves with the result if Redis does not reply at the end; the release is reported and continues', async () => {
      const { proxy, url } = await openProxy();
      const { lock, name, events } = await open(kind, { url, commandTimeout: 600 });
      const result = await lock.withLock(() => {
        proxy.stall({ kind: 'command' });
        return 'done';
      });
      expect(result).toBe('done');
      const failed = events.releaseFailed.filter(({ lockName }) => lockName === name);
      expect(failed.map(({ cause }) => memberError(kind, cause))).toMatchObject([
        { code: 'ERR_LOCK_REDIS_UNAVAILABLE' },
      ]);
      expect(events.releaseFailed).toHaveLength(1);
      proxy.lift();
      await until(async () => (await admin().exists(name)) === 0, 'the lock is released in the background');
    });

    test('allows a release inside the body, and does nothing more at the end', async () => {
      const { lock, events } = await open(kind);
      const result = await lock.withLock(async (hold) => {
        await hold.release();
        expect(await inFlow(() => lock.isLocked())).toBe(false);
        return 'done';
      });
      expect(result).toBe('done');
      expect(events.releaseFailed).toEqual([]);
      expect(events.released).toHaveLength(1);
    });

    test('shares the owner, and counts holds, when nested', async () => {
      const { lock } = await open(kind);
      await lock.withLock((outer) =>
        lock.withLock(async (inner) => {
          expect(inner.owner).toBe(outer.owner);
          expect(await lock.getHoldCount()).toBe(2);
        }),
      );
      expect(await lock.isLocked()).toBe(false);
    });
  });
}

const BODY = new Error('of the body');

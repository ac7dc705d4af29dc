import { expect } from '@jest/globals';
import { InvalidArgumentError, LockLostError } from '../../../src/errors.js';
import type { Lock } from '../../../src/locks/lock.js';
import { answered, inFlow, openProxy } from '../../support/clients/lock-clients.js';
import type { Fault } from '../../support/proxy/fault.js';
import { admin } from '../../support/redis.js';
import { until } from '../../support/time/until.js';
import { describe, test } from '../contract-test.js';
import { errorOf, open, type LockKind } from '../lock-kind.js';

const HELD_MS = 200;
const BACKGROUND = { release: 'background' } as const;

const isFree = (lock: Lock): Promise<void> => until(async () => !(await lock.isLocked()), 'the lock is free');

export function backgroundContract(kind: LockKind): void {
  describe("release: 'background'", () => {
    test.each<[string, (lock: Lock, stall: () => void) => Promise<unknown>]>([
      ['withLock()', (lock, stall) => lock.withLock(BACKGROUND, stall)],
      ['hold.release()', async (lock, stall) => lock.acquire(BACKGROUND).then((hold) => (stall(), hold.release()))],
      ['tryAcquire()', async (lock, stall) => lock.tryAcquire(BACKGROUND).then((hold) => (stall(), hold!.release()))],
      [
        'await using',
        async (lock, stall) => {
          await using hold = await lock.acquire(BACKGROUND);
          stall();
          return hold.lockName;
        },
      ],
    ])('%s settles when the release has been written, before Redis replies', async (_, section) => {
      const { proxy, url } = await openProxy();
      const { lock, name } = await open(kind, { url });
      const other = (await open(kind, { name })).lock;
      const settled = inFlow(() => section(lock, () => proxy.stall({ direction: 'to-client', kind: 'command' })));
      await settled;
      await isFree(other);
      proxy.lift();
    });

    test('as the default of a client holds for every call that does not say otherwise', async () => {
      const { proxy, url } = await openProxy();
      const { lock, client } = await open(kind, { url, ...BACKGROUND });
      const stall = (): Fault => proxy.stall({ direction: 'to-client', kind: 'command' });
      (await lock.withLock(stall)).lift();
      await answered(client);
      let stalled: Fault | undefined;
      let settled = false;
      const section = inFlow(() => lock.withLock({ release: 'awaited' }, () => void (stalled = stall())));
      void section.then(() => (settled = true));
      await isFree((await open(kind, { name: lock.name })).lock);
      expect(settled).toBe(false);
      stalled?.lift();
      await section;
    });

    test('puts the next call of this client on the lock behind the release', async () => {
      const { lock } = await open(kind);
      for (let section = 0; section < 30; section += 1) {
        await lock.withLock(BACKGROUND, () => undefined);
        expect(await lock.tryLock()).toBe(true);
        await lock.unlock();
        await lock.withLock(BACKGROUND, () => undefined);
        await lock.withLock({ waitTime: 1_000, ...BACKGROUND }, () => undefined);
      }
    });

    test('rejects with a loss that is known, with the result of the body', async () => {
      const { lock } = await open(kind);
      const error = await errorOf(
        lock.withLock(BACKGROUND, async () => {
          await lock.forceUnlock();
          return 'done';
        }),
      );
      expect(error).toBeInstanceOf(LockLostError);
      expect((error as LockLostError).result).toBe('done');
    });

    test('reports a loss that only the reply of the release shows as events', async () => {
      const { lock, name, events } = await open(kind);
      expect(await lock.withLock(BACKGROUND, () => admin().del(name))).toBe(1);
      await until(() => events.releaseFailed.length === 1, 'the failure is reported');
      expect(events.leaseLost).toHaveLength(1);
    });

    test('is waited for by close()', async () => {
      const { proxy, url } = await openProxy();
      const { lock, name, client } = await open(kind, { url });
      await lock.withLock(BACKGROUND, () => void proxy.holdCommand({ command: ['EVALSHA', 'EVAL'] }, HELD_MS));
      await client.close();
      expect(await (await open(kind, { name })).lock.isLocked()).toBe(false);
    });

    test('is refused with another value, and where unlock() ends the hold', async () => {
      const { lock } = await open(kind);
      const later = { release: 'later' as 'background' };
      expect(await errorOf(lock.acquire(later))).toBeInstanceOf(InvalidArgumentError);
      expect(await errorOf(lock.tryLock(BACKGROUND as object))).toBeInstanceOf(InvalidArgumentError);
      expect(await errorOf(lock.lock(BACKGROUND as object))).toBeInstanceOf(InvalidArgumentError);
    });
  });
}

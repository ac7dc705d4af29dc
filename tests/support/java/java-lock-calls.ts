import type { LockClient } from '../../../src/client/create-client.js';
import type { LockContext } from '../../../src/ownership/lock-context.js';
import type { FencedLock } from '../../../src/locks/fenced-lock.js';
import type { Lock } from '../../../src/locks/lock.js';

export type AnyLock = Lock | FencedLock;

/** Redisson's locks as we make them, by kind. `values`: of a group. */
export const LOCKS: Record<
  string,
  (client: LockClient, name: string, context: LockContext, values: readonly string[]) => AnyLock
> = {
  lock: (client, name, context) => client.getLock(name, { context }),
  fair: (client, name, context) => client.getFairLock(name, { context }),
  'non-reentrant-fair': (client, name, context) => client.getNonReentrantFairLock(name, { context }),
  'non-reentrant': (client, name, context) => client.getNonReentrantLock(name, { context }),
  read: (client, name, context) => client.getReadWriteLock(name, { context }).readLock(),
  write: (client, name, context) => client.getReadWriteLock(name, { context }).writeLock(),
  spin: (client, name, context) => client.getSpinLock(name, { context }),
  'spin-constant': (client, name, context) => client.getSpinLock(name, { context, backOff: { delay: 64 } }),
  fenced: (client, name, context) => client.getFencedLock(name, { context }),
  group: (client, name, context, values) => client.getMultiLock(name, values, { context }),
};

/** The calls of Java on a lock as calls of Holdfast; times are ms. `asked`: the owner for `isHeldByThread`. */
export async function callLock(
  lock: AnyLock,
  method: string,
  [first, second]: readonly number[],
  signal: AbortSignal,
  asked: LockContext,
): Promise<unknown> {
  switch (method) {
    case 'lock':
    case 'lockInterruptibly':
      return lock.lock(first, { signal });
    case 'tryLock':
      return lock.tryLock(first, second, { signal });
    case 'lockAndGetToken':
      return Number(await (lock as FencedLock).lockAndGetToken(first, { signal }));
    case 'tryLockAndGetToken': {
      const token = await (lock as FencedLock).tryLockAndGetToken(first, second, { signal });
      return token === null ? null : Number(token);
    }
    case 'getToken':
      return Number(await (lock as FencedLock).getToken());
    case 'unlock':
      return lock.unlock();
    case 'forceUnlock':
      return lock.forceUnlock();
    case 'isLocked':
      return lock.isLocked();
    case 'isHeldByCurrentThread':
      return lock.isHeldByCurrentContext();
    case 'isHeldByThread':
      return lock.isHeldBy(asked);
    case 'getHoldCount':
      return lock.getHoldCount();
    case 'remainTimeToLive':
      return lock.remainTimeToLive();
    case 'getName':
      return lock.name;
    default:
      throw new Error(`no such method here: ${method}`);
  }
}

import { InvalidArgumentError, type Lock, type LockClient } from '../../index.js';

/** The kinds of lock that a locked function can have. */
export type LockedKind =
  'lock' | 'non-reentrant' | 'fair' | 'non-reentrant-fair' | 'fenced' | 'spin' | 'read' | 'write';

const LOCK_OF: Readonly<Record<LockedKind, (client: LockClient, name: string) => Lock>> = {
  lock: (client, name) => client.getLock(name),
  'non-reentrant': (client, name) => client.getNonReentrantLock(name),
  fair: (client, name) => client.getFairLock(name),
  'non-reentrant-fair': (client, name) => client.getNonReentrantFairLock(name),
  fenced: (client, name) => client.getFencedLock(name),
  spin: (client, name) => client.getSpinLock(name),
  read: (client, name) => client.getReadWriteLock(name).readLock(),
  write: (client, name) => client.getReadWriteLock(name).writeLock(),
};

export const KINDS = Object.keys(LOCK_OF) as readonly LockedKind[];

/** The lock with one name. */
export const oneLock = (client: LockClient, kind: LockedKind, name: string): Lock => LOCK_OF[kind](client, name);

/** The lock of one call. A list of names is a multi-lock, which orders its members and counts a repeated name once. */
export function lockOf(client: LockClient, kind: LockedKind, key: unknown): Pick<Lock, 'withLock'> {
  if (typeof key === 'string') return oneLock(client, kind, key);
  if (Array.isArray(key) && key.length > 0) {
    return client.getMultiLock(...key.map((name: string) => oneLock(client, kind, name)));
  }
  throw new InvalidArgumentError('key', 'a name or a list of at least one name', key);
}

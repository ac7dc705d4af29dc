import { InvalidArgumentError, type Lock, type LockClient, type LockName } from '../../index.js';

/** The kinds of lock that a locked function can have. */
export type LockedKind =
  'lock' | 'non-reentrant' | 'fair' | 'non-reentrant-fair' | 'fenced' | 'spin' | 'read' | 'write';

const LOCK_OF: Readonly<Record<LockedKind, (client: LockClient, name: string | LockName) => Lock>> = {
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

/** What a time in the options of a declaration misses: it must be a number. The lock checks its limits. */
export const timeExpected = (value: unknown): string | undefined =>
  value === undefined || (typeof value === 'number' && !Number.isNaN(value)) ? undefined : 'a number (ms)';

const LOCK_NAME = Symbol.for('holdfast.lock-name.1');

/** Also returns `true` for a name that another copy of the package made. */
export const isLockName = (value: unknown): value is LockName =>
  typeof value === 'object' && value !== null && LOCK_NAME in value;

/** The lock with one name. */
export const oneLock = (client: LockClient, kind: LockedKind, name: string | LockName): Lock =>
  LOCK_OF[kind](client, name);

/** The lock of one call. A list of names is a multi-lock, which orders its members and counts a repeated name once. */
export function lockOf(client: LockClient, kind: LockedKind, key: unknown): Pick<Lock, 'withLock'> {
  if (typeof key === 'string' || isLockName(key)) return oneLock(client, kind, key);
  if (Array.isArray(key) && key.length > 0) {
    return client.getMultiLock(...key.map((name: string | LockName) => oneLock(client, kind, name)));
  }
  throw new InvalidArgumentError('key', 'a name or a list of at least one name', key);
}

import type { Lock } from './lock.js';

/**
 * Two locks under one name: many readers or one writer. Nested holds of both halves belong to one owner.
 *
 * - Inside a write hold, a read hold and a further write hold are granted at once. The release of the write hold before
 *   the read hold is a downgrade: the read hold stays, and other readers wake.
 * - Inside a read hold, a further read hold is granted at once, even while writers wait. A write hold is refused with
 *   `LockUpgradeError` (`ERR_LOCK_UPGRADE`), because two readers that both want to write would deadlock.
 * - Inside one hold, branches read at the same time and write one after the other.
 *
 * Every hold has its own lease. Writers have no precedence: a writer waits as long as readers overlap.
 *
 * @redisson `RReadWriteLock`
 */
export class ReadWriteLock {
  readonly #read: Lock;
  readonly #write: Lock;

  /** @internal */
  constructor(
    /**
     * The name of the lock, without the key prefix.
     *
     * @redisson `RObject#getName()`
     */
    readonly name: string,
    read: Lock,
    write: Lock,
  ) {
    this.#read = read;
    this.#write = write;
  }

  /**
   * The lock of the readers. Several owners can hold it at the same time.
   *
   * @redisson `RReadWriteLock#readLock()`
   */
  readLock(): Lock {
    return this.#read;
  }

  /**
   * The lock of the writers. One owner can hold it, and only while no other owner reads.
   *
   * @redisson `RReadWriteLock#writeLock()`
   */
  writeLock(): Lock {
    return this.#write;
  }
}

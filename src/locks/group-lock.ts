import { isLockContext, type LockContext } from '../ownership/lock-context.js';
import { InvalidArgumentError } from '../errors.js';
import { GroupLockProtocol } from '../protocols/group-lock-protocol.js';
import { SingleLock } from './single-lock.js';

/**
 * Several values of one group, locked together by one script: `getMultiLock(group, values)` of Redisson. All are taken
 * or none, in one round trip, so that no order of theirs can lead to a deadlock. Others may hold other values of the
 * group at the same time.
 *
 * - Inside a hold a call for the same values, or for some of them, re-enters. One for none of them is a stranger. One
 *   for some of them and others besides is refused with `LockUpgradeError` (`ERR_LOCK_UPGRADE`).
 * - Holds nested in one another last as long as the latest of them, with all of their values.
 * - A hold that has lost one of its values is lost; the others are given back.
 */
export class GroupMultiLock extends SingleLock {
  /** @internal */
  declare protected readonly protocol: GroupLockProtocol;

  /** @internal One lock for the values of this one and of others, which are of the same group and client. */
  with(others: readonly GroupMultiLock[]): GroupMultiLock {
    const protocol = GroupLockProtocol.together([this.protocol, ...others.map((other) => other.protocol)]);
    return new GroupMultiLock(this.runtime, this.executor, protocol, this.context);
  }

  /**
   * Frees each of the values, whoever holds it and whatever else it holds, and wakes waiters.
   *
   * @returns whether any was held. @see Redisson `RLock#forceUnlock()`; differs: a value that nobody holds is no error.
   */
  override async forceUnlock(): Promise<boolean> {
    this.checkOpen();
    const until = this.oneDeadline();
    for (;;) {
      const { owners } = await this.protocol.state('', until);
      if (owners.length === 0) return false;
      const request = await this.protocol.release(owners).doneBy(until);
      const freed = request.error === undefined ? request.reply !== 'gone' || request.inDoubt : request.inDoubt;
      if (freed) this.runtime.entries.force(this.protocol, owners, request.inDoubt);
      if (request.error !== undefined) throw request.error;
      if (freed) return true;
    }
  }

  /** Whether anybody holds any of the values. @see Redisson `RLock#isLocked()` */
  override async isLocked(): Promise<boolean> {
    this.checkOpen();
    return (await this.protocol.state()).owners.length > 0;
  }

  /** ms until the last of the values is free if nobody renews it; -2: all are. Redisson has no such call here. */
  override async remainTimeToLive(): Promise<number> {
    this.checkOpen();
    return (await this.protocol.state()).leftMs;
  }

  /**
   * Whether this owner holds all of the values.
   *
   * @see Redisson `RLock#isHeldByThread(long)`; differs: the first of them counts, too.
   */
  override async isHeldBy(owner: LockContext | string): Promise<boolean> {
    this.checkOpen();
    if (typeof owner === 'string' && owner !== '') return this.stillHas(owner);
    if (!isLockContext(owner)) throw new InvalidArgumentError('owner', 'a LockContext or an owner id', owner);
    const record = this.openRecord(owner);
    return record !== undefined && this.stillHas(record.tenure.owner);
  }

  /** @internal */
  protected override async stillHas(owner: string): Promise<boolean> {
    return (await this.readHoldCount(owner)) > 0;
  }

  /** @internal The least that the owner has of any of the values. */
  protected override async readHoldCount(owner: string): Promise<number> {
    return (await this.protocol.state(owner)).holdCount;
  }
}

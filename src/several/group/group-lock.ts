import { isLockContext, type LockContext } from '../../ownership/lock-context.js';
import { InvalidArgumentError } from '../../errors.js';
import { GroupLockProtocol } from './group-lock-protocol.js';
import type { TimeLeft } from '../../lease-time.js';
import * as reads from '../../redis/scripts/reads.js';
import { SingleLock } from '../../locks/single-lock.js';

/**
 * A lock of several values of one group. One script locks all of the values or none, so calls with overlapping values
 * cannot deadlock. Other owners can hold other values of the group at the same time.
 *
 * - Inside a hold, a call for some or all of its values re-enters. A call for other values only is a stranger. A call
 *   for some of its values and for others is refused with `LockUpgradeError` (`ERR_LOCK_UPGRADE`).
 * - Nested holds keep all of their values until the latest of their leases ends.
 * - A hold that loses one of its values is lost. The client releases its other values.
 *
 * @redisson `RedissonClient#getMultiLock(String, Collection<Object>)`
 */
export class GroupMultiLock extends SingleLock {
  /** @internal */
  declare readonly protocol: GroupLockProtocol;

  /** @internal Returns one lock for the values of this lock and of the others, which have the same group and client. */
  with(others: readonly GroupMultiLock[]): GroupMultiLock {
    const protocol = GroupLockProtocol.together([this.protocol, ...others.map((other) => other.protocol)]);
    return new GroupMultiLock(this.runtime, protocol, this.context);
  }

  /**
   * Frees every value regardless of its owner, and wakes waiters.
   *
   * @returns whether any value was held.
   * @throws the errors of {@link Lock.forceUnlock}.
   * @redisson `RLock#forceUnlock()`. Differs: a free value is no error.
   */
  override async forceUnlock(): Promise<boolean> {
    this.checkOpen();
    const until = this.oneDeadline();
    for (;;) {
      const { owners } = await this.protocol.state('', until);
      if (owners.length === 0)
        return this.notHeld(await this.runtime.executor.ask(reads.hkeys, [this.protocol.key], [], until));
      const request = await this.protocol.release(owners).doneBy(until);
      const isDoubtful = request.doubt !== undefined;
      const freed = isDoubtful || (request.error === undefined && request.reply !== 'gone');
      if (freed) this.runtime.lines.force(this.protocol, owners, isDoubtful);
      if (request.error !== undefined) throw request.error;
      if (freed) return true;
    }
  }

  /**
   * Reads from Redis whether any value is held.
   *
   * @redisson `RLock#isLocked()`
   */
  override async isLocked(): Promise<boolean> {
    this.checkOpen();
    return (await this.protocol.state()).owners.length > 0;
  }

  /**
   * Reads from Redis for how long a value stays held without a renewal.
   *
   * @returns milliseconds until the last value is free; -2 if all are free, -1 if a key has no expiry.
   */
  override async remainTimeToLive(): Promise<number> {
    return super.remainTimeToLive();
  }

  /** @internal */
  override async timeLeft(): Promise<TimeLeft> {
    this.checkOpen();
    return (await this.protocol.state()).left;
  }

  /**
   * Reads from Redis whether the given owner holds all of the values.
   *
   * @redisson `RLock#isHeldByThread(long)`. Differs: the first value counts as well.
   */
  override async isHeldBy(owner: LockContext | string): Promise<boolean> {
    this.checkOpen();
    if (typeof owner === 'string' && owner !== '') return this.stillHas(owner);
    if (!isLockContext(owner)) throw new InvalidArgumentError('owner', 'a LockContext or an owner id', owner);
    const held = this.checkedOwner(owner);
    return held !== undefined && this.stillHas(held);
  }

  /** @internal */
  protected override async stillHas(owner: string): Promise<boolean> {
    return (await this.readHoldCount(owner)) > 0;
  }

  /** @internal The smallest hold count that the owner has of any value. */
  protected override async readHoldCount(owner: string): Promise<number> {
    return (await this.protocol.state(owner)).holdCount;
  }
}

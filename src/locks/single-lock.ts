import { acquire, type AcquireServices } from '../waiting/acquire.js';
import { innermostHold } from '../holding/innermost-hold.js';
import type { Reports } from '../diagnostics/reports.js';
import type { CallSite } from '../ownership/call-site.js';
import type { Hold } from '../holding/hold.js';
import type { HoldRecord, HoldTerms } from '../holding/hold-record.js';
import { isLockContext, type LockContext } from '../ownership/lock-context.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { SingleHold, singleHold, type MakeHold } from '../holding/single-hold.js';
import type { LocalHandOvers } from '../waiting/hand-overs/local-hand-over.js';
import type { LongWaits } from '../diagnostics/long-wait.js';
import { waitLimitOf } from '../waiting/limits/wait-limit.js';
import type { Settle } from '../waiting/waiter.js';
import { ClientClosedError, InvalidArgumentError, RefusedError } from '../errors.js';
import type { ReleaseMode } from '../options.js';
import { quoted } from '../visible.js';
import type { ScriptExecutor } from '../redis/requests/script-executor.js';
import type { ServerIdentity } from '../redis/requests/server-identity.js';
import { timeLeftNumber, type TimeLeft } from '../lease-time.js';
import * as reads from '../redis/scripts/reads.js';
import type { LockCall, LockSettle, Method } from './lock-call.js';
import { notOwnerText } from './not-owner-text.js';
import { tracedSingle, type TracedLock } from './lock-trace.js';
import { Lock } from './lock.js';
import { isForeign } from '../protocols/plain-lock-protocol.js';

/** @internal The call that acquires a lock as a member of a lock over several locks. */
export interface MemberCall extends Omit<LockCall, 'byUnlock' | 'release'> {
  readonly owner: string;
  readonly drift?: ((leaseMs: number) => number) | undefined;
}

/** @internal The services of the client that its locks use. */
export interface LockServices extends AcquireServices {
  readonly executor: ScriptExecutor;
  readonly reports: Reports;
  readonly options: AcquireServices['options'] & {
    readonly attemptMs: number;
    readonly lockWatchdogTimeout: number;
    readonly maxHoldTime: number;
    readonly release: ReleaseMode;
  };
  readonly longWaits: LongWaits;
  readonly localHandOvers: LocalHandOvers;
  readonly server: ServerIdentity;
  /** Returns the line that called `above`, if the client keeps call sites. */
  callSite(above: Method): CallSite | undefined;
}

const OUTSIDE_OF_JOINT_LOCKS = { isMember: false };

/** A lock with one name. The protocol determines the kind of the lock. */
export class SingleLock<H extends Hold = Hold> extends Lock<H> {
  /** @internal */
  readonly runtime: LockServices;
  /** @internal */
  readonly protocol: LockProtocol;

  /** @internal */
  constructor(runtime: LockServices, protocol: LockProtocol, context: LockContext | undefined) {
    super(context);
    this.runtime = runtime;
    this.protocol = protocol;
  }

  override get name(): string {
    return this.protocol.name;
  }

  override async forceUnlock(): Promise<boolean> {
    this.checkOpen();
    return this.runtime.localHandOvers.whileForcing(this.protocol.key, () => this.#forceUnlock());
  }

  async #forceUnlock(): Promise<boolean> {
    const until = this.oneDeadline();
    for (;;) {
      // Release only the owners that this read found: a repeat after a lost reply must not free the hold of the next
      // owner.
      const fields = await this.runtime.executor.ask(reads.hkeys, [this.protocol.key], [], until);
      const owners = this.protocol.forceableAmong?.(fields) ?? this.protocol.holdersAmong(fields);
      if (owners.length === 0) return this.notHeld(fields);
      const request = await this.protocol.release(owners).doneBy(until);
      const isDoubtful = request.doubt !== undefined;
      // An unanswered attempt may have freed the lock, or may still do so.
      const freed = isDoubtful || (request.error === undefined && request.reply === 'freed');
      if (freed) this.runtime.lines.force(this.protocol, owners, isDoubtful);
      if (request.error !== undefined) throw request.error;
      if (freed) return true;
    }
  }

  /** @internal The result of a `forceUnlock()` that found no owner to release. Throws if the key holds another hash. */
  protected notHeld(fields: readonly string[]): false {
    if (!isForeign(fields)) return false;
    throw new RefusedError(
      `forceUnlock() left ${quoted(this.name)} as it is: its key holds a hash that is not a lock; use another name, or a keyPrefix`,
      undefined,
    );
  }

  /** @internal Monotonic time, in ms, by which a call with several consecutive requests settles. */
  protected oneDeadline(): number {
    const { clock, options } = this.runtime;
    return clock.clock.monotonic() + options.commandTimeout;
  }

  override async isLocked(): Promise<boolean> {
    this.checkOpen();
    // The two sides of a read-write lock share one key, and its fields tell them apart. The key of any other kind exists
    // only while the lock is held.
    if (this.protocol.side === undefined) return this.runtime.executor.ask(reads.exists, [this.protocol.key], []);
    return this.protocol.holdersAmong(await this.runtime.executor.ask(reads.hkeys, [this.protocol.key], [])).length > 0;
  }

  override async remainTimeToLive(): Promise<number> {
    return timeLeftNumber(await this.timeLeft());
  }

  /** @internal */
  async timeLeft(): Promise<TimeLeft> {
    this.checkOpen();
    return this.runtime.executor.ask(reads.pttl, [this.protocol.key], []);
  }

  override async isHeldBy(owner: LockContext | string): Promise<boolean> {
    this.checkOpen();
    if (typeof owner === 'string' && owner !== '') {
      // Read all fields: one field does not show its kind, because readers and plain locks store the same field.
      return this.protocol
        .holdersAmong(await this.runtime.executor.ask(reads.hkeys, [this.protocol.key], []))
        .includes(owner);
    }
    if (!isLockContext(owner)) {
      throw new InvalidArgumentError('owner', 'a LockContext or an owner id', owner);
    }
    const held = this.checkedOwner(owner);
    return held === undefined ? false : this.stillHas(held);
  }

  override async isHeldByCurrentContext(): Promise<boolean> {
    this.checkOpen();
    const held = this.checkedOwner(this.context);
    return held === undefined ? false : this.stillHas(held);
  }

  override async getHoldCount(): Promise<number> {
    this.checkOpen();
    return this.holdCountOf(this.context);
  }

  override currentHold(): H | undefined {
    return innermostHold(this.runtime, this.protocol, this.context, isOpen) as H | undefined;
  }

  /** @internal Acquires the lock as a member of a lock over several locks. No flow enters the hold. */
  takeAsMember(member: MemberCall, settle: Settle): void {
    this.#acquire({ ...member, byUnlock: false, release: undefined }, { ...member, isMember: true }, settle);
  }

  #acquire(call: LockCall, member: Pick<HoldTerms, 'owner' | 'isMember' | 'drift'>, settle: Settle): void {
    const { runtime, protocol, makeHold } = this;
    const { leaseTime, renewed: watched, maxHoldTime, waitTime, signal, context, byUnlock, site } = call;
    const { options } = runtime;
    const longestMs = watched ? (maxHoldTime ?? options.maxHoldTime) : Infinity;
    const leaseMs = Math.min(leaseTime ?? options.lockWatchdogTimeout, longestMs);
    const askedAt = runtime.reports.now();
    const { owner, isMember, drift } = member;
    // The time of a member begins with the grant of the whole.
    const maxHoldMs = isMember ? Infinity : longestMs;
    const terms = { owner, isMember, drift, leaseMs, watched, maxHoldMs, byUnlock, site, askedAt };
    acquire(
      runtime,
      { protocol, terms, limit: waitLimitOf(runtime.clock, waitTime, signal), context, makeHold },
      settle,
    );
  }

  /** @internal */
  protected override take(call: LockCall, settle: LockSettle): void {
    this.#acquire(call, OUTSIDE_OF_JOINT_LOCKS, settle);
  }

  /**
   * @internal Looks at the clock, and reports a loss. Then returns the owner of the open hold around the caller or the
   * context.
   */
  protected checkedOwner(context: LockContext | undefined): string | undefined {
    const hold = innermostHold(this.runtime, this.protocol, context);
    if (hold === undefined) return undefined;
    SingleHold.tenureOf(hold).lease.check();
    return SingleHold.recordOf(hold).state === 'open' ? hold.owner : undefined;
  }

  /** @internal */
  protected override tracedAs(context: LockContext | undefined): TracedLock {
    return tracedSingle(this.runtime, this.protocol, context);
  }

  /** @internal Creates the hold objects of this kind of lock. */
  protected get makeHold(): MakeHold {
    return singleHold;
  }

  /** @internal */
  protected override unlockable(context: LockContext | undefined): Hold | undefined {
    // Prefer an open outer hold. Wait for a failed release only if there is none: unlock() of an outer hold must not
    // count as a repeat of the failed release.
    return (
      innermostHold(this.runtime, this.protocol, context, canBeUnlocked) ??
      innermostHold(this.runtime, this.protocol, context, canBeAwaited)
    );
  }

  /** @internal */
  protected override callSite(above: Method): CallSite | undefined {
    return this.runtime.callSite(above);
  }

  /** @internal */
  protected override releaseFailed({ owner }: Hold, cause: unknown): void {
    this.runtime.reports.report('releaseFailed', this.protocol, { owner, cause });
  }

  /** @internal */
  override get releaseMode(): ReleaseMode {
    return this.runtime.options.release;
  }

  /** @internal */
  protected override checkOpen(): void {
    if (this.runtime.client.closed) throw new ClientClosedError();
  }

  /** @internal */
  protected override notOwnerMessage(): string {
    return notOwnerText(this.name, this.heldHere(), this.protocol.family);
  }

  /** @internal The outermost hold of the lock that this client has, if any. */
  heldHere(): HoldRecord | undefined {
    for (const { holds } of this.runtime.lines.holdersOf(this.protocol.key)) if (holds.length > 0) return holds[0];
    return undefined;
  }

  /**
   * @internal Reads from Redis the hold count of the owner around the context or the caller. Returns 0 without an open
   * hold.
   */
  async holdCountOf(context: LockContext | undefined): Promise<number> {
    const held = this.checkedOwner(context);
    return held === undefined ? 0 : this.readHoldCount(held);
  }

  /** @internal Whether Redis still has the field of this owner for this kind of hold. */
  protected stillHas(owner: string): Promise<boolean> {
    return this.runtime.executor.ask(reads.hexists, [this.protocol.key], [this.protocol.fieldOf(owner)]);
  }

  /** @internal */
  protected readHoldCount(owner: string): Promise<number> {
    return this.runtime.executor.ask(reads.hgetCount, [this.protocol.key], [this.protocol.fieldOf(owner)]);
  }
}

const isOfThisLock = (record: HoldRecord, { side, lockedValues }: LockProtocol): boolean =>
  record.side === side && record.protocol.lockedValues?.line === lockedValues?.line;
const canBeUnlocked = (record: HoldRecord, protocol: LockProtocol): boolean =>
  record.unlockable && isOfThisLock(record, protocol);
const canBeAwaited = (record: HoldRecord, protocol: LockProtocol): boolean =>
  record.awaitable && isOfThisLock(record, protocol);
const isOpen = (record: HoldRecord, protocol: LockProtocol): boolean =>
  !record.isClosed && isOfThisLock(record, protocol);

import { currentHolds, innermostOf } from '../ownership/flow.js';
import type { CallSite } from '../ownership/call-site.js';
import type { Hold } from '../holding/hold.js';
import { acquireUnder, holdsUnder, isLockContext, type LockContext } from '../ownership/lock-context.js';
import { serves } from '../holding/innermost-hold.js';
import { MultiHold } from './joint-hold.js';
import { SingleHold } from '../holding/single-hold.js';
import { ClientClosedError, InvalidArgumentError, LockAbortedError } from '../errors.js';
import { refuseUnknown, type ReleaseMode } from '../options.js';
import { settleAs, type LockCall, type LockSettle, type Method } from '../locks/lock-call.js';
import type { TracedLock } from '../locks/lock-trace.js';
import { Lock } from '../locks/lock.js';
import { clientIdsOf, groupsOf, identityOf, type Member, type Members } from './members.js';
import { notOwnerText } from '../locks/not-owner-text.js';
import type { MemberCall } from '../locks/single-lock.js';
import { timeLeftNumber, type TimeLeft } from '../lease-time.js';

/** The list of a context with its holds of several locks. */
const SEVERAL = 'several';

/**
 * Base class of the locks over several locks. It has the order of the members, the hold that stands for all of them,
 * and the reads. A hold needs `quorum` of the members.
 */
export abstract class JointLock extends Lock<MultiHold> {
  /** @internal In the order in which every process locks these members. */
  protected readonly members: Members;
  /** @internal Equal for all locks over the same members. */
  protected readonly identity: string;
  readonly #name: string;
  /** Whether at least two members belong to the same client. */
  readonly #ofOneClient: boolean;

  /** @internal */
  constructor(
    members: Members,
    private readonly kind: 'multi' | 'red',
    /** @internal How many members make a hold. */
    protected readonly quorum: number,
    context: LockContext | undefined,
  ) {
    super(context);
    this.members = members;
    this.identity = members.map(identityOf).join('\n');
    this.#name = members.map(({ name }) => name).join(', ');
    this.#ofOneClient = new Set(members.map(({ runtime }) => runtime)).size < members.length;
  }

  /**
   * The names of the members, in the order in which they are locked, separated by `, `. Redisson's multi-lock has no
   * name.
   */
  override get name(): string {
    return this.#name;
  }

  /**
   * Releases every member, regardless of its owner. Redisson's multi-lock does not support this call.
   *
   * @returns `true` if at least one member was held.
   */
  override async forceUnlock(): Promise<boolean> {
    this.checkOpen();
    return this.ask(
      (member) => member.forceUnlock(),
      (freed) => freed.includes(true),
    );
  }

  /**
   * Whether so many members are held, by any owner, that the lock cannot be acquired. Redisson's multi-lock does not
   * support this call.
   */
  override async isLocked(): Promise<boolean> {
    this.checkOpen();
    // A server without an answer cannot be acquired either.
    const tooFewFree = (locked: readonly boolean[]): boolean => locked.filter((each) => !each).length < this.quorum;
    return this.ask((member) => member.isLocked(), tooFewFree, [false, true]);
  }

  /**
   * Reads the time, in ms, after which enough members are free if no owner renews them. Redisson's multi-lock does not
   * support this call.
   *
   * @returns -2 if enough members are free now; -1 if too many of them have no expiry.
   */
  override async remainTimeToLive(): Promise<number> {
    this.checkOpen();
    // A missing key is free now, so it comes before every other.
    const freeIn = (left: TimeLeft): number => (left === 'no expiry' ? Infinity : left === 'missing' ? -1 : left);
    const enough = (lefts: readonly TimeLeft[]): TimeLeft =>
      [...lefts].sort((a, b) => (freeIn(a) === freeIn(b) ? 0 : freeIn(a) - freeIn(b)))[this.quorum - 1] ?? 'no expiry';
    return timeLeftNumber(await this.ask((member) => member.timeLeft(), enough, ['missing', 'no expiry']));
  }

  /**
   * Whether this owner holds all members of a multi-lock, or a majority of the members of a RedLock.
   *
   * @redisson `RLock#isHeldByThread(long)`
   */
  override async isHeldBy(owner: LockContext | string): Promise<boolean> {
    this.checkOpen();
    if (!isLockContext(owner) && (typeof owner !== 'string' || owner === '')) {
      throw new InvalidArgumentError('owner', 'a LockContext or an owner id', owner);
    }
    const owners = typeof owner === 'string' ? owner.split(', ') : [];
    const isHeld = async (member: Member): Promise<boolean> => {
      if (typeof owner !== 'string') return member.isHeldBy(owner);
      // `hold.owner` has a part for each client, and several if members have owners of their own. Look for those of this
      // member's client.
      const own = owners.filter((part) => part.startsWith(`${member.runtime.clientId}:`));
      if (own.length <= 1) return member.isHeldBy(own[0] ?? owner);
      return (await Promise.all(own.map((part) => member.isHeldBy(part)))).includes(true);
    };
    return this.ask(isHeld, (held) => held.filter(Boolean).length >= this.quorum, [false, true]);
  }

  /**
   * Whether the caller is inside a hold that Redis confirms.
   *
   * @redisson `RLock#isHeldByCurrentThread()`
   */
  override async isHeldByCurrentContext(): Promise<boolean> {
    return (await this.getHoldCount()) > 0;
  }

  /**
   * Reads the hold count of the caller's owner: the lowest count of all members of a multi-lock, or of the best
   * majority of a RedLock. Redisson's multi-lock does not support this call.
   */
  override async getHoldCount(): Promise<number> {
    this.checkOpen();
    const hold = this.currentHold();
    if (hold === undefined || hold.findLoss() !== undefined) return 0;
    const least = (counts: readonly number[]): number => [...counts].sort((a, b) => b - a)[this.quorum - 1] ?? 0;
    return this.ask((member) => member.holdCountOf(this.context), least, [0, Infinity]);
  }

  override currentHold(): MultiHold | undefined {
    return this.innermost(this.context, (hold) => hold.current);
  }

  /**
   * @internal Sends `question` to all members and combines their answers with `meaning`. A subclass may settle with
   * fewer answers: `between` has the lowest and the highest answer that a missing member could give.
   */
  protected async ask<T, V>(
    question: (member: Member) => Promise<T>,
    meaning: (answers: readonly T[]) => V,
    _between?: readonly [T, T],
  ): Promise<V> {
    const asked = this.members.map(question);
    // A request that is still pending after the call could free the lock of a later owner.
    await Promise.allSettled(asked);
    return meaning(await Promise.all(asked));
  }

  /** @internal */
  protected override take(given: LockCall, settle: LockSettle): void {
    const call = { ...given, maxHoldTime: this.#maxHoldTimeOf(given) };
    const { signal, context } = call;
    if (signal?.aborted === true) return settle.failed(new LockAbortedError(this.name, signal.reason));
    if (!this.isServed(context)) return settle.failed(new ClientClosedError());
    // Refuse to nest in a lost hold.
    const loss = this.innermost(context, (hold) => hold.current)?.findLoss();
    if (loss !== undefined) return settle.failed(loss);
    if (context === undefined) this.takeMembers(call, settle);
    else settleAs(this.#takeFor(context, call), settle);
  }

  /** The shortest time that a client of a member allows, if the call does not say it. */
  #maxHoldTimeOf({ renewed, maxHoldTime }: LockCall): number {
    if (!renewed) return Infinity;
    return maxHoldTime ?? Math.min(...this.members.map(({ runtime }) => runtime.options.maxHoldTime));
  }

  #takeFor(context: LockContext, call: LockCall): Promise<MultiHold> {
    // Refuses a second call of the context meanwhile. A member knows only of its own requests: it would not notice a call
    // that is at another member.
    const identity = `${SEVERAL} ${this.identity}`;
    const contextCall = { lockName: this.name, identity, lockedValues: undefined, list: SEVERAL };
    const taken = (): Promise<MultiHold> =>
      new Promise((granted, failed) => this.takeMembers(call, { granted: granted as (taken: Hold) => void, failed }));
    return acquireUnder(context, contextCall, taken);
  }

  /** @internal The release mode of the first member's client. */
  override get releaseMode(): ReleaseMode {
    return this.members[0].releaseMode;
  }

  /** @internal */
  protected override tracedAs(context: LockContext | undefined): TracedLock {
    const nested = this.innermost(context, (hold) => hold.current) !== undefined;
    const { name, kind, members } = this;
    return { name, group: groupsOf(members), kind, mode: 'exclusive', clientId: clientIdsOf(members), nested };
  }

  /**
   * @internal Acquires the members. Fails with `LockTimeoutError` if they stay busy. Before it fails, it releases every
   * member that was granted.
   */
  protected abstract takeMembers(call: LockCall, settle: LockSettle): void;

  /** @internal */
  protected hold(members: readonly SingleHold[], { byUnlock, maxHoldTime = Infinity }: LockCall): MultiHold {
    return new MultiHold(
      {
        identity: this.identity,
        lockName: this.name,
        of: this.members.length,
        quorum: this.quorum,
        byUnlock,
        renewedUntil: this.members[0].runtime.clock.clock.monotonic() + maxHoldTime,
        releaseFailed: (member, cause) => {
          const { services, protocol } = SingleHold.tenureOf(member);
          services.reports.report('releaseFailed', protocol, { owner: member.owner, cause });
        },
      },
      members,
    );
  }

  /** @internal Returns a function that gives all members of one client the same new owner. */
  protected owners(): (member: Member) => string {
    if (!this.#ofOneClient) return ownOwner;
    const owners = new Map<object, string>();
    return ({ runtime }) => {
      const owner = owners.get(runtime) ?? runtime.newOwner();
      owners.set(runtime, owner);
      return owner;
    };
  }

  /** @internal */
  protected takeMember(member: Member, call: MemberCall): Promise<SingleHold> {
    return new Promise((granted, failed) => member.takeAsMember(call, { granted, failed }));
  }

  /** @internal */
  protected override unlockable(context: LockContext | undefined): Hold | undefined {
    return this.innermost(context, (hold) => hold.unlockable) ?? this.innermost(context, (hold) => hold.awaitable);
  }

  /** @internal */
  protected innermost(context: LockContext | undefined, accepts: (hold: MultiHold) => boolean): MultiHold | undefined {
    return innermostOf(
      context === undefined ? currentHolds() : holdsUnder(context, SEVERAL),
      (hold): hold is MultiHold => hold instanceof MultiHold && hold.isOf(this.identity) && accepts(hold),
    );
  }

  /** @internal */
  protected override notOwnerMessage(): string {
    return notOwnerText(this.name, this.members.map((member) => member.heldHere()).find(Boolean));
  }

  /** @internal */
  protected override callSite(above: Method): CallSite | undefined {
    return this.members[0]?.runtime.callSite(above);
  }

  /** @internal */
  protected override releaseFailed({ owner, lockName: name }: Hold, cause: unknown): void {
    const { members } = this;
    members[0].runtime.reports.report('releaseFailed', { name, group: groupsOf(members) }, { owner, cause });
  }

  /** @internal Whether the clients of enough members serve a call that acquires. */
  protected isServed(context: LockContext | undefined): boolean {
    const place = { around: currentHolds(), context };
    return this.members.filter(({ runtime }) => serves(runtime, place)).length >= this.quorum;
  }

  /** @internal */
  protected override checkOpen(): void {
    let open = 0;
    for (const { runtime } of this.members) if (!runtime.client.closed) open += 1;
    if (open < this.quorum) throw new ClientClosedError();
  }
}

const ownOwner = ({ runtime }: Member): string => runtime.newOwner();

/** Time, in ms, within which every request to a member settles: the longest command deadline. */
export const longestDeadline = (members: Members): number =>
  Math.max(...members.map(({ runtime }) => runtime.options.commandTimeout));

/** Splits the arguments of a variadic call into the locks and the options that may follow them. */
export function locksAndOptions<T extends object>(
  given: readonly unknown[],
  known: readonly (keyof T & string)[],
): { readonly locks: readonly unknown[]; readonly options: Partial<T> } {
  const last = given.at(-1);
  // An object with a name is not an options object. It is a lock, also from another copy of the package, a read-write
  // lock or a semaphore.
  if (given.length === 0 || typeof last !== 'object' || last === null || 'name' in last) {
    return { locks: given, options: {} };
  }
  if (Array.isArray(last)) throw new InvalidArgumentError('locks', 'passed one by one, not as an array', last);
  refuseUnknown('options', last, known);
  return { locks: given.slice(0, -1), options: last };
}

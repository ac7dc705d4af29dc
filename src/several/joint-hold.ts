import type { TracedGrant } from '../diagnostics/traces.js';
import type { MonotonicMs } from '../clock.js';
import { ClientClosedError, LockLostError, MultiUnlockError, type MemberFailure } from '../errors.js';
import { Hold } from '../holding/hold.js';
import { checkLease } from '../lease-time.js';
import { MultiHoldLoss } from './joint-hold-loss.js';
import { SingleHold } from '../holding/single-hold.js';

export interface MultiHoldTerms {
  /** Equal for all locks over the same members. */
  readonly identity: string;
  readonly lockName: string;
  /** The number of members, and the number that makes a hold. */
  readonly of: number;
  readonly quorum: number;
  /** Whether `unlock()` releases the hold. */
  readonly byUnlock: boolean;
  /** Until when the members are renewed. */
  readonly renewedUntil: MonotonicMs;
  /** Reports a failed release of one member when the release of the whole hold does not fail for it. */
  releaseFailed(member: SingleHold, cause: unknown): void;
}

/**
 * Holds of several locks that count as one hold: of all locks for a multi-lock, of a majority for a RedLock. The hold
 * is lost when fewer members than that are left.
 */
export class MultiHold extends Hold {
  readonly #members: SingleHold[] = [];
  readonly #lost: MultiHoldLoss;
  #released: Promise<void> | undefined;
  #onReleased: (() => void) | undefined;

  /** @internal */
  constructor(
    /** @internal */
    private readonly terms: MultiHoldTerms,
    members: readonly SingleHold[],
  ) {
    super();
    this.#lost = new MultiHoldLoss(terms.lockName, terms.quorum);
    for (const member of members) this.join(member);
  }

  override get lockName(): string {
    return this.terms.lockName;
  }

  override get owner(): string {
    return this.#lost.owner;
  }

  override get signal(): AbortSignal {
    this.#lost.check();
    return this.#lost.signal;
  }

  override validFor(): number {
    if (!this.counts) return 0;
    const valid = this.#members.map((member) => member.validFor()).sort((a, b) => b - a);
    return valid[this.terms.quorum - 1] ?? 0;
  }

  /** @internal Whether enough members are held, according to the local clock. */
  get counts(): boolean {
    let valid = 0;
    for (const member of this.#members) if (member.validFor() > 0) valid += 1;
    return valid >= this.terms.quorum && this.#lost.loss === undefined && this.#released === undefined;
  }

  override async extend(leaseTime: number): Promise<void> {
    const lease = checkLease(leaseTime);
    this.#throwIfLost();
    const members = [...this.#members];
    const failures: unknown[] = [];
    let extended = 0;
    // A server that hangs does not delay a majority. Without a majority, wait for all members: after the rejection no
    // member may be extended.
    await new Promise<void>((settled) => {
      const look = (): void => {
        if (extended === this.terms.quorum || extended + failures.length === members.length) settled();
      };
      for (const member of members) {
        member.extend(lease).then(
          () => ((extended += 1), look()),
          (error: unknown) => (failures.push(error), look()),
        );
      }
    });
    if (extended >= this.terms.quorum) return;
    // Prefer other errors: the loss of one member is not a loss of the whole hold.
    const isOver = (error: unknown): boolean => error instanceof LockLostError || error instanceof ClientClosedError;
    throw this.#lost.loss ?? failures.find((error) => !isOver(error)) ?? failures[0];
  }

  /** @internal */
  protected override free(after: number): Promise<void> {
    if (this.#released === undefined) {
      this.#released = this.#release(after);
      this.#lost.over = true;
      this.#onReleased?.();
    }
    return this.#released;
  }

  /** @internal The releases of enough members leave. */
  protected override leave(released: Promise<void>): boolean | Promise<boolean> {
    const leaves = this.#members.map((member) => member.leaveAsMember(released));
    const { quorum } = this.terms;
    if (leaves.filter((left) => left === true).length >= quorum) return true;
    if (leaves.filter((left) => left !== false).length < quorum) return false;
    return new Promise((resolve) => {
      let [left, open] = [0, leaves.length];
      for (const each of leaves) {
        void Promise.resolve(each).then((hasLeft) => {
          open -= 1;
          if (hasLeft) left += 1;
          if (left >= quorum || left + open < quorum) resolve(left >= quorum);
        });
      }
    });
  }

  /**
   * Releases all members at the same time. The release of a RedLock settles when a majority has replied, and the other
   * releases continue in the background.
   */
  #release(after: number): Promise<void> {
    const { of, quorum } = this.terms;
    const loss = this.findLoss();
    const members = [...this.#members];
    const failures: MemberFailure[] = [];
    let open = members.length;
    let kept = 0;
    let lost = 0;
    let settled = false;
    // The release found losses that no check had reported before.
    const tooFew = (): boolean => members.length - lost < quorum;
    const enough = (): boolean => kept >= quorum && !tooFew();
    return new Promise((resolve, reject) => {
      const over = (): void => {
        if (settled) return;
        settled = true;
        if (loss === undefined && enough()) resolve();
        else {
          const failure = this.#failure(loss, failures, tooFew());
          if (failure instanceof LockLostError) this.#lost.lostAtRelease(failure);
          reject(failure);
        }
      };
      const look = (): void => {
        if (open === 0 || (quorum < of && (enough() || tooFew()))) over();
      };
      const given = (): void => {
        open -= 1;
        kept += 1;
        look();
      };
      for (let at = 0; at < members.length; at += 1) {
        const member = members[at] as SingleHold;
        member.release({ after }).then(given, (error: unknown) => {
          open -= 1;
          if (error instanceof LockLostError || SingleHold.recordOf(member).loss !== undefined) lost += 1;
          const { lockName, owner } = member;
          failures.push({ member: at, lockName, owner, error });
          if (quorum < of && !(error instanceof LockLostError)) this.terms.releaseFailed(member, error);
          look();
        });
      }
    });
  }

  #failure(loss: LockLostError | ClientClosedError | undefined, failures: MemberFailure[], tooFew: boolean): Error {
    const closed = failures.find(({ error }) => error instanceof ClientClosedError);
    if (closed !== undefined && failures.every(({ error }) => error instanceof ClientClosedError))
      return closed.error as ClientClosedError;
    const failed = new MultiUnlockError(this.lockName, failures);
    if (loss !== undefined) {
      if (failures.length > 0) loss.cause = failed;
      return loss;
    }
    const first = failures.map(({ error }) => error).find((error) => error instanceof LockLostError);
    if (first === undefined || !tooFew) return failed;
    return new LockLostError(this.lockName, this.owner, first.reason, { cause: failed });
  }

  /** @internal */
  override releaseByUnlock(): Promise<void> {
    if (this.#released === undefined) return this.release();
    const pending = this.#lost.records.flatMap((record) => record.compensation ?? []);
    return pending.length === 0 ? this.#released : Promise.all(pending).then(() => undefined);
  }

  /** @internal */
  override get grant(): Required<TracedGrant> {
    const grants = this.#members.map(({ grant }) => grant);
    const holdCount = Math.max(1, ...grants.map((each) => each.holdCount));
    return { owner: this.owner, holdCount, handedOff: grants.length > 0 && grants.every((each) => each.handedOff) };
  }

  /** @internal Calls `fn` once, when the release of the hold begins. */
  whenReleased(fn: () => void): void {
    this.#onReleased = fn;
  }

  /** @internal Adds a member that was granted. A grant that comes after the release is released. */
  join(member: SingleHold): void {
    if (this.#released !== undefined) {
      // The whole hold has been released. A failed release of this member continues in the background.
      member.release().catch(() => undefined);
      return;
    }
    this.#members.push(member);
    const [tenure, record] = [SingleHold.tenureOf(member), SingleHold.recordOf(member)];
    this.#lost.joined(tenure, record);
    if (this.terms.renewedUntil === Infinity) return;
    const { clock } = tenure.services;
    record.renewUntil(clock.at(this.terms.renewedUntil, clock.jumpedByNow()));
    tenure.deadlineMoved();
  }

  /** @internal A flow inside this hold is inside the hold of each member. */
  get members(): readonly SingleHold[] {
    return this.#members;
  }

  /** @internal */
  override get open(): boolean {
    return this.#members.some(({ open }) => open);
  }

  /** @internal Checks the clock, reports a loss, and returns its error. */
  findLoss(): LockLostError | ClientClosedError | undefined {
    this.#lost.check();
    return this.#lost.loss;
  }

  /** @internal */
  isOf(identity: string): boolean {
    return this.terms.identity === identity && this.open;
  }

  /** @internal Whether an `unlock()` releases this hold. */
  get unlockable(): boolean {
    return this.terms.byUnlock && this.#released === undefined;
  }

  /**
   * @internal Whether an `unlock()` that finds no hold to release waits for the pending release of this one and
   * reports its outcome.
   */
  get awaitable(): boolean {
    return this.terms.byUnlock && this.#lost.records.some((record) => record.compensation !== undefined);
  }

  /** @internal Whether the hold has not been released yet. It may be lost. */
  get current(): boolean {
    return this.#released === undefined;
  }

  #throwIfLost(): void {
    const loss = this.findLoss();
    if (loss !== undefined) throw loss;
  }
}

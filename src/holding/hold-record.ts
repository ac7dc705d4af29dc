import { RedisUnavailableError, type ClientClosedError, type LockLostError } from '../errors.js';
import type { CallSite } from '../ownership/call-site.js';
import type { Half, LockProtocol } from '../protocols/lock-protocol.js';
import { runOutside } from '../ownership/flow.js';
import type { LightSet } from '../light-set.js';

/** A hold ends, for us, this much before its lease does in Redis: max(5 ms, 1 %). */
const marginMs = (leaseMs: number): number => Math.max(5, leaseMs / 100);

/** What a hold is asked for with. */
export interface HoldTerms {
  readonly leaseMs: number;
  /** No lease was given: the watchdog renews. */
  readonly watched: boolean;
  readonly bare: boolean;
  readonly site: CallSite | undefined;
  /** The owner to begin with, shared by the members of a multi-lock; absent: a fresh one. */
  readonly owner?: string;
  /** ms that a lease counts less here than at its server. */
  readonly drift?: ((leaseMs: number) => number) | undefined;
}

/** A branch has the lock for itself. */
const EXCLUSIVE = -1;

/**
 * What the client knows of one hold. The tenure keeps it; the caller's {@link Hold} only points here, so that a hold
 * nobody can give back any more is noticed.
 *
 * `open` -> `lost` -> `closed`, or `open` -> `closed`.
 */
export class HoldRecord {
  state: 'open' | 'lost' | 'closed' = 'open';
  loss: LockLostError | ClientClosedError | undefined;
  leaseMs: number;
  /** Renewed by the watchdog; otherwise the caller gave the lease. */
  watched: boolean;
  /** Taken by lock() or tryLock(), so that unlock() releases it. */
  readonly bare: boolean;
  readonly site: CallSite | undefined;
  /** Lease clock ms at which the lease that this hold asked for ends in Redis, by the last confirmation. */
  leaseEnd: number;
  /** The longest lease asked for: clocks that drift apart have moved furthest by the end of that one. */
  longestLeaseMs: number;
  /** Branches directly inside this hold that have the lock, or are about to; the others wait in `branches`. */
  occupied = 0;
  branches: LightSet<(unavailable?: RedisUnavailableError) => void> | undefined;
  /** The release that is under way or over. */
  released: Promise<void> | undefined;
  /** A release of unknown outcome that goes on in the background; an `unlock()` that follows waits for it. */
  givingBack: Promise<void> | undefined;
  /** Lets go of a hold that has been given back: set where somebody keeps it. */
  forget: (() => void) | undefined;
  /** The caller's {@link Hold}, until it is watched for a leak: then only its users keep it alive. */
  hold: object | undefined;
  /** The hold of several locks that this one is part of: it looks at all its parts when this one is lost. */
  jointHold: { check(): void } | undefined;
  /** Drawn with the acquire of a fenced lock. */
  token: bigint | undefined;
  #controller: AbortController | undefined;

  constructor(
    readonly parent: HoldRecord | undefined,
    terms: HoldTerms,
    sentAt: number,
    readonly openedAt: number,
    /** The kind that it was asked for as; nested holds of one tenure may differ in it. */
    readonly protocol: LockProtocol,
  ) {
    this.leaseMs = terms.leaseMs;
    this.watched = terms.watched;
    this.bare = terms.bare;
    this.site = terms.site;
    this.drift = terms.drift;
    this.leaseEnd = sentAt + terms.leaseMs;
    this.longestLeaseMs = terms.leaseMs;
  }

  get half(): Half {
    return this.protocol.half;
  }

  /** Lease clock ms from which on this hold alone does not count any more. */
  get deadline(): number {
    const margin = marginMs(this.longestLeaseMs);
    return this.leaseEnd - (this.drift === undefined ? margin : Math.max(margin, this.drift(this.longestLeaseMs)));
  }

  /** ms by which the clocks of independent servers may drift apart within a lease; more than the margin. */
  readonly drift: ((leaseMs: number) => number) | undefined;

  /** What the listeners of the client were told of it last. */
  told: 'nothing' | 'acquired' | 'ended' = 'nothing';

  /** Its release has not been settled yet. */
  releasing = false;

  /** Whether it stays around its flow: also a lost one does until it is given back, and one that is being given back. */
  get aroundItsFlow(): boolean {
    return this.state !== 'closed' || this.releasing || this.givingBack !== undefined;
  }

  /** Whether an `unlock()` of its flow means this hold. */
  get unlockable(): boolean {
    return this.bare && this.state !== 'closed';
  }

  /** Whether an `unlock()` that means no hold waits for what became of this one. */
  get awaitable(): boolean {
    return this.bare && this.givingBack !== undefined;
  }

  /** Whether what `protocol` asks for is held here, or by a hold around this one. */
  holds(protocol: LockProtocol): boolean {
    const { family, parts } = protocol;
    // All holds of one tree are of one family.
    if (family !== this.protocol.family) return false;
    if (parts === undefined) return true;
    if (this.state !== 'closed' && this.protocol.parts?.covers(parts) === true) return true;
    return this.parent?.holds(protocol) === true;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.loss !== undefined) this.#controller.abort(this.loss);
    return this.#controller.signal;
  }

  /** Its release has found it lost: the signal aborts all the same. */
  lostAtRelease(loss: LockLostError): void {
    this.loss ??= loss;
    this.tellLost();
  }

  lose(error: LockLostError | ClientClosedError): void {
    this.state = 'lost';
    this.loss = error;
  }

  /** Whoever listens, or waits inside, hears that it is lost. */
  tellLost(): void {
    const controller = this.#controller;
    if (controller !== undefined) runOutside(() => controller.abort(this.loss));
    this.jointHold?.check();
    this.#wakeBranches();
  }

  throwIfLost(): void {
    if (this.loss !== undefined) throw this.loss;
  }

  close(): void {
    this.state = 'closed';
    this.#wakeBranches();
    // A child that outlives its parent keeps the parent's place: the branches beside it go on waiting.
    if (this.occupied === 0) this.parent?.leave();
  }

  /** A branch directly inside has ended: the next one may try. */
  leave(): void {
    const alone = this.occupied === EXCLUSIVE;
    this.occupied = alone ? 0 : this.occupied - 1;
    if (alone) for (const around of this.#aroundConcurrent()) around.#shareAgain();
    if (this.state === 'closed') {
      if (this.occupied === 0) this.parent?.leave();
      return;
    }
    this.#admitNext();
  }

  /** Whether a branch directly inside this hold keeps another from its place; concurrent ones share it. */
  keepsOut({ concurrent }: LockProtocol): boolean {
    return concurrent ? this.occupied === EXCLUSIVE : this.occupied !== 0;
  }

  /** Takes a place inside this hold. */
  enter(protocol: LockProtocol): boolean {
    if (this.keepsOut(protocol)) return false;
    this.occupied = protocol.concurrent ? this.occupied + 1 : EXCLUSIVE;
    if (!protocol.concurrent) for (const around of this.#aroundConcurrent()) around.occupied = EXCLUSIVE;
    return true;
  }

  /** Whether a branch beside this hold, or beside a concurrent one around it, shares the lock as well. */
  get besideConcurrent(): boolean {
    return [...this.#aroundConcurrent()].some(({ occupied }) => occupied > 1);
  }

  /**
   * The holds in which an exclusive branch inside this hold needs all places: those around this one, as long as this one
   * and they are concurrent, up to an exclusive hold.
   */
  *#aroundConcurrent(): Iterable<HoldRecord> {
    if (!this.protocol.concurrent || this.parent === undefined) return;
    yield this.parent;
    yield* this.parent.#aroundConcurrent();
  }

  #shareAgain(): void {
    this.occupied = 1;
    this.#admitNext();
  }

  #admitNext(): void {
    // Nearly always the first one gets in alone: then the others need not be looked at.
    this.branches?.first?.();
    if (this.occupied === EXCLUSIVE) return;
    for (const wake of [...(this.branches ?? [])]) {
      wake();
      if (this.occupied === EXCLUSIVE) return;
    }
  }

  /** The branch that the others wait for has found Redis unavailable. */
  redisUnavailable(error: RedisUnavailableError): void {
    for (const wake of [...(this.branches ?? [])]) wake(error);
  }

  #wakeBranches(): void {
    for (const wake of [...(this.branches ?? [])]) wake();
  }
}

/** When a hold asked for at `sentAt` must have been granted to count at all. */
export const grantDeadline = (sentAt: number, leaseMs: number): number => sentAt + leaseMs - marginMs(leaseMs);

export const answeredTooLate = (): RedisUnavailableError =>
  new RedisUnavailableError('the answer came after the lease that was asked for had ended', 'none');

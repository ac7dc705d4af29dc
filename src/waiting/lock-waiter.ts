import type { JumpedMs, LeaseClock, LeaseClockMs, MonotonicMs } from '../clock.js';
import { RefusedError } from '../errors.js';
import { latestEnd, type Compensations } from '../holding/compensations.js';
import type { HoldRecord, HoldTerms } from '../holding/hold-record.js';
import type { MakeHold } from '../holding/single-hold.js';
import type { Tenure } from '../holding/tenure.js';
import type { CallSite } from '../ownership/call-site.js';
import type { LockContext } from '../ownership/lock-context.js';
import { sendRelease, type LockProtocol } from '../protocols/lock-protocol.js';
import type { ResolvedOptions } from '../options.js';
import type { QueueReleases } from '../protocols/queue-releases.js';
import type { Doubt } from '../redis/requests/doubt.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply, Granted, Handed, HandOffReply } from '../redis/scripts/replies.js';
import type { WaitLimit } from './limits/wait-limit.js';
import { extraLeaseMs } from './hand-overs/local-hand-over.js';
import { Waiter, type Settle } from './waiter.js';

/** The services that the lock waiters of one client share. */
export interface LockWaiterServices {
  readonly clock: LeaseClock;
  readonly options: {
    readonly commandTimeout: number;
    readonly attemptMs: number;
    readonly fairWaiterTimeout: number;
    readonly handOff: ResolvedOptions['handOff'];
  };
  readonly compensations: Compensations;
  readonly queueReleases: QueueReleases;
  /** Returns `<client id>:<number>`, never the same twice. */
  newOwner(): string;
}

/** The lock and the hold that a call asks for, and the time limit of the call. */
interface LockCallTerms {
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly limit: WaitLimit;
  readonly context: LockContext | undefined;
  readonly makeHold: MakeHold;
}

/** The place of an owner in the Redis queue of the lock. `at`: when the try that gave it was sent, if that is known. */
type QueuePlace =
  { readonly kind: 'none' | 'possible' } | { readonly kind: 'taken'; readonly at: MonotonicMs | undefined };

const NO_PLACE: QueuePlace = { kind: 'none' };
const POSSIBLE_PLACE: QueuePlace = { kind: 'possible' };

/** What gave the lock to the owner of a waiter. */
export interface Grant {
  readonly waiter: LockWaiter;
  /** Absent: the waiter follows `before` under the same owner, without a request. */
  readonly request?: ScriptRequest<AcquireReply> | ScriptRequest<HandOffReply>;
  readonly before?: Tenure;
  readonly reply: Granted | Handed;
  /** The lease counts from this moment. */
  readonly sentAt: LeaseClockMs;
  readonly jumped: JumpedMs;
  readonly now: LeaseClockMs;
}

/** A call that waits for an outermost hold of a lock. */
export class LockWaiter extends Waiter {
  override readonly context: LockContext | undefined;
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly #makeHold: MakeHold;
  #owner: string | undefined;
  /** The owner that a forced unlock of this client named while the reply that grants the lock was pending. */
  forced: string | undefined;
  /** For a kind that polls: the last pause, in ms, and the number of failed tries. Absent before the first one. */
  polled: { readonly pauseMs: number; readonly failures: number } | undefined;
  #place: QueuePlace = NO_PLACE;
  /** Until when an attempt of an earlier try may still acquire the lock for the owner. */
  #doubtUntil: MonotonicMs = 0;

  constructor(
    private readonly services: LockWaiterServices,
    { protocol, terms, limit, context, makeHold }: LockCallTerms,
    private readonly outcome: Settle,
  ) {
    super(limit);
    this.context = context;
    this.protocol = protocol;
    this.terms = terms;
    this.#makeHold = makeHold;
  }

  get named(): LockProtocol {
    return this.protocol;
  }

  get leaseMs(): number {
    return this.terms.leaseMs;
  }

  get site(): CallSite | undefined {
    return this.terms.site;
  }

  /**
   * The owner id in the requests. A call gets it when it is used first: most calls that wait send no request before they
   * are the head. The waiter gets a new owner id when the state of the old one in Redis is unknown.
   */
  get owner(): string {
    return (this.#owner ??= this.terms.owner ?? this.services.newOwner());
  }

  set owner(owner: string) {
    this.#owner = owner;
  }

  /** The lease that a request for this waiter asks for, in ms. The hold ends after its own lease, `terms.leaseMs`. */
  get requestedMs(): number {
    return this.terms.leaseMs + extraLeaseMs(this.services.options.handOff, this);
  }

  /** When the client sent the try that gave the owner its place, if that time is known. */
  get queuedAt(): MonotonicMs | undefined {
    return this.#place.kind === 'taken' ? this.#place.at : undefined;
  }

  /**
   * The channel on which Redis announces the turn of this owner alone. `undefined` for a kind without a Redis queue.
   */
  get ownChannel(): string | undefined {
    return this.protocol.queue?.channelOf(this.owner);
  }

  protected send(): ScriptRequest<AcquireReply> {
    const waits = this.limit.kind !== 'one try';
    if (waits && this.protocol.queue !== undefined && this.#place.kind === 'none') this.#place = POSSIBLE_PLACE;
    this.forced = undefined;
    return this.protocol.acquire(this.owner, this.requestedMs, waits);
  }

  override whenTried(request: ScriptRequest<AcquireReply>, fn: () => void): void {
    if (this.protocol.queue === undefined) return super.whenTried(request, fn);
    super.whenTried(request, () => {
      if (this.#place.kind === 'possible') {
        // An attempt whose reply was lost may have got the place, so the time is unknown.
        if (request.reply?.kind === 'busy')
          this.#place = { kind: 'taken', at: request.doubt === undefined ? request.sentAt : undefined };
        // Redis refused the request before the script wrote anything, so the owner has no place to release.
        else if (request.error instanceof RefusedError && request.doubt === undefined) this.#place = NO_PLACE;
      }
      fn();
    });
  }

  releaseInBackground(request: ScriptRequest<AcquireReply>): Promise<void> | undefined {
    this.#doubtUntil = this.doubtUntil(request.doubt);
    // Keep the place and the owner id. If a late attempt acquires the lock, the next try of this owner gets the grant.
    if (this.#place.kind !== 'none' && request.reply?.kind === 'busy') return undefined;
    const givenBack = this.#releaseOwner(this.#doubtUntil, this.requestedMs);
    this.#doubtUntil = 0;
    this.#place = NO_PLACE;
    this.owner = this.services.newOwner();
    return givenBack;
  }

  /** Until when an attempt for this owner may still acquire the lock. */
  doubtUntil(doubt: Doubt | undefined): MonotonicMs {
    return Math.max(doubt?.until ?? 0, this.#doubtUntil);
  }

  /**
   * A hand-over to this owner had another outcome. The owner keeps its place in the Redis queue: a late attempt hands
   * nothing over, once the old owner has left.
   */
  notHanded(doubt: Doubt | undefined): void {
    this.#doubtUntil = this.doubtUntil(doubt);
    this.addDoubt(doubt);
  }

  /** Called when the owner has the lock. With the grant, the owner left the queue. */
  leftQueue(): void {
    this.#place = NO_PLACE;
  }

  #releaseOwner(notBefore: MonotonicMs, lastsMs: number): Promise<void> {
    const { services, protocol, owner } = this;
    const { compensations, queueReleases } = services;
    return compensations.add({
      send: () =>
        protocol.queue === undefined ? sendRelease(protocol, [owner]) : queueReleases.release(protocol, owner),
      notBefore,
      until: latestEnd(services, lastsMs),
    });
  }

  resolve(tenure: Tenure, record: HoldRecord): void {
    this.settle();
    this.outcome.granted(this.#makeHold(tenure, record));
  }

  protected onRejected(error: unknown): void {
    // Release the place: the waiters behind this owner must not wait for a call that has failed. The release may stop
    // after `fairWaiterTimeout`, when every client treats the owner as dead. If a late attempt may acquire the lock,
    // the release continues for the lease, if that is longer.
    const { fairWaiterTimeout } = this.services.options;
    const lastsMs = this.#doubtUntil > 0 ? Math.max(fairWaiterTimeout, this.requestedMs) : fairWaiterTimeout;
    if (this.#place.kind !== 'none') void this.#releaseOwner(0, lastsMs);
    this.outcome.failed(error);
  }
}

import type { LeaseClock, Timer } from '../clock.js';
import { ClientClosedError, LockAbortedError, LockTimeoutError, RefusedError, type LockError } from '../errors.js';
import { callerContext } from '../redis/connections/detached.js';
import { isAnyObserved } from '../redis/connections/observed.js';
import type { RequestAttempts } from '../redis/requests/request-attempts.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import { isGrant, type AcquireReply } from '../redis/scripts/replies.js';
import { abortedBy, onAbort } from '../abort-watch.js';
import type { CallSite } from '../ownership/call-site.js';
import type { QueueReleases } from './queue-releases.js';
import { latestEnd, type Compensations } from '../holding/compensations.js';
import type { HoldRecord, HoldTerms } from '../holding/hold-record.js';
import type { MakeHold, SingleHold } from '../holding/single-hold.js';
import type { Tenure } from '../holding/tenure.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';

/** How long a call waits, and the signal that ends the wait earlier. */
export interface WaitLimit {
  /** Lease-clock time, in ms, at which the wait ends. `Infinity`: no limit. `-Infinity`: the call does not wait. */
  readonly until: number;
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
}

export function waitLimitOf(clock: LeaseClock, waitTime: number, signal: AbortSignal | undefined): WaitLimit {
  const until = waitTime === Infinity ? Infinity : waitTime > 0 ? clock.now() + waitTime : -Infinity;
  return { until, waitTime, signal };
}

/** Receives the outcome of a call, once. */
export interface Settle {
  granted(hold: SingleHold): void;
  failed(error: unknown): void;
}

/**
 * One call that waits in a line. The waiter sends a try and interprets its reply; the line decides when to try. The
 * call settles once. A call that gives up while a request is pending settles when that request can no longer take
 * effect.
 */
export abstract class Waiter {
  /** A try of this waiter, or a hand-over to it, is pending. */
  busy = false;
  /** The pending try. The client need not repeat the try once the waiter has left. */
  trying: ScriptRequest<AcquireReply> | undefined;
  /** The last try failed: the waiter tries again without a wake-up. */
  again = false;
  /** The pending try is a probe of a parked waiter, because no message can arrive. */
  inBetween = false;
  /** The call waits in line: its first try found the lock busy, or other waiters came before. */
  inLine = false;
  /** The reason for which the waiter has given up. The call may not have settled yet. */
  leaving: LockError | undefined;
  /**
   * The error of the last try, if that try failed. A timeout then reports this error, because the client does not know
   * whether the lock is busy.
   */
  unavailable: LockError | undefined;
  /** Lease-clock time, in ms, of the first grant in a series of grants that came after their lease had ended. */
  lateSince: number | undefined;
  /**
   * Runs a try in the async context of the call. A monitoring agent then assigns the try to the call, also when a
   * message or a timer causes the try.
   */
  readonly #asCaller = isAnyObserved() ? callerContext() : undefined;
  #timer: Timer | undefined;
  #unwatchSignal: (() => void) | undefined;
  /**
   * Requests for this call of which an attempt may still run in Redis. The call does not fail before that is ruled out.
   */
  #doubtful: RequestAttempts[] | undefined;

  constructor(
    protected readonly clock: LeaseClock,
    /** The name that the caller passed. */
    readonly name: string,
    readonly limit: WaitLimit,
    /** Lease of the grant, in ms. A reply that comes after the end of this lease grants nothing. */
    readonly leaseMs: number,
    readonly site: CallSite | undefined,
  ) {}

  /** Sends a try. */
  try(): ScriptRequest<AcquireReply> {
    return this.#asCaller === undefined ? this.send() : this.#asCaller(() => this.send());
  }
  protected abstract send(): ScriptRequest<AcquireReply>;
  /** Calls `fn` when the request of the try has settled. */
  whenTried(request: ScriptRequest<AcquireReply>, fn: () => void): void {
    request.onDone(fn);
  }
  /** Whether the reply confirms an acquisition, which has to be granted or released. */
  took({ reply }: ScriptRequest<AcquireReply>): boolean {
    return reply !== undefined && isGrant(reply);
  }
  /**
   * Releases in the background what the request acquired, or may have acquired: no caller gets it. Resolves when that
   * is done. Returns `undefined` if nothing has to be released.
   */
  abstract takeBack(request: ScriptRequest<AcquireReply>): Promise<void> | undefined;
  /** Rejects the call. No request of the call can take effect any more. */
  protected abstract failed(error: unknown): void;
  /** Called when the try is over: the client has granted what the try acquired, or has started its release. */
  over(): void {
    // By default, a waiter keeps nothing for a try.
  }

  get unlimited(): boolean {
    return this.limit.until === Infinity;
  }

  /** Calls `leave` when the signal fires. */
  watchSignal(leave: (reason: LockError) => void): void {
    const { signal } = this.limit;
    if (signal === undefined || this.#unwatchSignal !== undefined) return;
    this.#unwatchSignal = onAbort(signal, () => leave(abortedBy(signal, this.name)));
  }

  /** Calls `leave` when the time limit passes. A first try needs no timer, because its command deadline ends it. */
  watchTime(leave: (reason: LockError) => void): void {
    const { until, waitTime } = this.limit;
    if (until === Infinity || this.#timer !== undefined) return;
    this.#timer = this.clock.setTimer(until, () => leave(new LockTimeoutError(this.name, waitTime)));
  }

  unwatch(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#unwatchSignal?.();
    this.#unwatchSignal = undefined;
  }

  /**
   * Whether the call still accepts a grant. A call whose time limit has passed does. An aborted call, or a call of a
   * closed client, does not.
   */
  get wantsGrant(): boolean {
    return !(this.leaving instanceof LockAbortedError || this.leaving instanceof ClientClosedError);
  }

  /** Remembers the request if it may still take effect. */
  doubts(request: RequestAttempts): void {
    if (request.inDoubt) (this.#doubtful ??= []).push(request);
  }

  /** Rejects the call when no request that was sent for the call can take effect any more. */
  reject(error: LockError): void {
    this.unwatch();
    this.leaving ??= error;
    const reason = error instanceof LockTimeoutError && this.unavailable !== undefined ? this.unavailable : error;
    if (this.#doubtful === undefined) return this.failed(reason);
    void Promise.all(this.#doubtful.map((request) => request.whenQuiet())).then(() => this.failed(reason));
  }
}

/** The services that the lock waiters of one client share. */
export interface LockWaiterServices {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number; readonly fairWaiterTimeout: number };
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
  readonly makeHold: MakeHold;
}

/** A call that waits for an outermost hold of a lock. */
export class LockWaiter extends Waiter {
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly #makeHold: MakeHold;
  /** The owner id in the requests. The waiter gets a new owner id when the state of the old one in Redis is unknown. */
  owner: string;
  /** The owner that a forced unlock of this client named while the reply that grants the lock was pending. */
  forced: string | undefined;
  /** For a kind that polls: the last pause, in ms, and the number of failed tries. */
  pauseMs = 0;
  failures = 0;
  /** The owner may have a place in the Redis queue of the lock. */
  #queued = false;
  /**
   * Monotonic time, in ms, at which the client sent the try that gave the owner its place. `NaN`: the owner has a
   * place, and the time is unknown.
   */
  queuedAt: number | undefined;
  /**
   * Monotonic time, in ms, until which an unanswered attempt of an answered try may still acquire the lock for the
   * owner.
   */
  #strayUntil = 0;

  constructor(
    private readonly services: LockWaiterServices,
    { protocol, terms, limit, makeHold }: LockCallTerms,
    private readonly settle: Settle,
  ) {
    super(services.clock, protocol.name, limit, terms.leaseMs, terms.site);
    this.protocol = protocol;
    this.terms = terms;
    this.#makeHold = makeHold;
    this.owner = terms.owner ?? services.newOwner();
  }

  /**
   * The channel on which Redis announces the turn of this owner alone. `undefined` for a kind without a Redis queue.
   */
  get ownChannel(): string | undefined {
    return this.protocol.queue?.channelOf(this.owner);
  }

  protected send(): ScriptRequest<AcquireReply> {
    const waits = this.limit.until !== -Infinity;
    this.#queued = waits && this.protocol.queue !== undefined;
    this.forced = undefined;
    return this.protocol.acquire(this.owner, this.terms.leaseMs, waits);
  }

  override whenTried(request: ScriptRequest<AcquireReply>, fn: () => void): void {
    if (this.protocol.queue === undefined) return super.whenTried(request, fn);
    super.whenTried(request, () => {
      // An attempt whose reply was lost may have got the place, so the time is unknown.
      if (request.reply?.kind === 'busy') this.queuedAt ??= request.inDoubt ? NaN : request.sentAt;
      // Redis refused the request before the script wrote anything, so the owner has no place to release.
      if (request.error instanceof RefusedError && !request.inDoubt && this.queuedAt === undefined)
        this.#queued = false;
      fn();
    });
  }

  takeBack(request: ScriptRequest<AcquireReply>): Promise<void> | undefined {
    this.#strayUntil = this.grantOpenUntil(request);
    // Keep the place and the owner id. If a late attempt acquires the lock, the next try of this owner gets the grant.
    if (this.#queued && request.reply?.kind === 'busy') return undefined;
    const givenBack = this.#giveBack(this.#strayUntil, this.terms.leaseMs);
    this.#strayUntil = 0;
    this.queuedAt = undefined;
    this.#queued = false;
    this.owner = this.services.newOwner();
    return givenBack;
  }

  /** Monotonic time, in ms, until which an attempt for this owner may still acquire the lock. */
  grantOpenUntil({ openUntil }: RequestAttempts): number {
    return Math.max(openUntil, this.#strayUntil);
  }

  /** Called when the owner has the lock. With the grant, the owner left the queue. */
  hasLock(): void {
    this.#queued = false;
  }

  #giveBack(notBefore: number, lastsMs: number): Promise<void> {
    const { services, protocol, owner } = this;
    const { compensations, queueReleases } = services;
    return compensations.add({
      send: () => (protocol.queue === undefined ? protocol.release([owner]) : queueReleases.release(protocol, owner)),
      notBefore,
      until: latestEnd(services, lastsMs),
    });
  }

  resolve(tenure: Tenure, record: HoldRecord): void {
    this.unwatch();
    this.settle.granted(this.#makeHold(tenure, record));
  }

  protected failed(error: unknown): void {
    // Release the place: the waiters behind this owner must not wait for a call that has failed. The release may stop
    // after `fairWaiterTimeout`, when every client treats the owner as dead. If a late attempt may acquire the lock,
    // the release continues for the lease, if that is longer.
    const { fairWaiterTimeout } = this.services.options;
    const lastsMs = this.#strayUntil > 0 ? Math.max(fairWaiterTimeout, this.terms.leaseMs) : fairWaiterTimeout;
    if (this.#queued) void this.#giveBack(0, lastsMs);
    this.settle.failed(error);
  }
}

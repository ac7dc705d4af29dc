import type { LeaseClock, Timer } from '../clock.js';
import { ClientClosedError, LockAbortedError, LockTimeoutError, RefusedError, type LockError } from '../errors.js';
import { callerContext } from '../redis/connections/detached.js';
import { isAnyObserved } from '../redis/connections/observed.js';
import type { RequestAttempts } from '../redis/requests/request-attempts.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import { abortedBy, onAbort } from '../abort-watch.js';
import type { CallSite } from '../ownership/call-site.js';
import type { QueueReleases } from './queue-releases.js';
import { latestEnd, type Compensations } from '../holding/compensations.js';
import type { HoldRecord, HoldTerms } from '../holding/hold-record.js';
import type { MakeHold, SingleHold } from '../holding/single-hold.js';
import type { Tenure } from '../holding/tenure.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';

/** How long a call waits, and what ends it before. */
export interface WaitLimit {
  /** Lease clock ms; Infinity without a limit. */
  readonly until: number;
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
}

export function waitLimitOf(clock: LeaseClock, waitTime: number, signal: AbortSignal | undefined): WaitLimit {
  const until = waitTime === Infinity ? Infinity : waitTime > 0 ? clock.now() + waitTime : -Infinity;
  return { until, waitTime, signal };
}

/** Told once how a call ended. */
export interface Settle {
  granted(hold: SingleHold): void;
  failed(error: unknown): void;
}

/**
 * One call that stands in line for something that Redis has one, or some, of. It says what a try is and what becomes
 * of its answer; when to try is the entry's business. Its promise settles once; a call that has given up while a
 * request of it is under way settles when that request can take effect no more.
 */
export abstract class Waiter {
  /** A try or a hand-off to it is under way. */
  busy = false;
  /** Its try, which need not be repeated once the waiter has left. */
  trying: ScriptRequest<AcquireReply> | undefined;
  /** Its last try failed: it tries again even if nothing woke it. */
  again = false;
  /** Its try is a look while it sleeps, because nothing can be heard. */
  inBetween = false;
  /** It stands in line: it was busy at its first try, or others were there before. */
  inLine = false;
  /** It has given up, for this reason, and may not have settled yet. */
  leaving: LockError | undefined;
  /** Why its last try failed, if it did: then nobody can say that the lock is busy. */
  unavailable: LockError | undefined;
  /** Lease clock ms since when it was granted the lock only after the lease had ended. */
  lateSince: number | undefined;
  /** A try that a message or a timer causes is to an agent the work of the call all the same. */
  readonly #asCaller = isAnyObserved() ? callerContext() : undefined;
  #timer: Timer | undefined;
  #unwatchSignal: (() => void) | undefined;
  /** Requests for it of which an attempt may still run: it does not fail before. */
  #doubtful: RequestAttempts[] | undefined;

  constructor(
    protected readonly clock: LeaseClock,
    /** As the caller gave it. */
    readonly name: string,
    readonly limit: WaitLimit,
    /** ms for which what was taken is the caller's: an answer that comes later than that grants nothing. */
    readonly leaseMs: number,
    readonly site: CallSite | undefined,
  ) {}

  /** Sends a try. A number in answer: busy, for so many ms, -1: nobody knows. */
  try(): ScriptRequest<AcquireReply> {
    return this.#asCaller === undefined ? this.send() : this.#asCaller(() => this.send());
  }
  protected abstract send(): ScriptRequest<AcquireReply>;
  /** Calls `fn` when it is known what became of the try. */
  whenTried(request: ScriptRequest<AcquireReply>, fn: () => void): void {
    request.onDone(fn);
  }
  /** Whether it is known to have taken something that has to be granted, or given back. */
  took({ error, reply }: ScriptRequest<AcquireReply>): boolean {
    return error === undefined && typeof reply !== 'number';
  }
  /** What the request took, or may have taken, is nobody's: it goes back in the background. Resolves when it has. */
  abstract takeBack(request: ScriptRequest<AcquireReply>): Promise<void> | undefined;
  /** The failure of the call, when nothing of it can take effect any more. */
  protected abstract failed(error: unknown): void;
  /** The try is answered or given up, and what it took is granted or being taken back. */
  over(): void {
    // Nothing is kept for it.
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

  /** Calls `leave` when the time is up. Not needed for a first try, which a command deadline ends. */
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

  /** A grant counts even if the time is up; a call that was aborted wants nothing any more. */
  get wantsGrant(): boolean {
    return !(this.leaving instanceof LockAbortedError || this.leaving instanceof ClientClosedError);
  }

  /** Remembers the request if it may still take effect. */
  doubts(request: RequestAttempts): void {
    if (request.inDoubt) (this.#doubtful ??= []).push(request);
  }

  /** Settles when nothing that was sent for this call can take effect any more. */
  reject(error: LockError): void {
    this.unwatch();
    this.leaving ??= error;
    const reason = error instanceof LockTimeoutError && this.unavailable !== undefined ? this.unavailable : error;
    if (this.#doubtful === undefined) return this.failed(reason);
    void Promise.all(this.#doubtful.map((request) => request.whenQuiet())).then(() => this.failed(reason));
  }
}

/** What the calls share that want a hold of a lock of one client. */
export interface LockWaiterServices {
  readonly clock: LeaseClock;
  readonly options: { readonly commandTimeout: number; readonly fairWaiterTimeout: number };
  readonly compensations: Compensations;
  readonly queueReleases: QueueReleases;
  /** `<client id>:<number>`, never given twice. */
  newOwner(): string;
}

/** What a call wants a hold for, and for how long it waits. */
interface LockCallTerms {
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly limit: WaitLimit;
  readonly makeHold: MakeHold;
}

/** A call that wants an outermost hold of a lock. */
export class LockWaiter extends Waiter {
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly #makeHold: MakeHold;
  /** The owner its requests name; a fresh one whenever the old one's state is in doubt. */
  owner: string;
  /** The owner whose hold this client has forced open before the answer that grants it came. */
  forced: string | undefined;
  /** For a kind that polls: its last pause, and how many tries have failed. */
  pauseMs = 0;
  failures = 0;
  /** Its owner may have a place in the lock's queue in Redis. */
  #queued = false;
  /** When the try was sent that gave its owner this place (monotonic ms); NaN: it has one, since nobody knows when. */
  queuedAt: number | undefined;
  /** Monotonic ms until which tries that were answered, though not each of their attempts, may take it for its owner. */
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

  /** Where it is told that it is its turn, if that concerns nobody else. */
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
      // An attempt whose reply was lost may have got the place, at a time that nobody knows.
      if (typeof request.reply === 'number') this.queuedAt ??= request.inDoubt ? NaN : request.sentAt;
      // Refused before anything was written: it has no place that could be released.
      if (request.error instanceof RefusedError && !request.inDoubt && this.queuedAt === undefined)
        this.#queued = false;
      fn();
    });
  }

  takeBack(request: ScriptRequest<AcquireReply>): Promise<void> | undefined {
    this.#strayUntil = this.grantOpenUntil(request);
    // It keeps its place: what an attempt takes late is its own, and its next try is told so.
    if (this.#queued && typeof request.reply === 'number') return undefined;
    const givenBack = this.#giveBack(this.#strayUntil, this.terms.leaseMs);
    this.#strayUntil = 0;
    this.queuedAt = undefined;
    this.#queued = false;
    this.owner = this.services.newOwner();
    return givenBack;
  }

  /** Monotonic ms until which something that was sent for its owner may still take the lock. */
  grantOpenUntil({ openUntil }: RequestAttempts): number {
    return Math.max(openUntil, this.#strayUntil);
  }

  /** Its owner has the lock, and left the queue with that. */
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
    // Whoever stands behind it must not wait for it. Unanswered for so long, nobody takes it for alive any more.
    const { fairWaiterTimeout } = this.services.options;
    const lastsMs = this.#strayUntil > 0 ? Math.max(fairWaiterTimeout, this.terms.leaseMs) : fairWaiterTimeout;
    if (this.#queued) void this.#giveBack(0, lastsMs);
    this.settle.failed(error);
  }
}

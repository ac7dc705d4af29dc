import type { JumpedMs, LeaseClockMs } from '../clock.js';
import { ClientClosedError, LockAbortedError, LockTimeoutError, type LockError } from '../errors.js';
import { callerContext } from '../redis/connections/detached.js';
import { isAnyObserved } from '../redis/connections/observed.js';
import type { Doubt } from '../redis/requests/doubt.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import { isGrant, type AcquireReply } from '../redis/scripts/replies.js';
import { LimitedWait } from './limits/limited-wait.js';
import type { CallSite } from '../ownership/call-site.js';
import { currentHolds, type FlowHold } from '../ownership/flow.js';
import type { LockContext } from '../ownership/lock-context.js';
import type { SingleHold } from '../holding/single-hold.js';

/** The lock or synchronizer of a waiter. */
export interface WaiterName {
  readonly name: string;
  readonly group: string | undefined;
}

/**
 * What a waiter does:
 *
 * - `new`: the call does not wait, or not yet.
 * - `trying`: its try is pending.
 * - `queued`: it stands in line. If it is the head, it is parked until a wake-up.
 * - `retrying`: it stands in line, and its last try failed: it tries again without a wake-up.
 * - `receiving`: a hand-over to it is pending.
 * - `leaving`: it has given up, and its pending request settles the call.
 * - `granted`: a release or another try granted the call, and its own try is pending. What that try acquires is surplus.
 * - `settled`: the call is settled.
 */
type WaiterState = 'new' | 'trying' | 'queued' | 'retrying' | 'receiving' | 'leaving' | 'granted' | 'settled';

/** One try of a waiter. */
export interface Try {
  readonly request: ScriptRequest<AcquireReply>;
  /** The number of the try in its line. */
  readonly sequence: number;
  /** The jumps of the lease clock before the try was sent, in ms. */
  readonly jumped: JumpedMs;
  /** This is a probe of a parked waiter, because no message can arrive. */
  readonly isProbe: boolean;
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
export abstract class Waiter extends LimitedWait {
  #state: WaiterState = 'new';
  /** The pending try. The client need not repeat the try once the waiter has left. */
  #try: Try | undefined;
  /** A hand-over to this waiter is pending, also when the waiter has given up meanwhile. */
  #isReceiving = false;
  /** The call waits in line: its first try found the lock busy, or other waiters came before. */
  #hasBegunToWait = false;
  /** Why the waiter has given up. The call may not have settled yet. */
  #reason: LockError | undefined;
  /** The number of settled tries of its line when the call came. */
  newsAtJoin = 0;
  /** When the current series of late grants began: their leases had ended when the replies came. */
  lateSince: LeaseClockMs | undefined;
  /**
   * Runs a try in the async context of the call. A monitoring agent then assigns the try to the call, also when a
   * message or a timer causes the try.
   */
  readonly #asCaller = isAnyObserved() ? callerContext() : undefined;
  /** The owner that the caller named. */
  readonly context: LockContext | undefined = undefined;
  /** The holds that the caller is inside of. */
  readonly around: readonly FlowHold[] = currentHolds();
  /** The doubts about requests for this call. The call does not fail before they are settled. */
  #doubts: Doubt[] | undefined;

  /** The name that the caller passed, and its group. */
  abstract readonly named: WaiterName;
  /** Lease of the grant, in ms, if it has one. A reply that comes after the end of this lease grants nothing. */
  abstract readonly leaseMs: number | undefined;
  abstract readonly site: CallSite | undefined;
  /** Number of permits that the call wants. A number that is too small may be enough for a call that wants fewer. */
  readonly permits: number = 0;

  /** Whether a try of this call creates a semaphore that does not exist. */
  get creates(): boolean {
    return false;
  }

  override get name(): string {
    return this.named.name;
  }

  get state(): WaiterState {
    return this.#state;
  }

  /** A try of this waiter, or a hand-over to it, is pending. */
  get isBusy(): boolean {
    return this.#try !== undefined || this.#state === 'trying' || this.#isReceiving;
  }

  get reason(): LockError | undefined {
    return this.#reason;
  }

  /** The one place that changes the state. A settled call stays settled. */
  #become(state: WaiterState): void {
    if (this.#state !== 'settled' && this.#state !== 'granted') this.#state = state;
  }

  /** Sends a try. */
  try(sequence: number, jumped: JumpedMs, isProbe: boolean): Try {
    this.#become('trying');
    const request = this.#asCaller === undefined ? this.send() : this.#asCaller(() => this.send());
    return (this.#try = { request, sequence, jumped, isProbe });
  }

  /** The pending try has settled. */
  tried(): void {
    this.#try = undefined;
    if (this.#state === 'trying') this.#become(this.#hasBegunToWait ? 'queued' : 'new');
  }

  /** Stops the repetition of a pending try. */
  abandonTry(): void {
    this.#try?.request.abandon();
  }

  /** The call waits in line from now on. Returns `false` if it waited before. */
  startWaiting(): boolean {
    if (this.#hasBegunToWait) return false;
    this.#hasBegunToWait = true;
    this.#become('queued');
    return true;
  }

  /** The last try failed: the waiter tries again without a wake-up. */
  retry(): void {
    this.#become('retrying');
  }

  /** A hand-over to this waiter begins. */
  receive(): void {
    this.#isReceiving = true;
    this.#become('receiving');
  }

  /** The pending hand-over to this waiter has settled. */
  received(): void {
    this.#isReceiving = false;
    if (this.#state === 'receiving') this.#become('queued');
  }

  /** The waiter gives up. Its pending request settles the call, because the call may still be granted until then. */
  leave(reason: LockError): void {
    if (this.isBusy) this.settleLater(reason);
    else this.reject(reason);
  }

  /**
   * The waiter gives up, and the reply to a pending request settles the call. A call whose time limit has passed can still
   * be granted, so a later reason replaces its timeout.
   */
  settleLater(reason: LockError): void {
    this.unwatch(reason instanceof LockTimeoutError);
    if (this.#reason === undefined || this.#reason instanceof LockTimeoutError) this.#reason = reason;
    this.#become('leaving');
  }

  protected abstract send(): ScriptRequest<AcquireReply>;
  /** Calls `fn` when the request of the try has settled. */
  whenTried(request: ScriptRequest<AcquireReply>, fn: () => void): void {
    request.onDone(fn);
  }
  /** Whether the reply confirms an acquisition, which has to be granted or released. */
  confirmsAcquisition({ reply }: ScriptRequest<AcquireReply>): boolean {
    return reply !== undefined && isGrant(reply);
  }
  /**
   * Releases in the background what the request acquired, or may have acquired: no caller gets it. Resolves when that
   * is done. Returns `undefined` if nothing has to be released.
   */
  abstract releaseInBackground(request: ScriptRequest<AcquireReply>): Promise<void> | undefined;
  /** The call rejects. No request of the call can still take effect. */
  protected abstract onRejected(error: unknown): void;
  /** Called when the try has ended: the client has granted what the try acquired, or has started its release. */
  onTryOver(): void {
    // By default, a waiter keeps nothing for a try.
  }

  /**
   * Whether the call still accepts a grant. A call whose time limit has passed does, because Redis has given it the lock
   * already. An aborted call, or a call of a closed client, does not.
   */
  get wantsGrant(): boolean {
    return !(this.#reason instanceof LockAbortedError || this.#reason instanceof ClientClosedError);
  }

  /** Adds the doubt about a request for this call, if there is one. */
  addDoubt(doubt: Doubt | undefined): void {
    if (doubt !== undefined) (this.#doubts ??= []).push(doubt);
  }

  /**
   * Rejects the call when no request that was sent for the call can still take effect. A timeout reports why the newest
   * try of the line failed, because the client then does not know whether the lock is busy.
   */
  reject(error: LockError): void {
    this.unwatch();
    this.#reason ??= error;
    this.#become('leaving');
    const reason = error instanceof LockTimeoutError ? (this.unavailable ?? error) : error;
    const fail = (): void => {
      this.#become('settled');
      this.onRejected(reason);
    };
    if (this.#doubts === undefined) return fail();
    void Promise.all(this.#doubts.map((doubt) => doubt.settled())).then(fail);
  }

  /** The call is granted. If a try is pending, its grant is surplus. */
  protected settle(): void {
    this.unwatch();
    this.#become(this.#try === undefined ? 'settled' : 'granted');
    this.abandonTry();
  }
}

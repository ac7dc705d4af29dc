import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import type { CallSite } from '../ownership/call-site.js';
import type { LeaseClock, LeaseClockMs } from '../clock.js';
import type { TimeLimits } from './limits/time-limits.js';
import type { WaitLimit } from './limits/wait-limit.js';
import { Waiter, type WaiterName } from './waiter.js';

/** The permits that one request acquired. */
export interface TakenPermits {
  readonly ids: readonly string[];
  /** A moment before the client sent the request. */
  readonly sentAt: LeaseClockMs;
}

interface WaitWatch {
  waitBegins(): void;
  waitEnds(): void;
}

/**
 * A call that waits for something that several callers can have at the same time and that has no owner: permits, or an
 * open latch. The grant creates no tenure, and the watchdog does not renew it.
 */
export abstract class SharedWaiter extends Waiter {
  /** Called when the call starts to wait, and when the wait ends. */
  watch: WaitWatch | undefined;
  /** The watch of a call that waits. */
  #watched: WaitWatch | undefined;
  /**
   * Sequence number of the line's newest try when the call came. The reply to that try, or to an older one, may
   * describe a time before the call.
   */
  cameAfter = 0;
  /** The last try found no semaphore. */
  foundMissing = false;

  constructor(
    protected readonly clock: LeaseClock,
    readonly named: WaiterName,
    limit: WaitLimit,
    readonly leaseMs: number | undefined,
    readonly site: CallSite | undefined,
    private readonly fail: (error: unknown) => void,
  ) {
    super(limit);
  }

  /**
   * Number of permits that another caller's release can pass on to this waiter. 0: no permits can be passed on to this
   * waiter.
   */
  get passablePermits(): number {
    return 0;
  }

  /** Whether the reply to one waiter's try counts for all waiters that came before that try was sent. */
  readonly sharesReplies: boolean = false;

  /**
   * Resolves the call. `request`: the try of this call. `undefined`: the reply to another try, or a release, granted
   * the call.
   */
  grant(request: ScriptRequest<AcquireReply> | undefined): void {
    this.settle();
    this.onGranted(request);
  }

  /**
   * Resolves the call with permits that another request of this client acquired. Absent for permits without ids, and for
   * a latch.
   */
  takeOver?(permits: TakenPermits): void;

  /** The permits that the try acquired. Absent like {@link takeOver}. */
  takenBy?(request: ScriptRequest<AcquireReply>): TakenPermits;

  /** Called with the `request` of {@link grant}. */
  protected abstract onGranted(request: ScriptRequest<AcquireReply> | undefined): void;

  /**
   * Whether the reply ends the wait. With `sharesReplies`, called also with the reply to another waiter's try, if that try
   * was sent after this call came.
   */
  isGrantedBy(_reply: AcquireReply): boolean {
    return false;
  }

  override whenTried(request: ScriptRequest<AcquireReply>, fn: () => void): void {
    super.whenTried(request, () => {
      this.foundMissing = request.reply?.kind === 'busy' && request.reply.isMissing === true;
      fn();
    });
  }

  override watchTime(limits: TimeLimits): void {
    super.watchTime(limits);
    this.#watched = this.watch;
    this.watch?.waitBegins();
  }

  override unwatch(timeIsUp?: boolean): void {
    super.unwatch(timeIsUp);
    this.#watched?.waitEnds();
    this.#watched = undefined;
  }

  protected onRejected(error: unknown): void {
    this.fail(error);
  }
}

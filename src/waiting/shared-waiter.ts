import type { LockError } from '../errors.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import type { CallSite } from '../ownership/call-site.js';
import type { LeaseClock } from '../clock.js';
import { Waiter, type WaitLimit } from './waiter.js';

/** Longer than any answer takes: what has no lease does not end by itself. */
export const NO_LEASE_MS = Number.MAX_SAFE_INTEGER;

/**
 * A call that waits for what several can have at once and no owner stands for: permits, an open latch. What it gets
 * has no tenure, and nothing renews it.
 */
export abstract class SharedWaiter extends Waiter {
  /** It has what it came for, and not by the try that is under way: what that one takes is one too many. */
  served = false;
  /** Told when the call begins to stand in line, and when that is over. */
  watch: { waitBegins(): void; waitEnds(): void } | undefined;
  #isWatched = false;
  /** The newest try of this client when the call came. An answer to that one, or an older one, may be of a time before. */
  cameAfter = 0;

  constructor(
    clock: LeaseClock,
    name: string,
    limit: WaitLimit,
    leaseMs: number,
    site: CallSite | undefined,
    private readonly fail: (error: unknown) => void,
  ) {
    super(clock, name, limit, leaseMs, site);
  }

  /** How many it wants: what is too little for it may be enough for who wants less. */
  readonly wants: number = 0;

  /** How many of them anybody may give back for anybody else; 0: it cannot be given to it like that. */
  get takes(): number {
    return 0;
  }

  /** An answer to the try of one counts for all that came before that try was sent. */
  readonly forAll: boolean = false;

  /** The call has what it waited for. `request`: the try that got it, unless another's did. */
  abstract granted(request: ScriptRequest<AcquireReply> | undefined): void;

  /** With `forAll`: told of every answer to a try that was sent after it came. Whether the answer ends the wait. */
  letInBy(_reply: AcquireReply): boolean {
    return false;
  }

  /** ms until there may be something for the next in line, by the answer that granted this call; undefined: maybe now. */
  nextFreeIn(_reply: AcquireReply): number | undefined {
    return undefined;
  }

  override watchTime(leave: (reason: LockError) => void): void {
    super.watchTime(leave);
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.watch?.waitBegins();
  }

  override unwatch(): void {
    super.unwatch();
    if (!this.#isWatched) return;
    this.#isWatched = false;
    this.watch?.waitEnds();
  }

  protected failed(error: unknown): void {
    this.fail(error);
  }
}

/** Something that was too little for `waiter` may be enough for whoever is next. */
export const wantsLess = (next: Waiter | undefined, waiter: Waiter): boolean =>
  next instanceof SharedWaiter && waiter instanceof SharedWaiter && next.wants < waiter.wants;

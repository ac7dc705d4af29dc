import type { ScriptRequest } from '../redis/script-request.js';
import type { AcquireReply } from '../redis/scripts/lock.js';
import type { CallSite } from './call-site.js';
import type { LockRuntime } from './lock-runtime.js';
import { Waiter, type Patience } from './waiter.js';

/** Longer than any answer takes: what has no lease does not end by itself. */
export const NO_LEASE_MS = Number.MAX_SAFE_INTEGER;

/**
 * A call that waits for what several can have at once and no owner stands for: permits, an open latch. What it gets
 * has no tenure, and nothing renews it.
 */
export abstract class SharedWaiter extends Waiter {
  /** Something that opened it came while its try was under way: the try need not find it open still. */
  opened = false;
  /** It has what it came for, and not by the try that is under way: what that one takes is one too many. */
  served = false;
  /** A subscription was asked for after it came. */
  asked = false;
  /** That was confirmed: no message of a time before it came can reach it any more. */
  covered = false;

  constructor(
    runtime: LockRuntime,
    name: string,
    patience: Patience,
    leaseMs: number,
    site: CallSite | undefined,
    private readonly fail: (error: unknown) => void,
  ) {
    super(runtime, name, patience, leaseMs, site);
  }

  /** How many it wants: what is too little for it may be enough for who wants less. */
  readonly wants: number = 0;

  /** How many of them anybody may give back for anybody else; 0: it cannot be given to it like that. */
  get takes(): number {
    return 0;
  }

  /** What one got all in line get, without a try of their own. */
  readonly forAll: boolean = false;

  /** The call has what it waited for. `request`: the try that got it, unless another's did. */
  abstract granted(request: ScriptRequest<AcquireReply> | undefined): void;

  /** Whether this message alone says that the wait is over, even if it is not open any more when we look. */
  opensOn(_payload: string): boolean {
    return false;
  }

  protected failed(error: unknown): void {
    this.fail(error);
  }
}

/** Something that was too little for `waiter` may be enough for whoever is next. */
export const wantsLess = (next: Waiter | undefined, waiter: Waiter): boolean =>
  next instanceof SharedWaiter && waiter instanceof SharedWaiter && next.wants < waiter.wants;

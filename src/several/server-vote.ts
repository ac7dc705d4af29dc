import type { SingleHold } from '../holding/single-hold.js';
import type { LockWaiter, Settle } from '../waiting/waiter.js';
import type { ServerResult } from '../errors.js';
import type { Member } from './members.js';

interface Asking {
  granted(ask: Ask, hold: SingleHold): void;
  failed(ask: Ask, error: unknown): void;
  coming(ask: Ask, comes: boolean): void;
}

/** One server that is asked in a round. */
export class Ask implements Settle {
  outcome: ServerResult['outcome'] | 'pending' = 'pending';
  hold: SingleHold | undefined;
  error: unknown;
  /** It has been asked. */
  sent = false;
  waiter: LockWaiter | undefined;
  /** The hold that was made without its answer is told of it. */
  expected = false;
  /** Nobody wants its answer any more. */
  dropped = false;

  constructor(
    private readonly round: Asking,
    readonly member: Member,
  ) {}

  granted(hold: SingleHold): void {
    this.round.granted(this, hold);
  }

  failed(error: unknown): void {
    this.round.failed(this, error);
  }

  coming(comes: boolean): void {
    this.round.coming(this, comes);
  }
}

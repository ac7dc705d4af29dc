import type { SingleHold } from '../holding/single-hold.js';
import type { Settle } from '../waiting/waiter.js';
import type { ServerResult } from '../errors.js';
import type { Member } from './members.js';

interface Round {
  granted(vote: ServerVote, hold: SingleHold): void;
  failed(vote: ServerVote, error: unknown): void;
}

/** The outcome of one server in a round or in a read. */
export type VoteSummary = Pick<ServerVote, 'member' | 'outcome' | 'error'>;

/** The request of a round to one server, and its outcome. */
export class ServerVote implements Settle {
  outcome: ServerResult['outcome'] | 'pending' = 'pending';
  hold: SingleHold | undefined;
  error: unknown;
  sent = false;
  /** Lease-clock time, in ms, of a single try whose reply is missing. Absent for a request that waits in a line. */
  triedAt: number | undefined;
  /** Time, in ms, to wait in the line of the server if the first try finds it busy. */
  waitIfBusyMs = 0;

  constructor(
    private readonly round: Round,
    readonly member: Member,
  ) {}

  granted(hold: SingleHold): void {
    this.round.granted(this, hold);
  }

  failed(error: unknown): void {
    this.round.failed(this, error);
  }
}

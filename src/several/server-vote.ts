import type { SingleHold } from '../holding/single-hold.js';
import type { Settle } from '../waiting/waiter.js';
import type { ServerResult } from '../errors.js';
import type { Member } from './members.js';

interface Round {
  granted(vote: ServerVote, hold: SingleHold): void;
  failed(vote: ServerVote, error: unknown): void;
}

/** What one server has answered to a round, or to a read. */
export type VoteSummary = Pick<ServerVote, 'member' | 'outcome' | 'error'>;

/** The request of a round to one server, and its answer. */
export class ServerVote implements Settle {
  outcome: ServerResult['outcome'] | 'pending' = 'pending';
  hold: SingleHold | undefined;
  error: unknown;
  sent = false;
  /** How long to wait in the server's line if the first try finds it busy. */
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

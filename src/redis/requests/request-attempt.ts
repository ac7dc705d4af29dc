import type { LockError } from '../../errors.js';
import type { Attempt, CommandPort } from '../connections/attempt.js';

/** The request as its attempts see it. */
interface AttemptOwner<Sent> {
  answered(attempt: RequestAttempt<Sent>, raw: unknown): void;
  failed(attempt: RequestAttempt<Sent>, error: Error): void;
  timedOut(attempt: RequestAttempt<Sent>): void;
  isGrant(attempt: RequestAttempt<Sent>, raw: unknown): boolean;
  unconfirmed(attempt: RequestAttempt<Sent>, error: LockError): void;
}

/** `Sent`: the operation. A later attempt of the request may send another one. */
export class RequestAttempt<Sent> implements Attempt {
  /** Answered, failed or timed out: what follows cannot start another attempt. */
  over = false;
  answersBefore = 0;
  constructor(
    private readonly request: AttemptOwner<Sent>,
    readonly connection: CommandPort,
    readonly sentAt: number,
    readonly deadline: number,
    readonly settleBy: number,
    readonly openUntil: number,
    readonly asking: boolean,
    readonly operation: Sent,
  ) {}
  answered(raw: unknown): void {
    this.request.answered(this, raw);
  }
  failed(error: Error): void {
    this.request.failed(this, error);
  }
  timedOut(): void {
    this.request.timedOut(this);
  }
  isGrant(raw: unknown): boolean {
    return this.request.isGrant(this, raw);
  }
  unconfirmed(error: LockError): void {
    this.request.unconfirmed(this, error);
  }
}

import type { LockError } from '../../errors.js';
import type { Attempt, CommandPort } from '../connections/attempt.js';

/** The part of a request that its attempts use. */
interface AttemptOwner<Sent> {
  answered(attempt: RequestAttempt<Sent>, raw: unknown): void;
  failed(attempt: RequestAttempt<Sent>, error: Error): void;
  timedOut(attempt: RequestAttempt<Sent>): void;
  isGrant(attempt: RequestAttempt<Sent>, raw: unknown): boolean;
  unconfirmed(attempt: RequestAttempt<Sent>, error: LockError): void;
}

/** `Sent` is the type of the operation. A later attempt of the request may send another operation. */
export class RequestAttempt<Sent> implements Attempt {
  /** The attempt was answered, failed or timed out. Later events of the attempt must not start another attempt. */
  over = false;
  answersBefore = 0;
  constructor(
    private readonly request: AttemptOwner<Sent>,
    readonly connection: CommandPort,
    readonly sentAt: number,
    readonly deadline: number,
    readonly settleBy: number,
    readonly doubtUntil: number,
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

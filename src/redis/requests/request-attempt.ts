import type { LockError } from '../../errors.js';
import type { Attempt, CommandPort } from '../connections/attempt.js';

/** The request as its attempts see it. */
interface AttemptOwner {
  answered(attempt: RequestAttempt, raw: unknown): void;
  failed(attempt: RequestAttempt, error: Error): void;
  timedOut(attempt: RequestAttempt): void;
  isGrant(raw: unknown): boolean;
  unconfirmed(attempt: RequestAttempt, error: LockError): void;
}

export class RequestAttempt implements Attempt {
  /** Answered, failed or timed out: what follows cannot start another attempt. */
  over = false;
  answersBefore = 0;
  constructor(
    private readonly request: AttemptOwner,
    readonly connection: CommandPort,
    readonly sentAt: number,
    readonly deadline: number,
    readonly settleBy: number,
    readonly openUntil: number,
    readonly asking: boolean,
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
    return this.request.isGrant(raw);
  }
  unconfirmed(error: LockError): void {
    this.request.unconfirmed(this, error);
  }
}

/* Longer than 300 lines because every state that a request can be in, and every way out of it, is here. */
import { AbortError } from 'p-retry';
import { within, type Clock } from '../../clock.js';
import { ClientClosedError, LockError, RedisUnavailableError, type RefusedError } from '../../errors.js';
import type { CommandPort } from '../connections/attempt.js';
import { RequestAttempt } from './request-attempt.js';
import { RequestAttempts } from './request-attempts.js';
import { requestWords } from './command-args.js';
import { mayHaveWritten, refusalOf } from './refused-request.js';
import { retry } from './retry.js';
import { wakeAtOwner } from './wake-at-owner.js';
import { TOO_LATE, type InsteadOf } from '../scripts/script.js';
import { failureKind, isSplitSlot, TooLateError } from '../server-error.js';
import type { CommandRoutes, Route } from '../topologies/topology.js';

type Sent<Reply> = InsteadOf<Reply>['operation'];

/** A slot on its way may send us on once more; where a map changes under us, or is wrong, the next attempt follows it. */
const MOST_REDIRECTIONS = { moved: 1, asking: 2 };

/** What the requests of one client share. */
export interface RequestTerms {
  readonly routes: CommandRoutes;
  readonly clock: Clock;
  readonly commandTimeout: number;
  readonly attemptMs: number;
  /** The client is closed. */
  readonly closed: boolean;
}

/**
 * One request with all its attempts. The same request may be sent several times, with the same identity; the scripts
 * are written so that running twice is running once. `done` resolves with the request itself, never rejects:
 * `error` is undefined exactly when `reply` counts.
 */
export class ScriptRequest<Reply> extends RequestAttempts {
  reply: Reply | undefined;
  error: LockError | undefined;
  /** Monotonic ms before the attempt was written that `reply` answers, and before the very first one. */
  sentAt = 0;
  firstSentAt = 0;
  #onDone: (() => void) | undefined;
  #settled = false;
  #abandoned = false;
  /** The newest attempt has neither been answered nor timed out. */
  #awaiting = false;
  #written = 0;
  #useSource = false;
  /** How often the current attempt was answered with where else to go. */
  #redirections = 0;
  /** What the newest attempt that has ended ended with. */
  #lastError: Error | undefined;
  #attemptOver: ((error?: Error) => void) | undefined;
  readonly #until: number;

  constructor(
    private readonly executor: RequestTerms,
    private operation: Sent<Reply>,
    private keys: readonly string[],
    private args: readonly (string | number)[],
  ) {
    super(executor.clock);
    const now = executor.clock.monotonic();
    this.#until = now + executor.commandTimeout;
    const connection = executor.routes.connectionFor(keys[0] as string, operation.confirmed !== undefined);
    if (connection?.ready) this.#send(connection, now);
    else this.#retry(undefined);
  }

  /** Resolves with the request itself, never rejects. */
  get done(): Promise<this> {
    return new Promise((resolve) => this.onDone(() => resolve(this)));
  }

  /** As `done`, but no later than `until` (monotonic ms), for a call that has one deadline for several requests. */
  async doneBy(until: number): Promise<this> {
    const { clock } = this.executor;
    await within(clock, until - clock.monotonic(), this.done);
    this.#abandoned = true;
    this.#fail(undefined);
    return this;
  }

  /** What `done` tells, without the promise: an uncontended section is short enough to notice one. */
  onDone(fn: () => void): void {
    if (this.#settled) fn();
    else this.#onDone = fn;
  }

  abandon(): void {
    this.#abandoned = true;
    if (!this.#awaiting) this.#fail(undefined);
  }

  #send(connection: CommandPort, sentAt = this.executor.clock.monotonic(), asking = false): void {
    const { operation, keys, args } = this;
    const deadline = Math.min(sentAt + this.executor.attemptMs, this.#until);
    const { text, openUntil } = operation.notAfter
      ? connection.notAfter(sentAt, deadline)
      : { text: undefined, openUntil: deadline };
    const words = requestWords(operation, keys, args, this.executor.routes, this.#useSource, text);
    if (this.#written === 0) this.firstSentAt = sentAt;
    this.#written += 1;
    this.#awaiting = true;
    this.attemptWritten(openUntil);
    const command = operation.script === undefined ? operation.name : this.#useSource ? 'eval' : 'evalsha';
    connection.send(
      command,
      words,
      new RequestAttempt(this, connection, sentAt, deadline, this.#until, openUntil, asking, operation),
      asking,
    );
  }

  answered(attempt: RequestAttempt<Sent<Reply>>, raw: unknown): void {
    if (raw === TOO_LATE && attempt.operation.notAfter) {
      // Late only by an estimate that is off: look at the clock before the next attempt.
      const surprising = this.executor.clock.monotonic() <= attempt.openUntil;
      this.#answeredWith(attempt, new TooLateError('the server says that the request came too late'));
      if (surprising) attempt.connection.lookAtClock().catch(() => undefined);
      return;
    }
    this.attemptAnswered();
    attempt.over = true;
    if (this.#settled) return;
    try {
      this.reply = attempt.operation.reply(raw);
    } catch (error) {
      this.#fail(this.#refusal(error as Error));
      return;
    }
    this.sentAt = attempt.sentAt;
    if (attempt.asking) wakeAtOwner(this.operation, this.keys, this.args, this.executor.routes, this.reply);
    this.#finish();
  }

  #refusal(error: Error): RefusedError {
    return refusalOf(this.operation, this.keys, this.args, this.executor.routes.publish, error);
  }

  failed(attempt: RequestAttempt<Sent<Reply>>, error: Error): void {
    const kind = failureKind(error);
    if (kind === 'unanswered') this.#overWith(attempt, error);
    else this.#answeredWith(attempt, error);
  }

  isGrant({ operation }: RequestAttempt<Sent<Reply>>, raw: unknown): boolean {
    if (raw === TOO_LATE && operation.notAfter) return false;
    try {
      return operation.confirmed?.(operation.reply(raw)) ?? false;
    } catch {
      return false; // `answered` says what is wrong with it
    }
  }

  unconfirmed(attempt: RequestAttempt<Sent<Reply>>, error: LockError): void {
    this.mustBeUndone();
    this.attemptAnswered();
    attempt.over = true;
    this.#fail(error);
  }

  timedOut(attempt: RequestAttempt<Sent<Reply>>): void {
    this.#overWith(attempt, new Error(`no answer within ${Math.round(attempt.deadline - attempt.sentAt)} ms`));
  }

  /** The attempt did nothing, for certain. */
  #answeredWith(attempt: RequestAttempt<Sent<Reply>>, error: Error): void {
    this.attemptAnswered();
    if (failureKind(error) === 'not-sent') this.#written -= 1;
    this.#overWith(attempt, error);
  }

  #overWith(attempt: RequestAttempt<Sent<Reply>>, error: Error): void {
    // A connection that closes fails what had timed out on it before: that attempt has been followed up already.
    if (attempt.over) return;
    attempt.over = true;
    this.#awaiting = false;
    this.#lastError = error;
    if (this.#settled) return;
    const kind = failureKind(error);
    const route =
      kind === 'not-executed'
        ? this.executor.routes.redirected(error, attempt.connection, this.operation.confirmed !== undefined)
        : undefined;
    const split = isSplitSlot(error) ? this.operation.ifSplit : undefined;
    const instead = split?.(this.keys, this.args) ?? 'retry';
    if (kind === 'refused') {
      if (mayHaveWritten(this.operation, error)) this.mustBeUndone();
      this.#fail(this.#refusal(error));
    } else if (route !== undefined && this.#mayFollow(route)) {
      this.#useSource = false;
      this.#sendAlso(route, error);
    } else if (instead === 'fail') {
      this.#fail(error);
    } else if (instead !== 'retry') {
      this.#sendInstead(instead, error);
    } else if (kind === 'unknown-script' && !this.#useSource) {
      // Nothing ran; the text goes along and is cached by the server again.
      this.#useSource = true;
      if (this.#abandoned) this.#next(error);
      else this.#sendAlso(attempt, error);
    } else {
      this.#next(error);
    }
  }

  /** The attempt did nothing, and neither would the next before the slot has moved. */
  #sendInstead(instead: InsteadOf<Reply>, error: Error): void {
    ({ operation: this.operation, keys: this.keys, args: this.args } = instead);
    this.#useSource = false;
    this.#redirections = 0;
    const { routes } = this.executor;
    const connection = routes.connectionFor(this.keys[0] as string, this.operation.confirmed !== undefined);
    if (connection === undefined || this.#abandoned) this.#next(error);
    else this.#sendAlso({ connection, asking: false }, error);
  }

  /** Two servers that name each other would be asked as fast as they can answer. */
  #mayFollow({ asking }: Route): boolean {
    this.#redirections += 1;
    return !this.#abandoned && this.#redirections <= MOST_REDIRECTIONS[asking ? 'asking' : 'moved'];
  }

  /** Within the attempt: the server did nothing but say what else to send, or to whom. */
  #sendAlso({ connection, asking }: Route, error: Error): void {
    // After a blocked event loop even an answer that came in time is handled too late for another attempt.
    if (this.#outOfTime) return this.#fail(error);
    if (connection.ready) return this.#send(connection, undefined, asking);
    // Where the slot is on its way to no map leads, so this is the time to connect there.
    const now = this.executor.clock.monotonic();
    connection.whenReady(Math.min(now + this.executor.attemptMs, this.#until)).then(
      () => {
        if (this.#settled) return;
        if (this.#abandoned) this.#fail(error);
        else this.#send(connection, undefined, asking);
      },
      () => this.#next(error),
    );
  }

  #next(error: Error): void {
    if (this.#settled) return;
    if (this.#abandoned || this.#outOfTime) this.#fail(error);
    else if (this.#attemptOver !== undefined) this.#attemptOver(error);
    else this.#retry(error);
  }

  /** The first attempt is made directly: a retry loop costs more than the rest of an uncontended acquire. */
  #retry(first: Error | undefined): void {
    const leftMs = this.#until - this.executor.clock.monotonic();
    retry(first, () => this.#again(), leftMs).catch((error: unknown) => this.#fail(error as Error));
  }

  async #again(): Promise<void> {
    const { executor } = this;
    if (this.#settled) return;
    if (this.#abandoned || this.#outOfTime) throw new AbortError('out of time');
    let connection: CommandPort;
    try {
      connection = await executor.routes.connect(
        this.keys[0] as string,
        this.operation.confirmed !== undefined,
        this.#until,
      );
    } catch (error) {
      throw new AbortError(error as Error);
    }
    if (this.#settled) return;
    if (this.#abandoned || this.#outOfTime) throw new AbortError('out of time');
    this.#useSource = false;
    this.#redirections = 0;
    await new Promise<void>((resolve, reject) => {
      const over = (error?: Error): void => {
        this.#attemptOver = undefined;
        if (error === undefined) resolve();
        else reject(error);
      };
      this.#attemptOver = over;
      this.#send(connection);
    });
  }

  /** An attempt that cannot be answered in time would only leave a doubt. */
  get #outOfTime(): boolean {
    const { clock, attemptMs } = this.executor;
    return clock.monotonic() >= this.#until - attemptMs / 10;
  }

  #fail(error: Error | undefined): void {
    if (this.#settled) return;
    if (error instanceof LockError) {
      this.error = error;
    } else if (this.executor.closed) {
      this.error = new ClientClosedError();
    } else {
      this.error = new RedisUnavailableError(
        `Redis did not answer ${this.operation.name} within ${this.executor.commandTimeout} ms`,
        this.inDoubt ? 'unknown' : 'none',
        { cause: this.#lastError ?? error },
      );
    }
    this.#finish();
  }

  #finish(): void {
    this.#settled = true;
    this.#awaiting = false;
    this.#attemptOver?.();
    this.#onDone?.();
  }
}

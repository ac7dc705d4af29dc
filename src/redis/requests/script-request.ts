import { AbortError } from 'p-retry';
import { within, type Clock, type MonotonicMs } from '../../clock.js';
import { ClientClosedError, LockError, RedisUnavailableError, type RefusedError } from '../../errors.js';
import type { CommandPort } from '../connections/attempt.js';
import { RequestAttempt } from './request-attempt.js';
import { Doubt } from './doubt.js';
import { commandArgsOf } from './command-args.js';
import { mayHaveWritten, refusalOf } from './refused-request.js';
import { retry } from './retry.js';
import { wakeAtOwner } from './wake-at-owner.js';
import { ROLL_UNREADABLE } from '../scripts/replies.js';
import { TOO_LATE, type InsteadOf, type Roll } from '../scripts/script.js';
import { failureKind, isSplitSlot, TooLateError } from '../server-error.js';
import type { CommandRoutes, Route } from '../topologies/topology.js';

type Sent<Reply> = InsteadOf<Reply>['operation'];

/**
 * Redirections of one attempt: a migrating slot can cause MOVED and then ASK. More mean that the map is still wrong.
 */
const MAX_REDIRECTIONS = { moved: 1, asking: 2 };

/** What the requests of one client share. */
export interface RequestTerms {
  readonly routes: CommandRoutes;
  readonly clock: Clock;
  readonly commandTimeout: number;
  readonly attemptMs: number;
  /** The client is closed. */
  readonly closed: boolean;
  readonly rolls: { wake(lock: string, roll: Roll): void };
}

/**
 * One request with all its attempts. Every attempt has the same identity, and the scripts are idempotent: a script that
 * runs twice has the effect of one run. `error` is `undefined` if, and only if, `reply` is valid.
 */
export class ScriptRequest<Reply> {
  reply: Reply | undefined;
  error: LockError | undefined;
  /** A moment before the client wrote the attempt that `reply` answers. */
  sentAt: MonotonicMs = 0;
  /** A moment before the client wrote the first attempt. */
  firstSentAt: MonotonicMs = 0;
  #onDone: (() => void) | undefined;
  /** `awaiting`: the newest attempt has not been answered, has not failed and has not timed out. */
  #phase: 'awaiting' | 'between attempts' | 'settled' = 'between attempts';
  #abandoned = false;
  #written = 0;
  /** Of the newest attempt that was written. */
  #connection: CommandPort | undefined;
  #useSource = false;
  /** Number of redirections in reply to the current attempt. */
  #redirections = 0;
  /** The error of the attempt that ended last. */
  #lastError: Error | undefined;
  #attemptOver: ((error?: Error) => void) | undefined;
  #until: MonotonicMs;
  readonly #doubt: Doubt;

  constructor(
    private readonly executor: RequestTerms,
    private operation: Sent<Reply>,
    private keys: readonly string[],
    private args: readonly (string | number)[],
  ) {
    this.#doubt = new Doubt(executor.clock);
    const now = executor.clock.monotonic();
    this.#until = now + executor.commandTimeout;
    const connection = executor.routes.connectionFor(keys[0] as string, operation.isGrant !== undefined);
    if (connection?.ready) this.#send(connection, now);
    else this.#retry(undefined);
  }

  /** Resolves with the request itself, never rejects. */
  get done(): Promise<this> {
    return new Promise((resolve) => this.onDone(() => resolve(this)));
  }

  /** As `done`, but settles at `until` at the latest, so that several requests can share a deadline. */
  async doneBy(until: MonotonicMs): Promise<this> {
    const { clock } = this.executor;
    await within(clock, until - clock.monotonic(), this.done);
    this.#abandoned = true;
    this.#fail(undefined);
    return this;
  }

  /** As `done`, without a promise: an uncontended section is so short that the cost of a promise shows. */
  onDone(fn: () => void): void {
    if (this.#isSettled) fn();
    else this.#onDone = fn;
  }

  /** At least one attempt has been written to a connection. */
  get isWritten(): boolean {
    return this.#written > 0;
  }

  /** Resolves with `true` when an attempt has left this process, and with `false` if it does not. `true`: it has left. */
  whenFlushed(): true | Promise<boolean> {
    return this.#connection?.whenFlushed() ?? Promise.resolve(false);
  }

  /** `undefined`: every attempt is answered, and the effect of the request is known. */
  get doubt(): Doubt | undefined {
    return this.#doubt.isOpen ? this.#doubt : undefined;
  }

  get #isSettled(): boolean {
    return this.#phase === 'settled';
  }

  /** Stops sending attempts. Replies to pending attempts are still read. */
  abandon(): void {
    this.#abandoned = true;
    if (this.#phase !== 'awaiting') this.#fail(undefined);
  }

  #send(connection: CommandPort, sentAt = this.executor.clock.monotonic(), asking = false): void {
    const { operation, keys, args } = this;
    const deadline = Math.min(sentAt + this.executor.attemptMs, this.#until);
    const { text, doubtUntil } =
      operation.notAfter === undefined
        ? { text: undefined, doubtUntil: deadline }
        : connection.notAfter(sentAt, deadline);
    const commandArgs = commandArgsOf(operation, keys, args, this.executor.routes, this.#useSource, text);
    if (this.#written === 0) this.firstSentAt = sentAt;
    this.#written += 1;
    this.#connection = connection;
    this.#phase = 'awaiting';
    this.#doubt.attemptWritten(doubtUntil);
    const command = operation.script === undefined ? operation.name : this.#useSource ? 'eval' : 'evalsha';
    connection.send(
      command,
      commandArgs,
      new RequestAttempt(this, connection, sentAt, deadline, this.#until, doubtUntil, asking, operation),
      asking,
    );
  }

  answered(attempt: RequestAttempt<Sent<Reply>>, raw: unknown): void {
    if (raw === TOO_LATE && attempt.operation.notAfter !== undefined) {
      // By the local estimate of the server clock, the attempt was in time, so the estimate is wrong. Refresh it.
      const surprising = this.executor.clock.monotonic() <= attempt.doubtUntil;
      this.#answeredWith(attempt, new TooLateError('the server got the request after its deadline and did not run it'));
      if (surprising) attempt.connection.lookAtClock().catch(() => undefined);
      return;
    }
    this.#doubt.attemptAnswered();
    attempt.over = true;
    if (raw === 0 || raw === ROLL_UNREADABLE || attempt.asking) this.#wakeParked();
    if (this.#isSettled) return;
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

  /** This request or an earlier one may have freed the lock, and woken nobody. */
  #wakeParked(): void {
    const roll = this.operation.rollOf?.(this.args);
    if (roll !== undefined) this.executor.rolls.wake(this.keys[0] as string, roll);
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
    if (raw === TOO_LATE && operation.notAfter !== undefined) return false;
    try {
      return operation.isGrant?.(operation.reply(raw)) ?? false;
    } catch {
      return false; // `answered` decodes the reply again and reports the error
    }
  }

  unconfirmed(attempt: RequestAttempt<Sent<Reply>>, error: LockError): void {
    this.#doubt.mustBeUndone();
    this.#doubt.attemptAnswered();
    attempt.over = true;
    this.#fail(error);
  }

  timedOut(attempt: RequestAttempt<Sent<Reply>>): void {
    this.#overWith(attempt, new Error(`no reply within ${Math.round(attempt.deadline - attempt.sentAt)} ms`));
  }

  /** Ends an attempt that has certainly changed nothing. */
  #answeredWith(attempt: RequestAttempt<Sent<Reply>>, error: Error): void {
    this.#doubt.attemptAnswered();
    if (failureKind(error) === 'not-sent') this.#written -= 1;
    this.#overWith(attempt, error);
  }

  #overWith(attempt: RequestAttempt<Sent<Reply>>, error: Error): void {
    // A connection that closes also fails attempts that timed out on it. The request has already reacted to those.
    if (attempt.over) return;
    attempt.over = true;
    this.#lastError = error;
    if (this.#isSettled) return;
    this.#phase = 'between attempts';
    const kind = failureKind(error);
    const route =
      kind === 'not-executed'
        ? this.executor.routes.redirected(error, attempt.connection, this.operation.isGrant !== undefined)
        : undefined;
    const split = isSplitSlot(error) ? this.operation.ifSplit : undefined;
    const instead = split?.(this.keys, this.args) ?? 'retry';
    if (kind === 'refused') {
      // Redis does not undo the writes that the script made before Redis rejected one of its commands.
      if (mayHaveWritten(this.operation, error)) this.#doubt.mustBeUndone();
      this.#fail(this.#refusal(error));
    } else if (route !== undefined && this.#countRedirection(route)) {
      this.#useSource = false;
      this.#sendAlso(route, error, attempt.deadline);
    } else if (instead === 'fail') {
      this.#fail(error);
    } else if (instead !== 'retry') {
      this.#sendInstead(instead, error, attempt.deadline);
    } else if (kind === 'unknown-script' && !this.#useSource) {
      // Redis does not have the script, so nothing ran. Send the source, which Redis caches again.
      this.#useSource = true;
      if (this.#abandoned) this.#next(error);
      else this.#sendAlso(attempt, error, attempt.deadline);
    } else {
      this.#next(error);
    }
  }

  /** Sends another operation: the attempt changed nothing, and no repeat would before the slot has moved. */
  #sendInstead(instead: InsteadOf<Reply>, error: Error, deadline: MonotonicMs): void {
    ({ operation: this.operation, keys: this.keys, args: this.args } = instead);
    this.#useSource = false;
    this.#redirections = 0;
    const { routes } = this.executor;
    const connection = routes.connectionFor(this.keys[0] as string, this.operation.isGrant !== undefined);
    if (connection === undefined || this.#abandoned) this.#next(error);
    else this.#sendAlso({ connection, asking: false }, error, deadline);
  }

  /** Limits redirections: two servers that redirect to each other would cause a loop without pauses. */
  #countRedirection({ asking }: Route): boolean {
    this.#redirections += 1;
    return !this.#abandoned && this.#redirections <= MAX_REDIRECTIONS[asking ? 'asking' : 'moved'];
  }

  /** Sends again within the same attempt. Redis ran nothing: it only requested the source or named another server. */
  #sendAlso({ connection, asking }: Route, error: Error, deadline: MonotonicMs): void {
    if (this.#outOfTime) {
      const { clock, attemptMs } = this.executor;
      if (clock.monotonic() <= deadline) return this.#fail(error);
      // The attempt has passed its deadline, but its timer has not run: the event loop was blocked. The reply may have
      // arrived in time, so the request gets one attempt more.
      this.#until = clock.monotonic() + attemptMs;
    }
    if (connection.ready) return this.#send(connection, undefined, asking);
    // The map does not list a node that only imports the slot, so nothing has connected to that node yet.
    const now = this.executor.clock.monotonic();
    connection.whenReady(Math.min(now + this.executor.attemptMs, this.#until)).then(
      () => {
        if (this.#isSettled) return;
        if (this.#abandoned) this.#fail(error);
        else this.#send(connection, undefined, asking);
      },
      () => this.#next(error),
    );
  }

  #next(error: Error): void {
    if (this.#isSettled) return;
    if (this.#abandoned || this.#outOfTime) this.#fail(error);
    else if (this.#attemptOver !== undefined) this.#attemptOver(error);
    else this.#retry(error);
  }

  /** Runs the next attempts. The first one runs without this loop, which costs more than an uncontended acquire. */
  #retry(first: Error | undefined): void {
    const leftMs = this.#until - this.executor.clock.monotonic();
    retry(first, () => this.#again(), leftMs).catch((error: unknown) => this.#fail(error as Error));
  }

  async #again(): Promise<void> {
    const { executor } = this;
    if (this.#isSettled) return;
    if (this.#abandoned || this.#outOfTime) throw new AbortError('no time is left for another attempt');
    let connection: CommandPort;
    try {
      connection = await executor.routes.connect(
        this.keys[0] as string,
        this.operation.isGrant !== undefined,
        this.#until,
      );
    } catch (error) {
      throw new AbortError(error as Error);
    }
    if (this.#isSettled) return;
    if (this.#abandoned || this.#outOfTime) throw new AbortError('no time is left for another attempt');
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

  /** Too little time is left for a reply. Another attempt would only be one more whose outcome is unknown. */
  get #outOfTime(): boolean {
    const { clock, attemptMs } = this.executor;
    return clock.monotonic() >= this.#until - attemptMs / 10;
  }

  #fail(error: Error | undefined): void {
    if (this.#isSettled) return;
    if (error instanceof LockError) {
      this.error = error;
    } else if (this.executor.closed) {
      this.error = new ClientClosedError();
    } else {
      const { clock, commandTimeout } = this.executor;
      const waitedMs = Math.round(commandTimeout - (this.#until - clock.monotonic()));
      const isOver = this.#abandoned && waitedMs < commandTimeout;
      const waited = isOver ? `${waitedMs} ms, when its call ended` : `${commandTimeout} ms (commandTimeout)`;
      this.error = new RedisUnavailableError(
        `Redis did not reply to ${this.operation.name} within ${waited}; check the server and the connection`,
        this.#doubt.isOpen ? 'unknown' : 'none',
        { cause: this.#lastError ?? error },
      );
    }
    this.#finish();
  }

  #finish(): void {
    this.#phase = 'settled';
    this.#attemptOver?.();
    this.#onDone?.();
  }
}

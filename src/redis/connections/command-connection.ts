import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.js';
import { Gate } from '../../gate.js';
import { Deadlines, type Attempt, type CommandPort } from './attempt.js';
import { asksForCredentials } from './credentials.js';
import { connect, keepTrying } from './own-connection.js';
import { QuickTransport } from './quick-transport.js';
import type { Answers, Transport } from './transport.js';
import {
  failureKind,
  inOwnWords,
  isCredentialsError,
  isLockedOut,
  isNoMaster,
  isWithheld,
  NotSentError,
  refusal,
  withoutArguments,
} from '../server-error.js';
import { LEAVE_EVERY_MS, SERVER_CLOCK_AGE_MS } from '../../timing.js';

const never = (): null => null;
const isReset = ({ code }: NodeJS.ErrnoException): boolean => code === 'ECONNRESET' || code === 'EPIPE';

export interface ConnectionReports {
  error(cause: unknown): void;
  clockUnavailable(cause: unknown): void;
  /** The connection closed, and ioredis reconnects. */
  disconnected(): void;
}

/**
 * Carries commands to one server, and estimates the clock of that server. The connection sends every command once, and
 * the request decides whether to send it again.
 *
 * The state is `unavailable` until ioredis is ready and Redis has replied to TIME, then `ready` until the socket
 * closes. `closed` is final.
 */
export class CommandConnection implements CommandPort {
  #state: 'unavailable' | 'ready' | 'closed' = 'unavailable';
  /**
   * Lower bound, in ms, of the server's epoch time minus the local monotonic time. The server clock is never behind.
   */
  #clockOffset: number | undefined;
  #clockLookedAt = -Infinity;
  #clockRefused = false;
  #answerCount = 0;
  readonly #transport: Transport;
  #leftAt = -Infinity;
  /** The socket is being closed. ioredis still reports `ready`, and every further `disconnect` would add a listener. */
  #leaving = false;
  #session: object | undefined;
  #retired = false;
  #lastError: Error | undefined;
  readonly #readiness: Gate;
  readonly #deadlines: Deadlines;
  readonly #stopTrying: () => void;

  /** A `#` field: code that logs a lock must not log the password that the connection contains. */
  readonly #redis: Redis;

  constructor(
    redis: Redis,
    private readonly clock: Clock,
    private readonly attemptMs: number,
    private readonly reports: ConnectionReports,
  ) {
    this.#redis = redis;
    this.#readiness = new Gate(clock);
    this.#transport = new QuickTransport(redis);
    this.#deadlines = new Deadlines(clock, (attempt) => this.#overdue(attempt));
    // Whether the connection is in its handshake, and how it was reset. ioredis reports no error if it merely closes.
    let early: { readonly reset?: Error } | undefined;
    redis.on('connect', () => (early = {}));
    redis.on('ready', () => void this.#becomeReady());
    redis.on('close', () => {
      if (early !== undefined && this.#state === 'unavailable' && !this.#leaving && !this.#retired) {
        const how = early.reset === undefined ? '' : ` (${early.reset.message})`;
        this.#lastError = new Error(
          `the server closed the connection during the handshake${how}: it may expect TLS (rediss://), have too many ` +
            'clients, or refuse this address (protected mode)',
        );
        reports.error(this.#lastError);
      }
      early = undefined;
      this.#leaving = false;
      redis.options.socketTimeout = attemptMs;
      if (this.#state === 'ready') this.#state = 'unavailable';
      reports.disconnected();
    });
    this.#stopTrying = keepTrying(redis, clock);
    redis.on('error', (error: Error) => {
      early &&= isReset(error) ? { reset: error } : undefined;
      this.#lastError = withoutArguments(error);
      reports.error(error);
      // A wrong password does not become right while calls wait, unless the client asks for it. It may be right at the
      // next connection.
      if (isCredentialsError(error) && !asksForCredentials(redis))
        this.#readiness.open(refusal('the connection', error));
    });
  }

  get ready(): boolean {
    return this.#state === 'ready';
  }

  get session(): object | undefined {
    return this.#state === 'ready' ? this.#session : undefined;
  }

  /** The connection is needed but not ready. */
  get unavailable(): boolean {
    return this.#state === 'unavailable' && !this.#retired && this.#redis.status !== 'wait';
  }

  /** The host of the connection, if the user specified one. */
  get host(): string | undefined {
    return this.#redis.options.host;
  }

  /** Number of attempts that wait for a reply. */
  get inFlight(): number {
    return this.#deadlines.size;
  }

  whenReady(until: number): Promise<void> {
    if (this.#state === 'ready') return Promise.resolve();
    if (this.#state === 'closed') return Promise.reject(new NotSentError('the connection is closed'));
    if (this.#redis.status === 'wait') connect(this.#redis);
    const late = (): Error =>
      this.#lastError !== undefined && isCredentialsError(this.#lastError)
        ? refusal('the connection', this.#lastError)
        : new NotSentError('Redis did not become ready in time', { cause: this.#lastError });
    return this.#readiness.wait({ until, late, keepsAlive: true });
  }

  /**
   * See {@link CommandPort}. The latest server time is 90 % of the way to the deadline, so that the reply has time to
   * arrive.
   */
  notAfter(sentAt: number, deadline: number): { text: string; doubtUntil: number } {
    if (this.#clockOffset === undefined) return { text: '0', doubtUntil: deadline };
    if (sentAt - this.#clockLookedAt > SERVER_CLOCK_AGE_MS) {
      this.#clockLookedAt = sentAt;
      this.lookAtClock().catch(() => undefined); // the old estimate stays in use
    }
    const notAfter = Math.floor(this.#clockOffset + sentAt + 0.9 * (deadline - sentAt));
    return { text: String(notAfter), doubtUntil: notAfter - this.#clockOffset + 1 };
  }

  send(name: string, args: string[], attempt: Attempt, asking: boolean): void {
    this.#transport.begin(this.#deadlines.size);
    if (asking) this.#transport.write('asking', [], this.#askings, attempt);
    attempt.answersBefore = this.#answerCount;
    this.#deadlines.add(attempt);
    this.#transport.write(name, args, this.#answers, attempt);
  }

  whenFlushed(): true | Promise<boolean> {
    return this.#transport.whenFlushed();
  }

  readonly #answers: Answers<Attempt> = {
    answered: (attempt, raw) => {
      this.#deadlines.delete(attempt);
      this.#answerCount += 1;
      attempt.answered(raw);
      this.#endIfDone();
    },
    failed: (attempt, error) => {
      this.#deadlines.delete(attempt);
      attempt.failed(this.#notAllowed.get(attempt) ?? inOwnWords(error));
      if (isNoMaster(error)) this.#leave();
      this.#endIfDone();
    },
  };

  /** If Redis rejects ASKING, the next command fails, too, with an error that hides the cause. Keep this error. */
  readonly #askings: Answers<Attempt> = {
    answered: () => undefined,
    failed: (attempt, error) => {
      if (isWithheld(error)) this.#notAllowed.set(attempt, error);
    },
  };
  readonly #notAllowed = new WeakMap<Attempt, Error>();

  /** If no reply at all arrived after the attempt was sent, the server or the network hangs. A new socket may work. */
  #overdue(attempt: Attempt): void {
    attempt.timedOut();
    if (this.#answerCount === attempt.answersBefore && this.#state === 'ready') this.reconnect();
    this.#endIfDone();
  }

  /** Stops the use of this socket at once, even if ioredis has not noticed a fault. */
  reconnect(): void {
    if (this.#state === 'ready') this.#state = 'unavailable';
    if (this.#leaving || this.#redis.status !== 'ready') return;
    this.#leaving = true;
    this.#redis.disconnect(true);
  }

  /** Reconnects to find the current master, by host name or through Sentinel. */
  #leave(): void {
    const now = this.clock.monotonic();
    if (now - this.#leftAt < LEAVE_EVERY_MS || this.#redis.status !== 'ready') return;
    this.#leftAt = now;
    this.reconnect();
  }

  /** Estimates the server clock. Redis reads it before the reply arrives here, so the estimate is a lower bound. */
  async lookAtClock(): Promise<void> {
    if (this.#clockRefused) return;
    try {
      const [seconds, micros] = await this.#redis.time();
      const now = this.clock.monotonic();
      this.#clockOffset = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000) - now;
      this.#clockLookedAt = now;
    } catch (error) {
      if (!isWithheld(error as Error)) throw error;
      this.#clockRefused = true;
      this.#clockOffset = undefined;
      this.reports.clockUnavailable(error);
    }
  }

  /** Closes the connection for good after the pending replies. */
  retire(): void {
    this.#retired = true;
    this.#stopTrying();
    this.#redis.options.retryStrategy = never;
    this.#readiness.open(new NotSentError('this server no longer owns the slot of the key'));
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (this.#retired && (this.#deadlines.size === 0 || this.#redis.status !== 'ready')) this.#redis.disconnect();
  }

  close(): void {
    this.#state = 'closed';
    this.#stopTrying();
    this.#redis.disconnect();
    this.#deadlines.close();
    this.#readiness.open(new NotSentError('the connection is closed'));
  }

  async #becomeReady(): Promise<void> {
    try {
      await Promise.all([this.#enterDatabase(), this.lookAtClock()]);
    } catch (error) {
      // Either the socket closed and ioredis reconnects, or the server rejected a command: then reconnect.
      if (this.#redis.status !== 'ready') return;
      // If the socket has just closed, the error that closed it is the cause.
      if (failureKind(error as Error) !== 'not-sent') {
        this.#lastError = withoutArguments(error as Error);
        this.reports.error(error);
      }
      if (isLockedOut(error as Error)) this.#readiness.open(refusal('the connection', error as Error));
      this.reconnect();
      return;
    }
    if (this.#state === 'closed' || this.#redis.status !== 'ready') return;
    this.#state = 'ready';
    this.#session = {};
    // From now on the deadlines of the attempts detect a silent server. A second timer for each command is not needed.
    delete this.#redis.options.socketTimeout;
    this.#lastError = undefined;
    this.#readiness.open();
  }

  /** Reports a rejected SELECT. ioredis would continue in database 0, where other clients do not see the locks. */
  async #enterDatabase(): Promise<void> {
    const { db } = this.#redis.options; // ioredis treats null as database 0
    if (db) await this.#redis.select(db);
  }
}

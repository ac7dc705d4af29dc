import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.js';
import { AnsweredCommand, type Answers } from './answered-command.js';
import { AttemptDeadlines, type Attempt, type CommandPort } from './attempt.js';
import { detached } from './detached.js';
import { isObserved } from './observed.js';
import { connect, keepTrying } from './own-connection.js';
import {
  isCredentialsError,
  isLockedOut,
  isNoMaster,
  isWithheld,
  NotSentError,
  refusal,
  withoutArguments,
} from '../server-error.js';

/** An estimate of the server's clock is looked at again after this long: clocks drift. */
const CLOCK_AGE_MS = 60_000;
const CORK_MOST = 16;
/** A server that says that it is no master is left for the one that is, but not more often than this. */
const LEAVE_EVERY_MS = 1_000;

const never = (): null => null;

export interface ConnectionReports {
  error(cause: unknown): void;
  clockUnavailable(cause: unknown): void;
  /** It closed; it is being made again. */
  away(): void;
}

/**
 * The connection that carries commands to one server, and what we know of that server's clock. It sends what it is
 * given once; repeating is the executor's business.
 *
 * States: `away` until ioredis is ready and TIME was answered, then `ready` until the socket closes, `closed` for good.
 */
export class CommandConnection implements CommandPort {
  #state: 'away' | 'ready' | 'closed' = 'away';
  /** Server epoch ms minus our monotonic ms, at most: the server's clock is never behind what this says. */
  #clockOffset: number | undefined;
  #clockLookedAt = -Infinity;
  #clockRefused = false;
  #answerCount = 0;
  readonly #answersDirectly: boolean;
  /** Commands written since the socket was corked; 0: it is not. */
  #corked = 0;
  /** The last turn that corked it wrote more than one. */
  #crowded = false;
  #leftAt = -Infinity;
  /** The socket is being closed; until it is ioredis says that it is ready, and each order to close it listens anew. */
  #leaving = false;
  #retired = false;
  #lastError: Error | undefined;
  readonly #waiting = new Set<{ resolve(): void; reject(error: Error): void }>();
  readonly #deadlines: AttemptDeadlines;
  readonly #stopTrying: () => void;

  /** Private for good: it has the password, and whoever logs a lock would log it, too. */
  readonly #redis: Redis;

  constructor(
    redis: Redis,
    private readonly clock: Clock,
    private readonly attemptMs: number,
    private readonly reports: ConnectionReports,
  ) {
    this.#redis = redis;
    this.#answersDirectly = AnsweredCommand.fits(redis);
    this.#deadlines = new AttemptDeadlines(clock, (attempt) => this.#overdue(attempt));
    redis.on('ready', () => void this.#becomeReady());
    redis.on('close', () => {
      this.#leaving = false;
      redis.options.socketTimeout = attemptMs;
      if (this.#state === 'ready') this.#state = 'away';
      reports.away();
    });
    this.#stopTrying = keepTrying(redis, clock);
    redis.on('error', (error: Error) => {
      this.#lastError = withoutArguments(error);
      reports.error(error);
      // Waiting longer does not help against a wrong password; the next connection may still find it mended.
      if (isCredentialsError(error)) this.#endWaiting(refusal('the connection', error));
    });
  }

  get ready(): boolean {
    return this.#state === 'ready';
  }

  /** It is wanted and not there. */
  get away(): boolean {
    return this.#state === 'away' && !this.#retired && this.#redis.status !== 'wait';
  }

  /** Where it leads to, as far as that was given. */
  get host(): string | undefined {
    return this.#redis.options.host;
  }

  /** Attempts that wait for their answer. */
  get inFlight(): number {
    return this.#deadlines.size;
  }

  /** Resolves when commands can be sent; rejects at `until` (monotonic ms) or when the server refuses us. */
  whenReady(until: number): Promise<void> {
    if (this.#state === 'ready') return Promise.resolve();
    if (this.#state === 'closed') return Promise.reject(new NotSentError('the connection is closed'));
    if (this.#redis.status === 'wait') connect(this.#redis);
    return new Promise((resolve, reject) => {
      const done = (): void => {
        timer.cancel();
        this.#waiting.delete(waiter);
      };
      const waiter = {
        resolve: () => (done(), resolve()),
        reject: (error: Error) => (done(), reject(error)),
      };
      const late = (): void =>
        waiter.reject(new NotSentError('Redis was not ready in time', { cause: this.#lastError }));
      const timer = this.clock.setTimer(until - this.clock.monotonic(), late, true);
      this.#waiting.add(waiter);
    });
  }

  /**
   * The server time up to which an attempt of this length may take effect, as text for its script, and the moment of
   * ours when that has surely passed. A tenth before the attempt's own deadline: its answer must still reach us.
   */
  notAfter(sentAt: number, deadline: number): { text: string; openUntil: number } {
    if (this.#clockOffset === undefined) return { text: '0', openUntil: deadline };
    if (sentAt - this.#clockLookedAt > CLOCK_AGE_MS) {
      this.#clockLookedAt = sentAt;
      this.lookAtClock().catch(() => undefined); // the old estimate stands; the next command looks again
    }
    const notAfter = Math.floor(this.#clockOffset + sentAt + 0.9 * (deadline - sentAt));
    return { text: String(notAfter), openUntil: notAfter - this.#clockOffset + 1 };
  }

  /** Writes the command. Exactly one of the attempt's `answered` and `failed` follows, however late. */
  send(name: string, args: string[], attempt: Attempt, asking: boolean): void {
    this.#cork();
    if (asking) this.#write('asking', [], this.#askings, attempt);
    attempt.answersBefore = this.#answerCount;
    this.#deadlines.add(attempt);
    this.#write(name, args, this.#answers, attempt);
  }

  #write(name: string, args: string[], answers: Answers<Attempt>, attempt: Attempt): void {
    if (this.#answersDirectly && !isObserved(this.#redis)) {
      this.#redis.sendCommand(new AnsweredCommand(name, args, answers, attempt));
    } else {
      this.#redis.call(name, ...args).then(
        (raw) => detached(() => answers.answered(attempt, raw)),
        (error: unknown) => detached(() => answers.failed(attempt, error as Error)),
      );
    }
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
      attempt.failed(this.#notAllowed.get(attempt) ?? error);
      if (isNoMaster(error)) this.#leave();
      this.#endIfDone();
    },
  };

  /** What ASKING allows fails with it, and the server does not say why. */
  readonly #askings: Answers<Attempt> = {
    answered: () => undefined,
    failed: (attempt, error) => {
      if (isWithheld(error)) this.#notAllowed.set(attempt, error);
    },
  };
  readonly #notAllowed = new WeakMap<Attempt, Error>();

  /** Nothing at all was answered since it was sent: the server hangs, or the path to it does. Another socket may not. */
  #overdue(attempt: Attempt): void {
    attempt.timedOut();
    if (this.#answerCount === attempt.answersBefore && this.#state === 'ready') this.reconnect();
    this.#endIfDone();
  }

  /** Nothing more goes over this socket, whether or not ioredis has noticed. */
  reconnect(): void {
    if (this.#state === 'ready') this.#state = 'away';
    if (this.#leaving || this.#redis.status !== 'ready') return;
    this.#leaving = true;
    this.#redis.disconnect(true);
  }

  /** Another look at who is the master, by name or through Sentinel. */
  #leave(): void {
    const now = this.clock.monotonic();
    if (now - this.#leftAt < LEAVE_EVERY_MS || this.#redis.status !== 'ready') return;
    this.#leftAt = now;
    this.reconnect();
  }

  /** Learns the server's clock; the answer was true at some moment before it arrived, so it is a lower bound. */
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

  /** Nothing more will be sent: what is under way is still read, then the connection ends and is not made again. */
  retire(): void {
    this.#retired = true;
    this.#stopTrying();
    this.#redis.options.retryStrategy = never;
    this.#endWaiting(new NotSentError('this server has none of the keys any more'));
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
    this.#endWaiting(new NotSentError('the connection is closed'));
  }

  async #becomeReady(): Promise<void> {
    try {
      await Promise.all([this.#enterDatabase(), this.lookAtClock()]);
    } catch (error) {
      // The socket closed again, or the server does not let us in: from the start.
      if (this.#redis.status !== 'ready') return;
      this.#lastError = withoutArguments(error as Error);
      this.reports.error(error);
      if (isLockedOut(error as Error)) this.#endWaiting(refusal('the connection', error as Error));
      this.reconnect();
      return;
    }
    if (this.#state === 'closed' || this.#redis.status !== 'ready') return;
    this.#state = 'ready';
    // From here on the attempts' own deadlines notice silence; a timer of ioredis for each command would do it twice.
    delete this.#redis.options.socketTimeout;
    this.#lastError = undefined;
    for (const waiter of [...this.#waiting]) waiter.resolve();
  }

  /** ioredis goes on in database 0 when it is not let into another: the locks would be nobody else's. */
  async #enterDatabase(): Promise<void> {
    const { db } = this.#redis.options;
    // ioredis also takes null for database 0.
    if (db) await this.#redis.select(db);
  }

  #endWaiting(error: Error): void {
    for (const waiter of [...this.#waiting]) waiter.reject(error);
  }

  /**
   * Under load the commands of one turn leave together, a system call for up to CORK_MOST of them, so that the server
   * has work while we still write. A lone command leaves at once, but not where the last turn brought more than one: with
   * the answers to all of them in one read nothing is under way when their callers go on.
   */
  #cork(): void {
    if (this.#corked > 0) {
      this.#corked += 1;
      if (this.#corked % CORK_MOST !== 0) return;
      this.#redis.stream.uncork();
      this.#redis.stream.cork();
    } else if (this.#deadlines.size > 0 || this.#crowded) {
      const stream = this.#redis.stream;
      this.#corked = 1;
      stream.cork();
      process.nextTick(() => {
        this.#crowded = this.#corked > 1;
        this.#corked = 0;
        stream.uncork();
      });
    }
  }
}

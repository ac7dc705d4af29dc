import type { Clock, Timer, MonotonicMs } from '../../clock.js';
import type { LockError } from '../../errors.js';
import { TIMER_SLACK_MS } from '../../timing.js';

/** The part of a connection that requests use. */
export interface CommandPort {
  readonly ready: boolean;
  /** Identifies the connection from the moment when it is ready until it closes. `undefined`: it is not ready. */
  readonly session: object | undefined;
  /**
   * `text`: the latest server time at which an attempt may take effect, as an argument of its script. `doubtUntil`: when
   * that server time has certainly passed.
   */
  notAfter(sentAt: MonotonicMs, deadline: MonotonicMs): { text: string; doubtUntil: MonotonicMs };
  /** Writes the command. Exactly one call of `answered` or `failed` follows, possibly after the deadline. */
  send(name: string, args: string[], attempt: Attempt, asking: boolean): void;
  /** See {@link Transport.whenFlushed}. */
  whenFlushed(): true | Promise<boolean>;
  /** Resolves when commands can be sent. Rejects at `until`, or when the server rejects the client. */
  whenReady(until: MonotonicMs): Promise<void>;
  /** Updates the estimate of the server clock. */
  lookAtClock(): Promise<void>;
}

/** One transmission of a request. It may still run until it is answered or its not-after time has passed. */
export interface Attempt {
  readonly connection: CommandPort;
  /** A moment before the client wrote the command. */
  readonly sentAt: MonotonicMs;
  /** When the attempt times out. */
  readonly deadline: MonotonicMs;
  /** When the caller of the request stops waiting for a result. */
  readonly settleBy: MonotonicMs;
  /** When Redis can no longer run the attempt, by the lower bound of its clock. */
  readonly doubtUntil: MonotonicMs;
  /** Number of replies that the connection had received when it sent the attempt. */
  answersBefore: number;
  answered(raw: unknown): void;
  failed(error: Error): void;
  /** No reply arrived before `deadline`. A reply may still arrive. */
  timedOut(): void;
  /** Whether this reply grants the lock. */
  isGrant(raw: unknown): boolean;
  /** Called instead of `answered`: the script took effect, and the effect must be undone. */
  unconfirmed(error: LockError): void;
}

/** A command whose reply is ignored. If it fails, the waiters wake up when the migration of the slot ends. */
export class Notice implements Attempt {
  readonly sentAt = 0;
  readonly doubtUntil = 0;
  readonly deadline = Infinity;
  readonly settleBy = Infinity;
  answersBefore = 0;
  constructor(readonly connection: CommandPort) {}
  answered(): void {}
  failed(): void {}
  timedOut(): void {}
  unconfirmed(): void {}
  isGrant(): boolean {
    return false;
  }
}

/**
 * The deadlines of all attempts of a connection, behind one timer. A timer for each attempt would cost more than the
 * rest of an uncontended acquire. The one timer stays armed, and checks the pending attempts when it fires. Redis
 * replies in the order of the requests, so the answered attempt is nearly always at the front of the queue.
 */
export class Deadlines {
  #queue: (Attempt | undefined)[] = [];
  #front = 0;
  #pending = 0;
  #timer: Timer | undefined;
  #firesAt = Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly overdue: (attempt: Attempt) => void,
  ) {}

  get size(): number {
    return this.#pending;
  }

  add(attempt: Attempt): void {
    this.#queue.push(attempt);
    this.#pending += 1;
    if (attempt.deadline < this.#firesAt) this.#arm(attempt.deadline);
  }

  delete(attempt: Attempt): void {
    if (this.#queue.length === 1 && this.#queue[0] === attempt) {
      this.#queue.pop();
      this.#pending = 0;
      return;
    }
    const at = this.#queue[this.#front] === attempt ? this.#front : this.#queue.indexOf(attempt, this.#front);
    if (at < 0) return;
    this.#queue[at] = undefined;
    this.#pending -= 1;
    while (this.#front < this.#queue.length && this.#queue[this.#front] === undefined) this.#front += 1;
    if (this.#front === this.#queue.length) this.#clear();
    else if (this.#front > 1_024) {
      this.#queue = this.#queue.slice(this.#front);
      this.#front = 0;
    }
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#firesAt = Infinity;
    this.#clear();
  }

  #clear(): void {
    this.#queue.length = 0;
    this.#front = 0;
    this.#pending = 0;
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#firesAt = at;
    this.#timer = this.clock.setTimer(at - this.clock.monotonic(), () => this.#fired());
  }

  /**
   * After a blocked event loop, Node runs timers first. Let it read the replies that have arrived before attempts time
   * out.
   */
  #fired(): void {
    const now = this.clock.monotonic();
    if (now - this.#firesAt <= TIMER_SLACK_MS) return this.#look(now);
    // Keep the immediate ref'd: the event loop would not run an unref'd one until another event wakes it up.
    const immediate = setImmediate(() => this.#look(now));
    this.#timer = { cancel: () => clearImmediate(immediate) };
  }

  #look(now: number): void {
    this.#firesAt = Infinity;
    this.#timer = undefined;
    let next = Infinity;
    for (const attempt of this.#queue.slice(this.#front)) {
      if (attempt === undefined) continue;
      if (attempt.deadline > now) {
        next = Math.min(next, attempt.deadline);
      } else {
        this.delete(attempt);
        this.overdue(attempt);
      }
    }
    if (next < this.#firesAt) this.#arm(next);
  }
}

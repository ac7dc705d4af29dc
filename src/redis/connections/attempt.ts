import type { Clock, Timer } from '../../clock.js';
import type { LockError } from '../../errors.js';

/** A connection as requests see it. */
export interface CommandPort {
  readonly ready: boolean;
  /** The server time after which an attempt changes nothing, for its script, and when by our clock that has passed. */
  notAfter(sentAt: number, deadline: number): { text: string; openUntil: number };
  /** Writes the command. Exactly one of the attempt's `answered` and `failed` follows, however late. */
  send(name: string, args: string[], attempt: Attempt, asking: boolean): void;
  /** Resolves when commands can be sent; rejects at `until` (monotonic ms) or when the server refuses us. */
  whenReady(until: number): Promise<void>;
  lookAtClock(): Promise<void>;
}

/** One sending of a request. Its bytes may lie anywhere until it is answered or its not-after has passed. */
export interface Attempt {
  readonly connection: CommandPort;
  /** Monotonic ms, before the bytes were written. */
  readonly sentAt: number;
  /** Monotonic ms after which we do not wait for the answer. */
  readonly deadline: number;
  /** Monotonic ms after which nobody waits for what it has to say any more. */
  readonly settleBy: number;
  /** Monotonic ms after which the server cannot act on it any more, by the lower bound of its clock that we have. */
  readonly openUntil: number;
  /** Answers that its connection had got when it was sent. */
  answersBefore: number;
  answered(raw: unknown): void;
  failed(error: Error): void;
  /** Nothing came before `deadline`; an answer may still follow. */
  timedOut(): void;
  /** Whether this answer tells of a grant. */
  isGrant(raw: unknown): boolean;
  /** Instead of `answered`: it ran, and what it did has to be taken back. */
  unconfirmed(error: LockError): void;
}

/** A command that nobody waits for; where it fails, the slot's arrival wakes the waiters. */
export class Notice implements Attempt {
  readonly sentAt = 0;
  readonly openUntil = 0;
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

/** Timers fire so late by themselves. */
const TIMER_MS = 1;

/**
 * The deadlines of all attempts of a connection behind one timer. A timer for each would cost more than the rest of
 * an uncontended acquire; here the timer is armed once and looks at what is still pending when it fires. Answers come
 * in the order of the requests, so what is answered is nearly always at the front.
 */
export class AttemptDeadlines {
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

  /** Of a process that was held up timers come before its sockets: what has been answered meanwhile is read first. */
  #fired(): void {
    const now = this.clock.monotonic();
    if (now - this.#firesAt <= TIMER_MS) return this.#look(now);
    // Not unref'd: the loop would not come round for it, but sleep until something else happens.
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

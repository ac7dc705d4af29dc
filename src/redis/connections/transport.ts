import type { Redis } from 'ioredis';
import type { Attempt } from './attempt.js';
import { detached } from './detached.js';

/** Receives the replies to the commands of a connection, each with its attempt. */
export interface Answers<A> {
  answered(attempt: A, raw: unknown): void;
  failed(attempt: A, error: Error): void;
}

/** How the commands of one connection reach its socket. */
export interface Transport {
  /** Called before the command of an attempt is written. `pending`: number of attempts that wait for a reply. */
  begin(pending: number): void;
  write(name: string, args: string[], answers: Answers<Attempt>, attempt: Attempt): void;
  /**
   * Resolves when the operating system has all bytes that were written before; with `false` if the connection closes first.
   * `true`: it has them already.
   */
  whenFlushed(): true | Promise<boolean>;
}

/** Sends commands as every user of ioredis does. */
export class PlainTransport implements Transport {
  /** A `#` field: code that logs a lock must not log the password that the connection contains. */
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  begin(_pending: number): void {
    // ioredis makes one system call for each command.
  }

  write(name: string, args: string[], answers: Answers<Attempt>, attempt: Attempt): void {
    this.#redis.call(name, ...args).then(
      (raw) => detached(() => answers.answered(attempt, raw)),
      (error: unknown) => detached(() => answers.failed(attempt, error as Error)),
    );
  }

  whenFlushed(): true | Promise<boolean> {
    const { stream } = this.#redis;
    if (stream.writableLength === 0) return !stream.destroyed || Promise.resolve(false);
    // The callback of an empty write follows the bytes before it, also while the socket is corked.
    return new Promise((resolve) => stream.write('', (error) => resolve(error == null)));
  }
}

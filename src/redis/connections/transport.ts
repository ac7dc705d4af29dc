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
}

import { LockTimeoutError } from '../../index.js';
import type { BusyOptions, BusyStatus } from './request-options.js';

/**
 * The lock of a request did not become free within its `waitTime`. Its fields are those that the error handlers of
 * Express and Fastify read: they respond with the status and with `Retry-After`. The message does not name the lock,
 * because such a handler may send it to the client.
 */
export class RequestBusyError extends LockTimeoutError {
  /** Status code of the response. */
  readonly status: BusyStatus;
  /** The same as `status`. */
  readonly statusCode: BusyStatus;
  /** Value of the `Retry-After` header, in seconds. */
  readonly retryAfter: number;
  /** Headers of the response. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the client may see the message. */
  readonly expose = true;

  constructor(lockName: string, waitTime: number, { status = 423, retryAfter = 1 }: BusyOptions = {}) {
    super(lockName, waitTime, `another request holds the lock of this resource; try again in ${retryAfter} s`);
    this.name = 'RequestBusyError';
    this.status = status;
    this.statusCode = status;
    this.retryAfter = retryAfter;
    this.headers = { 'Retry-After': String(retryAfter) };
  }
}

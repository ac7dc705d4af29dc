import { STATUS_CODES } from 'node:http';
import { Catch, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { throwError } from 'rxjs';
import { LockTimeoutError } from '../../index.js';
import { RequestBusyError, type BusyOptions } from '../http/index.js';

/**
 * Answers a call that failed with a `LockTimeoutError`. The answer does not name the lock.
 *
 * - A request: the status and `Retry-After` of the options, or those of a {@link RequestBusyError}.
 * - A message to a gateway: the event `exception` with `status`, `code`, `message`, `retryAfter` and `cause`.
 * - A message to a microservice: an error with `status`, `code`, `message` and `retryAfter`.
 * - A resolver of GraphQL: an error with the message.
 *
 * `HoldfastModule` registers it for the application unless `filter` is `false`; `@UseFilters(LockTimeoutFilter)` registers it
 * for a controller, a gateway or a method. Nest applies no filter of the application to gateways.
 */
export class LockTimeoutFilter implements ExceptionFilter<LockTimeoutError> {
  readonly #adapters: HttpAdapterHost;
  readonly #options: BusyOptions;

  constructor(adapters: HttpAdapterHost, options: BusyOptions = {}) {
    this.#adapters = adapters;
    this.#options = options;
  }

  catch(error: LockTimeoutError, host: ArgumentsHost): unknown {
    const busy =
      error instanceof RequestBusyError ? error : new RequestBusyError(error.lockName, error.waitTime, this.#options);
    const type: string = host.getType();
    if (type === 'http') return this.#reply(busy, host);
    if (type === 'ws') return emitException(busy, host);
    // A microservice sends what the Observable throws as JSON, in which an `Error` has no message.
    if (type === 'rpc') return throwError(() => answerOf(busy));
    // GraphQL takes an error as a result.
    return busy;
  }

  #reply({ status, message, retryAfter }: RequestBusyError, host: ArgumentsHost): void {
    const { httpAdapter } = this.#adapters;
    const response: unknown = host.switchToHttp().getResponse();
    if (httpAdapter.isHeadersSent(response)) {
      httpAdapter.end(response);
      return;
    }
    httpAdapter.setHeader(response, 'Retry-After', String(retryAfter));
    httpAdapter.reply(response, { statusCode: status, message, error: STATUS_CODES[status] }, status);
  }
}
Catch(LockTimeoutError)(LockTimeoutFilter);
Inject(HttpAdapterHost)(LockTimeoutFilter, undefined, 0);

const answerOf = ({ code, message, retryAfter }: RequestBusyError) => ({ status: 'error', code, message, retryAfter });

/** The client of a gateway: a socket of socket.io, or of `ws`, which alone has a `readyState`. */
interface SocketClient {
  readonly readyState?: number;
  send?(text: string): void;
  emit?(event: string, payload: object): void;
}

/** Sends the event that Nest sends for its own exceptions of gateways. */
function emitException(busy: RequestBusyError, host: ArgumentsHost): void {
  const ws = host.switchToWs();
  const client: SocketClient = ws.getClient();
  const data = { ...answerOf(busy), cause: { pattern: ws.getPattern(), data: ws.getData<unknown>() } };
  if (client.readyState === undefined) client.emit?.('exception', data);
  else client.send?.(JSON.stringify({ event: 'exception', data }));
}

import { STATUS_CODES } from 'node:http';
import { Catch, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { throwError } from 'rxjs';
import { LockTimeoutError } from '../../index.js';
import { RequestBusyError, type BusyOptions } from '../http/index.js';

/**
 * Answers a request that failed with a `LockTimeoutError`: the status and `Retry-After` of the options, or those of a
 * {@link RequestBusyError}. The response does not name the lock. `HoldfastModule` registers it for the application unless
 * `filter` is `false`; `@UseFilters(LockTimeoutFilter)` registers it for a controller or a method.
 */
export class LockTimeoutFilter implements ExceptionFilter<LockTimeoutError> {
  readonly #adapters: HttpAdapterHost;
  readonly #options: BusyOptions;

  constructor(adapters: HttpAdapterHost, options: BusyOptions = {}) {
    this.#adapters = adapters;
    this.#options = options;
  }

  catch(error: LockTimeoutError, host: ArgumentsHost): unknown {
    const type: string = host.getType();
    // Microservices take an error as an Observable, and GraphQL as a result.
    if (type !== 'http') return type === 'rpc' ? throwError(() => error) : error;
    const { status, message, retryAfter } =
      error instanceof RequestBusyError ? error : new RequestBusyError(error.lockName, error.waitTime, this.#options);
    const { httpAdapter } = this.#adapters;
    const response: unknown = host.switchToHttp().getResponse();
    if (httpAdapter.isHeadersSent(response)) {
      httpAdapter.end(response);
      return undefined;
    }
    httpAdapter.setHeader(response, 'Retry-After', String(retryAfter));
    httpAdapter.reply(response, { statusCode: status, message, error: STATUS_CODES[status] }, status);
    return undefined;
  }
}
Catch(LockTimeoutError)(LockTimeoutFilter);
Inject(HttpAdapterHost)(LockTimeoutFilter, undefined, 0);

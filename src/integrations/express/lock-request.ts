import type { IncomingMessage, ServerResponse } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import type { LockClient } from '../../index.js';
import { holdForRequest, RequestBusyError, type RequestLockOptions } from '../http/index.js';
import { errorOf } from '../shared/error-of.js';
import { checkClient, checkRequestOptions } from '../shared/route-checks.js';

/** The parameters of a path. A wildcard is a list of strings: annotate the request of `key` in that case. */
export type PathParams = Record<string, string>;

/**
 * A middleware for every route: its parameters say nothing of the path, so that TypeScript still finds the parameters of the
 * handlers after it in the path.
 */
export type LockRequestHandler = (request: IncomingMessage, response: ServerResponse, next: NextFunction) => void;

/** The options of {@link lockRequest}. */
export interface LockRequestOptions<Params = PathParams> extends RequestLockOptions<Request<Params>> {
  /** The client whose locks the requests take. */
  client: LockClient;
  /**
   * Responds to a request that finds the lock busy. It gets the arguments of an error handler of Express.
   *
   * @defaultValue passes the error to the error handlers. The default handler of Express responds with `status` and
   *   `Retry-After`.
   */
  onBusy?:
    ((busy: RequestBusyError, request: Request<Params>, response: Response, next: NextFunction) => unknown) | undefined;
}

/**
 * Creates a middleware that holds a lock for the time of a request, under a `LockContext` of the request. It releases
 * the lock when the response is closed: after its last byte, or when the client disconnects, regardless of the
 * handlers. The handlers after the middleware run inside the hold, so a nested call re-enters.
 *
 * - A client that disconnects while its request waits ends the wait. The handlers do not run.
 * - The lock stays busy: `onBusy` responds, or the error handlers get a {@link RequestBusyError}.
 * - Redis is unavailable: the error handlers get the `RedisUnavailableError`, and the handlers do not run.
 * - The client disconnects while a handler works: the lock is released although the handler continues. The signal of
 *   {@link requestLock} aborts. For work that must always complete, acquire the lock once more with `withLock`: that
 *   hold outlives the request.
 *
 * The middleware works with Express 4 and 5.
 *
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid.
 * @example
 * app.post(
 *   '/orders/:id/pay',
 *   lockRequest({ client, key: (request) => `order:${request.params.id}`, waitTime: 2_000 }),
 *   async (request, response) => {
 *     response.json(await pay(request.params.id));
 *   },
 * );
 */
export function lockRequest<Params = PathParams>(options: LockRequestOptions<Params>): LockRequestHandler {
  checkRequestOptions(options, ['client', 'onBusy']);
  checkClient(options.client);
  const { key, when, onBusy, ...call } = options;
  const hold = async (request: Request<Params>, response: Response, next: NextFunction): Promise<void> => {
    if (when !== undefined && !(await when(request))) return next();
    try {
      const name = typeof key === 'function' ? await key(request) : key;
      await holdForRequest(request, response, { ...call, key: name }, next);
    } catch (error) {
      if (onBusy === undefined || !(error instanceof RequestBusyError)) throw error;
      await onBusy(error, request, response, next);
    }
  };
  return function lockedRequest(request, response, next) {
    // Express 4 ignores a promise that a middleware returns.
    hold(request as Request<Params>, response as Response, next).catch((reason: unknown) => next(errorOf(reason)));
  };
}

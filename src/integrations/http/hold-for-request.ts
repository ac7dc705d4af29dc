/*
 * A hold for the time of a request. The hold begins before the handler and ends with the response. The handler need not
 * cooperate: it may throw, stream, or never respond.
 */
import { LockContext, type Hold, type LockTimeoutError } from '../../index.js';
import { lockOf } from '../shared/kinds.js';
import { checkClient } from '../shared/route-checks.js';
import { RequestBusyError } from './request-busy-error.js';
import type { HoldOptions } from './request-options.js';
import { endOf, forManyListeners, type ClosableResponse } from '../shared/response-end.js';

/** The lock that a request holds. */
export class RequestLock {
  /** The hold. It is released when the response is closed. */
  readonly hold: Hold;
  /**
   * The owner of the hold, for code that the handler does not call or start. A call with this context re-enters from
   * any code.
   */
  readonly context: LockContext;
  readonly #ended: AbortSignal;
  #signal: AbortSignal | undefined;

  /** @internal */
  constructor(hold: Hold, context: LockContext, ended: AbortSignal) {
    this.hold = hold;
    this.context = context;
    this.#ended = ended;
  }

  /**
   * A signal that aborts when the request no longer holds the lock: the response is closed, the hold was lost, or the
   * lock client was closed. Pass it to work that must stop when the client of the request disconnects.
   */
  get signal(): AbortSignal {
    this.#signal ??= forManyListeners(AbortSignal.any([this.hold.signal, this.#ended]));
    return this.#signal;
  }
}

/**
 * One owner per request: if two parts of an application lock the same name for one request, the second one re-enters.
 */
const contexts = new WeakMap<object, LockContext>();
const locks = new WeakMap<object, RequestLock>();

/**
 * The lock that a request holds, or `undefined`. If the request has taken several locks, it is the last one.
 *
 * @param request - the `IncomingMessage` of `node:http`: the request of Express, or `request.raw` of Fastify.
 * @example
 * app.post('/reports', lockRequest({ client, key: 'reports' }), async (request, response) => {
 *   response.json(await render({ signal: requestLock(request)?.signal }));
 * });
 */
export function requestLock(request: object): RequestLock | undefined {
  return locks.get(request);
}

/**
 * Acquires a lock for the time of a request, and calls `run` inside the hold. The lock is released when the response is
 * closed: after its last byte, or when the client disconnects. `holdfast/express` and `holdfast/fastify` call this
 * function. Use it for `node:http` itself and for other frameworks.
 *
 * - Code that `run` calls or starts is inside the hold, so a nested call re-enters.
 * - The client disconnects during the wait: the wait ends, the call resolves, and `run` is never called.
 * - The client disconnects while `run` works: the lock is released although the work continues. The signal of
 *   {@link requestLock} aborts. For work that must always complete, acquire the lock once more with `withLock`: that
 *   hold outlives the request.
 * - The request is pipelined, and requests before it on its connection are not answered: the lock is released when the
 *   response is ended. Its bytes are sent later.
 *
 * @param request - the `IncomingMessage`. Two calls with the same request have the same owner.
 * @param response - the `ServerResponse`.
 * @param run - handles the request. The call does not wait for its result.
 * @returns a promise that resolves when the hold has ended.
 * @throws {RequestBusyError} `ERR_LOCK_TIMEOUT`: the lock did not become free within `waitTime`.
 * @throws the errors of `Lock.withLock`, as long as `run` was not called, and an error that `run` throws synchronously.
 * @example
 * const server = createServer((request, response) => {
 *   holdForRequest(request, response, { client, key: 'report', waitTime: 2_000 }, () => {
 *     void sendReport(response);
 *   }).catch((error: unknown) => {
 *     response.writeHead(error instanceof RequestBusyError ? 423 : 500).end();
 *   });
 * });
 */
export async function holdForRequest(
  request: object,
  response: ClosableResponse,
  options: HoldOptions,
  run: () => void,
): Promise<void> {
  const { client, key, kind = 'lock', waitTime = 0, leaseTime } = options;
  const lock = lockOf(checkClient(client), kind, key);
  const context = contexts.get(request) ?? new LockContext();
  contexts.set(request, context);
  const end = endOf(request, response);
  let running = false;
  try {
    await lock.withLock({ waitTime, leaseTime, context, signal: end.signal }, (hold) => {
      // The client may have disconnected while Redis granted the lock.
      if (end.signal.aborted) return;
      locks.set(request, new RequestLock(hold, context, end.signal));
      run();
      running = true;
      return end.reached();
    });
  } catch (error) {
    // The response is closed, so no error can be sent. A lost hold has aborted the signal and emitted `leaseLost`.
    if (running || end.signal.aborted) return;
    throw isTimeout(error) ? new RequestBusyError(error.lockName, error.waitTime, options) : error;
  } finally {
    end.forget();
  }
}

/** Compares the code, so that an error of another copy of the package counts as well. */
function isTimeout(error: unknown): error is LockTimeoutError {
  return (error as Partial<LockTimeoutError> | undefined)?.code === 'ERR_LOCK_TIMEOUT';
}

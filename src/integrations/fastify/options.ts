import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CloseOptions, CreateClientOptions, LockClient } from '../../index.js';
import type { LockedName } from '../decorators/index.js';
import type { RequestBusyError, RequestCall } from '../http/index.js';

/**
 * The options of the plugin: a client of the application, which the application closes, or the options of a client that
 * the plugin creates and closes.
 */
export type HoldfastFastifyOptions =
  | { client: LockClient; close?: undefined }
  | (CreateClientOptions & {
      client?: undefined;
      /**
       * The options of the `close()` that the plugin calls in `onClose`, when the server has completed its requests.
       *
       * @defaultValue open holds end with their leases
       */
      close?: CloseOptions | undefined;
    });

/**
 * Functions of a route. As methods they accept the request type of the route, such as `FastifyRequest<{ Params: P }>`.
 */
interface RouteFunctions {
  key(request: FastifyRequest): LockedName | PromiseLike<LockedName>;
  when(request: FastifyRequest): boolean | PromiseLike<boolean>;
  onBusy(busy: RequestBusyError, request: FastifyRequest, reply: FastifyReply): unknown;
}

/** The value of `config.lock` of a route. */
export interface FastifyRouteLock extends RequestCall {
  /**
   * The name of the lock, a list of names, or a function of the request that returns one of the two. The function runs
   * after the `preHandler` hooks of the route, so it can read the parsed and validated request.
   */
  key: LockedName | RouteFunctions['key'];
  /**
   * Whether this request needs the lock. If the condition returns `false`, the request runs without the lock.
   *
   * @defaultValue every request needs the lock
   */
  when?: RouteFunctions['when'] | undefined;
  /**
   * Responds to a request that finds the lock busy: it sends the reply, or returns the payload.
   *
   * @defaultValue throws the error to the error handler. The default handler of Fastify responds with `status` and
   *   `Retry-After`.
   */
  onBusy?: RouteFunctions['onBusy'] | undefined;
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The client of the plugin `holdfast/fastify`. */
    locks: LockClient;
  }

  interface FastifyContextConfig {
    /**
     * The lock that each request of the route holds, from the start of the handler until the reply was sent or aborted.
     */
    lock?: FastifyRouteLock | undefined;
  }
}

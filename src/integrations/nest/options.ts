import type { CloseOptions, CreateClientOptions, LockClient } from '../../index.js';
import type { LockedKind } from '../decorators/index.js';
import type { BusyOptions } from '../http/index.js';

/**
 * The options of a client of the module: a client that the application made and closes, or the options of a client that the
 * module creates and closes.
 */
export type HoldfastModuleOptions =
  | { client: LockClient; close?: undefined }
  | (CreateClientOptions & {
      client?: undefined;
      /**
       * The options of the `close()` that the module calls in `onApplicationShutdown`, when the HTTP server has answered its
       * requests.
       *
       * @defaultValue open holds end with their leases
       */
      close?: CloseOptions | undefined;
    });

/** The options of `forRoot()` and `forRootAsync()` that are known before the module is created. */
export interface HoldfastModuleExtras {
  /**
   * Whether every module of the application can inject the client without an import of this module.
   *
   * @defaultValue `false`
   */
  isGlobal?: boolean | undefined;
  /**
   * The name of the client, for applications with several clients.
   *
   * @defaultValue the client without a name
   */
  name?: string | undefined;
  /**
   * The response to a request that fails with a `LockTimeoutError`, or `false` to leave that error to the filters of the
   * application. The filter answers for the locks of all clients: set it at one of them.
   *
   * @defaultValue 423 with `Retry-After: 1`; `false` for a client with a name
   */
  filter?: BusyOptions | boolean | undefined;
}

/** The options of {@link InjectLock}. */
export interface InjectLockOptions {
  /** The name of the client. @defaultValue the client without a name */
  client?: string | undefined;
  /** The kind of the lock. @defaultValue `lock` */
  kind?: LockedKind | undefined;
}

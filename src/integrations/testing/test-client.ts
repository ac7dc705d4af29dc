import { randomUUID } from 'node:crypto';
import { createClient, type ClientOptions, type LockClient } from '../../index.js';
import { SHARED, startServer, type TestServer } from './server.js';

/** The contexts of Jest lack the symbol in Node.js 20. */
const asyncDispose: typeof Symbol.asyncDispose =
  (Symbol as { asyncDispose?: typeof Symbol.asyncDispose }).asyncDispose ??
  (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);

/** The options of a client that uses the same server and the same names as a {@link TestClient}. */
export interface TestConnection {
  /** The address of the server. */
  readonly url: string;
  /** A prefix that no other test has, or the prefix of the options of {@link startTestClient}. */
  readonly keyPrefix: string;
}

/** A client for tests, with its Redis. {@link startTestClient} creates it. */
export interface TestClient extends AsyncDisposable {
  /** The client. */
  readonly client: LockClient;
  /** Pass them to `createClient` in the code under test: its locks are then those of `client`. */
  readonly connection: TestConnection;
  /**
   * Closes the client and releases its locks. The last one to be closed ends the server, unless the test run shares it.
   * Every call returns the promise of the first call.
   */
  close(): Promise<void>;
}

/** The server that the test clients of this module use, and how many use it. */
let own: { readonly server: Promise<TestServer>; users: number } | undefined;

/**
 * Starts a private Redis and a client of it, in one line. Close it after the tests; then the test runner exits.
 *
 * - The Redis is a process of its own that saves nothing. It is a `redis-server` or `valkey-server` of the `PATH`, or the one
 *   that the environment variable `REDISMS_SYSTEM_BINARY` names. If there is none, redis-memory-server downloads and builds
 *   one, which takes minutes the first time.
 * - Each test file has a server of its own, so files that run at the same time do not meet. With {@link shareTestServer}, a
 *   test run has one server.
 * - Each test client has a key prefix of its own, so tests that share a server do not meet.
 * - The server ends with the process that started it at the latest, also if the tests crash.
 *
 * @param options - the options of the client. With a `keyPrefix`, other test clients with the same prefix share its locks.
 * @throws an error with the code `MODULE_NOT_FOUND` if the package redis-memory-server is not installed.
 * @throws an error with the code `ERR_TEST_SERVER` if there is no Redis to start. Its message says what to install.
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid.
 * @example
 * const { client, connection, close } = await startTestClient();
 * after(close);
 */
export async function startTestClient(options: ClientOptions = {}): Promise<TestClient> {
  const keyPrefix = options.keyPrefix ?? `test-${randomUUID()}:`;
  const { url, release } = await useServer();
  let client: LockClient | undefined;
  try {
    client = createClient({ ...options, url, keyPrefix });
    await client.ready();
  } catch (error) {
    await client?.close();
    await release();
    throw error;
  }
  const started = client;
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= started.close({ releaseHolds: true }).finally(release));
  return { client, connection: { url, keyPrefix }, close, [asyncDispose]: close };
}

async function useServer(): Promise<{ readonly url: string; release(): Promise<void> }> {
  const shared = process.env[SHARED];
  if (shared !== undefined) return { url: shared, release: () => Promise.resolve() };
  const used = (own ??= { server: startServer(), users: 0 });
  used.users += 1;
  const release = async (): Promise<void> => {
    used.users -= 1;
    if (used.users > 0) return;
    if (own === used) own = undefined;
    await (await used.server).stop();
  };
  try {
    return { url: (await used.server).url, release };
  } catch (error) {
    // The next call tries again.
    if (own === used) own = undefined;
    throw error;
  }
}

/** The server that {@link shareTestServer} is starting. */
let sharing: Promise<TestServer> | undefined;

/**
 * Starts one Redis for all processes of a test run. Call it before the test runner starts its processes: as the global setup
 * of Jest or Vitest, or in a script that starts `node --test`. In a process that already has such a server, it does nothing.
 *
 * @returns a function that stops the server. Without that call, the server ends with this process.
 * @throws an error with the code `MODULE_NOT_FOUND` if the package redis-memory-server is not installed.
 * @throws an error with the code `ERR_TEST_SERVER` if there is no Redis to start. Its message says what to install.
 * @example
 * export default shareTestServer; // the global setup of Vitest
 */
export async function shareTestServer(): Promise<() => Promise<void>> {
  const isFirst = sharing === undefined;
  if (process.env[SHARED] !== undefined) return () => Promise.resolve();
  const { url, stop } = await (sharing ??= startServer().finally(() => (sharing = undefined)));
  if (!isFirst) return () => Promise.resolve();
  process.env[SHARED] = url;
  return async () => {
    Reflect.deleteProperty(process.env, SHARED);
    await stop();
  };
}

/* The Redis of a test run: a process of its own that saves nothing. */
import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';

/** The variable that names the server of a whole test run. The processes of the test runner inherit it. */
export const SHARED = 'TEST_REDIS_OF_HOLDFAST';

/** A Redis that runs. */
export interface TestServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** A process that redis-memory-server has started. */
interface Started {
  unref(): void;
  readonly stdout: { unref?(): void } | null;
  readonly stderr: { unref?(): void } | null;
}

/** The part of redis-memory-server that is used here. */
interface MemoryServer {
  getPort(): Promise<number>;
  stop(): Promise<boolean>;
  getInstanceInfo(): { instance: { childProcess: Started | null; killerProcess: Started | null } } | false;
}

/**
 * Starts a Redis on a free port. It does not keep this process alive, and it ends with this process at the latest:
 * redis-memory-server starts a second process that watches both.
 *
 * @throws an error with the code `ERR_TEST_SERVER` if no server can be started.
 */
export async function startServer(): Promise<TestServer> {
  const { RedisMemoryServer } = memoryServer();
  const systemBinary = process.env['REDISMS_SYSTEM_BINARY'] ?? serverOnPath();
  const server = new RedisMemoryServer({
    instance: { ip: '127.0.0.1' },
    ...(systemBinary === undefined ? {} : { binary: { systemBinary } }),
  });
  const port = await server.getPort().catch((cause: unknown) => {
    throw notStarted(systemBinary, cause);
  });
  const url = `redis://127.0.0.1:${port}`;
  const started = server.getInstanceInfo();
  if (started !== false) for (const each of Object.values(processesOf(started.instance))) letExit(each);
  return { url, stop: () => server.stop().then(() => undefined) };
}

const processesOf = ({
  childProcess,
  killerProcess,
}: {
  childProcess: Started | null;
  killerProcess: Started | null;
}) => [childProcess, killerProcess];

function letExit(started: Started | null): void {
  started?.unref();
  started?.stdout?.unref?.();
  started?.stderr?.unref?.();
}

function notStarted(systemBinary: string | undefined, cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const tried =
    systemBinary === undefined
      ? 'no redis-server or valkey-server is on the PATH, and redis-memory-server could not download and build one'
      : `neither ${systemBinary} nor a server that redis-memory-server downloads and builds could be started`;
  const advice = 'install redis-server, or set REDISMS_SYSTEM_BINARY to the path of a redis-server or valkey-server';
  const error = new Error(`holdfast/testing found no Redis: ${tried} (${reason}); ${advice}`, { cause });
  return Object.assign(error, { code: 'ERR_TEST_SERVER' });
}

/** The first server on the PATH. redis-memory-server cannot start a program whose path has a blank. */
function serverOnPath(): string | undefined {
  const folders = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.includes(' '));
  const ending = process.platform === 'win32' ? '.exe' : '';
  return ['redis-server', 'valkey-server']
    .flatMap((name) => folders.map((folder) => join(folder, name + ending)))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

function memoryServer(): { RedisMemoryServer: new (options: object) => MemoryServer } {
  // Jest loads CommonJS without a flag, and no dynamic import.
  const load = createRequire(import.meta.url);
  try {
    return load('redis-memory-server') as ReturnType<typeof memoryServer>;
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== 'MODULE_NOT_FOUND') throw cause;
    const error = new Error(
      'holdfast/testing needs the package redis-memory-server: npm install --save-dev redis-memory-server',
      { cause },
    );
    throw Object.assign(error, { code: 'MODULE_NOT_FOUND' });
  }
}

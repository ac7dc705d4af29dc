import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './free-port.js';
import { MonitorLog } from './monitor-log.js';
import { reapWithUs, reaped } from '../processes/reaper.js';
import { topology } from './topology.mjs';
import { until } from '../time/until.js';

export interface ServerAddress {
  host: string;
  port: number;
}

export interface ServerOptions {
  /** By default HOLDFAST_REDIS_BINARY, the binary the test run has found, or redis-server on the PATH. */
  binary?: string;
  requirepass?: string;
  /** ACL rules, as in `app on >secret ~lock:* +@all`; `default off` closes the door for everybody else. */
  users?: readonly string[];
  /** Keep the users in an ACL file, so that ACL LOAD and ACL SAVE work. */
  aclFile?: boolean;
  /** Command to new name; '' removes it. */
  renameCommands?: Readonly<Record<string, string>>;
  unixSocket?: boolean;
  replicaOf?: ServerAddress;
  /** Watches others instead of keeping data; which ones is said in `config`. */
  sentinel?: boolean;
  /** Alone in a cluster, with all slots. Default: where the suite runs in a cluster. */
  loneMaster?: boolean;
  /** Further lines of redis.conf. */
  config?: Readonly<Record<string, string>>;
}

const START_LIMIT_MS = 20_000;
const ATTEMPTS = 20;

/** The bench's own user, so that its operations work whatever the test forbids the others. */
const BENCH = { username: 'bench', password: 'bench' };

/** Starts a real redis-server that saves nothing, on a free port of the loopback. */
export async function startServer(options: ServerOptions = {}): Promise<RedisServer> {
  const server = new RedisServer(options, await mkdtemp(join(tmpdir(), 'holdfast-')));
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

export class RedisServer {
  readonly host = '127.0.0.1';
  #port = 0;
  #stopped = false;
  #process: ChildProcess | undefined;
  #exited: Promise<unknown> = Promise.resolve();
  #admin: Redis | undefined;
  readonly #monitors = new Set<MonitorLog>();

  constructor(
    private readonly options: ServerOptions,
    private readonly directory: string,
  ) {}

  get port(): number {
    return this.#port;
  }

  get address(): ServerAddress {
    return { host: this.host, port: this.port };
  }

  /** With the password of the default user, if it has one. */
  get url(): string {
    const password = this.options.requirepass;
    return `redis://${password === undefined ? '' : `:${encodeURIComponent(password)}@`}${this.host}:${this.port}`;
  }

  get socketPath(): string {
    if (!this.options.unixSocket) throw new Error('the server was started without unixSocket');
    return join(this.directory, 'redis.sock');
  }

  get running(): boolean {
    return this.#process !== undefined;
  }

  /** By `pause`, until `resume`. */
  get stopped(): boolean {
    return this.#stopped;
  }

  get pid(): number {
    if (this.#process?.pid === undefined) throw new Error('the server is not running');
    return this.#process.pid;
  }

  /** The bench's own connection. It reconnects after a restart. */
  get admin(): Redis {
    return (this.#admin ??= new Redis({
      ...this.address,
      ...(this.#secured && BENCH),
      // Whatever a test renames: the bench needs nothing but the command it sends.
      protocol: 2,
      enableReadyCheck: false,
      disableClientInfo: true,
      maxRetriesPerRequest: null,
      disconnectTimeout: 50,
      retryStrategy: () => 20,
    }).on('error', () => undefined));
  }

  /** Sends a command from the bench's connection, under the name it has been given. */
  command(name: string, ...args: (string | number)[]): Promise<unknown> {
    return this.admin.call(this.#nameOf(name), ...args);
  }

  async start(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      if (this.#port === 0) this.#port = await freePort();
      const failure = await this.#spawn();
      if (failure === undefined) return;
      // Another process was faster. A server that has had clients keeps its address.
      if (attempt === ATTEMPTS || this.#admin || !/in use/i.test(failure)) {
        throw new Error(`redis-server did not start:\n${failure}`);
      }
      this.#port = 0;
    }
  }

  /** Ends it for good, stopped or not, and removes its files. */
  async stop(): Promise<void> {
    for (const monitor of [...this.#monitors]) monitor.stop();
    this.#admin?.disconnect();
    this.#admin = undefined;
    await this.kill9();
    await rm(this.directory, { recursive: true, force: true });
  }

  /** SIGTERM, as an operator would; `start` brings it back. */
  async shutdown(): Promise<void> {
    this.#process?.kill('SIGTERM');
    await this.#exited;
  }

  async kill9(): Promise<void> {
    this.#process?.kill('SIGKILL');
    await this.#exited;
  }

  /** Kills it, if it still runs, and starts it empty at the same address. */
  async restart(): Promise<void> {
    await this.kill9();
    await this.start();
  }

  /** SIGSTOP: it accepts connections (the kernel does) and answers nothing. */
  async pause(): Promise<void> {
    process.kill(this.pid, 'SIGSTOP');
    this.#stopped = true;
    await stopped(this.pid);
  }

  resume(): void {
    this.#stopped = false;
    process.kill(this.pid, 'SIGCONT');
  }

  async clientPause(ms: number, mode: 'ALL' | 'WRITE' = 'ALL'): Promise<void> {
    // Redis 6.0 knows only this one and has no word for it.
    await this.command('CLIENT', 'PAUSE', ms, ...(mode === 'ALL' ? [] : [mode]));
  }

  async clientUnpause(): Promise<void> {
    await this.command('CLIENT', 'UNPAUSE');
  }

  /** Disconnects all subscribers; returns how many there were. */
  async killPubsub(): Promise<number> {
    return Number(await this.command('CLIENT', 'KILL', 'TYPE', 'pubsub'));
  }

  async scriptFlush(): Promise<void> {
    await this.command('SCRIPT', 'FLUSH');
  }

  /** 1 makes every write fail with OOM, 0 lifts the limit. */
  async setMaxmemory(bytes: number): Promise<void> {
    await this.command('CONFIG', 'SET', 'maxmemory', bytes);
  }

  /** A replica answers writes with READONLY. `replicaOf(undefined)` makes it a master again. */
  async replicaOf(master: ServerAddress | undefined): Promise<void> {
    if (master) await this.command('REPLICAOF', master.host, master.port);
    else await this.command('REPLICAOF', 'NO', 'ONE');
  }

  /** Calls by lower-case command name (`config|resetstat` for a subcommand), scripts' own commands included. */
  async commandStats(): Promise<Map<string, number>> {
    const info = String(await this.command('INFO', 'commandstats'));
    return new Map(
      [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name = '', calls]) => [name, Number(calls)]),
    );
  }

  async resetCommandStats(): Promise<void> {
    await this.command('CONFIG', 'RESETSTAT');
  }

  /** Watches every command the server runs, until stopped. */
  async monitor(): Promise<MonitorLog> {
    const mark = (marker: string): Promise<unknown> => this.command('ECHO', marker);
    const requests = [...(this.#secured ? [['AUTH', BENCH.username, BENCH.password]] : []), [this.#nameOf('MONITOR')]];
    const log = await MonitorLog.open(this.address, requests, mark, () => this.#monitors.delete(log));
    this.#monitors.add(log);
    return log;
  }

  async keys(): Promise<string[]> {
    return ((await this.command('KEYS', '*')) as string[]).sort();
  }

  async channels(): Promise<string[]> {
    return ((await this.command('PUBSUB', 'CHANNELS')) as string[]).sort();
  }

  get #secured(): boolean {
    return this.options.users !== undefined || this.options.requirepass !== undefined;
  }

  #nameOf(command: string): string {
    const renamed = Object.entries(this.options.renameCommands ?? {}).find(([from]) => from.toUpperCase() === command);
    if (renamed?.[1] === '') throw new Error(`${command} was removed from this server`);
    return renamed?.[1] ?? command;
  }

  /** Returns the output of a server that ended before it was ready. */
  async #spawn(): Promise<string | undefined> {
    const child = spawn(this.#binary(), [await this.#writeConfig(), ...(this.options.sentinel ? ['--sentinel'] : [])], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    const ready = new Promise<void>((resolve) => {
      const read = (chunk: Buffer): void => {
        said = (said + chunk.toString()).slice(-8_192);
        if (/ready to accept connections|sentinel id is/i.test(said)) resolve();
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
    });
    const failed = new Promise<string>((resolve) => child.once('error', (error) => resolve(String(error))));
    const exited = once(child, 'close').catch(() => undefined);
    if (child.pid !== undefined) {
      const { pid } = child;
      reapWithUs(pid);
      child.once('exit', () => reaped(pid));
    }
    const limit = setTimeout(() => child.kill('SIGKILL'), START_LIMIT_MS);
    const failure = await Promise.race([ready, failed, exited.then(() => said)]);
    clearTimeout(limit);
    if (typeof failure === 'string') return failure;
    this.#process = child;
    this.#stopped = false;
    if (this.#loneMaster) await this.#takeSlots();
    this.#exited = exited.then(() => (this.#process = undefined));
    return undefined;
  }

  get #loneMaster(): boolean {
    const { loneMaster = topology === 'cluster', sentinel, replicaOf, config } = this.options;
    return loneMaster && !sentinel && !replicaOf && config?.['cluster-enabled'] === undefined;
  }

  async #takeSlots(): Promise<void> {
    const info = async (): Promise<string> => String(await this.command('CLUSTER', 'INFO'));
    if ((await info()).includes('cluster_slots_assigned:0'))
      await this.command('CLUSTER', 'ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot));
    await until(async () => (await info()).includes('cluster_state:ok'), 'it serves all slots');
  }

  #binary(): string {
    const { HOLDFAST_REDIS_BINARY: named, HOLDFAST_TEST_REDIS_BINARY: found } = process.env;
    return this.options.binary ?? named ?? found ?? 'redis-server';
  }

  async #writeConfig(): Promise<string> {
    const { options, directory } = this;
    const users = [...(options.users ?? [])];
    // Redis 6.0 knows no permissions for channels.
    const channels = users.some((user) => user.includes('&*')) ? ' &*' : '';
    if (this.#secured) users.push(`${BENCH.username} on >${BENCH.password} ~*${channels} +@all`);
    const lines = [
      'bind 127.0.0.1',
      `port ${this.port}`,
      `dir ${JSON.stringify(directory)}`,
      ...(options.sentinel
        ? ['protected-mode no']
        : ['save ""', 'appendonly no', 'repl-diskless-sync yes', 'repl-diskless-sync-delay 0']),
      ...(this.#loneMaster ? ['cluster-enabled yes'] : []),
      ...Object.entries(options.renameCommands ?? {}).map(
        ([from, to]) => `rename-command ${from} ${JSON.stringify(to)}`,
      ),
      ...Object.entries(options.config ?? {}).map(([name, value]) => `${name} ${value}`),
    ];
    if (options.requirepass !== undefined) lines.push(`requirepass ${JSON.stringify(options.requirepass)}`);
    if (options.unixSocket) lines.push(`unixsocket ${JSON.stringify(this.socketPath)}`);
    if (options.replicaOf) lines.push(`replicaof ${options.replicaOf.host} ${options.replicaOf.port}`);
    const userLines = users.map((user) => `user ${user}`);
    if (options.aclFile) {
      const aclFile = join(directory, 'users.acl');
      await writeFile(aclFile, `${userLines.join('\n')}\n`);
      lines.push(`aclfile ${JSON.stringify(aclFile)}`);
    } else {
      lines.push(...userLines);
    }
    const file = join(directory, 'redis.conf');
    await writeFile(file, `${lines.join('\n')}\n`);
    return file;
  }
}

/** The signal is sent at once; the process stands when the kernel says so. */
export async function stopped(pid: number): Promise<void> {
  if (process.platform !== 'linux') return;
  await until(
    async () => /^\d+ \(.*\) [Tt]/s.test(await readFile(`/proc/${pid}/stat`, 'utf8')),
    `process ${pid} has been stopped`,
  );
}

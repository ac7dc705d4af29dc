import { Redis } from 'ioredis';
import { startRedisServer } from '../tests/support/servers/redis-server.mjs';
import { Worker } from './processes.js';

/** What the clients of all peers send, as against what only runs inside their scripts. */
const SENT = ['evalsha', 'eval', 'subscribe', 'unsubscribe', 'ping'];
/** Commands of the bench itself. */
const OWN = /^(info|flushall|dbsize)$/;

export interface CommandCounts {
  /** What clients sent: each is a message there and an answer back. */
  readonly requests: number;
  /** The keep-alives among them. */
  readonly pings: number;
  /** What the server ran, with the commands inside scripts. */
  readonly commands: number;
}

/** The Redis under measurement, and what it says of itself. */
export class BenchServer implements AsyncDisposable {
  /** A proxy in a process of its own, from the first workload that needs it on. */
  #delay: { readonly proxy: Worker; readonly server: Promise<BenchServer> } | undefined;

  private constructor(
    readonly url: string,
    private readonly admin: Redis,
    private readonly stop: () => Promise<unknown>,
    readonly isDelayed = false,
  ) {}

  static async start(say: (line: string) => void): Promise<BenchServer> {
    const server = await startRedisServer({ say });
    return new BenchServer(server.url, new Redis(server.url), () => server.stop());
  }

  /** The same Redis, behind a network. It ends with this one. */
  delayed(): Promise<BenchServer> {
    if (this.isDelayed) throw new Error('this server is behind a network already');
    if (this.#delay === undefined) {
      const proxy = new Worker();
      const open = async (): Promise<BenchServer> => {
        const [way] = await proxy.run('openDelays', [this.url]);
        return new BenchServer(way!, this.admin, () => Promise.resolve(), true);
      };
      this.#delay = { proxy, server: open() };
    }
    return this.#delay.server;
  }

  async version(): Promise<string> {
    return /^(?:redis|valkey)_version:(\S+)/m.exec(await this.admin.info('server'))?.[1] ?? 'unknown';
  }

  async pid(): Promise<number> {
    return Number(/process_id:(\d+)/.exec(await this.admin.info('server'))![1]);
  }

  async clear(): Promise<void> {
    await this.admin.flushall();
  }

  keys(): Promise<number> {
    return this.admin.dbsize();
  }

  /** What was sent and run while `work` lasted. `alsoSent`: names that this peer sends outside of scripts, too. */
  async countCommands<T>(alsoSent: readonly string[], work: () => Promise<T>): Promise<CommandCounts & { result: T }> {
    const before = await this.#calls();
    const result = await work();
    const after = await this.#calls();
    const made = [...after].map(([name, calls]) => ({ name, calls: calls - (before.get(name) ?? 0) }));
    const sum = (counts: (name: string) => boolean): number =>
      made.filter(({ name }) => counts(name)).reduce((total, { calls }) => total + calls, 0);
    return {
      requests: sum((name) => SENT.includes(name) || alsoSent.includes(name)),
      pings: sum((name) => name === 'ping'),
      commands: sum((name) => !OWN.test(name)),
      result,
    };
  }

  /** Scripts that clients have sent so far. */
  async countSent(): Promise<number> {
    return (await this.#calls()).get('evalsha') ?? 0;
  }

  async #calls(): Promise<Map<string, number>> {
    const info = await this.admin.info('commandstats');
    return new Map(
      [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, calls]) => [name!, Number(calls)]),
    );
  }

  /** Seconds of CPU that the server has used so far. */
  async cpuSeconds(): Promise<number> {
    const info = await this.admin.info('cpu');
    const used = [...info.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)];
    return used.reduce((sum, [, seconds]) => sum + Number(seconds), 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#delay?.proxy[Symbol.asyncDispose]();
    this.admin.disconnect();
    await this.stop();
  }
}

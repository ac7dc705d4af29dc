import { ClientClosedError, LockError, RedisUnavailableError } from '../errors.js';
import type { CommandPort } from '../redis/connections/attempt.js';
import { ScriptExecutor } from '../redis/requests/script-executor.js';
import type { Operation } from '../redis/scripts/script.js';
import type { Topology } from '../redis/topologies/topology.js';
import { clientsIn, type OwnerProcess } from './owner-process.js';
import { connections, subscribers } from '../redis/scripts/server.js';
import { CONNECTIONS_MS } from '../timing.js';

/** Resolves when the next command may be sent. A large command counts as several. */
export type Pace = (commands?: number) => Promise<void>;

/** Number of characters that count as one command more. */
const LARGE = 1_000_000;

/** As how many commands this text counts. */
export const weightOf = (texts: readonly (string | number)[]): number =>
  1 + Math.floor(texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0) / LARGE);

/** One server that has keys, and the requests that go to it regardless of their keys. */
export class Server {
  readonly #executor: ScriptExecutor;
  #clients: Promise<ReadonlyMap<string, OwnerProcess>> | undefined;
  #clientsReadAt = -Infinity;

  constructor(
    private readonly client: ScriptExecutor,
    private readonly topology: Topology,
    connection: CommandPort,
    private readonly pace: Pace | undefined,
    /** `undefined`: the client has one server. */
    readonly address: string | undefined,
  ) {
    const routes = {
      publish: topology.publish,
      connectionFor: () => connection,
      connect: (_key: string, _confirmed: boolean, until: number) => connection.whenReady(until).then(() => connection),
      redirected: () => undefined,
    };
    this.#executor = new ScriptExecutor(routes, client.clock, client.commandTimeout, client.attemptMs);
  }

  /** Whether the waiters of this server use sharded channels. */
  get sharded(): boolean {
    return this.topology.publish === 'SPUBLISH';
  }

  async ask<Keys extends readonly string[], Args extends readonly (string | number)[], Reply>(
    operation: Operation<Keys, Args, Reply>,
    keys: Keys,
    args: Args,
  ): Promise<Reply> {
    await this.pace?.(weightOf([...keys, ...args]));
    try {
      return await this.#executor.ask(operation, keys, args);
    } catch (cause) {
      if (this.client.closed) throw new ClientClosedError({ cause });
      throw cause;
    }
  }

  /** The number of subscribers of each channel. */
  subscribers(channels: readonly string[]): Promise<number[]> {
    return this.ask(subscribers, [], [this.sharded ? 'shardnumsub' : 'numsub', ...channels]);
  }

  /** The Holdfast clients that are connected to this server, by client id; empty if Redis refuses the command. */
  clients(): Promise<ReadonlyMap<string, OwnerProcess>> {
    const now = this.client.clock.monotonic();
    if (this.#clients === undefined || now - this.#clientsReadAt > CONNECTIONS_MS) {
      this.#clientsReadAt = now;
      this.#clients = this.ask(connections, [], ['list']).then(clientsIn, () => new Map<string, OwnerProcess>());
    }
    return this.#clients;
  }
}

/** The servers of one client. */
export class Servers {
  readonly #servers = new WeakMap<CommandPort, Server>();

  constructor(
    private readonly executor: ScriptExecutor,
    private readonly topology: Topology,
    private readonly pace?: Pace,
  ) {}

  /** Every server that has keys, and what is `missing` of them. Rejects like any request if all are unavailable. */
  async all(): Promise<{ readonly servers: readonly Server[]; readonly missing: readonly string[] }> {
    const { clock, commandTimeout } = this.executor;
    try {
      const { ready, missing } = await this.topology.masters(clock.monotonic() + commandTimeout);
      return { servers: ready.map(({ connection, address }) => this.#at(connection, address)), missing };
    } catch (cause) {
      if (this.executor.closed) throw new ClientClosedError({ cause });
      if (cause instanceof LockError) throw cause;
      throw new RedisUnavailableError(`Redis was not ready within ${commandTimeout} ms`, 'none', { cause });
    }
  }

  /** The server of a key, if it is known. */
  of(key: string): Server | undefined {
    const connection = this.topology.connectionFor(key, false);
    return connection && this.#at(connection);
  }

  #at(connection: CommandPort, address?: string): Server {
    let server = this.#servers.get(connection);
    if (server === undefined || (server.address === undefined && address !== undefined)) {
      server = new Server(this.executor, this.topology, connection, this.pace, address);
      this.#servers.set(connection, server);
    }
    return server;
  }
}

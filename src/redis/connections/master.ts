import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.js';
import type { ReplicaOptions } from '../../options.js';
import type { CommandPort } from './attempt.js';
import { CommandConnection, type ConnectionReports } from './command-connection.js';
import { ReplicatedConnection } from './replicated-connection.js';
import { Subscriber, type SubscriberReports } from './subscriber.js';

export interface MasterReports {
  error(connection: 'command' | 'subscriber', cause: unknown): void;
  clockUnavailable(cause: unknown): void;
  /** A connection to the server closed. */
  disconnected?(): void;
}

/** The connections of a client to one server that owns keys. */
export class Master {
  readonly commands: CommandConnection;
  #replicated: ReplicatedConnection | undefined;
  #subscriber: Subscriber | undefined;
  readonly #commandReports: ConnectionReports;

  constructor(
    private readonly open: () => Redis,
    private readonly clock: Clock,
    private readonly attemptMs: number,
    private readonly replicas: ReplicaOptions | undefined,
    private readonly reports: MasterReports,
  ) {
    this.#commandReports = {
      error: (cause) => reports.error('command', cause),
      clockUnavailable: (cause) => reports.clockUnavailable(cause),
      disconnected: () => reports.disconnected?.(),
    };
    this.commands = new CommandConnection(open(), clock, attemptMs, this.#commandReports);
  }

  /** `confirmed`: the connection for commands whose effect the replicas must confirm. */
  connection(confirmed: boolean): CommandPort {
    if (!confirmed || this.replicas === undefined) return this.commands;
    return (this.#replicated ??= new ReplicatedConnection(
      this.open(),
      this.clock,
      this.attemptMs,
      this.replicas,
      this.#commandReports,
    ));
  }

  /** Resolves when every kind of command can be sent, so that the first acquire does not wait for a connection. */
  async whenReady(until: number): Promise<void> {
    await Promise.all([this.commands, this.connection(true)].map((connection) => connection.whenReady(until)));
  }

  has(connection: CommandPort): boolean {
    return connection === this.commands || connection === this.#replicated;
  }

  /** The connection for subscriptions. The first call creates it. */
  subscriber(sharded: boolean, moved: SubscriberReports['moved']): Subscriber {
    return (this.#subscriber ??= new Subscriber(this.open(), this.clock, sharded, {
      error: (cause) => this.reports.error('subscriber', cause),
      disconnected: () => this.reports.disconnected?.(),
      moved,
    }));
  }

  /** At least one connection is needed but not ready. */
  get unavailable(): boolean {
    return (
      this.commands.unavailable || (this.#replicated?.unavailable ?? false) || (this.#subscriber?.unavailable ?? false)
    );
  }

  /** Call this when the server no longer owns keys. Replies to pending commands are still read. */
  retire(): void {
    this.commands.retire();
    this.#replicated?.retire();
    this.#subscriber?.close();
  }

  close(): void {
    this.commands.close();
    this.#replicated?.close();
    this.#subscriber?.close();
  }
}

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
  /** A connection to it closed. */
  away?(): void;
}

/** Our connections to one server that keys are on. */
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
      away: () => reports.away?.(),
    };
    this.commands = new CommandConnection(open(), clock, attemptMs, this.#commandReports);
  }

  /** `confirmed`: for a command whose effect has to be on replicas as well. */
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

  /** Resolves when all kinds of commands can be sent, so that the first grant need not wait for a connection. */
  async whenReady(until: number): Promise<void> {
    await Promise.all([this.commands, this.connection(true)].map((connection) => connection.whenReady(until)));
  }

  has(connection: CommandPort): boolean {
    return connection === this.commands || connection === this.#replicated;
  }

  /** The connection for subscriptions; made when the first is wanted. */
  subscriber(sharded: boolean, moved: SubscriberReports['moved']): Subscriber {
    return (this.#subscriber ??= new Subscriber(this.open(), this.clock, sharded, {
      error: (cause) => this.reports.error('subscriber', cause),
      away: () => this.reports.away?.(),
      moved,
    }));
  }

  /** Some connection is wanted and not there. */
  get away(): boolean {
    return this.commands.away || (this.#replicated?.away ?? false) || (this.#subscriber?.away ?? false);
  }

  /** No key is here any more. What is under way is still read. */
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

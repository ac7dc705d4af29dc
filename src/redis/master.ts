import type { Redis } from 'ioredis';
import type { Clock } from '../clock.js';
import { CommandConnection } from './command-connection.js';
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
  #subscriber: Subscriber | undefined;

  constructor(
    private readonly open: () => Redis,
    private readonly clock: Clock,
    attemptMs: number,
    private readonly reports: MasterReports,
  ) {
    this.commands = new CommandConnection(open(), clock, attemptMs, {
      error: (cause) => reports.error('command', cause),
      clockUnavailable: (cause) => reports.clockUnavailable(cause),
      away: () => reports.away?.(),
    });
  }

  /** The connection for subscriptions; made when the first is wanted. */
  subscriber(sharded: boolean, moved: SubscriberReports['moved']): Subscriber {
    return (this.#subscriber ??= new Subscriber(this.open(), this.clock, sharded, {
      error: (cause) => this.reports.error('subscriber', cause),
      away: () => this.reports.away?.(),
      moved,
    }));
  }

  get hasSubscriber(): boolean {
    return this.#subscriber !== undefined;
  }

  /** Some connection is wanted and not there. */
  get away(): boolean {
    return this.commands.away || (this.#subscriber?.away ?? false);
  }

  /** No key is here any more. What is under way is still read. */
  retire(): void {
    this.commands.retire();
    this.#subscriber?.close();
  }

  close(): void {
    this.commands.close();
    this.#subscriber?.close();
  }
}

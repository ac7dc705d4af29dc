import type { ChannelListener } from '../redis/connections/subscriber.js';
import type { ChannelSource } from '../redis/topologies/topology.js';

/** The subscription of one entry: begun for the first who has to wait, kept for a while after the last has left. */
export class EntrySubscription {
  #wanted = false;

  constructor(
    private readonly source: ChannelSource,
    private channel: string,
    private readonly entry: ChannelListener,
  ) {}

  get wanted(): boolean {
    return this.#wanted;
  }

  get isConfirmed(): boolean {
    return this.source.isConfirmed(this.channel);
  }

  begin(): void {
    this.#wanted = true;
    this.source.want(this.channel, this.entry);
  }

  end(): void {
    this.#wanted = false;
    this.source.forget(this.channel, this.entry);
  }

  isAt(channel: string): boolean {
    return channel === this.channel;
  }

  /** The one waiter of the entry will be told there. */
  moveTo(channel: string): void {
    this.channel = channel;
  }
}

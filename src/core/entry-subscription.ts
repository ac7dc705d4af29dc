import type { ChannelListener } from '../redis/subscriber.js';
import type { ChannelSource } from '../redis/topology.js';
import type { LocalLine } from './local-line.js';
import { SharedWaiter } from './shared-waiter.js';
import type { Waiter } from './waiter.js';

/** The subscription of one entry: begun for the first who has to wait, kept for a while after the last has left. */
export class EntrySubscription {
  #wanted = false;

  constructor(
    private readonly source: ChannelSource,
    private channel: string,
    private readonly entry: ChannelListener,
    private readonly line: LocalLine,
  ) {}

  get wanted(): boolean {
    return this.#wanted;
  }

  get isConfirmed(): boolean {
    return this.source.isConfirmed(this.channel);
  }

  begin(): void {
    this.#wanted = true;
    const fresh = this.source.want(this.channel, this.entry);
    for (const waiter of this.line) {
      if (!(waiter instanceof SharedWaiter) || !waiter.inLine) continue;
      waiter.asked = true;
      waiter.covered ||= fresh;
    }
  }

  end(): void {
    this.#wanted = false;
    this.source.forget(this.channel, this.entry);
  }

  joined(waiter: Waiter): void {
    if (this.#wanted && waiter instanceof SharedWaiter && waiter.forAll) this.#cover();
  }

  confirmed(): void {
    for (const waiter of this.line) if (waiter instanceof SharedWaiter) waiter.covered ||= waiter.asked;
    if (this.#wanted) this.#cover();
  }

  /** Who joined late learns from a further confirmation which messages are not older than its wait; one at a time. */
  #cover(): void {
    let uncovered = false;
    for (const waiter of this.line) {
      if (!(waiter instanceof SharedWaiter) || waiter.covered) continue;
      if (waiter.asked) return;
      uncovered ||= waiter.forAll && waiter.inLine;
    }
    if (uncovered) this.begin();
  }

  isAt(channel: string): boolean {
    return channel === this.channel;
  }

  /** The one waiter of the entry will be told there. */
  moveTo(channel: string): void {
    this.channel = channel;
  }
}

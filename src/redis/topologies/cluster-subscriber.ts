import type { ChannelListener, ChannelSource } from '../connections/channel-source.js';
import type { Subscriber } from '../connections/subscriber.js';

interface Placed {
  readonly listeners: Set<ChannelListener>;
  at: Subscriber | undefined;
}

/** Subscribes to each channel at the master of its slot, and moves the subscription when the slot moves. */
export class ClusterSubscriber implements ChannelSource {
  readonly #channels = new Map<string, Placed>();
  /** Number of channels at each server. Only servers in this map are watched. */
  readonly #counts = new Map<Subscriber, number>();
  /** Servers that have none of the channels any more. They may still count the last subscriptions. */
  readonly #left = new Set<Subscriber>();
  #attended = false;

  constructor(
    /** The connection to the server of a channel, if the server is known. */
    private readonly subscriberFor: (channel: string) => Subscriber | undefined,
    /** Called when the server of a channel is unknown: requests a new map of the cluster. */
    private readonly lookFor: () => void,
  ) {}

  want(channel: string, listener: ChannelListener): void {
    const placed = this.#channels.get(channel) ?? { listeners: new Set(), at: undefined };
    this.#channels.set(channel, placed);
    const at = this.subscriberFor(channel);
    // If the channel has other listeners, the client subscribes again, and every listener gets the confirmation.
    if (at !== undefined && at === placed.at) at.want(channel, listener);
    else this.#take(channel, placed);
    placed.listeners.add(listener);
    this.#place(channel, placed);
  }

  forget(channel: string, listener: ChannelListener): void {
    const placed = this.#channels.get(channel);
    if (!placed?.listeners.has(listener)) return;
    if (placed.listeners.size > 1) {
      placed.at?.forget(channel, listener);
      placed.listeners.delete(listener);
      return;
    }
    this.#channels.delete(channel);
    this.#take(channel, placed);
  }

  isConfirmed(channel: string): boolean {
    return this.#channels.get(channel)?.at?.isConfirmed(channel) ?? false;
  }

  *leaving(): Iterable<string> {
    for (const at of this.#counts.keys()) yield* at.leaving();
    for (const at of this.#left) yield* at.leaving();
  }

  attend(attended: boolean): void {
    this.#attended = attended;
    for (const subscriber of this.#counts.keys()) subscriber.attend(attended);
  }

  get channelCount(): number {
    return this.#channels.size;
  }

  /** Call this when slots have moved. Moves every subscription to the current server of its slot. */
  follow(): void {
    for (const [channel, placed] of this.#channels) this.#place(channel, placed);
  }

  #place(channel: string, placed: Placed): void {
    const at = this.subscriberFor(channel);
    if (at === undefined) this.lookFor();
    if (at === undefined || at === placed.at) return;
    this.#take(channel, placed);
    placed.at = at;
    this.#left.delete(at);
    this.#counts.set(at, (this.#counts.get(at) ?? 0) + 1);
    at.attend(this.#attended);
    for (const listener of [...placed.listeners]) at.want(channel, listener);
  }

  #take(channel: string, placed: Placed): void {
    const { at } = placed;
    if (at === undefined) return;
    placed.at = undefined;
    for (const listener of placed.listeners) at.forget(channel, listener);
    const left = (this.#counts.get(at) ?? 1) - 1;
    if (left > 0) {
      this.#counts.set(at, left);
    } else {
      this.#counts.delete(at);
      for (const each of this.#left) if ([...each.leaving()].length === 0) this.#left.delete(each);
      this.#left.add(at);
      at.attend(false);
    }
  }
}

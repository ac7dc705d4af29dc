import type { Redis } from 'ioredis';
import type { Clock, Timer } from '../clock.js';
import type { RefusedError } from '../errors.js';
import { failureKind, refusal } from './server-error.js';

export interface ChannelListener {
  message(payload: string): void;
  /** The server confirmed the subscription: what was published before may have been missed. */
  confirmed(): void;
  /** The server refuses this channel for good. */
  refused(error: RefusedError): void;
}

interface Channel {
  /** Several may listen to one channel, as readers and writers do. */
  readonly listeners: Set<ChannelListener>;
  /** SUBSCRIBE and UNSUBSCRIBE of this connection without an answer. A confirmation counts when it leaves none. */
  unanswered: number;
  confirmed: boolean;
}

/** While somebody waits, silence must not be mistaken for a lock that is busy. */
const PING_MS = 5_000;
const RESUBSCRIBE_BATCH = 100;
const RETRY_MS = 250;

/**
 * The connection that carries subscriptions. It keeps the set of wanted channels itself and subscribes them again after
 * every reconnection; ioredis forgets them all when the connection is cut twice in a row.
 */
export class Subscriber {
  readonly #channels = new Map<string, Channel>();
  #ready = false;
  #closed = false;
  /** Tells answers of this connection from those of an earlier one. */
  #epoch = 0;
  #attended = false;
  #ping: Timer | undefined;
  #retry: Timer | undefined;

  constructor(
    private readonly redis: Redis,
    private readonly clock: Clock,
    reportError: (cause: unknown) => void,
  ) {
    redis.on('ready', () => this.#becomeReady());
    redis.on('close', () => this.#becomeAway());
    redis.on('error', reportError);
    redis.on('message', (channel: string, payload: string) => {
      for (const listener of this.#channels.get(channel)?.listeners ?? []) listener.message(payload);
    });
  }

  /**
   * Subscribes; `listener.confirmed()` follows now and after every reconnection until `forget`. True if nothing of an
   * earlier subscription can arrive any more: every message that does was published after this call.
   */
  want(name: string, listener: ChannelListener): boolean {
    if (this.#closed) return false;
    const known = this.#channels.get(name);
    const channel = known ?? { listeners: new Set(), unanswered: 0, confirmed: false };
    channel.listeners.add(listener);
    this.#channels.set(name, channel);
    if (this.#ready) this.#subscribe([name]);
    else if (this.redis.status === 'wait') this.redis.connect().catch(() => undefined); // its errors arrive as events
    return known === undefined;
  }

  forget(name: string, listener: ChannelListener): void {
    const channel = this.#channels.get(name);
    if (!channel?.listeners.delete(listener) || channel.listeners.size > 0) return;
    channel.confirmed = false;
    if (this.#ready) this.#unsubscribe(name, channel);
    else this.#channels.delete(name);
  }

  isConfirmed(name: string): boolean {
    return this.#channels.get(name)?.confirmed ?? false;
  }

  get channelCount(): number {
    return this.#channels.size;
  }

  /** Whether anybody waits; only then is the connection watched. */
  attend(attended: boolean): void {
    if (attended === this.#attended) return;
    this.#attended = attended;
    this.#ping?.cancel();
    this.#ping = undefined;
    if (attended) this.#schedulePing();
  }

  close(): void {
    this.#closed = true;
    this.#ready = false;
    this.attend(false);
    this.#retry?.cancel();
    this.#channels.clear();
    this.redis.disconnect();
  }

  #becomeReady(): void {
    if (this.#closed) return;
    this.#ready = true;
    this.#subscribeMissing();
  }

  #becomeAway(): void {
    this.#ready = false;
    this.#epoch += 1;
    for (const [name, channel] of this.#channels) {
      channel.unanswered = 0;
      channel.confirmed = false;
      if (channel.listeners.size === 0) this.#channels.delete(name);
    }
  }

  #subscribeMissing(): void {
    const missing: string[] = [];
    for (const [name, channel] of this.#channels) {
      if (channel.listeners.size > 0 && !channel.confirmed && channel.unanswered === 0) missing.push(name);
    }
    for (let i = 0; i < missing.length; i += RESUBSCRIBE_BATCH)
      this.#subscribe(missing.slice(i, i + RESUBSCRIBE_BATCH));
  }

  #subscribe(names: string[]): void {
    const epoch = this.#epoch;
    for (const name of names) this.#asked(name);
    this.redis.subscribe(...names).then(
      () => {
        if (epoch !== this.#epoch) return;
        for (const name of names) {
          const channel = this.#answered(name);
          if (channel?.unanswered !== 0 || channel.listeners.size === 0) continue;
          channel.confirmed = true;
          for (const listener of channel.listeners) listener.confirmed();
        }
      },
      (error: unknown) => {
        if (epoch !== this.#epoch) return;
        const refused = failureKind(error as Error) === 'refused';
        for (const name of names) {
          const channel = this.#answered(name);
          // One refused channel fails its whole batch: ask for each alone to find out which.
          if (refused && names.length > 1) this.#subscribe([name]);
          else if (refused) {
            const refused = refusal(`the subscription to ${name}`, error as Error);
            for (const listener of [...(channel?.listeners ?? [])]) listener.refused(refused);
          }
        }
        if (!refused) this.#subscribeMissingSoon();
      },
    );
  }

  #unsubscribe(name: string, channel: Channel): void {
    const epoch = this.#epoch;
    channel.unanswered += 1;
    this.redis.unsubscribe(name).then(
      () => {
        if (epoch !== this.#epoch) return;
        this.#answered(name);
        if (channel.unanswered === 0 && channel.listeners.size === 0) this.#channels.delete(name);
      },
      () => {
        if (epoch !== this.#epoch) return;
        this.#answered(name);
        this.#subscribeMissingSoon();
      },
    );
  }

  #asked(name: string): void {
    const channel = this.#channels.get(name);
    if (channel !== undefined) channel.unanswered += 1;
  }

  #answered(name: string): Channel | undefined {
    const channel = this.#channels.get(name);
    if (channel !== undefined) channel.unanswered -= 1;
    return channel;
  }

  #subscribeMissingSoon(): void {
    this.#retry?.cancel();
    this.#retry = this.clock.setTimer(RETRY_MS, () => {
      if (this.#ready) this.#subscribeMissing();
    });
  }

  #schedulePing(): void {
    this.#ping = this.clock.setTimer(PING_MS, () => {
      // An unanswered PING is ended by the connection's socket time-out, and the reconnection subscribes again.
      if (this.#ready) this.redis.ping().catch(() => undefined);
      this.#schedulePing();
    });
  }
}

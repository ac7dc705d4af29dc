import type { Redis } from 'ioredis';
import type { Clock, Timer } from '../../clock.js';
import { redirectionIn, type Redirection } from '../cluster-slots.js';
import type { ChannelListener, ChannelSource } from './channel-source.js';
import { connect, keepTrying } from './own-connection.js';
import { failureKind, isCredentialsError, refusal, withoutArguments } from '../server-error.js';

export interface SubscriberReports {
  error(cause: unknown): void;
  /** It closed; it is being made again. */
  away(): void;
  /** In a cluster: some channel's slot is elsewhere now; where, if the server said so. */
  moved: ((to: Redirection | undefined) => void) | undefined;
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
export class Subscriber implements ChannelSource {
  readonly #channels = new Map<string, Channel>();
  #ready = false;
  #closed = false;
  /** Tells answers of this connection from those of an earlier one. */
  #epoch = 0;
  #attended = false;
  #ping: Timer | undefined;
  #retry: Timer | undefined;
  readonly #stopTrying: () => void;

  /** Private for good: it has the password, and whoever logs a lock would log it, too. */
  readonly #redis: Redis;

  constructor(
    redis: Redis,
    private readonly clock: Clock,
    private readonly sharded: boolean,
    private readonly reports: SubscriberReports,
  ) {
    this.#redis = redis;
    redis.on('ready', () => this.#becomeReady());
    redis.on('close', () => this.#becomeAway());
    this.#stopTrying = keepTrying(redis, clock);
    redis.on('error', (error: Error) => {
      reports.error(withoutArguments(error));
      // An older ioredis takes the server's word that a slot has left for an answer to a command it never sent.
      if (error.message.startsWith('Command queue state error')) redis.disconnect(true);
      // Waiting longer does not help against a wrong password, as with commands.
      if (isCredentialsError(error)) for (const name of [...this.#channels.keys()]) this.#refused(name, error);
    });
    redis.on(sharded ? 'smessage' : 'message', (channel: string) => {
      for (const listener of this.#channels.get(channel)?.listeners ?? []) listener.message();
    });
    // The server has dropped subscriptions because their slot left. It does not say to us which.
    if (sharded) redis.on('moved', () => this.#checkAll());
  }

  want(name: string, listener: ChannelListener): void {
    if (this.#closed) return;
    const channel = this.#channels.get(name) ?? { listeners: new Set(), unanswered: 0, confirmed: false };
    channel.listeners.add(listener);
    this.#channels.set(name, channel);
    if (this.#ready) this.#subscribe([name]);
    else if (this.#redis.status === 'wait') connect(this.#redis);
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

  /** It is wanted and not there. */
  get away(): boolean {
    return !this.#ready && !this.#closed && this.#redis.status !== 'wait';
  }

  get channelCount(): number {
    return this.#channels.size;
  }

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
    this.#stopTrying();
    this.attend(false);
    this.#retry?.cancel();
    this.#channels.clear();
    this.#redis.disconnect();
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
    if (this.#closed) return;
    this.reports.away();
    for (const { listeners } of [...this.#channels.values()]) for (const listener of [...listeners]) listener.cut();
  }

  /** Each is subscribed again: the server confirms what it still has, and says where the others went. */
  #checkAll(): void {
    if (!this.#ready) return;
    this.reports.moved?.(undefined);
    const wanted: string[] = [];
    for (const [name, channel] of this.#channels) {
      channel.confirmed = false;
      if (channel.listeners.size > 0) wanted.push(name);
    }
    this.#subscribeAll(wanted);
  }

  #subscribeMissing(): void {
    const missing: string[] = [];
    for (const [name, channel] of this.#channels) {
      if (channel.listeners.size > 0 && !channel.confirmed && channel.unanswered === 0) missing.push(name);
    }
    this.#subscribeAll(missing);
  }

  #subscribeAll(names: string[]): void {
    // Channels of different slots cannot go in one SSUBSCRIBE.
    const batch = this.sharded ? 1 : RESUBSCRIBE_BATCH;
    for (let i = 0; i < names.length; i += batch) this.#subscribe(names.slice(i, i + batch));
  }

  #subscribe(names: string[]): void {
    const epoch = this.#epoch;
    for (const name of names) this.#asked(name);
    (this.sharded ? this.#redis.ssubscribe(...names) : this.#redis.subscribe(...names)).then(
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
          this.#answered(name);
          // One refused channel fails its whole batch: ask for each alone to find out which.
          if (refused && names.length > 1) this.#subscribe([name]);
          else if (refused) this.#refused(name, error as Error);
        }
        if (refused) return;
        const redirection = redirectionIn((error as Error).message);
        if (redirection !== undefined) this.reports.moved?.(redirection);
        this.#subscribeMissingSoon();
      },
    );
  }

  #unsubscribe(name: string, channel: Channel): void {
    const epoch = this.#epoch;
    channel.unanswered += 1;
    (this.sharded ? this.#redis.sunsubscribe(name) : this.#redis.unsubscribe(name)).then(
      () => {
        if (epoch !== this.#epoch) return;
        this.#answered(name);
        if (channel.unanswered === 0 && channel.listeners.size === 0) this.#channels.delete(name);
      },
      () => {
        if (epoch !== this.#epoch) return;
        this.#answered(name);
        // Its slot has left this server, and the subscription with it.
        if (channel.unanswered === 0 && channel.listeners.size === 0) this.#channels.delete(name);
        this.#subscribeMissingSoon();
      },
    );
  }

  #refused(name: string, error: Error): void {
    const refused = refusal(`the subscription to ${name}`, error, { channel: name });
    for (const listener of [...(this.#channels.get(name)?.listeners ?? [])]) listener.refused(refused);
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
      if (this.#ready) this.#redis.ping().catch(() => undefined);
      this.#schedulePing();
    });
  }
}
